#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""VERSION is the source; what cannot read it must agree with it."""
import re
import unittest

import labpath  # noqa: F401
from vblab import paths

VERSION = (paths.REPO / "VERSION").read_text().strip()


class Version(unittest.TestCase):
    def says(self, name, pattern):
        found = re.findall(pattern, (paths.REPO / name).read_text(), re.M)
        self.assertTrue(found, f"{name}: no version")
        self.assertEqual(set(found), {VERSION}, name)

    def test_dkms(self):
        self.says("dkms.conf", r'^PACKAGE_VERSION="(.*)"$')

    def test_debian(self):
        self.says("debian/changelog", r"\Avbalance \((.*)\) ")

    def test_changes_begin_with_it(self):
        first = re.search(r"^## (\S+)",
                          (paths.REPO / "CHANGES.md").read_text(), re.M)
        self.assertEqual(first[1], VERSION)


if __name__ == "__main__":
    unittest.main()
