# SPDX-License-Identifier: GPL-2.0
"""The options of a boot, looked at from inside."""

import re
import tempfile
import unittest
from pathlib import Path

from booting import WHOLE, Run

SLICE = 7_000_000
SHELL = """
. /lab/lib.sh
show() { echo "== $1"; shift; "$@"; }
affinity() { taskset -p "$1" | sed 's/.*: //'; }
pins() { for t in $(vcpu_tids "$1"); do affinity "$t"; done; }
"""
# Named groups of lines: "== NAME", then the lines.
LOOK = SHELL + """
{
	show slice get_slice
	show host-mod cat /sys/module/vbalance_host/parameters/observe \\
		/sys/module/vbalance_host/parameters/hook
	show env-l1 sh -c 'echo "$WORDS"'
	show added-l1 cat /lab/both/file
	for g in 0 1; do
		show "pins-$g" pins "$g"
		show "qemu-$g" affinity "$(guest_pid "$g")"
		show "number-$g" guest "$g" 'echo $LAB_GUEST'
		show "vcpus-$g" guest "$g" nproc
		show "ping-$g" ping -c 3 -W 5 "$(guest_ip "$g")"
		show "ping-from-$g" guest "$g" \\
			"ping -c 3 -W 5 $(lab_net "$g").1"
		show "guest-mod-$g" guest "$g" 'cd /sys/module/vbalance_guest &&
			cat parameters/policy parameters/threshold'
		show "env-l2-$g" guest "$g" 'echo "$WORDS"'
		show "added-l2-$g" guest "$g" 'cat /lab/both/file'
	done
} >"$LAB_OUT/seen" </dev/null
"""
# The guests are only looked at: the emulator may lose guests that run on more
# than one CPU (Documentation/measurements.md).
SPREAD = SHELL + """
{
	for g in 0 1; do
		guest_start "$g" -S
		until guest_qmp "$g" '{"execute":"query-status"}'; do
			sleep 1
		done >/dev/null 2>&1
		show "boots-$g" pins "$g"
		guest_pin "$g"
		show "pins-$g" pins "$g"
		show "qemu-$g" affinity "$(guest_pid "$g")"
	done
} >"$LAB_OUT/seen" </dev/null
"""


def groups(run):
    """The lines of each named group that the script of @run wrote."""
    return {name: lines.splitlines() for name, lines in re.findall(
        r"^== (\S+)\n((?:(?!== ).*\n)*)", run.read("seen"), re.M)}


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Spread(unittest.TestCase):
    def test_pin_spread(self):
        run = Run("--guests", "2", "--cpus", "3", "--vcpus", "3",
                  "--pin", "spread", "--no-start-guests", l1=SPREAD)
        self.addCleanup(run.remove)
        self.assertEqual(run.wait(), 0, run.stderr)
        seen = groups(run)
        for guest in "01":
            # Masks: CPUs 1, 2 and 1 again; all but the vCPUs on 0.
            self.assertEqual(seen[f"boots-{guest}"], ["2", "2", "2"])
            self.assertEqual(seen[f"pins-{guest}"], ["2", "4", "2"])
            self.assertEqual(seen[f"qemu-{guest}"], ["1"])


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Options(unittest.TestCase):
    """One boot for all: the options must not get in each other's way."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "file").write_text("what was added\n")
            run = Run("--guests", "2", "--cpus", "3", "--vcpus", "3",
                      "--slice", str(SLICE),
                      "--host-mod", "observe=1 hook=kprobe",
                      "--guest-mod", "policy=paper threshold=222",
                      "--env", "WORDS=two words",
                      "--add", f"{folder}:both", l1=LOOK)
            cls.addClassCleanup(run.remove)
            status = run.wait()
        if status:
            raise AssertionError(f"exit {status}:\n{run.stderr}")
        cls.seen = groups(run)

    def test_slice(self):
        self.assertEqual(self.seen["slice"], [str(SLICE)])

    def test_parameters_of_the_host_module(self):
        self.assertEqual(self.seen["host-mod"], ["1", "kprobe"])

    def test_parameters_of_the_guest_module(self):
        for guest in "01":
            self.assertEqual(self.seen[f"guest-mod-{guest}"],
                             ["paper", "222"])

    def test_pin_stacked(self):
        for guest in "01":
            # Masks: CPU 1 for vCPUs, 0 for all else.
            self.assertEqual(self.seen[f"pins-{guest}"], ["2", "2", "2"])
            self.assertEqual(self.seen[f"qemu-{guest}"], ["1"])

    def test_guests_and_their_networks(self):
        for guest in "01":
            self.assertEqual(self.seen[f"number-{guest}"], [guest])
            self.assertEqual(self.seen[f"vcpus-{guest}"], ["3"])
            for ping in ("ping", "ping-from"):
                self.assertRegex("\n".join(self.seen[f"{ping}-{guest}"]),
                                 "[1-3] (packets )?received")

    def test_environment(self):
        for where in ("l1", "l2-0", "l2-1"):
            self.assertEqual(self.seen[f"env-{where}"], ["two words"])

    def test_added_folder(self):
        for where in ("l1", "l2-0", "l2-1"):
            self.assertEqual(self.seen[f"added-{where}"], ["what was added"])


if __name__ == "__main__":
    unittest.main()
