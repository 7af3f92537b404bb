# SPDX-License-Identifier: GPL-2.0
"""Which kernels dkms.conf takes, and which modules it names, by the name and the
configuration of a made-up one."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

GUEST = ["vbalance_guest"]
BOTH = ["vbalance_guest", "vbalance_host"]


def dkms_conf(folder, command):
    """What the command says with the variables of dkms.conf."""
    return subprocess.run(
        ["bash", "-c", 'kernel_source_dir=$1 dkms_tree=$1; . "$2"; '
         + command, "bash", folder, paths.REPO / "dkms.conf"],
        text=True, stdout=subprocess.PIPE, check=True).stdout


def named(config):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "include/config/auto.conf"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"CONFIG_{line}\n" for line in config))
        return dkms_conf(folder, 'echo "${BUILT_MODULE_NAME[@]}"').split()


class Range(unittest.TestCase):
    def test_kernels(self):
        taken = dkms_conf("/nowhere", 'echo "$BUILD_EXCLUSIVE_KERNEL"')
        for inside, names in ((True, "6.1.0-50 6.9 6.12.1 6.19 7.0 7.10-rc1"),
                              (False, "5.19 6.0.19 8.0 8.1 10.7 16.1 61.2 "
                               "70.1 77")):
            for name in names.split():
                self.assertEqual(bool(re.match(taken.strip(), name)), inside,
                                 name)

    def test_who_else_names_them(self):
        for path, words in (("debian/control", "from 6.1 to 7.x"),
                            ("CHANGES.md", "from 6.1 to 7.x"),
                            ("dkms.conf", "6.1 to 7.x"),
                            ("Documentation/install.md", "6.1 to 7.x"),
                            ("Documentation/install.md", "8.0 and later"),
                            ("Documentation/kernels.md", "newer than 7.x")):
            with self.subTest(path):
                text = (paths.REPO / path).read_text()
                self.assertIn(words, " ".join(text.split()))


class Modules(unittest.TestCase):
    def test_the_host_module_needs_kvm_and_kprobes(self):
        for config, modules in ((["KVM=m", "KPROBES=y"], BOTH),
                                (["KVM=y", "KPROBES=y"], BOTH),
                                (["KVM=m"], GUEST), (["KPROBES=y"], GUEST),
                                (["KVM_GUEST=y", "KPROBES=y"], GUEST)):
            with self.subTest(config):
                self.assertEqual(named(config), modules)


if __name__ == "__main__":
    unittest.main()
