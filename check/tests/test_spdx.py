# SPDX-License-Identifier: GPL-2.0
import unittest

import checkpath  # noqa: F401
from vblab import paths
from vbcheck.tree import Tree

TAG = b"SPDX-License-Identifier: GPL-2.0"
# Or a script.
NAMES = (".c", ".h", ".S", ".sh", ".py", ".cocci", ".conf", ".config", ".rules",
         ".service", "Kbuild", "Makefile", "debian/rules")


class Spdx(unittest.TestCase):
    def test_each_says_its_licence(self):
        tree = Tree(paths.REPO)
        asked = 0
        for name in tree.files:
            with open(tree.repo / name, "rb") as f:
                head = b"".join(f.readline() for _ in range(3))
            if not name.endswith(NAMES) and not head.startswith(b"#!"):
                continue
            asked += 1
            with self.subTest(name):
                self.assertIn(TAG, head)
        self.assertGreater(asked, 100)
