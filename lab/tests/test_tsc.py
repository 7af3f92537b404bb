# SPDX-License-Identifier: GPL-2.0
import re
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import machine, tsc


class Tsc(unittest.TestCase):
    def test_twice_the_same(self):
        first = tsc.khz()
        tsc.khz.cache_clear()
        self.assertAlmostEqual(tsc.khz() / first, 1, delta=0.01)
        self.assertGreater(first, 100_000)

    def test_wrong_readings_do_not_count(self):
        """Of which the clock says that something came between."""
        clock = iter([0, 10 ** 9, 2 * 10 ** 9, 2 * 10 ** 9 + 2])
        count = iter([1, 2])
        with mock.patch.object(tsc.time, "clock_gettime_ns",
                               lambda _: next(clock)):
            self.assertEqual(tsc._both(lambda: next(count)),
                             (2 * 10 ** 9 + 1, 2))

    def test_l1_is_told(self):
        def arguments(**kw):
            root = mock.Mock(path=Path("/"),
                                      program=lambda name: [name])
            return " ".join(machine.Machine(
                root, mock.Mock(), Path("i"), Path("c"), 1, 512,
                **kw).argv())
        self.assertEqual(re.findall(r"tsc_early_khz=(\d+)", arguments()),
                         [str(tsc.khz())])
        # There a nanosecond is an instruction, whatever this machine does.
        self.assertNotIn("tsc_early_khz", arguments(icount=True))


if __name__ == "__main__":
    unittest.main()
