# SPDX-License-Identifier: GPL-2.0
"""The examples for /etc name modules and parameters that there are."""
import re
import unittest

import labpath  # noqa: F401
from vblab import paths

CONTRIB = paths.REPO / "contrib"
MODULES = {"vbalance_guest": "guest-mod", "vbalance_host": "host-mod"}


def parameters(module):
    """The others, VB_FAULT_PARAM and its kind, are not for users."""
    found = set()
    for path in (paths.REPO / MODULES[module]).glob("*.c"):
        found |= set(re.findall(r"^VB_(?:CHOICE|RANGE|BOOL)_PARAM\((\w+),",
                                path.read_text(), re.M))
    return found


def lines(folder):
    """Of all examples, those that are commented out too: #word, not # text."""
    return [line.removeprefix("#")
            for path in sorted((CONTRIB / folder).iterdir())
            for line in path.read_text().splitlines()
            if line and not line.startswith("# ")]


class Examples(unittest.TestCase):
    def test_modules_load(self):
        self.assertEqual(set(lines("modules-load.d")), set(MODULES))

    def test_modprobe(self):
        options = set()
        for line in lines("modprobe.d"):
            with self.subTest(line):
                kind, module, *words = line.split()
                self.assertIn(module, MODULES)
                if kind == "options":
                    names = {word.split("=")[0] for word in words}
                    self.assertLessEqual(names, parameters(module))
                    options |= names
                else:
                    self.assertEqual([kind, *words],
                                     ["install", "/bin/false"])
        self.assertTrue(options)

    def test_all_parameters_are_found(self):
        readme = (paths.REPO / "README.md").read_text()
        tables = readme.split("\nvbalance_guest:\n")[1].split("\n## ")[0]
        for module, table in zip(MODULES, tables.split("\nvbalance_host:\n")):
            named = re.findall(r"^\| (\w+)(?: \*live\*)? \| (?!values)", table,
                               re.M)
            self.assertEqual(set(named), parameters(module), module)


if __name__ == "__main__":
    unittest.main()
