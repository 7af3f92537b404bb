# SPDX-License-Identifier: GPL-2.0
import json
import unittest

import checkpath  # noqa: F401
from vbcheck import contexts
from vbcheck.findings import Finding
from vblab import paths

CALLS = """def\ta.c\t1\tvbh_hook
def\ta.c\t9\tvbh_deep
def\ta.c\t20\tvbh_work
call\ta.c\t2\tvbh_hook\tvbh_deep\t1
call\ta.c\t3\tvbh_hook\tvbh_hook\t1
call\ta.c\t10\tvbh_deep\tkmalloc\t4 , GFP_KERNEL
call\ta.c\t11\tvbh_deep\tkmalloc\t4 , GFP_ATOMIC
call\ta.c\t21\tvbh_work\tkmalloc\t4 , GFP_KERNEL
"""
CONTEXT = {"context": "there", "roots": ["vbh_hook"], "forbidden": [
    {"call": "kmalloc", "if": "GFP_KERNEL", "why": "it sleeps"}]}


def findings(calls=CALLS, **changes):
    return contexts.findings(contexts.parse(calls),
                             [{**CONTEXT, **changes}])


class Reached(unittest.TestCase):
    def test_only_what_is_reached(self):
        self.assertEqual(findings(), [Finding(
            "a.c", 10, "kmalloc() there: it sleeps (vbh_hook > vbh_deep)")])

    def test_unless(self):
        rule = {"call": "km.*", "unless": "ATOMIC", "why": "it sleeps"}
        self.assertEqual([f.line for f in findings(forbidden=[rule])], [10])

    def test_whole_names_only(self):
        self.assertEqual(findings(forbidden=[{"call": "mall", "why": ""}]), [])

    def test_root_that_is_gone(self):
        [f] = findings(roots=["vbh_gone"])
        self.assertIn("vbh_gone() is not defined", f.text)

    def test_ours_that_was_not_understood(self):
        found = findings(CALLS + "call\ta.c\t12\tvbh_deep\tvbh_new\t\n")
        self.assertIn("vbh_new()", found[-1].text)


class Callbacks(unittest.TestCase):
    DEFINED = {"vbh_fn", "vbg_fn", "f"}

    def names(self, code):
        return [n for _, n in contexts.callbacks(code, self.DEFINED)]

    def test_registered(self):
        for code in (".handler = vbh_fn,", ".notifier_call = &vbh_fn }",
                     "DEFINE_IRQ_WORK(work, vbh_fn);", "\t\tvbh_fn,",
                     '{ "vbg_fn", vbh_fn },', "x = a ? vbh_fn : NULL;"):
            with self.subTest(code):
                self.assertEqual(self.names(code), ["vbh_fn"])

    def test_no_callback(self):
        for code in ("vbh_fn(1);", "x = vbh_fn (1);", "static int vbh_fn(int)",
                     "struct vbh_fn x;", "enum vbh_fn x;", "p->vbh_fn = 1;",
                     ".vbh_fn = 1,", "/* vbh_fn */", "// vbh_fn", "vbh_fn_too,",
                     's = "vbh_fn";', "#define register\tvbh_fn", "f = 1;",
                     ".handler = vbh_elsewhere,"):
            with self.subTest(code):
                self.assertEqual(self.names(code), [])

    def test_line(self):
        code = '/* a\n * b */\n"c";\n#define register vbh_fn\n vbg_fn,\n'
        self.assertEqual(contexts.callbacks(code, self.DEFINED),
                         [(5, "vbg_fn")])

    def test_unlisted(self):
        sources = {"a.c": "x = vbh_fn;\ny = vbg_fn;\n"}
        [f] = contexts.unlisted(sources, self.DEFINED, [
            {**CONTEXT, "roots": ["vbh_fn"]}])
        self.assertEqual((f.path, f.line), ("a.c", 2))
        self.assertIn("vbg_fn()", f.text)
        self.assertEqual(contexts.unlisted(sources, self.DEFINED, [
            CONTEXT, {"context": "asleep", "forbidden": [],
                      "roots": ["vbg_fn", "vbh_fn"]}]), [])


class Data(unittest.TestCase):
    def test_expressions(self):
        for c in json.loads((paths.REPO / contexts.DATA).read_text()):
            for rule in c["forbidden"]:
                self.assertTrue(rule["why"])
                for key in {"call", "if", "unless"} & set(rule):
                    contexts.re.compile(rule[key])
