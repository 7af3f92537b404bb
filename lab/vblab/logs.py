# SPDX-License-Identifier: GPL-2.0
"""Judges kernel logs: finds the lines that a good run must not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Sequence

CONTEXT = 5

BAD = [
    r"Kernel panic - not syncing", r"\bOops\b", r"general protection fault",
    r"unable to handle (?:kernel )?(?:page fault|paging request|NULL pointer)",
    r"invalid opcode: \d+", r"divide error: \d+", r"double fault",
    r"\bBUG: ", r"kernel BUG at", r"\bWARNING: ",
    # lockdep and relatives
    r"possible circular locking", r"possible recursive locking",
    r"possible irq lock inversion", r"possible (?:\w+ )?deadlock",
    r"inconsistent lock state", r"unsafe lock order detected",
    r"bad unlock balance", r"held lock freed", r"Invalid wait context",
    r"lock held when returning to user space", r"DEBUG_LOCKS_WARN_ON",
    r"still has locks held",
    r"suspicious RCU usage", r"Illegal context switch in RCU",
    # stalls
    r"rcu_\w+ (?:self-)?detected", r"detected stalls",
    r"detected expedited stalls", r"rcu_tasks.*stall",
    r"kthread starved for", r"kthread timer wakeup didn't happen",
    r"blocked for more than \d+", r"soft lockup", r"hard LOCKUP",
    r"workqueue lockup", r"nobody cared",
    # sanitizers and debugging aids
    r"\bKASAN: ", r"\bKCSAN: ", r"\bKMSAN: ", r"\bKFENCE: ", r"\bUBSAN: ",
    r"kmemleak: \d+ new suspected", r"ODEBUG: ", r"refcount_t: ",
    r"\blab: (?:detector \w+ is off|guest \d+ was not asked)",
    r"list_(?:add|del) corruption", r"Poison overwritten",
    r"scheduling while atomic", r"sleeping function called from invalid",
    r"unchecked MSR access", r"unregister_netdevice: waiting",
    r"page allocation failure", r"Out of memory: ", r"oom-kill:",
    r"NETDEV WATCHDOG",
    r"Call Trace:",
    # our own
    r"pending bits, \d+ were taken",
]

# Words of warning that are no sign of a mistake.
BENIGN = [
    r"Speculative Return Stack Overflow: WARNING: See https?://",
    r"WARNING: See https?://\S+ for mitigation options",
]

_BAD = re.compile("|".join(BAD))
_BENIGN = re.compile("|".join(BENIGN))
# A report of many lines is one finding: the lines from "cut here" to "end
# trace", or a call trace that follows another bad line this closely.
_CUT = "------------[ cut here ]------------"
_END = "---[ end trace"
_STAMPED = re.compile(r"\[ *\d+\.\d{6}\].*")
_TRACE = "Call Trace:"
_TRACE_BELONGS = 150
_BLOCK_MAX = 400


@dataclass(frozen=True)
class Finding:
    name: str               # of the log
    number: int             # line, from 1
    line: str
    context: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.name}:{self.number}: {self.line.strip()}",
                          *self.context])


def is_bad(line: str) -> bool:
    return bool(_BAD.search(line)) and not _BENIGN.search(line)


def _allowed(line: str, allow: Sequence[re.Pattern]) -> bool:
    return any(p.search(line) for p in allow)


def _block_end(lines: Sequence[str], start: int) -> int:
    for i in range(start + 1, min(len(lines), start + _BLOCK_MAX)):
        if _END in lines[i]:
            return i
        if _CUT in lines[i]:
            return i - 1
    # No end: a panic, or the log was cut. The block is what is left of it.
    return min(len(lines), start + _TRACE_BELONGS) - 1


def _context(lines: Sequence[str], index: int) -> tuple[str, ...]:
    first = max(0, index - CONTEXT)
    return tuple(f"  {'>' if i == index else ' '} {i + 1:5}: {lines[i]}"
                 for i in range(first, min(len(lines), index + CONTEXT + 1)))


def judge(name: str, text: str, allow: Iterable[str] = ()) -> list[Finding]:
    """All bad lines of one log, each report of several lines once.

    A report is expected, and left out, when one of its lines matches one of
    the regular expressions in `allow`.
    """
    patterns = [re.compile(a) for a in allow]
    lines = text.splitlines()
    findings = []
    i = 0
    trace_until = -1
    while i < len(lines):
        if _CUT in lines[i]:
            end = _block_end(lines, i)
            block = range(i, end + 1)
            bad = [j for j in block if is_bad(lines[j])]
            if not any(_allowed(lines[j], patterns) for j in block):
                at = bad[0] if bad else i
                findings.append(Finding(name, at + 1, lines[at],
                                        _context(lines, at)))
            i = end + 1
            trace_until = i + _TRACE_BELONGS
            continue
        if is_bad(lines[i]):
            follows = _TRACE in lines[i] and i <= trace_until
            if not follows and not _allowed(lines[i], patterns):
                findings.append(Finding(name, i + 1, lines[i],
                                        _context(lines, i)))
            trace_until = i + _TRACE_BELONGS
        elif _allowed(lines[i], patterns):
            trace_until = i + _TRACE_BELONGS
        i += 1
    return findings


def _message(line: str) -> str:
    """A line as the kernel logged it: user space can write to the console
    too, in front of what the kernel then prints."""
    m = _STAMPED.search(line)
    return (m[0] if m else line).strip()


def judge_both(console: tuple[str, str], dmesg: tuple[str, str],
               allow: Sequence[str] = ()) -> list[Finding]:
    """Judges (name, text) of one machine's console and of its kernel log.

    The console is all that is left of a machine that crashed, and misses the
    lines below its log level: neither replaces the other.
    """
    shown = {_message(line) for line in console[1].splitlines()}
    return judge(*console, allow) + [f for f in judge(*dmesg, allow)
                                     if _message(f.line) not in shown]
