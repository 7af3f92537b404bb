# SPDX-License-Identifier: GPL-2.0
"""`lab/lab test`: unit tests, then the boots of selftests/lab-tests.json."""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import coverage, kernels, ktap, paths, root, session
from .ktap import FAILED, PASSED, SKIPPED, Result
from .record import Record
from .root import REPO_IN_ROOT, WORK_IN_ROOT
from .util import (Interrupted, LabError, die_with_parent, run_logged,
                   stop_group, tail, temp_dir)

TESTS = paths.REPO / "selftests/lab-tests.json"
# Folders with a `make check`, by the names that --filter knows.
MAKE = {"unit": "selftests/unit", "model": "selftests/model"}
PYTHON = ["lab/tests", "bench/tests", "check/tests", "lab/boots",
          "lab/packages"]
# Those that try a debug kernel, and only where there is one.
DETECTORS = "lab/detectors"
# What takes minutes, and about one CPU: side by side as boots are, before them.
SLOW = ("model", "lab/boots", "lab/packages", DETECTORS)
# Of one selftest in a machine; an entry's "test_timeout" overrides it.
TEST_TIMEOUT = 300
# Then it has these seconds to end. One that waits for what cannot be killed is
# killed itself; what it left behind shows in the tests after it.
KILL_AFTER = 60
# What busybox's and coreutils' `timeout` exit with then.
TIMED_OUT = (143, 124, 137)
# No exit status.
LATE = -1


@dataclass(frozen=True)
class Test:
    """One selftest of a boot."""
    where: str      # "l1" or "l2-N"
    path: str       # below selftests/
    long: bool = False      # not in CI: only with --long

    @property
    def name(self) -> str:
        return f"{self.where}/{self.path}"


@dataclass
class Boot:
    name: str
    args: list[str]
    tests: list[Test]
    test_timeout: int = TEST_TIMEOUT
    long: bool = False      # not in CI: only with --long
    host: tuple[str, ...] = ()      # only with one of these kernels in L1
    guest: tuple[str, ...] = ()     # and with one of these in the guests
    slow: int = 1           # time limits are so many times longer


@dataclass
class Tally:
    results: list[Result] = field(default_factory=list)

    def add(self, results: list[Result]) -> None:
        for r in results:
            note = f" ({r.note})" if r.note else ""
            word = {PASSED: "ok", FAILED: "FAILED", SKIPPED: "skip"}[r.state]
            print(f"  {word:6} {r.name}{note}", flush=True)
        self.results += results

    def count(self, state: str) -> int:
        return sum(r.state == state for r in self.results)

    def recap(self) -> str:
        """All that did not pass, by name and with the reason."""
        return "".join(
            f"{word} {r.name}" + (f" ({r.note})" if r.note else "") + "\n"
            for state, word in ((FAILED, "FAILED"), (SKIPPED, "SKIPPED"))
            for r in self.results if r.state == state)

    def summary(self) -> str:
        return (f"{self.count(PASSED)} passed, {self.count(FAILED)} failed, "
                f"{self.count(SKIPPED)} skipped")


def _guests_of(args: list[str]) -> int:
    for i, word in enumerate(args):
        if word == "--guests":
            return int(args[i + 1])
        if word.startswith("--guests="):
            return int(word.split("=", 1)[1])
    return 1


