# SPDX-License-Identifier: GPL-2.0
"""Whoever lists the series of kernels lists all of lab/kernels.json."""
import ast
import unittest

import checkpath  # noqa: F401
from vblab import kernels, paths, suite

SERIES = set(kernels.series())


class Series(unittest.TestCase):
    def test_there_is_one_for_each_kernel(self):
        self.assertIn(kernels.default(), SERIES)
        self.assertEqual({name.split("-")[0] for name in kernels.packaged()},
                         SERIES)

    def test_each_is_asked_what_it_has(self):
        text = (paths.LAB / "boots/test_build.py").read_text()
        found, = [ast.literal_eval(node.value)
                  for node in ast.parse(text).body
                  if isinstance(node, ast.Assign)
                  and ast.unparse(node.targets[0]) == "FOUND"]
        self.assertEqual(set(found), SERIES)

    def test_make_test_boots_each(self):
        booted = []
        for boot in suite.load_boots(suite.TESTS):
            if boot.name.split()[0] == "smoke":
                args = dict(zip(boot.args, boot.args[1:]))
                pair = {args.get(f"--{level}-kernel", kernels.default())
                        for level in ("host", "guest")}
                self.assertEqual(len(pair), 1, boot.name)
                self.assertFalse(boot.long, boot.name)
                booted += pair
        self.assertEqual(sorted(booted), sorted(SERIES))


if __name__ == "__main__":
    unittest.main()
