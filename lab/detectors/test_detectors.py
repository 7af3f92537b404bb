# SPDX-License-Identifier: GPL-2.0
"""Do the debug kernels report mistakes, and does the lab see the reports?

A module of the lab's own (seed/) makes one of each kind. Which kernels, and so
which level: DETECTORS_HOST and DETECTORS_GUEST, by `lab/lab test`.
"""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "boots"))

from booting import Run  # noqa: E402
from vblab import build, kernels, session  # noqa: E402

HOST = os.environ.get("DETECTORS_HOST", kernels.default())
GUEST = os.environ.get("DETECTORS_GUEST", kernels.default())
IN_GUEST = HOST not in kernels.watching()
KERNEL = GUEST if IN_GUEST else HOST
# What the kernel is built with, by its fragments.
RACES = "kcsan" in kernels.data()["kernels"][KERNEL].get("config", [])


def made(*mistakes):
    """In process context of the machine under test."""
    return "".join(f"insmod /lab/vb_seed.ko mistake={m} && rmmod vb_seed\n"
                   for m in mistakes)


# Until it was seen, or for so long that it never will be.
RACE = """
insmod /lab/vb_seed.ko mistake=race
n=0
until dmesg | grep -q KCSAN: || [ $((n += 1)) = 300 ]; do
	sleep 1
done
rmmod vb_seed
"""


class Detectors(unittest.TestCase):
    def boot(self, script):
        """What the lab says of a boot in which that machine runs @script."""
        seed = build.outside(kernels.get(KERNEL), HERE / "seed")
        words = ["--host-kernel", HOST, "--guest-kernel", GUEST,
                 "--timeout", "900", "--add", f"{seed}:vb_seed.ko"]
        if IN_GUEST:
            # Threads of a guest must run at the same time to race.
            words += ["--cpus", "3", "--pin", "spread", "--vcpus", "2"]
        else:
            words += ["--guests", "0"]
        run = Run(*words, **{"l2" if IN_GUEST else "l1": script})
        self.addCleanup(run.remove)
        self.status = run.wait()
        self.stderr = run.stderr
        return run.reason

    def assert_reported(self, reason, *reports):
        self.assertEqual(self.status, session.EXIT_LOG, self.stderr)
        for report in reports:
            self.assertRegex(reason, report, self.stderr)

    def test_no_mistake_no_report(self):
        self.boot("insmod /lab/vb_seed.ko && rmmod vb_seed")
        self.assertEqual(self.status, session.EXIT_OK, self.stderr)

    @unittest.skipUnless(RACES, "only where KCSAN is")
    def test_race(self):
        self.assert_reported(self.boot(RACE), r"KCSAN: .* in seed_racer")

    @unittest.skipUnless(RACES, "only where KCSAN is")
    def test_locks(self):
        self.assert_reported(self.boot(made("locks")), "possible circular locking")

    @unittest.skipIf(RACES, "not where KCSAN is")
    def test_locks_memory_and_leak(self):
        # Lockdep gives up after a report of KASAN's: it is first.
        self.assert_reported(
            self.boot(made("locks", "freed", "leak")),
            "possible circular locking",
            r"KASAN: slab-use-after-free in seed_freed",
            r"kmemleak: [1-9]\d* new suspected")

    @unittest.skipIf(RACES, "not where KCSAN is")
    def test_rcu_sleep_lifetime_and_arithmetic(self):
        self.assert_reported(
            self.boot(made("rcu", "atomic", "timer", "shift")),
            r"suspicious RCU usage",
            r"sleeping function called from invalid context",
            r"ODEBUG: free active .*timer_list hint: seed_tick",
            r"UBSAN: shift-out-of-bounds in .*vb_seed\.c")

    def test_lockdep_that_is_off(self):
        self.assert_reported(
            self.boot("insmod /lab/vb_seed.ko mistake=unwatched"),
            "detector lockdep is off")

    def test_the_other_that_is_off(self):
        name = "kcsan" if RACES else "kmemleak"
        self.assert_reported(
            self.boot(f"echo off >/sys/kernel/debug/{name}"),
            f"(?i)detector {name} is off")


if __name__ == "__main__":
    unittest.main()
