# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import record
from vblab.ktap import FAILED, PASSED, SKIPPED, Result
from vblab.record import Record
from vblab.util import LabError

RESULTS = [Result("b: one", PASSED), Result("b: two", FAILED, "why"),
           Result("b: three", SKIPPED)]
OLD, NEW = ["6.1.0-1", "6.12.1"], ["6.1.0-2", "6.12.1"]


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

    def source(self, name, text):
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def open(self):
        return Record(self.file, self.repo)

    def test_what_was_put_there(self):
        one = self.open()
        self.assertIsNone(one.get("b", OLD))
        self.assertEqual(one.words(), "")
        one.add("b", OLD, 7.4, RESULTS)
        for again in (one, self.open()):
            self.assertEqual(again.get("b", OLD), RESULTS)
            self.assertIsNone(again.get("c", OLD))
        again.get("b", OLD)
        self.assertEqual(again.words(),
                         f"2 were done before, in 14 s ({self.file})\n")

    def test_two_labs_with_one_file(self):
        labs = [self.open(), self.open()]
        for n, lab in enumerate(labs):
            lab.add(f"b{n}", OLD, 1, RESULTS)
        for lab in labs:
            self.assertEqual([lab.get(f"b{n}", OLD) for n in range(2)],
                             [RESULTS] * 2)

    def test_other_releases_are_run_again(self):
        self.open().add("b", OLD, 1, RESULTS)
        self.assertIsNone(self.open().get("b", NEW))
        self.open().add("b", NEW, 1, RESULTS[:1])
        self.assertEqual(self.open().get("b", NEW), RESULTS[:1])

    def test_other_sources_are_run_again(self):
        for name, other in (("selftests/a.sh", "exit 1"),
                            ("selftests/b.sh", ""),
                            ("host-mod/vb_x.c", "int x;"),
                            ("lab/vblab/x.py", "x = 1"),
                            ("bench/src/x.c", "int y;")):
            with self.subTest(name):
                self.open().add("b", OLD, 1, RESULTS)
                self.source(name, other)
                self.assertIsNone(self.open().get("b", OLD))

    def test_what_no_boot_depends_on(self):
        self.open().add("b", OLD, 1, RESULTS)
        for name in ("selftests/README.md", "Documentation/x.txt",
                     "lab/vblab/__pycache__/x.pyc", "host-mod/x.o"):
            self.source(name, "x")
        self.assertEqual(self.open().get("b", OLD), RESULTS)

    def test_of_the_project(self):
        with tempfile.TemporaryDirectory() as empty:
            nothing = record.sources(Path(empty))
        self.assertNotEqual(record.sources(record.paths.REPO), nothing)
        for name in record.SOURCES:
            self.assertTrue((record.paths.REPO / name).exists(), name)

    def test_no_file(self):
        none = Record(None)
        none.add("b", OLD, 1, RESULTS)
        self.assertIsNone(none.get("b", OLD))
        self.assertEqual(none.words(), "")

    def test_files_that_are_none(self):
        self.file.parent.mkdir()
        entry = {"sources": "x", "kernels": OLD, "seconds": 1, "results": []}
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
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            lab.add("b", OLD, 1, RESULTS)
        self.assertIn("not kept: b", said.getvalue())


if __name__ == "__main__":
    unittest.main()
