# SPDX-License-Identifier: GPL-2.0
import unittest

import labpath  # noqa: F401
from vblab import ktap


def states(text, status=0):
    return [r.state for r in ktap.judge("t", text, status)]


class Judge(unittest.TestCase):
    def test_results(self):
        text = ("KTAP version 1\n1..3\nok 1 - a\nnot ok 2 - b\n"
                "ok 3 - c # SKIP no device\n")
        results = ktap.judge("t", text, 1)
        self.assertEqual([(r.name, r.state, r.note) for r in results],
                         [("t: a", "passed", ""), ("t: b", "failed", ""),
                          ("t: c", "skipped", "no device")])

    def test_subtests_do_not_count(self):
        self.assertEqual(states("1..1\n    1..1\n    not ok 1 - x\nok 1 - a\n"),
                         ["passed"])

    def test_no_plan(self):
        self.assertEqual(states("ok 1 - a\n"), ["passed", "failed"])
        self.assertEqual(states(""), ["failed"])

    def test_too_few_results(self):
        self.assertEqual(states("1..2\nok 1 - a\n"), ["passed", "failed"])

    def test_exit_status_without_failed_result(self):
        self.assertEqual(states("1..1\nok 1 - a\n", 139), ["passed", "failed"])

    def test_failed_result_is_not_counted_twice(self):
        self.assertEqual(states("1..1\nnot ok 1 - a\n", 1), ["failed"])

    def test_failed_result_with_status_zero(self):
        self.assertEqual(states("1..1\nnot ok 1 - a\n", 0), ["failed"])

    def test_skipped_as_a_whole(self):
        for text in ("1..0 # SKIP no KVM\n", "# SKIP: no KVM\n",
                     "KTAP version 1\nno KVM\n"):
            with self.subTest(text):
                (r,) = ktap.judge("t", text, 4)
                self.assertEqual(r.state, "skipped")
                self.assertIn("no KVM", r.note)

    def test_never_ended(self):
        self.assertEqual(states("1..2\nok 1 - a\n", None),
                         ["passed", "failed", "failed"])

    def test_several_programs(self):
        text = ("KTAP version 1\n1..1\nok 1 - a\n"
                "KTAP version 1\n1..2\nok 1 - b\n")
        self.assertEqual(states(text), ["passed", "passed", "failed"])

    def test_prose_is_no_result(self):
        self.assertEqual(states("1..1\nokay so far\nok 1 - a\n"), ["passed"])


if __name__ == "__main__":
    unittest.main()
