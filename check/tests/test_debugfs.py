# SPDX-License-Identifier: GPL-2.0
"""Documentation/debugfs.md names each counter and each trace event."""
import re
import unittest

import checkpath  # noqa: F401
from vblab.paths import REPO

# Counters and features: [VBH_S_LOADS] = "loads", X(VBH_B_HINT, "hint")
TABLES = re.compile(r"^\t(?:\[|X\()VB[GH]_(?:S|C|VM|B|F)_\w+(?:\] =|,) "
                    r'(?:\{ )?"(\w+)"', re.M)
EVENTS = re.compile(r"^(?:TRACE_EVENT|DEFINE_EVENT)\((?:\w+, )?(vb_\w+)", re.M)


def found(pattern, folder, kind):
    return {name for path in (REPO / folder).glob(kind)
            for name in pattern.findall(path.read_text())}


class Names(unittest.TestCase):
    def test_all_are_documented(self):
        text = (REPO / "Documentation/debugfs.md").read_text()
        named = set(re.findall(r"\w+", text))
        kinds = tuple(re.findall(r"\| (\w+_)\* \|", text))
        # One of each table: it is found at all.
        for folder, some in {
                "guest-mod": {"looks", "ebusy", "vb_guest_move"},
                "host-mod": {"loads", "diverted", "in_row", "run_state",
                             "vb_host_boost"}}.items():
            names = found(TABLES, folder, "*.[ch]") | \
                found(EVENTS, folder, "*.h")
            self.assertLessEqual(some, names)
            missing = {n for n in names - named if not n.startswith(kinds)}
            self.assertEqual(missing, set(), folder)


if __name__ == "__main__":
    unittest.main()