def load_boots(path: Path) -> list[Boot]:
    if not path.exists():
        return []
    boots = []
    for entry in json.loads(path.read_text()):
        unknown = set(entry) - {"name", "args", "l1", "l2", "l1_long",
                                "test_timeout", "long", "host", "guest"}
        if unknown or "name" not in entry:
            raise LabError(f"{path.name}: {entry.get('name', entry)}: "
                           f"unknown or missing keys: {sorted(unknown)}")
        args = [str(a) for a in entry.get("args", [])]
        tests = [Test(f"l2-{n}", t) for n in range(_guests_of(args))
                 for t in entry.get("l2", [])]
        tests += [Test("l1", t) for t in entry.get("l1", [])]
        tests += [Test("l1", t, True) for t in entry.get("l1_long", [])]
        if tests and all(t.long for t in tests):
            raise LabError(f"{path.name}: {entry['name']}: all is long: "
                           "say so of the boot")
        for t in tests:
            if not (path.parent / t.path).is_file():
                raise LabError(f"{path.name}: {entry['name']}: "
                               f"there is no selftest {t.path}")
        host, guest = (tuple(entry.get(k, ())) for k in ("host", "guest"))
        unknown = {*host, *guest} - set(kernels.names())
        if unknown:
            raise LabError(f"{path.name}: {entry['name']}: "
                           f"unknown kernels: {sorted(unknown)}")
        boots.append(Boot(entry["name"], args, tests,
                          entry.get("test_timeout", TEST_TIMEOUT),
                          entry.get("long", False), host, guest))
    return boots


def select(boots: list[Boot], pattern: re.Pattern) -> list[Boot]:
    """Whole boots whose name matches, else those of their tests that do."""
    chosen = []
    for b in boots:
        tests = b.tests if pattern.search(b.name) else \
            [t for t in b.tests if pattern.search(f"{b.name}: {t.name}")]
        if tests:
            chosen.append(replace(b, tests=tests))
    return chosen


def without_long(boots: list[Boot]) -> tuple[list[Boot], list[str]]:
    """What is not marked long, and the names of what is."""
    short = [b for b in boots if not b.long]
    return ([replace(b, tests=[t for t in b.tests if not t.long])
             for b in short],
            [b.name for b in boots if b.long] +
            [f"{b.name}: {t.name}" for b in short for t in b.tests if t.long])


def _has_part(boot: Boot, host: str, guest: str) -> bool:
    """Can these kernels tell anything in it? Not where it brings its own, nor
    where there is no guest for the one that is special."""
    stock = kernels.default()
    if (host, guest) == (stock, stock):
        return True
    if "--host-kernel" in boot.args:
        return False
    return host != stock or boot.args[:2] != ["--guests", "0"]


def with_env(boots: list[Boot], env: list[tuple[str, str]]) -> list[Boot]:
    words = [w for name, value in env for w in ("--env", f"{name}={value}")]
    return [replace(b, args=b.args + words) for b in boots]


def fits(boot: Boot, host: str, guest: str) -> bool:
    """Some are for certain kernels only."""
    return (not boot.host or host in boot.host) and \
        (not boot.guest or guest in boot.guest)


def on_kernels(boots: list[Boot], host: str, guest: str) -> list[Boot]:
    """Those that these kernels can run, and have a part in."""
    return [replace(b, slow=kernels.slowness(host, guest),
                    args=["--host-kernel", host, "--guest-kernel", guest,
                          *b.args])
            for b in boots
            if fits(b, host, guest) and _has_part(b, host, guest)]


# Shell: begin N, end N STATUS, late N SECONDS; what split_output() and
# durations() read. The clock of late begins with the machine.
MARKS = [
    'begin() { began=$(date +%s); printf "\\n@test begin %s\\n" "$1"; }',
    'end() {',
    'printf "\\n# took %s s" $(($(date +%s) - began))',
    'printf "\\n@test end %s %s\\n" "$1" "$2"; }',
    'late() {',
    '[ "$(cut -d . -f 1 /proc/uptime)" -ge "$2" ] || return',
    'printf "\\n@test late %s\\n" "$1"; }',
]


def driver(boot: Boot, seconds: float = math.inf) -> str:
    """L1 script that runs the tests; marks where each begins and ends. All but
    the first begin within @seconds after the machine, or do not."""
    lines = ["#!/bin/sh", ". /lab/lib.sh", "cd /lab/selftests", *MARKS]
    timeout = f"timeout -k {KILL_AFTER} {boot.test_timeout * boot.slow}"
    for i, test in enumerate(boot.tests):
        path = shlex.quote(f"./{test.path}")
        if test.where == "l1":
            command = f"{timeout} {path}"
        else:
            number = test.where[3:]
            inner = shlex.quote(f"cd /lab/selftests && exec {path}")
            command = f"{timeout} guest {number} {inner}"
        steps = [f"begin {i}", f"{command} </dev/null 2>&1", f"end {i} $?"]
        if i and seconds < math.inf:
            steps = [f"late {i} {int(seconds)} || {{", *steps, "}"]
        lines += steps
    return "\n".join(lines + ["exit 0", ""])


