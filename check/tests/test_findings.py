# SPDX-License-Identifier: GPL-2.0
import unittest

import checkpath  # noqa: F401
from vbcheck import findings
from vbcheck.findings import Exception_, Finding

SEED = "check/seeds/x/a.c"


def judge(found, want=(), exceptions=()):
    """Of a check that has found its seed besides."""
    return findings.judge("x", [*found, Finding(SEED, 1, "bad")],
                          {*want, (SEED, 1)}, list(exceptions))


class Parse(unittest.TestCase):
    def test_forms(self):
        for line in ("core/a.c:7: text", "core/a.c:7:3: text",
                     "core/a.c:7:3-9: text", "./core/a.c:7: text",
                     "/mnt/repo/core/a.c:7:1: text"):
            self.assertEqual(findings.parse(line, "/mnt/repo/"),
                             [Finding("core/a.c", 7, "text")])

    def test_what_is_no_finding_is_told(self):
        self.assertEqual(findings.parse("it broke\n\n"),
                         [Finding("", 0, "it broke")])


class Judge(unittest.TestCase):
    def test_finding(self):
        f = Finding("core/a.c", 1, "bad")
        self.assertEqual(judge([f, f]), [f])

    def test_exception(self):
        f = Finding("core/a.c", 1, "bad: it is")
        good = Exception_("x", ["core/*.c"], "^bad", "why")
        for other in (Exception_("y", ["core/*.c"], "^bad", "why"),
                      Exception_("x", ["host-mod/*"], "^bad", "why"),
                      Exception_("x", ["core/*.c"], "^it", "why")):
            self.assertEqual(judge([f], exceptions=[other]), [f])
            self.assertEqual(len(findings.stale([other, good])), 2)
        self.assertEqual(judge([f], exceptions=[good]), [])
        self.assertEqual(findings.stale([good]), [])

    def test_seed(self):
        bad = Finding(SEED, 3, "bad")
        self.assertEqual(judge([bad], [(SEED, 3)]), [])
        [left] = judge([], [(SEED, 3)])
        self.assertEqual((left.path, left.line), (SEED, 3))
        self.assertIn("broken", left.text)
        [left] = judge([bad])
        self.assertIn("no fault", left.text)
        [left] = findings.judge("x", [], set(), [])
        self.assertIn("no fault", left.text)
        # No exception covers a seed.
        self.assertEqual(len(judge([bad], exceptions=[
            Exception_("x", ["*"], ".", "why")])), 1)
