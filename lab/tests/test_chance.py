#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""selftests/chancelib.sh, with made-up numbers."""
import math
import subprocess
import unittest

import labpath  # noqa: F401
from vblab import paths


def still_chance(n, seconds, record, of):
    """What the shell says."""
    return subprocess.run(
        ["sh", "-c", '. "$0"; still_chance "$@"',
         paths.REPO / "selftests/chancelib.sh",
         *map(str, (n, seconds, record, of))], check=False).returncode == 0


def tail(n, seconds, record, of):
    """P(at least n): n events of ours before RECORD of the others."""
    ours = seconds / (seconds + of)
    return sum(math.comb(n + record - 1, k) * ours ** k *
               (1 - ours) ** (n + record - 1 - k)
               for k in range(n, n + record))


class Chance(unittest.TestCase):
    def test_none_is_always_chance(self):
        for record, of in ((1, 1), (1, 10 ** 6), (7, 60)):
            self.assertTrue(still_chance(0, 60, record, of))

    def test_as_usual(self):
        self.assertTrue(still_chance(3, 60, 1, 20))
        self.assertTrue(still_chance(10, 600, 10, 600))

    def test_far_more(self):
        self.assertFalse(still_chance(6, 150, 1, 625))
        self.assertFalse(still_chance(40, 600, 10, 600))

    def test_a_longer_record_allows_less(self):
        self.assertTrue(still_chance(5, 60, 1, 20))
        self.assertFalse(still_chance(5, 60, 1, 600))

    def test_the_limit_is_one_in_a_thousand(self):
        for seconds, record, of in ((150, 1, 625), (60, 2, 80),
                                    (900, 3, 800), (600, 20, 600)):
            allowed = next(n for n in range(1000) if
                           not still_chance(n, seconds, record, of)) - 1
            with self.subTest(seconds=seconds, record=record, of=of):
                self.assertGreaterEqual(
                    tail(allowed, seconds, record, of), 0.001)
                self.assertLess(
                    tail(allowed + 1, seconds, record, of), 0.001)


if __name__ == "__main__":
    unittest.main()
