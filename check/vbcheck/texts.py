# SPDX-License-Identifier: GPL-2.0
"""Checks that read files one by one: style, shell, Python, spelling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from vblab.root import REPO_IN_ROOT

from .findings import Finding, parse
from .toolroot import SCRIPTS
from .tools import Tools
from .tree import Tree

_REPO = f"/{REPO_IN_ROOT}/"
CODESPELL_DATA = "usr/lib/python3/dist-packages/codespell_lib/data"


def checkpatch(tree: Tree, tools: Tools) -> list[Finding]:
    files = [_REPO + f for f in tree.c() + tree.seeds("checkpatch")]
    argv = ["env", "GIT_DIR=/none", "perl", f"/{SCRIPTS}/checkpatch.pl",
            "--no-tree", f"--root={_REPO}", "--strict", "--terse",
            "--show-types", "--no-summary", "--color=never", "--file"]

    def part(n: int) -> list[Finding]:
        # It leaves a file where it runs.
        cwd = tools.work / f"checkpatch-{n}"
        cwd.mkdir()
        return parse(tools.run(argv + files[n::tools.cpus], ok=(0, 1),
                               cwd=tools.inside(cwd)), _REPO)

    # Perl, and slow: as many at a time as there are CPUs.
    with ThreadPoolExecutor() as pool:
        return [f for found in pool.map(part, range(tools.cpus))
                for f in found]


def kernel_doc(tree: Tree, tools: Tools) -> list[Finding]:
    return parse(tools.run(
        ["perl", f"/{SCRIPTS}/kernel-doc", "-none", "-Wall",
         *tree.kernel_c(), *tree.seeds("kernel-doc")]))


def shellcheck(tree: Tree, tools: Tools) -> list[Finding]:
    return parse(tools.run(
        ["shellcheck", "--format=gcc", "--external-sources",
         "--source-path=SCRIPTDIR",
         *tree.shell(), *tree.seeds("shellcheck")], ok=(0, 1)))


def pyflakes(tree: Tree, tools: Tools) -> list[Finding]:
    return parse(tools.run(["pyflakes3", *tree.python(),
                            *tree.seeds("pyflakes")], ok=(0, 1)))


def _british(tools: Tools) -> str:
    """codespell knows what Americans write instead: the other way round."""
    data = tools.root.path / CODESPELL_DATA / "dictionary_en-GB_to_en-US.txt"
    lines = []
    for line in data.read_text().splitlines():
        british, american = line.split("->")
        american = american.split(",")[0].strip()
        # -ize is British as well (Oxford), and the kernel's.
        if british.replace("is", "iz") != american:
            lines.append(f"{american}->{british}\n")
    path = tools.work / "british.txt"
    path.write_text("".join(lines))
    return tools.inside(path)


def spelling(tree: Tree, tools: Tools) -> list[Finding]:
    # 65: there are findings.
    return parse(tools.run(
        ["codespell", "--builtin=clear,rare", "--dictionary=-",
         f"--dictionary={_british(tools)}",
         *tree.texts(), *tree.seeds("spelling")], ok=(0, 65)))
