# SPDX-License-Identifier: GPL-2.0
"""Whatever is hooked is compared with the running kernel, and with its headers
if these declare it: the lists are in several files."""

import re
import unittest

import labpath  # noqa: F401
from vblab import paths

# Of their arguments nothing is read.
READ_NOTHING = {"machine_crash_shutdown"}
STRING = r'"(\w+)"'
SYMBOL = rf"\bsymbol(?:_name)?\s*=\s*(?:{STRING}|([A-Z_]+))"


def sources(*folders):
    return "\n".join(path.read_text() for folder in folders
                     for path in sorted((paths.REPO / folder).glob("*.[ch]")))


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0]


class Hooked(unittest.TestCase):
    def test_functions(self):
        for folder, facts, prototypes in (
                ("host-mod", "vbh_facts.c", "vbh_canaries.h"),
                ("guest-mod", "vbg_facts.c", None)):
            text = sources(folder)
            names = dict(re.findall(rf"^#define (\w+)\s+{STRING}$",
                                    text + sources("compat"), re.M))
            hooked = {string or names[name]
                      for string, name in re.findall(SYMBOL, text)}
            hooked |= {string or names[name] for string, name in re.findall(
                rf"\]\s*=\s*{{\s*(?:{STRING}|([A-Z_]+))", between(
                    text, "} vbh_h[VBH_NR_H] = {", "\n};"))}
            self.assertGreater(len(hooked), 0)
            known = (paths.REPO / folder / facts).read_text()
            declared = set(re.findall(r"\bVB_FUNC\(\w+, (\w+),", known))
            hidden = set(re.findall(
                r"\bVB_HIDDEN_FUNC(?:_IF_ANY)?\(\w+, (\w+),", known))
            self.assertEqual(hooked - READ_NOTHING, declared | hidden)
            canaries = set()
            if prototypes:
                canaries = set(re.findall(
                    r"^[a-z].*\b(\w+)\(.*\);$",
                    (paths.REPO / folder / prototypes).read_text(), re.M))
            # Some headers may declare what others do not.
            self.assertLessEqual(declared, canaries)
            self.assertLessEqual(canaries, declared | hidden)

    def test_tracepoints(self):
        text = sources("guest-mod")
        hooked = set(re.findall(rf"{{ {STRING}, vbg_", between(
            text, "} vbg_tps[] = {", "\n};")))
        self.assertGreater(len(hooked), 5)
        self.assertEqual(hooked, set(re.findall(
            r"\bVB_TRACE\(\w+, (\w+),", text + sources("compat"))))
        self.assertEqual(hooked, set(re.findall(
            r"\bcheck_trace_callback_type_(\w+)\(",
            text + sources("compat"))))


if __name__ == "__main__":
    unittest.main()
