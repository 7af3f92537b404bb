# SPDX-License-Identifier: GPL-2.0
"""Both modules with all warnings, by the compiler and by sparse.

In one build, for it is the longest of the checks; sparse's words go into
files of their own. It comes with its loader and libraries, so that it runs in
the root of any kernel.
"""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

from vblab import build, kernels
from vblab.root import WORK_IN_ROOT
from vblab.toolsroot import LOADER
from vblab.util import LabError

from .findings import Finding, Skipped, located
from .tools import Tools
from .tree import Tree

SEEDS = "check/seeds/kbuild"
# The oldest, the default and the newest of lab/kernels.json: others only have
# another configuration.
KERNELS = ("6.1", "6.12", "newest")
# What sparse says, and what W=1 does: each has seeds of its own in there.
_WARNING = re.compile(r"\b(?:warning|error): ", re.IGNORECASE)
_MODPOST = re.compile(r"^(?:WARNING|ERROR): modpost: ")

_REFUSED = "is not available or not up to date"

_WRAPPER = """#!/bin/sh
d=/{work}/sparse
"$d/{loader}" --library-path "$d" "$d/sparse" "$@" 2>"$d/log.$$"
status=$?
[ "$status" -le 1 ] || echo "sparse: error: ended with status $status" >>"$d/log.$$"
exit 0
"""
# cmd_checkdoc: kernel-doc wants Perl or Python, which these roots do not have: a check of
# its own.
_SCRIPT = """
for m in /{work}/tree /{work}/tree/{seeds}; do
	make -j"$(nproc)" -C "/lib/modules/$1/build" M="$m" W=1 C=2 \\
		CHECK=/{work}/sparse/run cmd_checkdoc=: modules || exit
done
"""


def _sparse(tools: Tools) -> list[tuple[Path, str]]:
    rel = "usr/bin/sparse"
    root = tools.root
    return [(root.path / lib, Path(lib).name)
            for lib in (rel, LOADER, *root.libraries(rel))]


class Builds:
    """Builds for each kernel, made when the first of its checks asks."""

    def __init__(self, tree: Tree, tools: Tools) -> None:
        self._tree, self._tools = tree, tools
        self._lock = {name: threading.Lock() for name in KERNELS}
        self._made: dict[str, tuple[list[Finding], list[Finding]]] = {}
        self._refused: set[str] = set()

    def findings(self, name: str, sparse: bool) -> list[Finding]:
        with self._lock[name]:
            if name not in self._made:
                try:
                    self._made[name] = self._build(name)
                except LabError as e:
                    self._made[name] = ([Finding("", 0, str(e))],
                                        [Finding("", 0, "it does not build")])
        if sparse and name in self._refused:
            raise Skipped("its headers are beyond Debian's sparse, and its "
                          "build does without")
        return self._made[name][sparse]

    def _build(self, name: str) -> tuple[list[Finding], list[Finding]]:
        kernel = kernels.get(name)
        tools = Tools(self._tools.root, self._tools.work / f"kernel-{name}")
        tree, sparse = tools.work / "tree", tools.work / "sparse"
        sparse.mkdir(parents=True)
        for path, file in _sparse(self._tools):
            shutil.copy(path, sparse / file)
        run = sparse / "run"
        run.write_text(_WRAPPER.format(work=WORK_IN_ROOT,
                                       loader=Path(LOADER).name))
        run.chmod(0o755)
        repo = self._tree.repo
        build.copy_sources(repo, build.source_files(
            build.MODULE_SOURCES + [SEEDS], repo), tree)
        said = tools.run(
            ["sh", "-c", _SCRIPT.format(work=WORK_IN_ROOT, seeds=SEEDS),
             "sh", kernel.release], root=kernel.root, cwd="/")
        # From 7.x on; the default kernel's is always run.
        if _REFUSED in said and name != kernels.default():
            self._refused.add(name)
        logs = sorted(sparse.glob("log.*"))
        if not logs:
            return (_warnings(said, repo),
                    [Finding("", 0, "sparse was not run")])
        return _warnings(said, repo), _warnings(
            "".join(p.read_text(errors="replace") for p in logs), repo)


def _warnings(text: str, repo: Path) -> list[Finding]:
    folder = f"/{WORK_IN_ROOT}/tree/"
    found = []
    for line in text.splitlines():
        if _MODPOST.match(line):
            found.append(Finding("", 0, line))
        elif _WARNING.search(line):
            # Paths are whole, or below the tree that is built.
            f = located(line, folder)
            if f and (repo / SEEDS / f.path).exists():
                f = Finding(f"{SEEDS}/{f.path}", f.line, f.text)
            found.append(f or Finding("", 0, line))
    return found
