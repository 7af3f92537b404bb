# SPDX-License-Identifier: GPL-2.0
""".ci/run, with a make that only says that it did something."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import checkpath  # noqa: F401
from vblab import paths

GOOD = "echo '2 passed, 0 failed, 1 skipped'"
ELSEWHERE = "not run here: make test-long, test-matrix, test-debug, coverage"


def run(check, test):
    with tempfile.TemporaryDirectory() as folder:
        make = Path(folder) / "make"
        make.write_text(f"#!/bin/sh\ncase $1 in\ncheck) {check} ;;\n"
                        f"test) {test} ;;\nesac\n")
        make.chmod(0o755)
        done = subprocess.run([paths.REPO / ".ci/run"], text=True,
                              env=dict(os.environ, PATH=f"{folder}:"
                                       + os.environ["PATH"]),
                              stdout=subprocess.PIPE)
    return done.returncode, done.stdout.splitlines()


class Ci(unittest.TestCase):
    def test_sum(self):
        status, lines = run(GOOD, "echo '30 passed, 0 failed, 4 skipped'")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-4:], [
            "make check: 2 passed, 0 failed, 1 skipped",
            "make test: 30 passed, 0 failed, 4 skipped",
            ELSEWHERE,
            "32 passed, 0 failed, 5 skipped"])

    def test_what_was_left_out(self):
        status, lines = run(GOOD, f"echo 'left out: boots A, B'; {GOOD}")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-3:-1], ["left out: boots A, B", ELSEWHERE])

    def test_failure_of_either(self):
        bad = "echo '1 passed, 3 failed, 0 skipped'; exit 1"
        for first, second in ((GOOD, bad), (bad, GOOD)):
            status, lines = run(first, second)
            self.assertEqual(status, 1)
            self.assertEqual(lines[-1], "3 passed, 3 failed, 1 skipped")
            self.assertIn("make test: ", lines[-3])

    def test_no_result_is_a_failure(self):
        for bad in ("echo no kernel; exit 2", "true", f"{GOOD}; exit 1"):
            for first, second in ((GOOD, bad), (bad, GOOD)):
                with self.subTest(bad):
                    status, lines = run(first, second)
                    self.assertEqual(status, 1)
                    self.assertIn(" 1 failed, ", lines[-1])
