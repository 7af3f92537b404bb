# SPDX-License-Identifier: GPL-2.0
"""Kernels that were configured without something: what is left is built, and
the build says what that is. What the modules say then: selftests/bare.sh."""

import re
import unittest

from chroots import MAKE_COPY, MODULES, StoryTest

# Options that go, with those that cannot be there without them.
KPROBES = ("KPROBES|KRETPROBES|[A-Z]*KPROBES?_[A-Z_]*|OPTPROBES"
           "|DEBUG_INFO_BTF[A-Z_]*")
KERNELS = {
    "6.97.0-no-ftrace": ("(FUNCTION|FUNCTION_GRAPH|STACK)_TRACER|FPROBE"
                         "|FUNCTION_PROFILER|FTRACE_MCOUNT_[A-Z_]*"
                         "|(HAVE_)?DYNAMIC_FTRACE[A-Z_]*|KPROBES_ON_FTRACE"
                         "|VHOST_NET|DEBUG_FS[A-Z_]*"),
    "6.96.0-no-kprobes": KPROBES,
    "6.94.0-no-guest": KPROBES + "|KVM_GUEST|KEXEC_CORE|MODVERSIONS",
}
MAKE = MAKE_COPY + """
sed -i -E "/CONFIG_($WITHOUT)(_MODULE)?[= ]/d" .config \
	include/config/auto.conf include/generated/autoconf.h
cp -r /mnt/repo "/tmp/$K"
"""
# Symbols that those headers do not tell of are no concern here.
BUILD = 'make -s -C "/tmp/$K" KDIR="/usr/src/$K" KBUILD_MODPOST_WARN=1'
BUILT = 'cd "/tmp/$K" && ls -1 */*.ko'


class Bare(StoryTest, unittest.TestCase):
    ROOT = "packaging"

    @classmethod
    def tell(cls, story):
        for name, without in KERNELS.items():
            story.step(f"{name}-kernel", MAKE, K=name, LIKE=cls.kernel,
                       WITHOUT=without)
            story.step(f"{name}-build", BUILD, K=name)
            story.step(f"{name}-built", BUILT, K=name)

    def assert_built(self, name, modules, *missing):
        self.output(f"{name}-kernel")
        said = self.output(f"{name}-build")
        self.assertEqual(re.findall(r"^vbalance: ([A-Z_]+): missing: (\S+)",
                                    said, re.M), list(missing), said)
        self.assertNotRegex(said, r"\.[ch]:\d+:.*warning:")
        self.assert_installed(f"{name}-built", modules)

    def test_without_ftrace(self):
        self.assert_built("6.97.0-no-ftrace", MODULES,
                          ("DYNAMIC_FTRACE", "vbalance_host:"),
                          ("VHOST_NET", "vbalance_host:"),
                          ("DEBUG_FS", "neither"))

    def test_without_kprobes(self):
        self.assert_built("6.96.0-no-kprobes", MODULES[:1],
                          ("KPROBES", "no"), ("KPROBES", "vbalance_guest:"),
                          ("BTF", "only"))

    def test_without_guests_and_kdump(self):
        self.assert_built("6.94.0-no-guest", MODULES[:1],
                          ("KPROBES", "no"), ("KVM_GUEST", "vbalance_guest"),
                          ("MODVERSIONS", "only"), ("BTF", "only"))


if __name__ == "__main__":
    unittest.main()
