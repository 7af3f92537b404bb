# SPDX-License-Identifier: GPL-2.0
import subprocess
import tempfile
import unittest
from pathlib import Path

import checkpath  # noqa: F401
from vbcheck import abi

RECORD = """VB_SUM(a, b) = ((a) + (b))
VB_ABI_VERSION = 0x2
VB_LAST = 0x7
VB_NR_OPS = 0x3
vb_page: struct 0 16
vb_page.state: __u32 0 4
vb_page.reserved0: __u32 0x4 4
vb_page.cookie: __u64 0x8 8
"""


def changed(old, new):
    assert old in RECORD
    return RECORD.replace(old, new)


def names(record):
    return [name for name, _ in abi.verdict(RECORD, record)]


class Verdict(unittest.TestCase):
    def test_same(self):
        self.assertEqual(abi.verdict(RECORD, RECORD), [])

    def test_new_version_has_to_be_recorded(self):
        [(name, why)] = abi.verdict(None, RECORD)
        self.assertEqual(name, "VB_ABI_VERSION")
        self.assertIn("version 2", why)
        self.assertIn(abi.RECORD, why)

    def test_constant(self):
        self.assertEqual(names(changed("VB_NR_OPS = 0x3", "VB_NR_OPS = 0x2")),
                         ["VB_NR_OPS"])
        for now in ("VB_LAST = 0x8", "VB_FIRST = 0x7"):
            [(name, why)] = abi.verdict(RECORD, changed("VB_LAST = 0x7", now))
            self.assertEqual(name, "VB_LAST")
            self.assertIn("raise VB_ABI_VERSION", why)

    def test_macro(self):
        self.assertEqual(names(changed("(a) + (b)", "(b) + (a)")),
                         ["VB_SUM(a, b)"])

    def test_field(self):
        for now in ("vb_page.cookie: __s64 0x8 8", "vb_page.cookie: __u64 0 8",
                    "vb_page.cookie: __u64 0x8 4", "vb_page.biscuit: __u64 0x8 8"):
            with self.subTest(now):
                self.assertIn("cookie", names(
                    changed("vb_page.cookie: __u64 0x8 8", now)))

    def test_structure(self):
        self.assertEqual(names(changed("struct 0 16", "struct 0 24")),
                         ["vb_page"])
        gone = "".join(l for l in RECORD.splitlines(True)
                       if not l.startswith("vb_page"))
        self.assertEqual(names(gone), ["vb_page"])

    def test_field_beyond_what_was_reserved(self):
        self.assertEqual(names(RECORD + "vb_page.more: __u32 0x10 4\n"),
                         ["more"])
        self.assertEqual(names(changed("reserved0: __u32 0x4 4",
                                       "wide: __u64 0x4 8")), ["wide"])

    def test_additions_have_to_be_recorded_only(self):
        for now in (changed("reserved0", "flags"),
                    RECORD.replace("VB_LAST", "VB_FIRST = 0x0\nVB_LAST"),
                    changed("VB_NR_OPS = 0x3", "VB_NR_OPS = 0x4")):
            [(name, why)] = abi.verdict(RECORD, now)
            self.assertEqual(name, "VB_ABI_VERSION")
            self.assertNotIn("misunderstand", why)


class History(unittest.TestCase):
    """A record that was written by hand, together with the header."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repo = Path(folder.name)
        (self.repo / "abi").mkdir()

    def git(self, *words):
        subprocess.run(["git", "-C", self.repo, "-c", "user.name=x", "-c",
                        "user.email=x@example.org", *words], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def record(self, text, version=2):
        (self.repo / f"abi/{version}.txt").write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-m", "x")

    def begin(self):
        self.git("init")
        self.record(RECORD)
        self.commit()

    def rewritten(self):
        return [(f.path, f.line, f.text.split(" in ")[0])
                for f in abi.rewritten(self.repo, "abi")]

    def test_an_entry_that_was_committed_does_not_change(self):
        self.begin()
        self.assertEqual(self.rewritten(), [])
        self.record(changed("VB_LAST = 0x7", "VB_LAST = 0x8"))
        found = [("abi/2.txt", 3, "VB_LAST is 0x8, was 0x7")]
        self.assertEqual(self.rewritten(), found)
        self.commit()
        self.assertEqual(self.rewritten(), found)
        self.record(RECORD, version=3)
        self.commit()
        self.assertEqual(self.rewritten(), found)

    def test_what_was_added_later_holds_as_well(self):
        self.begin()
        added = changed("reserved0", "flags")
        self.record(added)
        self.commit()
        self.assertEqual(self.rewritten(), [])
        self.record(RECORD)
        self.assertEqual(self.rewritten(), [
            ("abi/2.txt", 1, "flags is gone, was __u32, 4 bytes at 0x4")])

    def test_a_record_stays(self):
        self.begin()
        self.record(RECORD, version=3)
        self.commit()
        (self.repo / "abi/2.txt").unlink()
        self.commit()
        self.assertEqual(self.rewritten(), [
            ("abi/2.txt", 0, "is gone, and was")])

    def test_on_a_branch_that_was_merged(self):
        self.begin()
        self.git("checkout", "-b", "other")
        self.record(changed("reserved0", "flags"))
        self.commit()
        self.git("checkout", "-")
        self.git("merge", "--no-ff", "-s", "ours", "other")
        self.assertEqual([name for _, _, name in self.rewritten()],
                         ["flags is gone, was __u32, 4 bytes at 0x4"])

    def test_no_clone(self):
        self.record(RECORD)
        self.assertEqual(abi.committed(self.repo, "abi"), [])
        self.assertEqual(self.rewritten(), [])


class Program(unittest.TestCase):
    def test_what_is_not_understood_is_no_silence(self):
        for code in ("struct vb_a { __u32 a : 3; };",
                     "struct vb_a { union { __u32 a; __u32 b; }; };",
                     "enum vb_e { A };",
                     "struct vb_a { __u32 (*f)(void); };"):
            with self.subTest(code), self.assertRaises(abi.LabError):
                abi._program("abi.h", "", code)

    def test_asks_for_all(self):
        known, program = abi._program(
            "abi.h", "#define VB_A 1\n#define VB_F(x) (x)\n#define OTHER 2\n",
            "struct vb_a {\n __u32 a;\n __u8 b[4 * 2];\n};")
        self.assertEqual(known, ["VB_F(x) = (x)"])
        for word in ("VB_A", "vb_a.a: __u32", "vb_a.b: __u8", "vb_a: struct"):
            self.assertIn(word, program)
        self.assertNotIn("OTHER", program)
