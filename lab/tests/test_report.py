# SPDX-License-Identifier: GPL-2.0
"""compat/report.sh: what a build says of a kernel, here of made-up ones."""
import gzip
import os
import re
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
KDUMP = "vbalance: KPROBES: missing: vbalance_guest: unload it before a kdump"
CRASH = "machine_crash_shutdown"
BTF = "BTF: found: at load"
VERSIONS = ": MODVERSIONS: "
UNSEEN = ": whether it has all functions that are hooked is seen at load"
WITHOUT = {
    (): (BTF,),
    ("KVM",): ("KVM: missing: no vbalance_host", BTF),
    # What a module that is not there would do without is not told.
    ("KVM", "VHOST_NET", "DYNAMIC_FTRACE"): ("KVM: missing: no vbalance_host",
                                             BTF),
    ("KPROBES", "VHOST_NET"): ("KPROBES: missing: no vbalance_host", BTF),
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


def whole_report(config, flags="", *probes, env=None, vmlinux=None):
    """
    @config: values by option. @env: more of the environment. @vmlinux: what
    comes with the headers.
    """
    with tempfile.TemporaryDirectory() as folder:
        auto = Path(folder) / "include/config/auto.conf"
        auto.parent.mkdir(parents=True)
        if vmlinux is not None:
            (Path(folder) / "vmlinux").write_bytes(vmlinux)
        # As there: what begins like an option is another one.
        auto.write_text("".join(f"CONFIG_{name}={value}\nCONFIG_{name}_X=y\n"
                                for name, value in config.items())
                        + "CONFIG_KVM_X=y\n")
        done = subprocess.run(
            ["sh", paths.REPO / "compat/report.sh", paths.REPO, auto, flags,
             *probes], text=True, stdout=subprocess.PIPE, check=True,
            stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    return done.stdout.splitlines()


def versions(config):
    """Of the functions that are linked to."""
    return [line for line in whole_report(config) if VERSIONS in line]


def report(*args, **kwargs):
    """But neither that nor what cannot be told."""
    return [line for line in whole_report(*args, **kwargs)
            if not line.endswith(UNSEEN) and VERSIONS not in line]


def unseen(*args, **kwargs):
    """Of what it is that it cannot be told."""
    return [line.removeprefix("vbalance: ").partition(":")[0]
            for line in whole_report(*args, **kwargs)
            if line.endswith(UNSEEN)]


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

    def test_versions(self):
        (said,) = versions(ALL)
        self.assertIn("missing: only the release", said)
        (said,) = versions({**ALL, "MODVERSIONS": "y"})
        self.assertIn("found: ", said)

    def test_built_in(self):
        self.assertEqual(report({**ALL, "KVM": "y", "VHOST_NET": "y"}),
                         report(ALL))

    def test_what_cannot_be_told(self):
        modules = ["kvm", "vhost_net"]
        for config, want in (
                (ALL, ["the kernel", *modules]),
                ({**ALL, "KVM": "y", "VHOST_NET": "y"}, ["the kernel"]),
                ({"KVM": "m", "KPROBES": "y"}, ["the kernel", "kvm"]),
                ({"KVM": "m"}, []),
                ({"KPROBES": "y"}, []),
                ({"KEXEC_CORE": "y"}, []),
                ({"KEXEC_CORE": "y", "CRASH_DUMP": "y"}, ["the kernel"])):
            with self.subTest(config):
                self.assertEqual(unseen(config), want)


def hooked_in(name):
    facts = (paths.REPO / "host-mod/vbh_facts.c").read_text()
    facts_of = facts.partition(f"vbh_facts_of_{name}[")[2]
    return re.findall(r"VB_(?:HIDDEN_)?FUNC\(\w+, (\w+),", facts_of.partition("\n};")[0])


# What each kernel has.
START = "start_kernel"
# One of these is hooked, or calls what is.
OLD_DELIVERY, DELIVERY = "kvm_irq_delivery_to_apic", "__kvm_irq_delivery_to_apic"


class Functions(unittest.TestCase):
    """Of modules whose file is what a made-up nm says of it."""
    PATHS = {"kvm": "kernel/arch/x86/kvm/kvm.ko",
             "vhost": "kernel/drivers/vhost/vhost_net.ko"}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.modules = Path(folder.name)
        nm = self.modules / "bin/nm"
        nm.parent.mkdir()
        nm.write_text('#!/bin/sh\ncat "$1"\n')
        nm.chmod(0o755)
        self.hooked = {}
        for name in self.PATHS:
            self.hooked[name] = hooked_in(name)
            self.module(name, self.hooked[name])

    def module(self, name, functions, more=(OLD_DELIVERY,)):
        path = self.modules / self.PATHS[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"00000000 {'tT'[n % 2]} {f}\n"
                                f"00000000 d {f}_x\n00000000 t x_{f}\n"
                                for n, f in enumerate(functions))
                        + "".join(f"00000000 T {f}\n" for f in more))
        return path

    def env(self):
        return {"VB_MODULES": str(self.modules),
                "PATH": f"{self.modules}/bin:{os.environ['PATH']}"}

    def said(self, env=None, config=ALL):
        said = report(config, env={**self.env(), **(env or {})})
        self.assertEqual(said[-1:], report(config))
        return said[:-1]

    def kernel(self, functions, config=ALL):
        """What is said of a kernel with these and of its modules with all."""
        symbols = self.modules / "kallsyms"
        symbols.write_text(
            "".join(f"0000000000000000 T {f}\n" for f in (*functions, START))
            + "".join(f"0000000000000000 t {f}\t[other]\n"
                      for f in (*hooked_in("kernel"), CRASH)))
        return self.said({"VB_KALLSYMS": str(symbols)}, config)

    def test_all_there(self):
        self.assertGreater(len(self.hooked["kvm"]), 5)
        self.assertGreater(len(self.hooked["vhost"]), 1)
        self.assertEqual(self.said(), [])

    def test_each(self):
        for name, functions in self.hooked.items():
            for gone in functions:
                path = self.module(name, [f for f in functions if f != gone])
                said = self.said()
                # One line for each feature that hooks it.
                self.assertEqual(len(said), functions.count(gone), gone)
                for line in said:
                    self.assertRegex(line, rf"^vbalance: {gone}\(\): missing "
                                     rf"in {path.stem}: vbalance_host" + (
                                         " refuses to load$"
                                         if gone.startswith("kvm_arch_") else
                                         r": feature [a-z_]+ is off$"))
                self.assertEqual(len(set(said)), len(said))
            self.module(name, functions)

    def test_what_may_sleep(self):
        functions = self.hooked["kvm"]
        self.module("kvm", functions, (DELIVERY,))
        self.assertEqual(self.said(), [])
        self.module("kvm", functions, ())
        self.assertEqual(self.said(), [
            f"vbalance: {DELIVERY}(): missing in kvm: vbalance_host: what "
            "may sleep on its way is not redirected"])

    def test_which_feature(self):
        self.module("kvm", [f for f in self.hooked["kvm"]
                            if f != "ioeventfd_write"])
        (line,) = self.said()
        self.assertIn("feature kicks is off", line)

    def test_compressed(self):
        path = self.module("vhost", [])
        path.with_suffix(".ko.gz").write_bytes(
            gzip.compress(b"0 t vhost_net_release\n"))
        path.unlink()
        (line,) = self.said()
        self.assertIn("vhost_net_ioctl(): missing", line)

    def test_not_to_be_read(self):
        self.module("kvm", [], ())
        self.assertEqual(self.said(), [])
        self.assertEqual(unseen(ALL, env=self.env()), ["the kernel", "kvm.ko"])

    def test_none_there(self):
        self.assertEqual(unseen(ALL, env=self.env()), ["the kernel"])
        (self.modules / self.PATHS["kvm"]).unlink()
        self.assertEqual(unseen(ALL, env=self.env()), ["the kernel", "kvm"])
        (self.modules / self.PATHS["vhost"]).unlink()
        self.assertEqual(unseen(ALL, env=self.env()),
                         ["the kernel", "kvm", "vhost_net"])
        self.assertEqual(self.said(), [])

    def test_in_the_headers(self):
        functions = hooked_in("kernel")

        def vmlinux(names):
            btf = self.modules / "btf"
            btf.write_bytes(b"\1\0\377\n\0" + b"".join(
                f"{name}\0{name}_x\0x {name}\0".encode() for name in names))
            elf = self.modules / "elf"
            subprocess.run(["objcopy", "-I", "binary", "-O", "elf64-x86-64",
                            "--rename-section", ".data=.BTF", btf, elf],
                           check=True)
            return elf.read_bytes()

        def said(*names):
            with_all = {"vmlinux": vmlinux(names), "env": self.env()}
            self.assertEqual(unseen(ALL, **with_all),
                             [] if START in names else ["the kernel"])
            return report(ALL, **with_all)[:-1]

        self.assertEqual(said(START, *functions), [])
        # Neither runs nor is it what it should be.
        self.assertEqual(said(), [])
        self.assertEqual(unseen(ALL, vmlinux=b"x", env=self.env()),
                         ["the kernel"])
        for gone in functions:
            self.assertEqual(
                said(START, *(f for f in functions if f != gone)),
                [f"vbalance: {gone}(): missing in the kernel: vbalance_host: "
                 "feature boost is off"])

    def test_in_the_kernel(self):
        functions = hooked_in("kernel")
        self.assertGreater(len(functions), 1)
        for gone in ("", *functions):
            said = self.kernel(f for f in functions if f != gone)
            self.assertEqual(said, [f"vbalance: {gone}(): missing in the "
                                    "kernel: vbalance_host: feature "
                                    "boost is off"] if gone else [])

    def test_built_in(self):
        config = {**ALL, "KVM": "y", "VHOST_NET": "y"}
        functions = hooked_in("kernel") + [OLD_DELIVERY] + [
            f for hooked in self.hooked.values() for f in hooked]
        self.assertEqual(self.kernel(functions, config), [])
        for gone in ("ioeventfd_write", "vhost_net_ioctl"):
            (line,) = self.kernel([f for f in functions if f != gone], config)
            self.assertIn(f"{gone}(): missing in the kernel: ", line)
        # The functions are in the module of a vendor's.
        self.assertEqual(self.kernel(
            [f for f in functions if f not in self.hooked["kvm"]],
            {**config, "KVM_X86": "m"}), [])

    def test_kdump(self):
        functions = hooked_in("kernel")
        config = {**ALL, "KEXEC_CORE": "y", "CRASH_DUMP": "y"}
        self.assertEqual(self.kernel([*functions, CRASH], config), [])
        self.assertEqual(self.kernel(functions, config), [
            f"vbalance: {CRASH}(): missing in the kernel: vbalance_guest: "
            "unload it before a kdump"])
        self.assertEqual(self.kernel(functions, {**ALL, "KEXEC_CORE": "y"}),
                         [])
        # As before Linux 6.9.
        old = {**ALL, "KEXEC_CORE": "y", "CRASH_CORE": "y"}
        self.assertEqual(len(self.kernel(functions, old)), 1)
        del config["KPROBES"]
        self.assertIn(KDUMP, report(config))


class Probes(unittest.TestCase):
    def test_answers(self):
        said = report(ALL, "-DHAVE_irqstat_x -DHAVE_custom_slice", "irqstat",
                      "custom_slice")
        self.assertRegex(said[0], "^vbalance: irqstat: missing: .")
        self.assertRegex(said[1], "^vbalance: custom_slice: found: .")


if __name__ == "__main__":
    unittest.main()