def split_output(text: str) -> dict[int, tuple[str, int | None]]:
    """The driver's output to output and exit status by test number: None, if
    it did not end; LATE, if it did not begin."""
    found: dict[int, tuple[str, int | None]] = {}
    current = None
    lines: list[str] = []
    for line in text.splitlines():
        m = re.match(r"@test (begin|end|late) (\d+)(?: (\d+))?$", line)
        if not m:
            lines.append(line)
        elif m[1] == "late":
            found[int(m[2])] = ("", LATE)
        elif m[1] == "begin":
            current = int(m[2])
            lines = []
        else:
            found[int(m[2])] = ("\n".join(lines), int(m[3]))
            current = None
    if current is not None:
        found[current] = ("\n".join(lines), None)
    return found


def durations(boot: Boot, output: str) -> str:
    """What each test took, for those who wonder where the time went."""
    return ", ".join(
        f"{boot.tests[i].name} {m[1]}"
        for i, (text, _) in sorted(split_output(output).items())
        if (m := re.search(r"^# took (\d+) s\Z", text, re.M)))


def boot_results(boot: Boot, output: str, code: int,
                 reason: str) -> list[Result]:
    results = []
    by_number = split_output(output)
    for i, test in enumerate(boot.tests):
        name = f"{boot.name}: {test.name}"
        if i in by_number:
            text, status = by_number[i]
            if status == LATE:
                results.append(Result(name, SKIPPED, "had not begun in time"))
                continue
            if status in TIMED_OUT:
                status = None
            results += ktap.judge(name, text, status)
        else:
            results.append(Result(name, FAILED, "was not run"))
    name = f"{boot.name}: boot and kernel logs"
    if code == session.EXIT_OK:
        results.append(Result(name, PASSED))
    else:
        results.append(Result(name, FAILED, reason))
    return results


# What one boot needs of the machine; see default_jobs().
JOB_CPUS = 1
JOB_MB = 5120


