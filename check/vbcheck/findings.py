# SPDX-License-Identifier: GPL-2.0
"""What checks report, which of it is accepted, and what they have to find.

Every check also reads its seeds, files in check/seeds/ with faults in them:
it has to report each line that is marked SEED there and no other. So a rule
that does not fire any more is a failure, and not silence.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SEEDS = "check/seeds/"
MARK = "SEED"
EXCEPTIONS = "check/exceptions.json"

# path:line: text, path:line:column: text, path:line:from-to: text
_LOCATED = re.compile(r"^(?P<path>[^\s:]+):(?P<line>\d+):(?:\d+(?:-\d+)?:)?\s*"
                      r"(?P<text>.*)$")


@dataclass(frozen=True, order=True)
class Finding:
    path: str       # below the checkout; "": of the check itself
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.path \
            else self.text


def located(line: str, folder: str = "") -> Finding | None:
    """A line of a tool's output; paths may be given below @folder."""
    m = _LOCATED.match(line)
    if not m:
        return None
    path = m["path"].removeprefix(folder).removeprefix("./")
    return Finding(path, int(m["line"]), m["text"])


def parse(output: str, folder: str = "") -> list[Finding]:
    """Output in which every line is a finding: what is none is one as well."""
    return [located(line, folder) or Finding("", 0, line)
            for line in output.splitlines() if line.strip()]


@dataclass
class Exception_:
    """A finding that is wrong or accepted, and why."""
    check: str
    file: list[str] # patterns
    match: str      # regular expression
    why: str
    used: bool = False

    def covers(self, check: str, f: Finding) -> bool:
        return (check == self.check
                and any(fnmatch.fnmatch(f.path, p) for p in self.file)
                and re.search(self.match, f.text) is not None)


def load_exceptions(repo: Path) -> list[Exception_]:
    return [Exception_(**entry)
            for entry in json.loads((repo / EXCEPTIONS).read_text())]


def marked(repo: Path, seeds: Iterable[str]) -> set[tuple[str, int]]:
    return {(seed, number) for seed in seeds
            for number, line in enumerate(
                (repo / seed).read_text().splitlines(), 1) if MARK in line}


def judge(check: str, found: Iterable[Finding], want: set[tuple[str, int]],
          exceptions: list[Exception_]) -> list[Finding]:
    """What is left to be told: @want are the lines that had to be found."""
    left, seen = [], set()
    for f in sorted(set(found)):
        if f.path.startswith(SEEDS):
            if (f.path, f.line) in want:
                seen.add((f.path, f.line))
            else:
                left.append(Finding(f.path, f.line, "reported, although "
                                    f"there is no fault: {f.text}"))
            continue
        covering = [e for e in exceptions if e.covers(check, f)]
        for e in covering:
            e.used = True
        if not covering:
            left.append(f)
    if not want:
        left.append(Finding(SEEDS, 0, f"no fault for {check} to find"))
    left += [Finding(path, line, f"the check {check} does not report this "
                     "fault: it is broken")
             for path, line in sorted(want - seen)]
    return left


def stale(exceptions: list[Exception_]) -> list[Finding]:
    """Those that no finding needs, when all checks have been judged."""
    return [Finding(EXCEPTIONS, 0, f"{e.check}: nothing matches {e.match!r} "
                    f"in {', '.join(e.file)} any more: remove it")
            for e in exceptions if not e.used]
