# SPDX-License-Identifier: GPL-2.0
"""`lab/lab matrix`: boots of selftests/lab-tests.json on pairs of kernels."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace

from . import kernels, suite
from .ktap import FAILED, PASSED, SKIPPED, Result
from .record import Record
from .suite import Boot, Tally
from .util import LabError

# A cell of the table: the worst that a test's lines say.
WORDS = {FAILED: "FAIL", PASSED: "ok", SKIPPED: "skip"}
PART = "part"      # passed, but for what was skipped


@dataclass(frozen=True)
class Pair:
    host: str
    guest: str
    boots: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.host}/{self.guest}"


def load(data: dict, known: list[str]) -> list[Pair]:
    """The pairs of kernels.json; @known: names of boots. One that is there
    several times gets the boots of all."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, spec in data["matrix"].items():
        for words in spec["pairs"]:
            host, guest = words.split("/")
            for kernel in (host, guest):
                if kernel not in data["kernels"]:
                    raise LabError(f"matrix {name}: there is no kernel {kernel}")
            boots = pairs.setdefault((host, guest), [])
            boots += [b for b in spec["boots"] if b not in boots]
        for boot in spec["boots"]:
            if boot not in known:
                raise LabError(f"matrix {name}: there is no boot {boot}")
    return [Pair(*pair, tuple(boots)) for pair, boots in pairs.items()]


def chosen(pairs: list[Pair], boots: dict[str, Boot],
           pattern: re.Pattern) -> list[Boot]:
    """@boots: by name."""
    return [on_pair(boots[b], p) for p in pairs for b in p.boots
            if pattern.search(f"{p.name} {b}")
            and suite.fits(boots[b], p.host, p.guest)]


def on_pair(boot: Boot, pair: Pair) -> Boot:
    return replace(boot, name=f"{pair.name} {boot.name}",
                   slow=kernels.slowness(pair.host, pair.guest),
                   args=boot.args + ["--host-kernel", pair.host,
                                     "--guest-kernel", pair.guest])


def cells(pair: Pair, results: list[Result]) -> dict[str, str]:
    """What the table shows of a pair: a word for each "boot: test"."""
    states: dict[str, set[str]] = {}
    for r in results:
        if r.name.startswith(f"{pair.name} "):
            # "PAIR BOOT: WHERE/TEST: what exactly"
            test = ": ".join(r.name[len(pair.name) + 1:].split(": ")[:2])
            states.setdefault(test, set()).add(r.state)
    return {test: PART if s == {PASSED, SKIPPED} else
            WORDS[FAILED if FAILED in s else s.pop()]
            for test, s in states.items()}


def table(pairs: list[Pair], results: list[Result],
          releases: dict[str, str]) -> str:
    """@releases: by the name of the kernel."""
    columns = [cells(p, results) for p in pairs]
    tests = sorted({t for c in columns for t in c})
    width = max((len(t) for t in tests), default=0)
    names = max(len(p.name) for p in pairs) if pairs else 0
    lines = [f"{n:3}  {p.name:{names}}  {releases[p.host]} / "
             f"{releases[p.guest]}" for n, p in enumerate(pairs, 1)]
    lines += ["", " ".join([f"{'host/guest':{width}}"]
                           + [f"{n:>4}" for n in range(1, len(pairs) + 1)])]
    lines += [" ".join([f"{t:{width}}"]
                       + [f"{c.get(t, '-'):>4}" for c in columns])
              for t in tests]
    return "\n".join(lines)


def run(o: argparse.Namespace) -> int:
    boots = {b.name: b for b in suite.load_boots(suite.TESTS)}
    try:
        pattern = re.compile(o.filter)
    except re.error as e:
        raise LabError(f"--filter: not a regular expression: {e}")
    pairs = [p for p in load(kernels.data(), list(boots))
             if any(pattern.search(f"{p.name} {b}") for b in p.boots)]
    wanted = suite.with_env(chosen(pairs, boots, pattern), o.env)
    if o.list:
        for b in wanted:
            print(b.name)
        return 0
    tally = Tally()
    record = Record(o.record)

    def work(out):
        suite.run_boots(wanted, suite.jobs(o.jobs), lambda: 0, out, tally,
                        record=record)

    def last():
        releases = {kernel: kernels.release_there(kernel)
                    for p in pairs for kernel in (p.host, p.guest)}
        print(f"\n{table(pairs, tally.results, releases)}\n")
        print(record.words(), end="")

    return suite.report(work, tally, last)
