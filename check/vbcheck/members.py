# SPDX-License-Identifier: GPL-2.0
"""Members of the kernel's structures that are used and in no list of facts.

What the compiler took from the headers a running kernel may have elsewhere:
Documentation/kernels.md. semind, which comes with sparse, says what is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .findings import SEEDS, Finding
from .tree import Tree

# Of which files the facts count, for files below: compat/ and core/ are both's.
MODULES = ("host-mod", "guest-mod")
# In macros, too.
_FACT = re.compile(r"\bVB_MEMBER(?:_AS)?\([\s\\]*\w+,[\s\\]*(\w+),[\s\\]*([\w.]+)")
# A structure of ours; of a variable's own (:VARIABLE); and one without a name.
_OURS = re.compile(r"vb[a-z]?_|:")
_NAMELESS = "?"
# TYPE.MEMBER FILE LINE; "*" is all of it.
FORMAT = "%n %f %l"
_USE = re.compile(r"^(?P<type>[^.\s]+)\.(?P<member>\S+) (?P<file>\S+) (?P<line>\d+)$")


def facts(texts: dict[str, str]) -> dict[str, set[tuple[str, str]]]:
    """Type and path of members, by module."""
    found: dict[str, set[tuple[str, str]]] = {m: set() for m in MODULES}
    for path, text in texts.items():
        top = path.split("/")[0]
        for module in MODULES:
            if top in (module, "compat"):
                found[module] |= set(_FACT.findall(text))
    return found


def _is_fact(kind: str, member: str, known: set[tuple[str, str]]) -> bool:
    for outer, path in known:
        first, *inner = path.split(".")
        if (kind == outer and member == first) or member in inner:
            return True
        if kind == _NAMELESS and member == first:
            return True
    return False


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


def of_tree(uses: str, tree: Tree) -> list[Finding]:
    texts = {f: (tree.repo / f).read_text() for f in tree.kernel_c()
             if not f.startswith(SEEDS)}
    return sorted(set(findings(uses, facts(texts))))
