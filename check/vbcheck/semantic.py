# SPDX-License-Identifier: GPL-2.0
"""Coccinelle: the kernel's own scripts, our rules, and who calls whom."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vblab import build

from . import contexts
from .findings import Finding, located, parse
from .toolroot import SCRIPTS
from .tools import Tools
from .tree import Tree

OURS = "check/cocci"
CALLS = f"{OURS}/calls.cocci"


class Spatch:
    """One file after another: rules speak of one file. (Files that are named
    one by one are taken together.)"""

    def __init__(self, tree: Tree, tools: Tools, seeds: str) -> None:
        self.files = tree.kernel_c() + tree.seeds(seeds)
        self._tools = tools
        staged = tools.work / f"spatch-{seeds}"
        build.copy_sources(tree.repo, [tree.repo / f for f in self.files],
                           staged)
        self.folder = tools.inside(staged) + "/"

    def run(self, script: str, *options: str) -> str:
        said = self._tools.run(
            ["spatch", "-D", "report", "--very-quiet", "--cocci-file", script,
             *options, "--dir", self.folder])
        return said.replace(self.folder, "")


def kernel_scripts(tree: Tree, tools: Tools) -> list[Finding]:
    """Those that can report, with the options that they ask for; two have
    parts in OCaml, and would need its compiler."""
    spatch = Spatch(tree, tools, "kernel-cocci")
    scripts = [p for p in sorted(
        (tools.root.path / SCRIPTS / "coccinelle").rglob("*.cocci"))
        if re.search(r"^virtual\b.*\breport\b", p.read_text(), re.MULTILINE)
        and ":ocaml" not in p.read_text()]

    def one(script: Path) -> list[Finding]:
        options = re.findall(r"^///? Options:(.*)$", script.read_text(),
                             re.MULTILINE)
        said = spatch.run("/" + str(script.relative_to(tools.root.path)),
                          *" ".join(options).split())
        # Some also tell of their progress.
        return [f for line in said.splitlines() if (f := located(line))]

    with ThreadPoolExecutor(tools.cpus) as pool:
        found = [f for part in pool.map(one, scripts) for f in part]
    if not scripts:
        found.append(Finding("", 0, "the kernel's scripts were not found"))
    return found


def our_rules(tree: Tree, tools: Tools) -> list[Finding]:
    spatch = Spatch(tree, tools, "cocci")
    # Types of what is accessed are in our headers: also where a file does not
    # name any that a rule does.
    options = ["--recursive-includes", "--include-headers",
               "--disable-worth-trying-opt"]
    for folder in ("include", "host-mod", "guest-mod"):
        options += ["-I", f"{spatch.folder}{folder}"]
    return [f for rule in tree.files
            if rule.startswith(OURS) and rule.endswith(".cocci")
            and rule != CALLS
            for f in parse(spatch.run(rule, *options))]


def allowed_calls(tree: Tree, tools: Tools) -> list[Finding]:
    spatch = Spatch(tree, tools, "contexts")
    calls = contexts.parse(
        spatch.run(CALLS, "--no-includes", "--include-headers"))
    sources = {f: (tree.repo / f).read_text() for f in spatch.files}
    macros = {m for text in sources.values() for m in re.findall(
        r"^#define\s+(\w+)", text, re.MULTILINE)}
    known = contexts.load((tree.repo / contexts.DATA).read_text())
    return (contexts.findings(calls, known, macros)
            + contexts.unlisted(sources, calls.defined, known))
