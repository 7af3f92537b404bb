# SPDX-License-Identifier: GPL-2.0
"""The host's kernel may patch its text while other CPUs run it
(selftests/modules/vb_text)."""

import unittest

from booting import WHOLE, Run

# Without vb_text that was too much: "Oops: int3" after some 800 of them.
HOST = """
kvm_churn 2500 && cat /sys/module/vb_text/parameters/written >"$LAB_OUT/written"
"""


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Patched(unittest.TestCase):
    def test_a_static_key_of_the_scheduler(self):
        run = Run("--guests", "0", "--timeout", "900", l1=HOST)
        self.addCleanup(run.remove)
        self.assertEqual(run.wait(), 0, run.stderr)
        # The key has three places: for each a breakpoint, what follows, and
        # the first byte; on and off.
        self.assertGreaterEqual(int(run.read("written")), 2500 * 18)


if __name__ == "__main__":
    unittest.main()
