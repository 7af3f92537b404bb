# SPDX-License-Identifier: GPL-2.0
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import coverage
from vblab.util import LabError


def gcovr(*counts):
    """@counts: of line 1, 2, ...; None: no code."""
    return {"files": [{"file": "a/b.c", "lines": [
        {"line_number": n, "count": c or 0, "gcovr/noncode": c is None}
        for n, c in enumerate(counts, 1)]}]}


class Uncovered(unittest.TestCase):
    def lines(self, counts, *source):
        return coverage.uncovered(gcovr(*counts), {"a/b.c": list(source)})

    def test_lines_that_never_ran(self):
        self.assertEqual(self.lines((3, 0, None), "one();", "\ttwo();", "three();"),
                         ["  a/b.c:2: two();"])

    def test_error_paths(self):
        for line in ("goto err_free;", "return -ENOMEM;", "return -VB_EFAULT;",
                     "err = -EINVAL;", 'pr_warn("no");', "return NULL;",
                     "err_free:", "return PTR_ERR(t);", "err = PTR_ERR(t);",
                     "err = size;"):
            with self.subTest(line):
                self.assertEqual(self.lines((1, 0), "if (x)", line),
                                 [f"E a/b.c:2: {line}"])
        for line in ("return 0;", "goto again;", "x = -1;", "n++;",
                     "err = more(n);"):
            with self.subTest(line):
                self.assertEqual(self.lines((1, 0), "if (x)", line),
                                 [f"  a/b.c:2: {line}"])

    def test_what_follows_a_failure(self):
        for line in ("if (WARN_ON_ONCE(x))", "if (IS_ERR(p)) {"):
            with self.subTest(line):
                self.assertEqual(self.lines((1, 0), line, "return 0;"),
                                 ["E a/b.c:2: return 0;"])
        self.assertEqual(self.lines((0, 1), "return 0;", "WARN_ON(x);"),
                         ["  a/b.c:1: return 0;"])

    def test_what_belongs_to_an_error_path(self):
        # Up to the next line that ran, whatever is no code between.
        self.assertEqual(self.lines(
            (0, None, 0, 1, 0), "undo();", "", "return -EIO;", "ran();", "f();"),
            ["E a/b.c:1: undo();", "E a/b.c:3: return -EIO;",
             "  a/b.c:5: f();"])

    def test_a_line_of_several_functions_ran_if_it_did_in_one(self):
        data = gcovr(0)
        data["files"][0]["lines"] += gcovr(2)["files"][0]["lines"]
        self.assertEqual(coverage.uncovered(data, {"a/b.c": ["f();"]}), [])


class Judge(unittest.TestCase):
    LINES = ["E a/b.c:2: return -EIO;", "E a/b.c:7: return -EIO;",
             "  a/b.c:9: n++;"]

    def test_not_known(self):
        self.assertEqual(coverage.judge(self.LINES, []), [
            "no test, and no reason: a/b.c:2: return -EIO;",
            "no test, and no reason: a/b.c:7: return -EIO;"])

    def test_known_once_for_each_time(self):
        known = [{"file": "a/b.c", "lines": ["\treturn -EIO;"], "why": ""}]
        self.assertEqual(coverage.judge(self.LINES, known), [
            "no test, and no reason: a/b.c:7: return -EIO;"])
        self.assertEqual(coverage.judge(self.LINES, known * 2), [])

    def test_of_another_file(self):
        known = [{"file": "b.c", "lines": ["return -EIO;"] * 2, "why": ""}]
        self.assertEqual(len(coverage.judge(self.LINES, known)), 4)

    def test_known_and_no_error_path(self):
        known = [{"file": "a/b.c", "lines": ["n++;"], "why": ""}]
        self.assertEqual(coverage.judge(self.LINES[2:], known), [])

    def test_known_that_ran(self):
        known = [{"file": "a/b.c", "lines": ["return -EIO;"] * 3, "why": ""}]
        self.assertEqual(coverage.judge(self.LINES, known), [
            "has run, or is not there: a/b.c: return -EIO;"])


class Collect(unittest.TestCase):
    def setUp(self):
        context = tempfile.TemporaryDirectory()
        self.out = Path(context.name) / "out"
        self.work = Path(context.name) / "work"
        self.addCleanup(context.cleanup)
        self.put(self.work / "tree/host-mod/x.gcno", "oncg", "new!")

    @staticmethod
    def put(path, magic, stamp, rest=""):
        path.parent.mkdir(parents=True)
        path.write_text(f"{magic}V4.1{stamp}{rest}")

    def put_counters(self, who, stamp="new!"):
        self.put(self.out / who / "mnt/work/tree/host-mod/x.gcda",
                 "adcg", stamp, who)

    def test_one_set_for_each_machine_that_ran(self):
        found = ("00-a/gcov/l1", "00-a/gcov/l2-0-9.3", "01-b/gcov/l1")
        for who in found:
            self.put_counters(who)
        (self.out / "02-c/gcov/l1").mkdir(parents=True)
        self.assertEqual(coverage.collect(self.out, self.work), 3)
        self.assertEqual(
            sorted(p.read_text()[12:] for p in self.work.glob(
                "sets/*/host-mod/x.gcda")), list(found))

    def test_counters_of_another_build_are_an_error(self):
        self.put_counters("00-a/gcov/l1")
        self.put_counters("01-b/gcov/l1", "old!")
        with self.assertRaisesRegex(LabError, "01-b.*another build"):
            coverage.collect(self.out, self.work)

    def test_counters_of_nothing_are_an_error(self):
        self.put_counters("00-a/gcov/l1")
        (self.work / "tree/host-mod/x.gcno").unlink()
        with self.assertRaisesRegex(LabError, "another build"):
            coverage.collect(self.out, self.work)


if __name__ == "__main__":
    unittest.main()
