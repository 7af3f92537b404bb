# SPDX-License-Identifier: GPL-2.0
"""Both modules with all warnings, by the compiler and by sparse, and what
members of structures they use, by semind, which is sparse's. On the default
kernel also as they are built for tests (the variants of lab/kernels.json), and
the tests' own modules.

In one build, for it is the longest of the checks; their words go into files of
their own. They come with their loader and libraries, so that they run in the
root of any kernel.
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

from . import members
from .findings import Finding, located
from .tools import Tools
from .tree import Tree

SEEDS = "check/seeds/kbuild"
TEST_MODULES = "selftests/modules"
# The others of lab/kernels.json only have another configuration.
KERNELS = tuple(kernels.series())
# What sparse says, and what W=1 does: each has seeds of its own in there.
_WARNING = re.compile(r"\b(?:warning|error): ", re.IGNORECASE)
_MODPOST = re.compile(r"^(?:WARNING|ERROR): modpost: ")

# semind does not look into inline functions. Lines stay where they are.
_INLINE = re.compile(r"\b(static )(?:__always_)?inline ")

_WRAPPER = """#!/bin/sh
d=/{work}/sparse
# Debian's knows neither C23's nor the length of a string as a constant, which the
# headers of 7.x use.
set -- -D__typeof_unqual__=__typeof__ "-D__builtin_strlen(s)=(sizeof(s)-1)" "$@"
"$d/{loader}" --library-path "$d" "$d/sparse" "$@" 2>"$d/log.$$"
status=$?
[ "$status" -le 1 ] || echo "sparse: error: ended with status $status" >>"$d/log.$$"
# It looks at files below its folder only; the kernel's are relative to this one.
# Ours are those in plain, see _INLINE. With INSIDE=y the kernel's inline functions
# are looked into as well.
for a; do
	case $a in
	-I./*) a=-I$PWD/${{a#-I./}} ;;
	./*) a=$PWD/${{a#./}} ;;
	[!-/]*.c) [ ! -e "$PWD/$a" ] || a=$PWD/$a ;;
	esac
	case $a in
	*/{work}/tree*) a=${{a%%/{work}/tree*}}/{work}/plain${{a#*/{work}/tree}} ;;
	esac
	shift
	set -- "$@" "$a"
done
semind() {{	# DATABASE: for what is below this folder
	db=$1
	shift
	"$d/{loader}" --library-path "$d" "$d/semind" -D "$db" add -- "$@"
}}
cd /{work}/plain || exit
semind "$d/uses.$$" "$@" >"$d/said.$$" 2>&1
[ -n "$INSIDE" ] || exit 0
cd {headers} || exit
# What it says of headers that are not meant to be read so is of no use.
semind "$d/inside.$$" "$@" -include "$d/noinline.h" >/dev/null 2>&1
exit 0
"""
_HEADERS = "/usr/src"
# After these, words of the kernel's own that make a function inline mean nothing.
_NOINLINE = "".join(f"#undef {word}\n#define {word}\n" for word in
                    ("inline", "__inline", "__inline__", "__always_inline"))
# $1: the kernel; then folder and words for make of each build, on a line each.
# cmd_checkdoc: kernel-doc wants Perl or Python, which these roots do not have: a check of
# its own.
_SCRIPT = """
kernel=$1
shift
for build; do
	# Words.
	set -- $build
	m=$(cd "/{work}/tree/$1" && pwd) || exit
	shift
	make -j"$(nproc)" -C "/lib/modules/$kernel/build" M="$m" W=1 C=2 \\
		KBUILD_CHECKSRC=2 CHECK=/{work}/sparse/run cmd_checkdoc=: "$@" modules || exit
done
"""
# One of the seeds shows that the words arrive.
_SEED_BUILD = f"{SEEDS} VB_FAULTS=y INSIDE=y"


def _plain(tree: Path, copy: Path) -> None:
    """For semind: the same, and no function is inline."""
    shutil.copytree(tree, copy)
    for path in copy.rglob("*.[ch]"):
        path.write_text(_INLINE.sub(r"\1", path.read_text()))


def _test_builds(repo: Path) -> list[str]:
    """What users do not build, as lines for _SCRIPT."""
    return [" ".join([".", *words])
            for words in kernels.data()["variants"].values()] + \
           [str(p.parent.relative_to(repo))
            for p in sorted((repo / TEST_MODULES).glob("*/Kbuild"))]


def _sparse(tools: Tools) -> list[tuple[Path, str]]:
    root = tools.root
    programs = ("usr/bin/sparse", "usr/bin/semind")
    return [(root.path / lib, Path(lib).name)
            for lib in (*programs, LOADER,
                        *(lib for p in programs for lib in root.libraries(p)))]


class Builds:
    """Builds for each kernel, made when the first of its checks asks."""

    def __init__(self, tree: Tree, tools: Tools) -> None:
        self._tree, self._tools = tree, tools
        self._lock = {name: threading.Lock() for name in KERNELS}
        self._made: dict[str, dict[str, list[Finding]]] = {}

    def findings(self, name: str, kind: str) -> list[Finding]:
        """@kind: "warnings", "sparse" or "members"."""
        with self._lock[name]:
            if name not in self._made:
                try:
                    self._made[name] = self._build(name)
                except LabError as e:
                    none = [Finding("", 0, "it does not build")]
                    self._made[name] = {"warnings": [Finding("", 0, str(e))],
                                        "sparse": none, "members": none}
        return self._made[name][kind]

    def _members(self, tools: Tools, folder: Path) -> list[Finding]:
        def search(path: Path, kind: str, form: str) -> str:
            return tools.run(["semind", "-D", tools.inside(path), "search",
                              "-k", kind, "-f", form])

        # Beside them are the database's own files.
        files = [members.File(
            search(p, "m", members.USES), search(p, "f", members.USES),
            *(search(inside, kind, members.INSIDE) if inside.exists() else ""
              for kind in "fm"))
            for p in sorted(folder.glob("uses.*")) if p.suffix[1:].isdigit()
            for inside in [p.with_stem("inside")]]
        said = [Finding("", 0, p.read_text(errors="replace"))
                for p in folder.glob("said.*") if p.stat().st_size]
        if not files:
            said.append(Finding("", 0, "semind was not run"))
        return said + members.of_tree(files, self._tree)

    def _build(self, name: str) -> dict[str, list[Finding]]:
        kernel = kernels.get(name)
        tools = Tools(self._tools.root, self._tools.work / f"kernel-{name}")
        tree, sparse = tools.work / "tree", tools.work / "sparse"
        sparse.mkdir(parents=True)
        for path, file in _sparse(self._tools):
            shutil.copy(path, sparse / file)
        run = sparse / "run"
        run.write_text(_WRAPPER.format(work=WORK_IN_ROOT, headers=_HEADERS,
                                       loader=Path(LOADER).name))
        (sparse / "noinline.h").write_text(_NOINLINE)
        run.chmod(0o755)
        repo = self._tree.repo
        build.copy_sources(repo, build.source_files(
            build.MODULE_SOURCES + [SEEDS, TEST_MODULES], repo), tree)
        _plain(tree, tools.work / "plain")
        builds = [". INSIDE=y", _SEED_BUILD]
        if name == kernels.default():
            builds += _test_builds(repo)
        said = tools.run(
            ["sh", "-c", _SCRIPT.format(work=WORK_IN_ROOT), "sh",
             kernel.release, *builds], root=kernel.root, cwd="/")
        logs = sorted(sparse.glob("log.*"))
        return {
            "warnings": _warnings(said, repo),
            "sparse": _warnings("".join(p.read_text(errors="replace")
                                        for p in logs), repo) if logs
            else [Finding("", 0, "sparse was not run")],
            "members": self._members(tools, sparse),
        }


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
