# SPDX-License-Identifier: GPL-2.0
"""What goes wrong in a boot must be seen in lab/lab's exit status."""

import os
import signal
import unittest
from pathlib import Path

from booting import Run

NO_GUEST = ("--guests", "0")


def command_lines() -> list[list[str]]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text(errors="replace").split("\0"))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Verdicts(unittest.TestCase):
    def start(self, *words, **scripts):
        run = Run(*words, **scripts)
        self.addCleanup(run.remove)
        return run

    def assert_ends(self, run, status):
        self.assertEqual(run.wait(), status, run.stderr)

    def test_warning_in_l1(self):
        run = self.start(*NO_GUEST, l1="""
            echo 'WARNING: made for the console' >/dev/kmsg
            echo '<6>WARNING: of a lower level' >/dev/kmsg""")
        self.assert_ends(run, 3)
        for log, line in (("l1.log", "WARNING: made for the console"),
                          ("l1.dmesg", "WARNING: of a lower level")):
            self.assertEqual(run.reason.count(line), 1)
            self.assertRegex(run.reason, rf"{log}:\d+: .*{line}")
            self.assertRegex(run.stderr, rf"(?m)^  > .*{line}")

    def test_panic_of_l1(self):
        run = self.start(*NO_GUEST, l1="echo c >/proc/sysrq-trigger")
        self.assert_ends(run, 3)
        self.assertRegex(run.stderr, r"(?m)^  > .*Kernel panic")

    def test_warning_and_panic_of_a_guest(self):
        run = self.start(l1="""
            . /lab/lib.sh
            guest 0 'echo "WARNING: in the guest" >/dev/kmsg'
            timeout 30 guest 0 'echo c >/proc/sysrq-trigger'
            exit 0""")
        self.assert_ends(run, 3)
        for line in ("WARNING: in the guest", "Kernel panic"):
            self.assertRegex(run.reason, rf"l2-0\.log:\d+: .*{line}")

    def test_failing_script(self):
        run = self.start(*NO_GUEST, l1="""
            echo kept >"$LAB_OUT/file"
            exit 7""")
        self.assert_ends(run, 1)
        self.assertIn("l1 script exited 7", run.reason)
        self.assertEqual(run.read("file"), "kept\n")

    def test_module_that_does_not_load(self):
        run = self.start(*NO_GUEST, "--host-mod", "hook=nonsense")
        self.assert_ends(run, 2)
        self.assertIn("insmod vbalance_host.ko hook=nonsense failed",
                      run.reason)

    def test_reset_of_l1(self):
        run = self.start(*NO_GUEST, l1="echo b >/proc/sysrq-trigger")
        self.assert_ends(run, 2)
        self.assertIn("QEMU exited with status 0", run.reason)

    def test_timeout(self):
        run = self.start(*NO_GUEST, "--timeout", "8", l1="sleep 1000")
        self.assert_ends(run, 4)

    def test_interrupt_leaves_nothing(self):
        run = self.start(*NO_GUEST, l1="""
            . /lab/lib.sh
            progress asleep
            sleep 1000""")
        run.await_line("asleep")
        (qemu,) = (line for line in command_lines()
                   if "-initrd" in line and str(run.out) in "\0".join(line))
        work = Path(qemu[qemu.index("-initrd") + 1]).parent
        self.assertTrue(work.is_dir())
        os.killpg(run.process.pid, signal.SIGINT)
        self.assert_ends(run, 130)
        self.assertFalse(work.exists())
        self.assertEqual([line for line in command_lines()
                          if str(run.out) in "\0".join(line)], [])


if __name__ == "__main__":
    unittest.main()
