# SPDX-License-Identifier: GPL-2.0
import tempfile
import unittest
from pathlib import Path

import checkpath  # noqa: F401
from vbcheck.tree import Tree

FILES = {
    ".ci/run": "#!/bin/sh\n", "lab/init": "#!/bin/busybox sh\n",
    "debian/x.postinst": "#!/bin/sh\nset -e\n", "a/lib.sh": "# sourced\n",
    "lab/shellrc": "# GPL\n# shellcheck shell=sh\n",
    "dkms.conf": "# shellcheck shell=bash\n",
    "bench/demo": "#!/usr/bin/python3\n", "b/mod.py": "x = 1\n",
    "core/a.h": "", "host-mod/b.c": "", "selftests/src/c.c": "",
    "selftests/modules/d/e.c": "",
    "host-mod/b.mod.c": "", "host-mod/b.ko": "", "README.md": "#!shiny\n",
    "check/seeds/shellcheck/s.sh": "#!/bin/sh\n", "LICENSE": "",
    "selftests/unit/build/d.c": "", ".git/config": "#!/bin/sh\n",
    "debian/vbalance-dkms/usr/src/vbalance-1/core/a.h": "",
    "debian/x.postinst.debhelper": "#!/bin/sh\n",
    "debian/.debhelper/generated/x": "#!/bin/sh\n",
}


class Kinds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in FILES.items():
            path = Path(folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.tree = Tree(Path(folder.name))

    def test_scripts(self):
        self.assertEqual(set(self.tree.shell()), {
            ".ci/run", "lab/init", "debian/x.postinst", "a/lib.sh",
            "lab/shellrc", "dkms.conf"})
        self.assertEqual(set(self.tree.python()), {"bench/demo", "b/mod.py"})

    def test_c(self):
        self.assertEqual(set(self.tree.c()), {
            "core/a.h", "host-mod/b.c", "selftests/modules/d/e.c",
            "selftests/src/c.c"})
        self.assertEqual(set(self.tree.kernel_c()), {
            "core/a.h", "host-mod/b.c", "selftests/modules/d/e.c"})

    def test_seeds(self):
        self.assertEqual(self.tree.seeds("shellcheck"),
                         ["check/seeds/shellcheck/s.sh"])
        self.assertEqual(self.tree.seeds("shell"), [])

    def test_texts(self):
        self.assertIn("README.md", self.tree.texts())
        self.assertNotIn("LICENSE", self.tree.texts())
