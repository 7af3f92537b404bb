# SPDX-License-Identifier: GPL-2.0
"""Members of the kernel's structures that are used and in no list of facts.

What the compiler took from the headers a running kernel may have elsewhere:
Documentation/kernels.md. semind, which comes with sparse, says what is used,
also by inline functions of the kernel's that are called, and by those that
these call.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from vblab.util import LabError

from .findings import SEEDS, Finding
from .tree import Tree

# Each compares what its own files name, itself or by a list of common/ or
# compat/; what other folders use either may compare.
MODULES = ("host-mod", "guest-mod")
_LIST = re.compile(r"#define (VB_\w+_FACTS)\(group\)((?:.*\\\n)*.*)")
_LIST_NAME = re.compile(r"\bVB_\w+_FACTS\b")
# In macros, too.
_FACT = re.compile(r"\bVB_(?:MEMBER(?:_AS)?|BIT)\([\s\\]*\w+,[\s\\]*(\w+),[\s\\]*([\w.]+)")
# What a member that is a structure is, as a fact only names the outermost:
# kvm_vcpu, arch.cr0. No fact goes through one that is not here.
INNER = {
    ("cfs_rq", "load"): "load_weight",
    ("kvm", "arch"): "kvm_arch",
    ("kvm_vcpu", "arch"): "kvm_vcpu_arch",
    ("kvm_vcpu", "stat"): "kvm_vcpu_stat",
    ("kvm_vcpu_stat", "generic"): "kvm_vcpu_stat_generic",
    ("paravirt_patch_template", "cpu"): "pv_cpu_ops",
    ("paravirt_patch_template", "irq"): "pv_irq_ops",
    ("sched_entity", "load"): "load_weight",
    ("task_struct", "rt"): "sched_rt_entity",
    ("task_struct", "se"): "sched_entity",
    ("task_struct", "thread_info"): "thread_info",
}
# A structure of ours; of a variable's own (:VARIABLE); and one without a name.
_OURS = re.compile(r"vb[a-z]?_|:")
_NAMELESS = "?"
# NAME FILE LINE, of a function or TYPE.MEMBER; "*" is all of it.
USES = "%n %f %l"
_USE = re.compile(r"^(?P<type>[^.\s]+)\.(?P<member>\S+) (?P<file>\S+) (?P<line>\d+)$")
# MODE NAME FUNCTION: in which function, if in one.
INSIDE = "%m %n %C"


@dataclass
class File:
    """What semind says of one that is compiled."""
    members: str            # USES, in files of ours
    calls: str
    inside_calls: str = ""  # INSIDE, in the kernel's headers
    inside_members: str = ""


def _steps(kind: str, path: str) -> Iterable[tuple[str, str]]:
    """Type and member of each step of a fact."""
    first, *rest = path.split(".", 1)
    yield kind, first
    if rest:
        if (kind, first) not in INNER:
            raise LabError(f"what {kind}.{first} is, is not in INNER of "
                           "members.py")
        yield from _steps(INNER[kind, first], rest[0])


def facts(texts: dict[str, str]) -> dict[str, set[tuple[str, str]]]:
    """Type and member, by module."""
    lists: dict[str, str] = defaultdict(str)
    for text in texts.values():
        for name, body in _LIST.findall(text):
            lists[name] += body
    found: dict[str, set[tuple[str, str]]] = {m: set() for m in MODULES}
    for module, known in found.items():
        ahead = [text for path, text in texts.items()
                 if path.split("/")[0] == module]
        named: set[str] = set()
        for text in ahead:
            known |= {step for fact in _FACT.findall(text)
                      for step in _steps(*fact)}
            more = set(_LIST_NAME.findall(text)) & lists.keys() - named
            named |= more
            ahead += [lists[name] for name in more]
    return found


def _is_fact(kind: str, member: str, known: set[tuple[str, str]]) -> bool:
    return (kind, member) in known or (
        kind == _NAMELESS and any(member == name for _, name in known))


def findings(uses: str, known: dict[str, set[tuple[str, str]]]
             ) -> Iterable[Finding]:
    everything = set().union(*known.values())
    for line in uses.splitlines():
        m = _USE.match(line)
        if not m:
            yield Finding("", 0, line)
            continue
        kind, member, path = m["type"], m["member"], m["file"]
        if _OURS.match(kind) or member == "*":
            continue
        if not _is_fact(kind, member,
                        known.get(path.split("/")[0], everything)):
            yield Finding(path, int(m["line"]),
                          f"{kind}.{member} is in no list of facts")


def _by_function(inside: str) -> dict[str, list[str]]:
    found = defaultdict(list)
    for line in inside.splitlines():
        mode, name, *function = line.split()
        if function and mode != "def":
            found[function[0]].append(name)
    return found


def _reached(name: str, calls: dict[str, list[str]]) -> dict[str, str]:
    """Functions that one comes to, each with the way there."""
    found, ahead = {name: name}, [name]
    for caller in ahead:
        for called in calls.get(caller, ()):
            if called not in found:
                found[called] = f"{found[caller]} > {called}"
                ahead.append(called)
    return found


def through_inlines(file: File, known: dict[str, set[tuple[str, str]]]
                    ) -> Iterable[Finding]:
    """Where ours call them."""
    calls = _by_function(file.inside_calls)
    used = _by_function(file.inside_members)
    for line in file.calls.splitlines():
        name, path, number = line.split()
        found: dict[Finding, str] = {}
        for function, way in _reached(name, calls).items():
            uses = "".join(f"{member} {path} {number}\n"
                           for member in used.get(function, ()))
            for f in findings(uses, known):
                found.setdefault(f, way)
        for f, way in found.items():
            yield Finding(f.path, f.line, f"{f.text}: by {way}()")


def of_tree(files: list[File], tree: Tree) -> list[Finding]:
    texts = {f: (tree.repo / f).read_text() for f in tree.kernel_c()
             if not f.startswith(SEEDS)}
    known = facts(texts)
    return sorted({f for file in files
                   for f in (*findings(file.members, known),
                             *through_inlines(file, known))})
