# SPDX-License-Identifier: GPL-2.0
"""Who may be called where: what is reached from the functions that KVM, the
scheduler and interrupts call, by the calls that cocci/calls.cocci lists.

Calls through pointers are not followed: what is called so is a root itself.
That none is forgotten is seen by its name, where it is not called.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field

from .findings import Finding

DATA = "check/contexts.json"
# Functions with these names are ours: one that is called must be seen.
OURS = re.compile(r"vb[hg]?_[a-z]")

# What is no code; and other names of functions.
_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                      r"|^[ \t]*#[ \t]*define[ \t]+\w+[ \t]+\w+[ \t]*$",
                      re.DOTALL | re.MULTILINE)
# Neither a call or definition, nor a member, nor the tag of a type.
_NAMED = re.compile(r"(?<![\w.>])(?<!struct )(?<!enum )(\w+)\b(?!\s*\()")


@dataclass(frozen=True)
class Call:
    path: str
    line: int
    callee: str
    args: str


@dataclass
class Calls:
    defined: set[str] = field(default_factory=set)
    by: dict[str, list[Call]] = field(
        default_factory=lambda: defaultdict(list))


def parse(output: str) -> Calls:
    calls = Calls()
    for line in output.splitlines():
        words = line.split("\t")
        if words[0] == "def":
            calls.defined.add(words[3])
        elif words[0] == "call":
            calls.by[words[3]].append(Call(words[1], int(words[2]),
                                           *words[4:6]))
    return calls


def reached(calls: Calls, roots: list[str]) -> dict[str, list[str]]:
    """Functions by name, each with a way that leads there."""
    ways = {r: [r] for r in roots}
    todo = list(roots)
    while todo:
        function = todo.pop(0)
        for call in calls.by[function]:
            if call.callee in calls.defined and call.callee not in ways:
                ways[call.callee] = ways[function] + [call.callee]
                todo.append(call.callee)
    return ways


def _breaks(rule: dict, call: Call) -> bool:
    return (re.fullmatch(rule["call"], call.callee) is not None
            and ("if" not in rule or bool(re.search(rule["if"], call.args)))
            and not ("unless" in rule
                     and re.search(rule["unless"], call.args)))


def findings(calls: Calls, contexts: list[dict],
             macros: set[str] = frozenset()) -> list[Finding]:
    found = []
    for c in contexts:
        found += [Finding(DATA, 0, f"{r}() is not defined anywhere: "
                          "name what took its place")
                  for r in c["roots"] if r not in calls.defined]
        for function, way in reached(calls, c["roots"]).items():
            for call in calls.by[function]:
                for rule in c["forbidden"]:
                    if _breaks(rule, call):
                        found.append(Finding(
                            call.path, call.line,
                            f"{call.callee}() {c['context']}: {rule['why']} "
                            f"({' > '.join(way)})"))
                if OURS.match(call.callee) and call.callee not in macros \
                        and call.callee not in calls.defined:
                    found.append(Finding(
                        call.path, call.line, f"{call.callee}() is called "
                        f"{c['context']}, but its definition was not "
                        "understood"))
    return found


def callbacks(code: str, defined: set[str]) -> list[tuple[int, str]]:
    """Where functions of ours are named and not called, as what registers
    hooks, probes, timers, irq_works and notifiers does: line and name."""
    code = _NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), code)
    return [(n, name) for n, line in enumerate(code.splitlines(), 1)
            for name in _NAMED.findall(line)
            if OURS.match(name) and name in defined]


def unlisted(sources: dict[str, str], defined: set[str],
             contexts: list[dict]) -> list[Finding]:
    """@sources: text by path."""
    roots = {r for c in contexts for r in c["roots"]}
    return [Finding(path, line, f"{name}() is called through a pointer: "
                    f"{DATA} does not say in which context")
            for path, code in sources.items()
            for line, name in callbacks(code, defined) if name not in roots]


def load(text: str) -> list[dict]:
    return json.loads(text)
