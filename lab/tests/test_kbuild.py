# SPDX-License-Identifier: GPL-2.0
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import kbuild, kernels

BUILT = {name: spec for name, spec in kernels.data()["kernels"].items()
         if "config" in spec}


class Missed(unittest.TestCase):
    WANTED = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=17\n"

    def test_all_as_asked_for(self):
        # What is not there at all is not set.
        got = "CONFIG_D=17\nCONFIG_B=m\nCONFIG_A=y\nCONFIG_E=y\n"
        self.assertEqual(kbuild.missed(self.WANTED, got), [])

    def test_each_difference(self):
        got = "# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=y\n"
        self.assertEqual(kbuild.missed(self.WANTED, got), [
            "CONFIG_A: wanted y, is n", "CONFIG_B: wanted m, is y",
            "CONFIG_C: wanted n, is y", "CONFIG_D: wanted 17, is n"])

    def test_a_remark_is_no_setting(self):
        self.assertEqual(kbuild.settings("# CONFIG_A=y would be wrong\n"), {})


class Why(unittest.TestCase):
    def why(self, *lines):
        with tempfile.NamedTemporaryFile("w") as log:
            log.write("".join(f"{line}\n" for line in lines))
            log.flush()
            return kbuild._why(Path(log.name)).splitlines()

    def test_far_from_the_end(self):
        said = ["ld: cpu.o: undefined reference to `__asan_load4'",
                "make[1]: *** [Makefile:81: vmlinux] Error 1"]
        self.assertEqual(
            self.why("  CC      lib/error-inject.o", said[0], "  CC      a.o",
                     said[1], *["  LD [M]  net/bridge.ko"] * 50), said)

    def test_nothing_of_that_kind(self):
        lines = [f"line {n}" for n in range(50)]
        self.assertEqual(self.why(*lines), lines[10:])


class Install(unittest.TestCase):
    MODULES = "usr/lib/modules/6.12-debug"
    FILES = (f"{MODULES}/modules.dep", "boot/System.map-6.12-debug",
             "boot/vmlinuz-6.12-debug")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "root"
        self.out = Path(folder.name) / "out"
        self.root.mkdir()

    def install(self, text):
        for name in self.FILES:
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        kbuild._install(self.out, self.root)

    def texts(self):
        return [(self.root / name).read_text() for name in self.FILES
                if (self.root / name).exists()]

    def test_all_is_there(self):
        self.install("new")
        self.assertEqual(self.texts(), ["new"] * 3)

    def test_after_one_that_was_ended_half_way(self):
        rename, moved = Path.rename, []

        def ended(path, target):
            if moved:
                raise KeyboardInterrupt
            moved.append(path)
            return rename(path, target)

        with mock.patch.object(Path, "rename", ended), \
                self.assertRaises(KeyboardInterrupt):
            self.install("old")
        # The modules are there, the image that says so is not.
        self.assertEqual(self.texts(), ["old"])
        (self.root / self.MODULES / "left.ko").touch()
        self.install("new")
        self.assertEqual(self.texts(), ["new"] * 3)
        self.assertFalse((self.root / self.MODULES / "left.ko").exists())


class Spec(unittest.TestCase):
    def test_the_source_is_in_the_root(self):
        for name, spec in BUILT.items():
            packages = kernels.data()["roots"][spec["root"]]["packages"]
            self.assertIn(spec["source"], packages, name)

    def test_a_kernel_of_its_own_for_each(self):
        endings = [kbuild.suffix(n, s) for n, s in BUILT.items()]
        self.assertEqual(len(set(endings)), len(BUILT))

    def test_another_configuration_is_another_kernel(self):
        name, spec = next(iter(BUILT.items()))
        other = {**spec, "make": ["X=y"]}
        self.assertNotEqual(kbuild.suffix(name, spec),
                            kbuild.suffix(name, other))

    def test_nobody_builds_one_to_check_the_machine(self):
        self.assertFalse(set(BUILT) & set(kernels.packaged()))


if __name__ == "__main__":
    unittest.main()
