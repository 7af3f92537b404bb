# SPDX-License-Identifier: GPL-2.0
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import images, root
from vblab.kernels import Kernel
from vblab.root import PackageRoot
from vblab.util import LabError

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


class Update(unittest.TestCase):
    """With a made-up mmdebstrap: what it makes is a list of packages."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = Path(folder.name)
        for patch in (
                mock.patch.dict(os.environ, VBALANCE_CACHE=folder.name),
                mock.patch.object(root, "require_root_user"),
                mock.patch.object(root, "install_host_packages"),
                mock.patch.object(root, "say"),
                mock.patch.object(root.apt, "machine_options", lambda: []),
                mock.patch.object(root.apt, "mirror_lines", lambda suites: []),
                mock.patch.object(root, "run_logged", self.mmdebstrap)):
            patch.start()
            self.addCleanup(patch.stop)
        self.mirror = "kernel 1"
        self.made = root.ensure("bookworm")
        # As a kernel that the lab has built in there.
        (self.made.path / "extra").touch()

    def mmdebstrap(self, argv, log, env):
        status = Path(argv[-1]) / "var/lib/dpkg/status"
        status.parent.mkdir(parents=True)
        status.write_text(self.mirror)
        return int(self.mirror == "half a kernel")

    def there(self):
        self.assertEqual([p for p in self.cache.glob("root-*")],
                         [self.made.path])
        self.assertEqual(list((self.cache / "tmp").iterdir()), [])
        return ((self.made.path / "var/lib/dpkg/status").read_text(),
                (self.made.path / "extra").exists())

    def test_newer_packages(self):
        self.mirror = "kernel 2"
        self.assertEqual(root.ensure("bookworm"), self.made)
        self.assertEqual(self.there(), ("kernel 1", True))
        self.assertTrue(root.update("bookworm"))
        self.assertEqual(self.there(), ("kernel 2", False))

    def test_the_same_packages(self):
        self.assertFalse(root.update("bookworm"))
        self.assertEqual(self.there(), ("kernel 1", True))

    def test_an_old_one_is_named(self):
        self.assertEqual(root.old(), "")
        made = self.made.path / root.STATUS
        before = made.stat().st_mtime - root.OLD_DAYS * 86400
        os.utime(made, (before, before))
        self.assertEqual(root.old(), "package root bookworm: 14 days old, its "
                         "kernels may be too: lab/lab doctor --update\n")
        root.update("bookworm")
        self.assertEqual(root.old(), "")

    def test_the_old_one_stays_when_it_fails(self):
        self.mirror = "half a kernel"
        with self.assertRaises(LabError):
            root.update("bookworm")
        self.assertEqual(self.there(), ("kernel 1", True))


if __name__ == "__main__":
    unittest.main()
