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
ELSEWHERE = ("not run here: make test-long (more of each test), "
             "test-debug (debug kernels), test-matrix (pairs of kernels), "
             "coverage, and what measures (demo, bench, hookcost, overhead)")


def run(check, test, seconds=(0, 0)):
    """@seconds: that the two take, by a clock that only they move."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Path(folder) / "clock"
        clock.write_text("1700000000")
        take = [f'echo $(($(cat {clock}) + {s})) >{clock}' for s in seconds]
        for name, text in (
                ("make", f"case $1 in\ncheck) {take[0]}; {check} ;;\n"
                         f"test) [ \"$2\" = QUICK=1 ] || exit; {take[1]}; "
                         f"{test} ;;\nesac\n"),
                ("date", f'[ "$*" = +%s ] && cat {clock}\n')):
            path = Path(folder) / name
            path.write_text(f"#!/bin/sh\n{text}")
            path.chmod(0o755)
        done = subprocess.run([paths.REPO / ".ci/run"], text=True,
                              env=dict(os.environ, PATH=f"{folder}:"
                                       + os.environ["PATH"]),
                              stdout=subprocess.PIPE)
    return done.returncode, done.stdout.splitlines()


class Ci(unittest.TestCase):
    def test_sum(self):
        status, lines = run(GOOD, "echo '30 passed, 0 failed, 4 skipped'",
                            (213, 1500))
        self.assertEqual(status, 0)
        self.assertEqual(lines[-5:], [
            "make check: 2 passed, 0 failed, 1 skipped (213 s)",
            "make test: 30 passed, 0 failed, 4 skipped (1500 s)",
            ELSEWHERE,
            "took 28 minutes",
            "32 passed, 0 failed, 5 skipped"])

    def test_what_was_skipped(self):
        status, lines = run(
            f"echo '  skip   a b (no c)'; echo 'SKIPPED a b (no c)'; {GOOD}",
            "echo 'SKIPPED d: e'; echo 'SKIPPED f (a boot)'; "
            f"echo 'left out: g'; {GOOD}")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-7:-2], [
            "make check skipped: a b (no c)", "make test skipped: d: e",
            "make test skipped: f (a boot)", "left out: g", ELSEWHERE])

    def test_what_failed(self):
        status, lines = run(
            "echo 'FAILED a b (exited 3)'; echo '1 passed, 1 failed, "
            "0 skipped'; exit 1", f"echo 'SKIPPED c: d'; {GOOD}")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-5:-2], [
            "make check failed: a b (exited 3)", "make test skipped: c: d",
            ELSEWHERE])

    def test_what_was_left_out(self):
        status, lines = run(f"echo 'left out: abi: C'; {GOOD}",
                            f"echo 'left out: boots A, B'; {GOOD}")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-5:-2], [
            "left out: abi: C", "left out: boots A, B", ELSEWHERE])

    def test_what_time_is_left_for_boots(self):
        # Those that begin last take some minutes, too.
        for seconds, minutes in ((0, 32), (59, 32), (600, 22), (3000, 15)):
            with self.subTest(seconds):
                _, lines = run(GOOD, f'echo "$3"; {GOOD}', (seconds, 0))
                self.assertIn(f"BEGIN_WITHIN={minutes}", lines)

    def test_too_long(self):
        for seconds, complaints in (((600, 1800), 0), ((600, 1801), 1),
                                    ((3000, 0), 1)):
            with self.subTest(seconds):
                status, lines = run(GOOD, GOOD, seconds)
                # Machines differ: no failure.
                self.assertEqual(status, 0)
                self.assertEqual(lines[-1], "4 passed, 0 failed, 2 skipped")
                self.assertEqual(sum(l.startswith("TOO LONG: more than 40 ")
                                     for l in lines), complaints)

    def test_failure_of_either(self):
        bad = "echo '1 passed, 3 failed, 0 skipped'; exit 1"
        for first, second in ((GOOD, bad), (bad, GOOD)):
            status, lines = run(first, second)
            self.assertEqual(status, 1)
            self.assertEqual(lines[-1], "3 passed, 3 failed, 1 skipped")
            self.assertIn("make test: ", lines[-4])

    def test_no_result_is_a_failure(self):
        for bad in ("echo no kernel; exit 2", "true", f"{GOOD}; exit 1"):
            for first, second in ((GOOD, bad), (bad, GOOD)):
                with self.subTest(bad):
                    status, lines = run(first, second)
                    self.assertEqual(status, 1)
                    self.assertIn(" 1 failed, ", lines[-1])
