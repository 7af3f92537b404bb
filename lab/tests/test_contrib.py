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


CONSTANTS = dict(re.findall(
    r"^#define (VB_THRESHOLD_\w+)\s+(\d+)", "".join(
        p.read_text() for p in sorted((paths.REPO / "core").glob("*.h"))),
    re.M))


def as_documented(module):
    """Name and *live*, values with the default first, of each parameter, as in
    the README's table."""
    text = "".join(p.read_text() for p in
                   sorted((paths.REPO / MODULES[module]).glob("*.c")))
    initial = dict(re.findall(r"^(?:bool|int|unsigned int) (vb\w+)"
                              r"(?: = (\w+))?;", text, re.M))
    for kind, name, var, more in re.findall(
            r"^VB_(CHOICE|RANGE|BOOL)_PARAM\((\w+), (\w+), ([^)]+)\);",
            text, re.M):
        *more, mode = more.replace("\n", " ").split(",")
        more = [CONSTANTS.get(m.strip(), m.strip()) for m in more]
        first = CONSTANTS.get(initial[var], initial[var])
        if kind == "RANGE":
            values = f"{first} ({'..'.join(more)})"
        elif kind == "BOOL":
            values = "1, 0" if first == "true" else "0, 1"
        else:
            words = re.search(rf" {more[0]}\[\] = {{(.*?)}};", text, re.S)[1]
            words = re.findall(r'\[(\w+)\] = "(.+?)"', words)
            words.sort(key=lambda w: w[0] != first)
            values = ", ".join(word for _, word in words)
        live = {"0444": "", "0644": " *live*"}[mode.strip()]
        yield f"{name}{live}", values


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

    def test_parameters_are_documented(self):
        readme = (paths.REPO / "README.md").read_text()
        tables = readme.split("\nvbalance_guest:\n")[1].split("\n## ")[0]
        for module, table in zip(MODULES, tables.split("\nvbalance_host:\n")):
            named = re.findall(r"^\| (\w+(?: \*live\*)?) \| (.*?) \|", table,
                               re.M)
            named.remove(("parameter", "values (default first)"))
            self.assertEqual(sorted(named), sorted(as_documented(module)),
                             module)
            self.assertEqual({name.split()[0] for name, _ in named},
                             parameters(module))


if __name__ == "__main__":
    unittest.main()
