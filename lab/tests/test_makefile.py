# SPDX-License-Identifier: GPL-2.0
"""What our Makefile asks a kernel's for."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

KERNEL = "all modules:\n\t@echo compiler: $(LLVM) $(CC)\n"
GCC = "CONFIG_CC_IS_GCC=y\nCONFIG_LD_IS_BFD=y\n"
CLANG = "CONFIG_CC_IS_CLANG=y\nCONFIG_LD_IS_BFD=y\n"
LLVM = "CONFIG_CC_IS_CLANG=y\nCONFIG_LD_IS_LLD=y\n"


def built_with(config, *words):
    """@config: of the kernel. Return: what it is built with."""
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder) / "include/config/auto.conf"
        conf.parent.mkdir(parents=True)
        conf.write_text(config)
        (Path(folder) / "Makefile").write_text(KERNEL)
        done = subprocess.run(
            ["make", "-s", "-C", paths.REPO, "modules", f"KDIR={folder}",
             *words], text=True, stdout=subprocess.PIPE, check=True,
            env={k: v for k, v in os.environ.items()
                 if k not in ("LLVM", "CC")})
    (line,) = [line for line in done.stdout.splitlines()
               if line.startswith("compiler:")]
    return line.partition(":")[2].split()


class Compiler(unittest.TestCase):
    def test_the_kernels_own(self):
        self.assertEqual(built_with(GCC), ["cc"])
        self.assertEqual(built_with(CLANG), ["clang"])
        self.assertEqual(built_with(LLVM), ["1", "cc"])

    def test_one_that_was_asked_for(self):
        for config in CLANG, LLVM:
            self.assertEqual(built_with(config, "LLVM=-19"), ["-19", "cc"])
            self.assertEqual(built_with(config, "CC=clang-19"), ["clang-19"])


if __name__ == "__main__":
    unittest.main()
