# SPDX-License-Identifier: GPL-2.0
import io
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import images
from vblab.cpio import Archive, normal


def read(data):
    """A second reading of the format: name -> (mode, content)."""
    found = {}
    pos = 0
    while True:
        assert data[pos:pos + 6] == b"070701"
        f = [int(data[pos + 6 + 8 * i:pos + 14 + 8 * i], 16)
             for i in range(13)]
        name = data[pos + 110:pos + 110 + f[11] - 1].decode()
        start = (pos + 110 + f[11] + 3) & ~3
        if name == "TRAILER!!!":
            return found, data[start:]
        found[name] = (f[1], data[start:start + f[6]])
        pos = (start + f[6] + 3) & ~3


def written(archive):
    out = io.BytesIO()
    archive.write(out)
    return read(out.getvalue())


class Cpio(unittest.TestCase):
    def test_files_links_and_parents(self):
        a = Archive()
        a.file("lab/bin/x", b"abc", mode=0o755)
        a.link("lab/bin/y", "x")
        found, rest = written(a)
        self.assertEqual(found, {"lab": (0o40755, b""),
                                 "lab/bin": (0o40755, b""),
                                 "lab/bin/x": (0o100755, b"abc"),
                                 "lab/bin/y": (0o120777, b"x")})
        self.assertEqual(rest.strip(b"\0"), b"")

    def test_archives_can_follow_one_another(self):
        for size in range(1, 9):
            a = Archive()
            a.file("f", b"x" * size)
            out = io.BytesIO()
            a.write(out)
            self.assertEqual(len(out.getvalue()) % 512, 0)

    def test_several_contents_in_one_file(self):
        with tempfile.TemporaryDirectory() as d:
            part = Path(d) / "part"
            part.write_bytes(b"2" * 5)
            a = Archive()
            a.file("f", b"1", part, b"3")
            self.assertEqual(written(a)[0]["f"][1], b"1222223")

    def test_folder_with_modes_and_links(self):
        with tempfile.TemporaryDirectory() as d:
            top = Path(d) / "top"
            (top / "sub").mkdir(parents=True)
            (top / "sub/run").write_text("x")
            (top / "sub/run").chmod(0o750)
            (top / "link").symlink_to("sub/run")
            a = Archive()
            a.add(top, "/lab/top")
            found, _ = written(a)
            self.assertEqual(found["lab/top/sub/run"], (0o100750, b"x"))
            self.assertEqual(found["lab/top/link"], (0o120777, b"sub/run"))

    def test_merged_folders(self):
        for path, expected in (("/bin/x", "usr/bin/x"), ("sbin", "usr/bin"),
                               ("usr/sbin/ip", "usr/bin/ip"),
                               ("lib64/ld.so", "usr/lib64/ld.so"),
                               ("lib/modules/6", "usr/lib/modules/6"),
                               ("/lab/../bin//a", "usr/bin/a"),
                               ("binary", "binary")):
            self.assertEqual(normal(path), expected)


class Modules(unittest.TestCase):
    DEP = ("kernel/a.ko.xz: kernel/b-c.ko.xz kernel/d.ko.xz\n"
           "kernel/b-c.ko.xz: kernel/d.ko.xz\nkernel/d.ko.xz:\n"
           "kernel/e.ko.xz:\n")

    def test_dependencies_come_along_once(self):
        deps = images.read_dep(self.DEP)
        self.assertEqual(sorted(images.select_modules(deps, ["a", "b_c"])),
                         ["kernel/a.ko.xz", "kernel/b-c.ko.xz",
                          "kernel/d.ko.xz"])

    def test_built_in_ones_are_left_out(self):
        deps = images.read_dep(self.DEP)
        self.assertEqual(images.select_modules(deps, ["virtio_pci", "e"]),
                         ["kernel/e.ko.xz"])


if __name__ == "__main__":
    unittest.main()