def default_jobs(cpus: int, available_mb: int) -> int:
    """Boots side by side: each keeps one CPU busy, and holds L1's memory."""
    return max(1, min(cpus // JOB_CPUS, available_mb // JOB_MB))


def _available_mb() -> int:
    m = re.search(r"^MemAvailable:\s+(\d+) kB",
                  Path("/proc/meminfo").read_text(), re.M)
    return int(m[1]) // 1024 if m else 0


def jobs(asked: int | None) -> int:
    return asked or default_jobs(len(os.sched_getaffinity(0)),
                                 _available_mb())


@dataclass
class _Running:
    boot: Boot
    out: Path
    proc: subprocess.Popen
    start: float
    on: list[str]       # see Record


# Debian's default queue discipline, fq_codel, drops packets that have waited in
# it for long. With CPUs as crowded as here some do, without our modules as well,
# and tests want each one answered.
LOSSLESS = "sysctl.net.core.default_qdisc=pfifo_fast"


def _run_words(boot: Boot, out: Path) -> list[str]:
    timeout = (120 + boot.test_timeout * len(boot.tests)) * boot.slow
    return ["run", "--timeout", str(timeout),
            "--append-l1", LOSSLESS, "--append-l2", LOSSLESS, *boot.args,
            "--l1", str(out / "driver.sh"), "--out", str(out)]


def _start(boot: Boot, out: Path, seconds: float,
           record: Record) -> _Running:
    on = record.conditions(_key(boot)[1])
    out.mkdir(parents=True)
    (out / "driver.sh").write_text(driver(boot, seconds))
    with (out / "lab.log").open("wb") as log:
        proc = subprocess.Popen(
            [sys.executable, str(paths.LAB / "lab"), *_run_words(boot, out)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            start_new_session=True, preexec_fn=die_with_parent)
    return _Running(boot, out, proc, time.monotonic(), on)


def _output(run: _Running) -> str:
    log = run.out / "l1-script.log"
    return log.read_text(errors="replace") if log.exists() else ""


def _finish(run: _Running, output: str) -> list[Result]:
    code = run.proc.returncode
    try:
        reason = json.loads((run.out / "result.json").read_text())["reason"]
    except FileNotFoundError:
        reason = tail(run.out / "lab.log", 3)
    return boot_results(run.boot, output, code, reason)


def _options(boot: Boot) -> argparse.Namespace:
    from .cli import parser
    return parser().parse_args(["run", *boot.args])


def _key(boot: Boot) -> tuple[str, tuple[str, str]]:
    """What a record knows it by, and its kernels."""
    o = _options(boot)
    return (shlex.join([boot.name, *boot.args, "--",
                        *(t.name for t in boot.tests)]),
            (o.host_kernel, o.guest_kernel))


def _not_done(boots: list[Boot], tally: Tally, record: Record) -> list[Boot]:
    """The results of others are taken from the record."""
    left = []
    for boot in boots:
        done = record.get(*_key(boot))
        if done is None:
            left.append(boot)
        else:
            print(f"== boot {boot.name}: done before", flush=True)
            tally.results += done
    return left


def _prepared(boots: list[Boot], tally: Tally) -> list[Boot]:
    """What boots share is made once, before they all wait for it. Those that
    lack something fail; the others are returned."""
    lacks: dict[tuple[str, str], str] = {}
    ready = []
    for boot in boots:
        o = _options(boot)
        pair = o.host_kernel, o.guest_kernel
        if pair not in lacks:
            lacks[pair] = ""
            try:
                session.prepare(o)
            except LabError as e:
                print(e, flush=True)
                lacks[pair] = str(e).partition("\n")[0]
        if lacks[pair]:
            tally.add(boot_results(boot, "", session.EXIT_SETUP, lacks[pair]))
        else:
            ready.append(boot)
    return ready


def run_boots(boots: list[Boot], side: int, taken: Callable[[], int],
              out: Path, tally: Tally,
              left: Callable[[], float] = lambda: math.inf,
              record: Record | None = None) -> list[Boot]:
    """Up to @side side by side, with what else runs; results in the order in
    which they end. @left: seconds within which tests may begin. @record: what
    is done already is taken from it, what is done now goes there. Return: boots
    that did not begin, when none might."""
    record = record or Record(None)
    waiting = list(enumerate(_prepared(_not_done(boots, tally, record), tally)))
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < side - taken() and left() > 0:
                n, boot = waiting.pop(0)
                print(f"== boot {boot.name} {shlex.join(boot.args)}",
                      flush=True)
                safe = re.sub(r"[^\w.-]+", "_", boot.name)
                running.append(_start(boot, out / f"{n:02}-{safe}", left(),
                                      record))
            if not running and left() <= 0:
                break
            time.sleep(0.1)
            for r in [r for r in running if r.proc.poll() is not None]:
                running.remove(r)
                output = _output(r)
                took = time.monotonic() - r.start
                print(f"== boot {r.boot.name}: {took:.0f} s: "
                      f"{durations(r.boot, output) or 'no test'}", flush=True)
                results = _finish(r, output)
                tally.add(results)
                _show_failed_output(r, output, results)
                if r.proc.returncode == session.EXIT_INTERRUPTED:
                    raise Interrupted
                # Else no machine was started.
                if (r.out / "result.json").exists():
                    record.add(*_key(r.boot), r.on, took, results)
    finally:
        for r in running:
            stop_group(r.proc, 30.0)
    return [boot for _, boot in waiting]


def _show_failed_output(run: _Running, output: str,
                        results: list[Result]) -> None:
    """What failed tests printed: a log in the cache is soon forgotten."""
    if any(r.state == FAILED for r in results):
        print(tail(run.out / "lab.log", 100), flush=True)
    by_number = split_output(output)
    for i, test in enumerate(run.boot.tests):
        prefix = f"{run.boot.name}: {test.name}"
        if i in by_number and any(
                r.state == FAILED and (r.name + ":").startswith(prefix + ":")
                for r in results):
            print(f"--- output of {prefix}\n{by_number[i][0]}\n---",
                  flush=True)


def _make_tests(name: str, work: Path, long: bool) -> list[Result]:
    """In the package root: it has the compiler, its sanitizers, and spin."""
    log = work / f"{name}.log"
    tools = root.ensure(kernels.data()["tools_root"])
    status = tools.chroot(
        ["make", "-s", "-C", f"/{REPO_IN_ROOT}/{MAKE[name]}", "check",
         f"BUILD=/{WORK_IN_ROOT}/{name}", f"LONG={'1' * long}"],
        log, work=work)
    text = log.read_text(errors="replace")
    results = ktap.judge(name, text, status)
    if any(r.state == FAILED for r in results):
        print(text, flush=True)
    return results


def _or_failed(name: str, work: Callable[[], list[Result]]) -> list[Result]:
    """Its results; what it lacks is one, and does not end the others."""
    try:
        return work()
    except LabError as e:
        return [Result(name, FAILED, str(e))]


def _recorded(record: Record, what: str, used: tuple[str, str],
              work: Callable[[], list[Result]]) -> list[Result]:
    results = record.get(what, used)
    if results is None:
        on, start = record.conditions(used), time.monotonic()
        results = work()
        record.add(what, used, on, time.monotonic() - start, results)
    return results


class _Beside(threading.Thread):
    """The results of what runs while others do."""

    def __init__(self, name: str, work: Path,
                 tests: Callable[[str, Path], list[Result]],
                 places: threading.Semaphore):
        super().__init__(daemon=True)
        self._what, self._work, self._tests = name, work, tests
        self._places = places
        self._results = [Result(name, FAILED, "did not end")]
        self.seconds = 0.0

    def run(self) -> None:
        with self._places:
            start = time.monotonic()
            self._results = _or_failed(
                self._what, lambda: self._tests(self._what, self._work))
            self.seconds = time.monotonic() - start

    def results(self) -> list[Result]:
        # A signal is only seen between two waits.
        while self.is_alive():
            self.join(0.5)
        return self._results


def _python_tests(folder: str, work: Path,
                  env: dict[str, str] | None = None) -> list[Result]:
    log = work / f"{folder.replace('/', '-')}.log"
    status = run_logged([sys.executable, "-BP",
                         str(paths.LAB / "vblab/pyktap.py"),
                         str(paths.REPO / folder)], log,
                        dict(os.environ, **(env or {})), cwd=paths.REPO)
    text = log.read_text(errors="replace")
    results = ktap.judge(folder, text, status)
    if any(r.state == FAILED for r in results):
        print(text, flush=True)
    return results


def _coverage(used: tuple[str, str], out: Path, total: Path | None,
              known: list[dict] | None) -> list[Result]:
    built = [k for k in used if k not in kernels.packaged()]
    coverage.report(kernels.get((built or used)[0]), out, total, known)
    return []


def run(o: argparse.Namespace, tally: Tally | None = None) -> int:
    """@tally: gets the results."""
    try:
        pattern = re.compile(o.filter)
    except re.error as e:
        raise LabError(f"--filter: not a regular expression: {e}")
    if o.coverage_known and not o.coverage:
        raise LabError("--coverage-known goes with --coverage")
    if o.record and (o.coverage or o.begin_within is not None):
        raise LabError("--record is for boots that are whole: it goes neither "
                       "with --coverage nor with --begin-within")
    known = o.coverage_known and coverage.read_known(o.coverage_known)
    boots = select(load_boots(TESTS), pattern)
    left_out: list[str] = []
    # Asked for by name they are not left out.
    if not o.long and not o.filter:
        boots, left_out = without_long(boots)
    used = o.host_kernel, o.guest_kernel
    boots = with_env(on_kernels(boots, *used), o.env)
    # Of other kernels only the boots can tell anything.
    others = used != (kernels.default(),) * 2
    make = [name for name, folder in MAKE.items()
            if (paths.REPO / folder).is_dir() and pattern.search(name)
            and not others]
    python = [f for f in PYTHON
              if (paths.REPO / f).is_dir() and pattern.search(f)
              and not others]
    if pattern.search(DETECTORS) and set(used) & set(kernels.watching()):
        python.append(DETECTORS)
    if o.list:
        for name in make + python:
            print(name)
        for b in boots:
            for t in b.tests:
                print(f"{b.name}: {t.name}")
        return 0

    for b in boots:
        b.args += ["--coverage"] * o.coverage
    tally = Tally() if tally is None else tally
    record = Record(o.record)
    start = time.monotonic()

    def left() -> float:
        if o.begin_within is None:
            return math.inf
        return o.begin_within * 60 + start - time.monotonic()

    def work(out: Path) -> None:
        with temp_dir(paths.tmp(), "test-") as folder:
            # What is asked for by name is wanted whole.
            whole = o.long or bool(o.filter)
            make_tests = functools.partial(_make_tests, long=whole)
            # These first: what is beside makes the package root meanwhile.
            python_tests = functools.partial(_python_tests, env={
                "LAB_WHOLE": "1" if whole else "",
                "DETECTORS_HOST": o.host_kernel,
                "DETECTORS_GUEST": o.guest_kernel})

            def detectors(name: str, work: Path) -> list[Result]:
                for kernel in used:
                    kernels.get(kernel)     # before it is asked what it is
                return _recorded(record, f"{name} on {'/'.join(used)}", used,
                                 lambda: python_tests(name, work))

            plain = {**{name: detectors if name == DETECTORS else python_tests
                        for name in python},
                     **{name: make_tests for name in make}}
            side = jobs(o.jobs)
            places = threading.Semaphore(side)
            beside = {name: _Beside(name, folder, tests, places)
                      for name, tests in plain.items() if name in SLOW}
            for thread in beside.values():
                thread.start()
            for name in [n for n in plain if n not in beside]:
                print(f"== {name}", flush=True)
                tally.add(_or_failed(
                    name, functools.partial(plain[name], name, folder)))
            late = run_boots(
                boots, side, lambda: sum(t.is_alive() for t in beside.values()),
                out, tally, left, record)
            # No kernel code at all was run?
            state = SKIPPED if len(late) < len(boots) else FAILED
            tally.add([Result(f"boot {b.name}", state, "had not begun after "
                              f"{o.begin_within} minutes") for b in late])
            for name, thread in beside.items():
                results = thread.results()
                print(f"== {name}: {thread.seconds:.0f} s", flush=True)
                tally.add(results)
        if o.coverage:
            tally.add(_or_failed("coverage", lambda: _coverage(
                used, out, o.coverage_total, known)))

    def last_words() -> None:
        if left_out:
            print(f"left out: {', '.join(left_out)} (make test)")
        print(record.words(), end="")

    return report(work, tally, last_words)


def report(work: Callable[[Path], None], tally: Tally,
           last_words: Callable[[], None]) -> int:
    """Do the work, say what came out. Return: lab/lab's exit status."""
    start = time.monotonic()
    interrupted = False
    out = session.make_out(None)
    try:
        work(out)
    except Interrupted:
        interrupted = True
    print(f"{time.monotonic() - start:.0f} s; logs in {out}")
    print(tally.recap(), end="")
    last_words()
    print(root.old(), end="")
    if interrupted:
        print("interrupted")
    print(tally.summary(), flush=True)
    if interrupted:
        return session.EXIT_INTERRUPTED
    return 1 if tally.count(FAILED) or not tally.results else 0
