# SPDX-License-Identifier: GPL-2.0
"""Folders of runs in a cache that several checkouts share."""
import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import paths, session


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = Path(folder.name)
        patch = mock.patch.object(paths, "runs", lambda: self.runs)
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch.object(session, "_held", [])
        self.held = patch.start()
        self.addCleanup(self.let_go)
        self.addCleanup(patch.stop)

    def let_go(self):
        while self.held:
            os.close(self.held.pop())

    def others(self, age):
        """Folders of other runs, each a second older than the last."""
        for n in range(session.KEEP_RUNS + 10):
            path = self.runs / f"other-{n}"
            path.mkdir()
            (path / "l1.log").touch()
            os.utime(path, (time.time() - age - n,) * 2)

    def left(self):
        return {int(p.name[6:]) for p in self.runs.glob("other-*")}

    def test_the_oldest_go(self):
        self.others(2 * session.KEEP_SECONDS)
        out = session.make_out(None)
        self.assertTrue(out.is_dir())
        # One of those that stay is the new one.
        self.assertEqual(self.left(), set(range(session.KEEP_RUNS - 1)))

    def test_what_is_new_stays(self):
        self.others(session.KEEP_SECONDS - 3600)
        session.make_out(None)
        self.assertEqual(self.left(), set(range(session.KEEP_RUNS + 10)))

    def test_a_run_keeps_its_folder(self):
        """However long it has not written anything there."""
        out = session.make_out(None)
        self.others(session.KEEP_SECONDS + 3600)
        os.utime(out, (time.time() - 2 * session.KEEP_SECONDS,) * 2)
        session.make_out(None)
        self.assertTrue(out.is_dir())
        self.let_go()
        session.make_out(None)
        self.assertFalse(out.exists())

    def test_several_in_a_second(self):
        """Each has its own, also when the other one's is not seen in time."""
        with mock.patch.object(time, "strftime", lambda _: "stamp"), \
                mock.patch.object(Path, "exists", lambda _: False):
            names = [session.make_out(None).name for _ in range(3)]
        self.assertEqual(names, ["stamp", "stamp-2", "stamp-3"])

    def test_an_explicit_folder_removes_nothing(self):
        self.others(2 * session.KEEP_SECONDS)
        session.make_out(self.runs / "mine")
        self.assertEqual(len(self.left()), session.KEEP_RUNS + 10)


if __name__ == "__main__":
    unittest.main()
