# SPDX-License-Identifier: GPL-2.0
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import images
from vblab.kernels import Kernel
from vblab.root import PackageRoot

RELEASE = "6.12.0-test"


class Content(unittest.TestCase):
    """A root that was made again from the same list of packages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "root-x-123"
        cache = mock.patch.dict(os.environ, VBALANCE_CACHE=folder.name)
        cache.start()
        self.addCleanup(cache.stop)
        self.modules = self.path / "usr/lib/modules" / RELEASE
        self.modules.mkdir(parents=True)
        for name in ("modules.alias", "modules.builtin", "modules.order"):
            (self.modules / name).write_text("")
        (self.modules / "modules.dep").write_text("kvm-amd.ko:\n")
        (self.path / "var/lib/dpkg").mkdir(parents=True)

    def install(self, version):
        (self.path / "var/lib/dpkg/status").write_text(
            f"Package: linux-image\nVersion: {version}\n")
        (self.modules / "kvm-amd.ko").write_text(f"module {version}")

    def part(self):
        root = PackageRoot("x", self.path)
        return images.modules_part(Kernel("k", RELEASE, root), "l1")

    def test_newer_packages_give_new_parts(self):
        self.install("1.0")
        old = self.part()
        self.assertIn(b"module 1.0", old.read_bytes())
        self.install("1.1")
        new = self.part()
        self.assertNotEqual(old, new)
        self.assertIn(b"module 1.1", new.read_bytes())

    def test_same_packages_share_a_part(self):
        self.install("1.0")
        first = self.part()
        made = first.stat().st_ino
        self.install("1.0")
        self.assertEqual(self.part().stat().st_ino, made)


if __name__ == "__main__":
    unittest.main()
