# SPDX-License-Identifier: GPL-2.0
"""Reads the results that tests print (KTAP, as kselftests do)."""

from __future__ import annotations

import re
from dataclasses import dataclass

EXIT_SKIP = 4

_VERSION = re.compile(r"^K?TAP version \d+")
_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b\s*(.*))?", re.IGNORECASE)
_RESULT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?([^#]*)"
                     r"(?:#\s*(SKIP)\b:?\s*(.*))?", re.IGNORECASE)

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Result:
    name: str
    state: str
    note: str = ""


def _document(test: str, lines: list[str]) -> list[Result]:
    """One program's output: its results, and what is wrong with it."""
    results = []
    planned: int | None = None
    skip_all = None
    for line in lines:
        # Indented lines are subtests; their parent's line says it all.
        m = _PLAN.match(line)
        if m and planned is None:
            planned = int(m[1])
            skip_all = m[2]
            continue
        m = _RESULT.match(line)
        if not m:
            continue
        name = f"{test}: {m[3].strip() or m[2] or len(results) + 1}"
        if m[1]:
            results.append(Result(name, FAILED, (m[5] or "").strip()))
        elif m[4]:
            results.append(Result(name, SKIPPED, (m[5] or "").strip()))
        else:
            results.append(Result(name, PASSED))
    if planned is None:
        results.append(Result(test, FAILED, "no KTAP plan in its output"))
    elif planned == 0 and not results:
        results.append(Result(test, SKIPPED, (skip_all or "").strip()))
    elif len(results) < planned:
        results.append(Result(test, FAILED, f"{len(results)} results of "
                                            f"{planned} planned"))
    return results


def _documents(lines: list[str]) -> list[list[str]]:
    """Several programs' outputs one behind the other."""
    starts = [i for i, line in enumerate(lines) if _VERSION.match(line)]
    if not starts:
        return [lines]
    # What precedes the first header belongs to it (a compiler's warning).
    starts[0] = 0
    return [lines[a:b] for a, b in zip(starts, starts[1:] + [len(lines)])]


def judge(test: str, text: str, status: int | None) -> list[Result]:
    """Results of one test by its output and exit status (None: never ended)."""
    lines = text.splitlines()
    if status == EXIT_SKIP and not any(_RESULT.match(l) for l in lines):
        reasons = [m[2] for l in lines if (m := _PLAN.match(l)) and m[2]]
        rest = [l for l in lines if l.strip() and not _VERSION.match(l)]
        note = reasons[-1] if reasons else rest[-1] if rest else ""
        return [Result(test, SKIPPED, note.lstrip("# ").strip())]
    results = [r for d in _documents(lines) for r in _document(test, d)]
    failed = any(r.state == FAILED for r in results)
    if status is None:
        results.append(Result(test, FAILED, "did not end"))
    elif status not in (0, EXIT_SKIP) and not failed:
        results.append(Result(test, FAILED, f"exited {status}"))
    return results
