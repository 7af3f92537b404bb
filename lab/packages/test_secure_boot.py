# SPDX-License-Identifier: GPL-2.0
"""Secure Boot from the firmware to our modules: DKMS signs them, its key is
enrolled as the machine owner's, and a kernel of Debian's that was booted so
verifies them.

What MokManager would have put into the firmware's variables is there from the
beginning. How L1 is booted: vblab/uefi.py.
"""

import unittest

from chroots import EXPORT, MODULES, WHOLE, Story, StoryTest
import booting      # chroots says where it is
from signature import split_module
from vblab import root, uefi

# Of all that a firmware has of us, as its owner: any number.
OWNER = "605dab50-e046-4300-abb6-3dd810dd8b23"
VARIABLES = f"""virt-fw-vars --input /usr/share/OVMF/OVMF_VARS_4M.ms.fd \
	--output /mnt/work/vars.fd --add-mok {OWNER} /mnt/work/mok.pem
"""
INSTALL = "make -s -C /mnt/repo dkms-install KERNEL=$K"
# Modules without a signature get one.
SIGN = """set -e
cd /mnt/work
cp -r unsigned other
for f in other/*; do
	"/lib/modules/$K/build/scripts/sign-file" sha256 other.key other.pem "$f"
done
"""
SCRIPT = """. /lab/lib.sh
cd /lab/selftests && exec ./secure_boot.sh
"""


class SecureBoot(StoryTest):
    @classmethod
    def tell(cls, story):
        cls.release = cls.other if cls.KERNEL.endswith("-full") else cls.kernel
        story.step("install", INSTALL, K=cls.release)
        story.step("export", EXPORT, K=cls.release, TO="dkms")

    def make(self):
        for folder in ("unsigned", "changed"):
            (self.work / folder).mkdir()
        for name in MODULES:
            data = (self.work / f"dkms/{name}.ko").read_bytes()
            signed, _ = split_module(data)
            (self.work / f"unsigned/{name}.ko").write_bytes(signed)
            changed = bytearray(data)
            changed[len(signed) // 2] ^= 1
            (self.work / f"changed/{name}.ko").write_bytes(changed)
        for package_root, name, command in (
                (self.root, "other", SIGN),
                (root.ensure(uefi.ROOT), "variables", VARIABLES)):
            story = Story(package_root, self.work)
            story.step(name, command, K=self.release)
            step = story.run()[name]
            self.assertEqual(step.status, 0, step.output)

    def test_kernel_verifies(self):
        self.output("install")
        self.output("export")
        self.need_in_lab(self.KERNEL, self.release)
        self.make()
        run = booting.Run(
            "--host-kernel", self.KERNEL, "--guests", "0", "--timeout", "300",
            "--secure-boot", str(self.work / "vars.fd"),
            *(word for folder in ("dkms", "other", "changed", "unsigned")
              for word in ("--add-l1", f"{self.work / folder}:{folder}")),
            l1=SCRIPT)
        self.addCleanup(run.remove)
        status, said = run.wait(), run.read("l1-script.log")
        self.assertEqual(status, 0, run.stderr + said)
        self.assertIn("not refused for its signature", said)
        self.assertNotIn("not ok", said)


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Trixie(SecureBoot, unittest.TestCase):
    ROOT = "packaging"
    KERNEL = "6.12"


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Newest(SecureBoot, unittest.TestCase):
    ROOT = "packaging"
    KERNEL = "newest-full"


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Bookworm(SecureBoot, unittest.TestCase):
    ROOT = "packaging-bookworm"
    KERNEL = "6.1"


if __name__ == "__main__":
    unittest.main()
