# SPDX-License-Identifier: GPL-2.0
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import coverage

GCOVR = {"files": [{"file": "a/b.c", "lines": [
    {"line_number": 1, "count": 3, "gcovr/noncode": False},
    {"line_number": 2, "count": 0, "gcovr/noncode": False},
    {"line_number": 3, "count": 0, "gcovr/noncode": True}]}]}


class Coverage(unittest.TestCase):
    def test_lines_that_never_ran(self):
        source = {"a/b.c": ["one();", "\ttwo();", "three();"]}
        self.assertEqual(coverage.uncovered(GCOVR, source), ["a/b.c:2: two();"])

    def test_one_set_for_each_kernel_that_ran(self):
        with tempfile.TemporaryDirectory() as folder:
            out, work = Path(folder) / "out", Path(folder) / "work"
            for who in ("00-a/gcov/l1", "00-a/gcov/l2-0-9.3", "01-b/gcov/l1"):
                base = out / who / "mnt/work/tree/host-mod"
                base.mkdir(parents=True)
                (base / "x.gcda").write_text(who)
            (out / "02-c/gcov/l1").mkdir(parents=True)
            self.assertEqual(coverage.collect(out, work), 3)
            self.assertEqual(
                sorted(p.read_text() for p in work.glob(
                    "sets/*/host-mod/x.gcda")),
                ["00-a/gcov/l1", "00-a/gcov/l2-0-9.3", "01-b/gcov/l1"])


if __name__ == "__main__":
    unittest.main()
