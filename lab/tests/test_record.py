# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import json
import os
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import kernels, record, root
from vblab.ktap import FAILED, PASSED, SKIPPED, Result
from vblab.record import Record
from vblab.util import LabError

RESULTS = [Result("b: one", PASSED), Result("b: two", FAILED, "why"),
           Result("b: three", SKIPPED)]
USED = ("6.1", "newest")


class Records(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "there/record.json"
        self.repo = self.folder / "repo"
        patch = mock.patch.dict(os.environ,
                                VBALANCE_CACHE=str(self.folder / "cache"))
        patch.start()
        self.addCleanup(patch.stop)
        self.source("selftests/a.sh", "exit 0")
        self.made("bookworm", "6.1.0-9-cloud")
        self.made("trixie-backports", "7.3.4-cloud")
        self.made("trixie", "6.12.1-cloud")

    def source(self, name, text):
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def made(self, name, release, packages="first"):
        """A package root with a kernel."""
        path = root.package_root(name).path
        modules = path / "usr/lib/modules" / release
        modules.mkdir(parents=True, exist_ok=True)
        (modules / "build").unlink(missing_ok=True)
        (modules / "build").symlink_to("x")
        (path / "boot").mkdir(exist_ok=True)
        (path / f"boot/vmlinuz-{release}").touch()
        (path / root.STATUS).parent.mkdir(parents=True, exist_ok=True)
        (path / root.STATUS).write_text(packages)
        return path

    def open(self):
        return Record(self.file, self.repo)

    def add(self, what="b", results=RESULTS, seconds=1, lab=None):
        lab = lab or self.open()
        lab.add(what, USED, lab.conditions(USED), seconds, results)

    def get(self, what="b"):
        return self.open().get(what, USED)

    def test_what_was_put_there(self):
        one = self.open()
        self.assertIsNone(one.get("b", USED))
        self.assertEqual(one.words(), "")
        self.add(seconds=7.4, lab=one)
        for again in (one, self.open()):
            self.assertEqual(again.get("b", USED), RESULTS)
            self.assertIsNone(again.get("c", USED))
            self.assertIsNone(again.get("b", USED[:1]))
        again.get("b", USED)
        self.assertEqual(again.words(),
                         f"2 were done before, in 14 s ({self.file})\n")

    def test_two_labs_with_one_file(self):
        labs = [self.open(), self.open()]
        for n, lab in enumerate(labs):
            self.add(f"b{n}", lab=lab)
        for lab in labs:
            self.assertEqual([lab.get(f"b{n}", USED) for n in range(2)],
                             [RESULTS] * 2)

    def test_nothing_is_lost_as_another_lab_begins(self):
        real, lab = record._read, self.open()
        adds = threading.Thread(target=lambda: self.add(lab=lab))

        def read(path):
            data = real(path)
            if adds.ident is None:
                adds.start()
                adds.join(0.3)
            return data

        with mock.patch.object(record, "_read", read), \
                contextlib.redirect_stderr(io.StringIO()):
            self.open()
            adds.join()
        self.assertEqual(self.get(), RESULTS)

    def test_other_packages_are_run_again(self):
        # A release may stay as it is over a security update.
        for name, release in (("bookworm", "6.1.0-9-cloud"),
                              ("bookworm", "6.1.0-10-cloud"),
                              ("trixie", "6.12.1-cloud")):
            with self.subTest(name, release=release):
                self.add()
                self.assertEqual(self.get(), RESULTS)
                self.made(name, release, f"second {release}")
                self.assertIsNone(self.get())

    def test_other_sources_are_run_again(self):
        for name, other in (("selftests/a.sh", "exit 1"),
                            ("selftests/b.sh", ""),
                            ("host-mod/vb_x.c", "int x;"),
                            ("lab/vblab/x.py", "x = 1"),
                            ("bench/src/x.c", "int y;")):
            with self.subTest(name):
                self.add()
                self.source(name, other)
                self.assertIsNone(self.get())

    def test_what_no_boot_depends_on(self):
        self.add()
        for name in ("selftests/README.md", "Documentation/x.txt",
                     "lab/vblab/__pycache__/x.pyc", "host-mod/x.o",
                     "selftests/unit/build/test_abi", "selftests/model/x.pml"):
            self.source(name, "x")
        self.assertEqual(self.get(), RESULTS)

    def said(self, lab, on):
        """What add() says."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            lab.add("b", USED, on, 1, RESULTS)
        return said.getvalue()

    def test_what_changes_meanwhile_is_not_kept(self):
        lab = self.open()
        on = lab.conditions(USED)
        self.source("selftests/a.sh", "exit 1")
        self.assertIn("have changed meanwhile: not kept: b",
                      self.said(lab, on))
        self.assertIsNone(self.get())
        self.source("selftests/a.sh", "exit 0")
        self.assertIsNone(self.get())

    def test_what_is_not_there_is_like_nothing(self):
        for kernel in ("6.1", "6.12"):
            with self.subTest(kernel):
                there = root.package_root(
                    kernels.data()["kernels"][kernel]["root"]).path
                there.rename(self.folder / "away")
                lab = self.open()
                on = lab.conditions(USED)
                self.assertIn("?", on)
                self.assertIn("not kept", self.said(lab, on))
                self.assertIsNone(self.get())
                (self.folder / "away").rename(there)

    def test_of_the_project(self):
        with tempfile.TemporaryDirectory() as empty:
            nothing = record.sources(Path(empty))
        self.assertNotEqual(record.sources(record.paths.REPO), nothing)
        for name in record.SOURCES:
            self.assertTrue((record.paths.REPO / name).exists(), name)

    def test_no_file(self):
        none = Record(None)
        self.add(lab=none)
        self.assertIsNone(none.get("b", USED))
        self.assertEqual(none.words(), "")

    def test_files_that_are_none(self):
        self.file.parent.mkdir()
        entry = {"on": ["x"], "seconds": 1, "results": []}
        for text in ("", "[]", "{", "7", '{"b": 7}', json.dumps({"b": {}}),
                     *(json.dumps({"b": {**entry, **wrong}}) for wrong in (
                         {"seconds": "1"}, {"results": [["a", "passed"]]},
                         {"results": [["a", "well", ""]]}, {"more": 1}))):
            with self.subTest(text):
                self.file.write_text(text)
                with self.assertRaisesRegex(LabError, "no record"):
                    self.open()
                # It is somebody's.
                self.assertEqual(self.file.read_text(), text)
        self.file.write_text(json.dumps({"b": entry}))
        self.open()

    def test_places_where_nothing_can_be_kept(self):
        (self.folder / "file").write_text("")
        for path in (self.folder, self.folder / "file/record"):
            with self.subTest(path), self.assertRaises(LabError):
                Record(path, self.repo)
        self.assertEqual((self.folder / "file").read_text(), "")

    def test_a_place_that_goes_is_no_end(self):
        lab = self.open()
        self.file.unlink()
        self.file.parent.rmdir()
        self.assertIn("not kept: b", self.said(lab, lab.conditions(USED)))
        self.file.parent.mkdir()
        self.file.write_text("no record")
        self.assertIn("not kept: b", self.said(lab, lab.conditions(USED)))


if __name__ == "__main__":
    unittest.main()
