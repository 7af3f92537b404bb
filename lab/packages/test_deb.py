# SPDX-License-Identifier: GPL-2.0
"""The package that `make deb` builds: clean, and gone when it is purged."""

import functools
import os
import shutil
import unittest
from pathlib import Path

from chroots import MODULES, Story, StoryTest
import booting      # chroots says where it is
from signature import split_module
from vblab import deb, kernels, paths, root, util

UNITS = ("vbalance-guest.service", "vbalance-host.service")
COMMAND_LINES = {"quiet": "succeeded", "quiet vbalance=off": "failed",
                 "vbalance=offline": "succeeded"}
INSTALLED = 'ls -1 "/lib/modules/$K/updates/dkms"'
# So that only one kernel's modules are built.
HIDE = 'mv "/lib/modules/$K/build" /tmp'
SHOW = 'mv /tmp/build "/lib/modules/$K"'
# The modules, uncompressed; DKMS's certificate, and another one of that name.
EXPORT = """set -e
cd /mnt/work
for f in /lib/modules/$K/updates/dkms/vbalance_*; do
	cp "$f" . && case $f in *.xz) xz -d "${f##*/}" ;; esac
done
openssl x509 -inform DER -in /var/lib/dkms/mok.pub -out mok.pem
openssl req -new -x509 -nodes -subj "/CN=DKMS module signing key" \
	-newkey rsa:2048 -keyout other.key -out other.pem 2>/dev/null
"""
# The kernel's question: is this the message of a key that I know about this?
VERIFY = """cd /mnt/work && openssl cms -verify -binary -inform DER \\
	-in "$FILE.p7s" -content "$FILE" -certfile "$KEY.pem" \\
	-CAfile "$KEY.pem" -purpose any -out /dev/null"""


# In L1: with these modules instead of the lab's own.
SMOKE = """. /lab/lib.sh
cd /lab/selftests && VARIANT=dkms GUEST_VARIANT=dkms exec ./smoke.sh
"""


@functools.cache
def build() -> Path:
    """One for all tests."""
    context = util.temp_dir(paths.tmp(), "debs-")
    out = context.__enter__()
    unittest.addModuleCleanup(context.__exit__, None, None, None)
    deb.build(out)
    return out


class Source(unittest.TestCase):
    def test_lintian(self):
        with util.temp_dir(paths.tmp(), "lintian-") as work:
            for path in build().iterdir():
                shutil.copy(path, work)
            story = Story(root.ensure(deb.ROOT), work)
            story.step("lintian", "lintian --allow-root --fail-on "
                       "error,warning --tag-display-limit 0 "
                       "/mnt/work/*.changes")
            step = story.run()["lintian"]
        self.assertEqual((step.status, step.output), (0, ""))


class Package(StoryTest):
    @classmethod
    def tell(cls, story):
        for path in build().iterdir():
            shutil.copy(path, cls.work)
        story.files("before")
        story.step("hide", HIDE, K=cls.other)
        story.step("install", "dpkg -i /mnt/work/vbalance-dkms_*.deb")
        story.step("installed", INSTALLED, K=cls.kernel)
        story.step("export", EXPORT, K=cls.kernel)
        story.step("make", "make -C /mnt/repo dkms-uninstall")
        story.step("enabled", f"systemctl is-enabled {' '.join(UNITS)}")
        story.step("enable", f"systemctl enable {' '.join(UNITS)} && "
                   "cd /etc/systemd/system && ls -1 *.wants/vb*")
        for words in COMMAND_LINES:
            for unit in UNITS:
                story.step(f"{unit}-{words.replace(' ', '-')}",
                           f"systemd-analyze condition --unit={unit}",
                           SYSTEMD_PROC_CMDLINE=words)
        story.step("verify", "cd /usr/lib/systemd/system && "
                   f"systemd-analyze verify {' '.join(UNITS)}")
        story.step("purge", "dpkg --purge vbalance-dkms")
        story.step("show", SHOW, K=cls.other)
        story.files("after")

    def test_install(self):
        self.output("install")
        self.assert_installed("installed", MODULES)

    def test_make_leaves_it_alone(self):
        self.assertIn("apt purge vbalance-dkms", self.steps["make"].output)
        self.assertEqual(self.steps["make"].status, 2)

    def test_units_are_off_and_can_be_enabled(self):
        self.assertEqual(self.steps["enabled"].output.split(),
                         ["disabled"] * 2)
        self.assertLessEqual({
            "dev-kvm.device.wants/vbalance-host.service",
            "multi-user.target.wants/vbalance-guest.service"},
            set(self.output("enable").split()))

    def test_units(self):
        self.assertEqual(self.output("verify"), "")

    def test_kernel_command_line_keeps_them_off(self):
        for words, result in COMMAND_LINES.items():
            for unit in UNITS:
                with self.subTest(unit, words=words):
                    self.assertIn(
                        f"ConditionKernelCommandLine=!vbalance=off {result}",
                        self.steps[f"{unit}-{words.replace(' ', '-')}"].output)

    def test_signatures(self):
        self.output("export")
        verify = Story(self.root, self.work)
        expected = {}
        for module in MODULES:
            signed, message = split_module(
                (self.work / f"{module}.ko").read_bytes())
            other = bytearray(signed)
            other[len(other) // 2] ^= 1
            for name, data in (("as-signed", signed), ("changed", other)):
                for key in ("mok", "other"):
                    step = f"{module}-{name}-{key}"
                    (self.work / step).write_bytes(data)
                    (self.work / f"{step}.p7s").write_bytes(message)
                    verify.step(step, VERIFY, FILE=step, KEY=key)
                    expected[step] = step.endswith("as-signed-mok")
        self.assertEqual({name: step.status == 0
                          for name, step in verify.run().items()}, expected)

    @unittest.skipUnless(os.environ.get("LAB_WHOLE"),
                         "takes a boot: make test-long")
    def test_modules_work(self):
        self.output("export")
        release = kernels.get(self.KERNEL).release
        if release != self.kernel:
            self.skipTest(f"the lab has {release}, the headers here are "
                          f"{self.kernel}'s")
        folder = self.work / "dkms"
        folder.mkdir()
        for module in MODULES:
            shutil.copy(self.work / f"{module}.ko", folder)
        run = booting.Run("--host-kernel", self.KERNEL,
                          "--guest-kernel", self.KERNEL, "--blk", "1",
                          "--add", str(folder), "--timeout", "520",
                          # smoke.sh takes some away.
                          "--allow-log", r"pending bits, \d+ were taken",
                          l1=SMOKE)
        self.addCleanup(run.remove)
        self.assertEqual(run.wait(), 0, run.stderr)
        said = run.read("l1-script.log")
        self.assertIn("interrupts are redirected", said)
        self.assertNotIn("not ok", said)

    def test_purge(self):
        self.output("purge")
        self.assert_same_files("before", "after")


class Trixie(Package, unittest.TestCase):
    ROOT = "packaging"
    KERNEL = "6.12"


class Bookworm(Package, unittest.TestCase):
    ROOT = "packaging-bookworm"
    KERNEL = "6.1"


if __name__ == "__main__":
    unittest.main()
