# SPDX-License-Identifier: GPL-2.0
"""What is off when something of the kernel differs: Documentation/kernels.md
says it of each fact in host-mod/vbh_facts.c and guest-mod/vbg_facts.c."""
import re
import unittest
from collections import defaultdict

import checkpath  # noqa: F401
from vblab.paths import REPO

# By the first words of the tables' rows.
MODULES = {
    "vbalance_host": ("host-mod/vbh_facts.c", {
        "all of it": {"VBH_F_LOAD", "VBH_F_RUN_STATE"},
        "registration": {"VBH_F_REGISTRATION"},
        "locks": {"VBH_F_LOCKS"},
        "redirection": {"VBH_F_REDIRECT"},
        "redirection of what may sleep on its way": {"VBH_F_SLEEPING"},
        "kicks": {"VBH_F_KICKS"},
        "rings": {"VBH_F_RINGS"},
        "boosts": {"VBH_F_BOOST"},
        "boost_repay": {"VBH_F_REPAY"},
    }),
    "vbalance_guest": ("guest-mod/vbg_facts.c", {
        "all of it": {"VBG_F_LOAD"},
        "redirection and borrowing": {"VBG_F_SERVE"},
        "redirection": {"VBG_F_REDIRECT"},
        "hints of processes": {"VBG_F_TASK"},
    }),
}
LISTS = re.compile(r"#define (VB_\w+_FACTS)\(group\)(.*)")
CALL = re.compile(r"\b(VB_\w+)\((\w+)(?:, ([\w]+)(?:, ([\w.]+))?)?")
OF_MEMBERS = {"VB_MEMBER", "VB_MEMBER_AS", "VB_BIT"}
OF_NAMES = {"VB_SIZE", "VB_FUNC", "VB_HIDDEN_FUNC", "VB_HIDDEN_FUNC_IF_ANY",
            "VB_TRACE", "VB_CONSTANT", "VB_ENUM"}


def source(path):
    """In one line for each of the preprocessor's, no comments."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r"[ \t]+", " ", re.sub(r"\\\n", " ", text))


def of_calls(text, lists):
    """(group, what) of each fact: of all kernels, as #if is not looked at."""
    for kind, group, name, member in CALL.findall(re.sub(r"\s+", " ", text)):
        if kind in OF_MEMBERS:
            yield group, f"{name}.{member}"
        elif kind in OF_NAMES:
            yield group, name
        elif kind in lists:
            for _, what in lists[kind]:
                yield group, what


def facts(path):
    """What each group of a module's file compares."""
    bodies = defaultdict(str)
    for header in [REPO / "common/facts.h",
                   *sorted((REPO / "compat").glob("*.h"))]:
        for name, body in LISTS.findall(source(header)):
            bodies[name] += body
    lists: dict[str, list] = {}
    while len(lists) < len(bodies):    # those of lists come after these
        before = len(lists)
        for name, body in bodies.items():
            if name not in lists and all(
                    kind in lists for kind, *_ in CALL.findall(body)
                    if kind in bodies):
                lists[name] = list(of_calls(body, lists))
        assert len(lists) > before, "lists that contain each other"
    groups = defaultdict(set)
    text = source(REPO / path)
    for group, what in of_calls(text[text.index("struct vb_fact"):], lists):
        groups[group].add(what)
    return groups


def said(module):
    """What each row of its table names."""
    text = (REPO / "Documentation/kernels.md").read_text()
    table = text.split(f"\n| off in {module} |")[1].split("\n\n")[0]
    return {off.strip(): set(re.findall(r"`([\w.]+)`", names))
            for off, names in re.findall(r"^\|([^|-]+)\|(.*)\|$", table, re.M)}


class Facts(unittest.TestCase):
    def test_the_document_names_each_with_what_is_off(self):
        for module, (path, rows) in MODULES.items():
            named = said(module)
            groups = facts(path)
            self.assertEqual(set(named), set(rows), module)
            self.assertEqual(set(groups), set().union(*rows.values()), module)
            used = {row: set() for row in rows}
            names = set().union(*named.values())
            for row, of in rows.items():
                for what in set().union(*(groups[group] for group in of)):
                    # "kvm_vcpu" is of all its members but those named apart.
                    best = max((n for n in names if what == n or
                                what.startswith(f"{n}.")), key=len, default="")
                    self.assertIn(best, named[row], f"{module}: {row}: {what}")
                    used[row].add(best)
            self.assertEqual(used, named, module)

    def test_all_kinds_are_known(self):
        kinds = set(re.findall(r"#define (VB_\w+)\(group", source(
            REPO / "core/facts.h")))
        self.assertEqual(kinds, OF_MEMBERS | OF_NAMES)


if __name__ == "__main__":
    unittest.main()
