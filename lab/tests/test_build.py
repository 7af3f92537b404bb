# SPDX-License-Identifier: GPL-2.0
import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import build, paths


class Trim(unittest.TestCase):
    def left(self, age):
        with tempfile.TemporaryDirectory() as d, \
                mock.patch.object(paths, "builds", lambda: Path(d)):
            for n in range(build.KEEP_BUILDS + 10):
                path = Path(d) / f"program-{n}"
                path.touch()
                os.utime(path, (time.time() - age - n,) * 2)
            build._trim("program-*")
            return {int(p.name[8:]) for p in Path(d).iterdir()}

    def test_the_oldest_go(self):
        self.assertEqual(self.left(2 * build.KEEP_SECONDS),
                         set(range(build.KEEP_BUILDS)))

    def test_what_is_new_is_in_use(self):
        self.assertEqual(self.left(0), set(range(build.KEEP_BUILDS + 10)))


if __name__ == "__main__":
    unittest.main()
