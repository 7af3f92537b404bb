# SPDX-License-Identifier: GPL-2.0
"""Which modules dkms.conf names, by the configuration of a made-up kernel."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

GUEST = ["vbalance_guest"]
BOTH = ["vbalance_guest", "vbalance_host"]


def named(config):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "include/config/auto.conf"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"CONFIG_{line}\n" for line in config))
        done = subprocess.run(
            ["bash", "-c", 'kernel_source_dir=$1 dkms_tree=$1; . "$2"; '
             'echo "${BUILT_MODULE_NAME[@]}"', "bash", folder,
             paths.REPO / "dkms.conf"],
            text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout.split()


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
