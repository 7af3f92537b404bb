# SPDX-License-Identifier: GPL-2.0
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

REDIRECTED = """
import contextlib, io, unittest

class T(unittest.TestCase):
    def test_a(self):
        with contextlib.redirect_stdout(io.StringIO()):
            for n in (1, 2):
                with self.subTest(n):
                    self.assertEqual(n, 1)

    def test_b(self):
        pass
"""


class Redirected(unittest.TestCase):
    def test_failures_are_seen(self):
        with tempfile.TemporaryDirectory() as d:
            (Path(d) / "test_x.py").write_text(REDIRECTED)
            ran = subprocess.run(
                [sys.executable, "-BP", str(paths.LAB / "vblab/pyktap.py"), d],
                text=True, capture_output=True)
        lines = [line for line in ran.stdout.splitlines()
                 if not line.startswith("#")]
        self.assertEqual(lines, [
            "KTAP version 1", "1..2", "not ok 1 - test_x.T.test_a [2]",
            "ok 2 - test_x.T.test_b"])
        self.assertIn("# AssertionError: 2 != 1", ran.stdout)
        self.assertEqual(ran.returncode, 1)
