# SPDX-License-Identifier: GPL-2.0
"""Links of the documentation: to files and headings that are there."""
import re
import unittest
from pathlib import Path

import checkpath  # noqa: F401
from vblab import paths
from vbcheck.tree import Tree

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")  # or a picture


def prose(text):
    """Without code, which may look like anything."""
    text = re.sub(r"^(```.*?^```|(    |\t).*?)$", "", text,
                  flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(text):
    """Of its headings, as forges make them."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-")
            for h in found}


def broken(repo: Path, name: str):
    text = (repo / name).read_text()
    for link in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (repo / name).parent / path if path else repo / name
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{link}: no such heading"


class Links(unittest.TestCase):
    def test_what_is_there(self):
        text = ("[a](#b-c) ![d](e.png) [`h`](i) `[no](f)`\n\n    [no](g)\n"
                "```\n[no](k)\n```\n[l](m)\n")
        self.assertEqual(LINK.findall(prose(text)), ["#b-c", "e.png", "i", "m"])
        self.assertEqual(anchors("## `lab/lab`, and B: c!\n"),
                         {"lablab-and-b-c"})

    def test_each_goes_somewhere(self):
        tree = Tree(paths.REPO)
        names = [n for n in tree.plain() if n.endswith(".md")]
        self.assertGreater(len(names), 10)
        for name in names:
            with self.subTest(name):
                self.assertEqual(list(broken(tree.repo, name)), [])
