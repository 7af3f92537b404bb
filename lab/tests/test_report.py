# SPDX-License-Identifier: GPL-2.0
"""compat/report.sh: what a build says of a kernel, here of made-up ones."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

ALL = {"KVM": "m", "KPROBES": "y", "DYNAMIC_FTRACE": "y", "VHOST_NET": "m",
       "KVM_GUEST": "y", "DEBUG_FS": "y", "DEBUG_INFO_BTF": "y",
       "DEBUG_INFO_BTF_MODULES": "y"}
FTRACE = "DYNAMIC_FTRACE: missing: vbalance_host: hooks are kprobes"
RINGS = "VHOST_NET: missing: vbalance_host: no rings"
KDUMP = "KPROBES: missing: vbalance_guest: unload it before a kdump"
BTF = "BTF: found: at load"
WITHOUT = {
    (): (BTF,),
    ("KVM",): ("KVM: missing: no vbalance_host", BTF),
    # What a module that is not there would do without is not told.
    ("KVM", "VHOST_NET", "DYNAMIC_FTRACE"): ("KVM: missing: no vbalance_host",
                                             BTF),
    ("KPROBES", "VHOST_NET"): ("KPROBES: missing: no vbalance_host", KDUMP,
                               BTF),
    ("DYNAMIC_FTRACE",): (FTRACE, BTF),
    ("VHOST_NET",): (RINGS, BTF),
    ("DYNAMIC_FTRACE", "VHOST_NET"): (FTRACE, RINGS, BTF),
    ("KVM_GUEST",): ("KVM_GUEST: missing: vbalance_guest refuses", BTF),
    ("DEBUG_FS",): ("DEBUG_FS: missing: neither module shows", BTF),
    ("DEBUG_INFO_BTF_MODULES",): (BTF, "DEBUG_INFO_BTF_MODULES: missing: "),
    ("KVM", "DEBUG_INFO_BTF_MODULES"): ("KVM: missing: no vbalance_host",
                                        BTF),
    ("DEBUG_INFO_BTF", "DEBUG_INFO_BTF_MODULES"): ("BTF: missing: ",),
}


def report(config, flags="", *probes):
    """@config: values by option."""
    with tempfile.TemporaryDirectory() as folder:
        auto = Path(folder) / "auto.conf"
        # As there: what begins like an option is another one.
        auto.write_text("".join(f"CONFIG_{name}={value}\nCONFIG_{name}_X=y\n"
                                for name, value in config.items())
                        + "CONFIG_KVM_X=y\n")
        done = subprocess.run(
            ["sh", paths.REPO / "compat/report.sh", paths.REPO, auto, flags,
             *probes], text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout.splitlines()


class Options(unittest.TestCase):
    def test_what_each_module_does_without(self):
        for missing, want in WITHOUT.items():
            with self.subTest(missing):
                said = report({name: value for name, value in ALL.items()
                               if name not in missing})
                self.assertEqual(len(said), len(want), said)
                for line, begin in zip(said, want):
                    self.assertTrue(line.startswith(f"vbalance: {begin}"),
                                    line)

    def test_built_in(self):
        self.assertEqual(report({**ALL, "KVM": "y", "VHOST_NET": "y"}),
                         report(ALL))


class Probes(unittest.TestCase):
    def test_answers(self):
        said = report(ALL, "-DHAVE_irqstat_x -DHAVE_custom_slice", "irqstat",
                      "custom_slice")
        self.assertRegex(said[0], "^vbalance: irqstat: missing: .")
        self.assertRegex(said[1], "^vbalance: custom_slice: found: .")


if __name__ == "__main__":
    unittest.main()
