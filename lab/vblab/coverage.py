# SPDX-License-Identifier: GPL-2.0
"""Which lines of our modules ran, summed over the boots of test runs.

See Documentation/coverage.md.
"""

from __future__ import annotations

import collections
import json
import re
import shutil
from pathlib import Path

from . import build, paths
from .kernels import Kernel
from .root import WORK_IN_ROOT
from .util import LabError, tail, temp_dir

# One set of counters for each machine that ran: merged pair by pair. Then what
# earlier runs had found is added (before.json). gcov looks for headers from where
# the compiler ran: in the kernel's folder, $1, which is not to be written to.
MERGE_AND_COUNT = """
sum=
for set in sets/*; do
	if [ "$sum" ]; then
		gcov-tool merge -o "sum-${set#sets/}" "$sum" "$set"
		sum=sum-${set#sets/}
	else
		sum=$set
	fi
done
cp -r "$sum/." tree/
mkdir kernel
ln -s "$1"/* kernel/
cd tree
gcovr --root . --object-directory ../kernel --gcov-executable gcov --exclude-unreachable-branches \\
	--merge-mode-functions=separate --exclude '.*\\.mod\\.c' --json ../now.json
set --
for found in ../now.json ../before.json; do
	[ ! -e "$found" ] || set -- "$@" --add-tracefile "$found"
done
gcovr --root . --merge-mode-functions=separate "$@" --json ../coverage.json --txt ../coverage.txt
"""

# What a failure is answered with.
_ERROR_PATH = re.compile(r"\bgoto (err|out|fail|no_)|\breturn -\w*E[A-Z]+\b"
                         r"|[=?:] -\w*E[A-Z]+\b|\breturn (err|ret|NULL);"
                         r"|\b(return|err =) PTR_ERR\(|\berr = [a-z]+;"
                         r"|\bpr_(err|warn)|^(err|out|fail|no)_?\w*:")
# The line before: what follows is one, whatever it does.
_FAILED = re.compile(r"\b(WARN(_ON)?(_ONCE)?|IS_ERR(_OR_NULL)?)\(")


def _blocks(lines: list[dict]) -> list[list[int]]:
    """Numbers of lines that never ran, those together that follow one another
    with no line between that did."""
    blocks: list[list[int]] = []
    follows = False
    for line in sorted(lines, key=lambda l: l["line_number"]):
        if line.get("gcovr/noncode"):
            continue
        if line["count"]:
            follows = False
            continue
        if not follows:
            blocks.append([])
        blocks[-1].append(line["line_number"])
        follows = True
    return blocks


def uncovered(data: dict, source: dict[str, list[str]]) -> list[str]:
    """Each line that never ran, from gcovr's JSON: FILE:LINE: TEXT, with an E
    before it where that answers a failure."""
    found = []
    for f in sorted(data["files"], key=lambda f: f["file"]):
        text = source[f["file"]]
        # A line of gcovr's can be there once for each function.
        lines = {l["line_number"]: l for l in
                 sorted(f["lines"], key=lambda l: l["count"])}
        for block in _blocks(list(lines.values())):
            said = [text[n - 1].strip() for n in block]
            before = text[block[0] - 2] if block[0] > 1 else ""
            mark = "E" if _FAILED.search(before) or \
                any(map(_ERROR_PATH.search, said)) else " "
            found += [f"{mark} {f['file']}:{n}: {words}"
                      for n, words in zip(block, said)]
    return found


def read_known(path: Path) -> list[dict]:
    try:
        known = json.loads(path.read_text())
        assert all(set(k) == {"file", "lines", "why"} for k in known)
    except (OSError, ValueError, TypeError, AssertionError) as e:
        raise LabError(f"{path}: not a list of file, lines and why: {e}")
    return known


def judge(lines: list[str], known: list[dict]) -> list[str]:
    """What of uncovered()'s error paths is not known, and what is known and
    ran: complaints.

    @known: {"file", "lines" (as in the source, once for each time that they are
    there), "why"}
    """
    left = collections.Counter(
        (entry["file"], text.strip()) for entry in known
        for text in entry["lines"])
    said = []
    # Those that have to be known first.
    for line in sorted(lines, key=lambda l: not l.startswith("E")):
        place, _, text = line[2:].partition(": ")
        key = (place.rpartition(":")[0], text)
        if left[key]:
            left[key] -= 1
        elif line.startswith("E"):
            said.append(f"no test, and no reason: {line[2:]}")
    said += [f"has run, or is not there: {file}: {text}"
             for (file, text), n in left.items() for _ in range(n)]
    return said


def _stamp(path: Path) -> bytes:
    """Of the build that a file of gcov's belongs to: its third word."""
    return path.read_bytes()[8:12]


def collect(out: Path, work: Path) -> int:
    """The counters that came back, each machine's in a folder of its own."""
    tree = work / build.TREE
    sets = [p for p in out.glob("*/gcov/*") if any(p.rglob("*.gcda"))]
    for n, path in enumerate(sets):
        base = path / WORK_IN_ROOT / build.TREE
        for counters in base.rglob("*.gcda"):
            notes = (tree / counters.relative_to(base)).with_suffix(".gcno")
            # gcov would count such a file as never run.
            if not notes.exists() or _stamp(counters) != _stamp(notes):
                raise LabError(f"{counters}: counters of another build: they "
                               "cannot be added to the others")
        shutil.copytree(base, work / "sets" / f"{n:03}")
    return len(sets)


def report(kernel: Kernel, out: Path, total: Path | None = None,
           known: list[dict] | None = None) -> None:
    """Prints a table by file; details go into files in `out`.

    @total: file in which several runs are added up; the table is of all.
    @known: what may be left, see judge().
    """
    modules = build.modules(kernel, coverage=True)
    tree = next(iter(modules.values())).parent / build.TREE
    with temp_dir(paths.tmp(), "coverage-") as work:
        shutil.copytree(tree, work / build.TREE)
        if not collect(out, work):
            raise LabError("no counters came back: was the kernel built "
                           "with CONFIG_GCOV_KERNEL?")
        if total and total.exists():
            shutil.copyfile(total, work / "before.json")
        log = work / "log"
        if kernel.root.chroot(["sh", "-ec", MERGE_AND_COUNT, "sh",
                               f"/lib/modules/{kernel.release}/build"],
                              log, work=work, cwd=f"/{WORK_IN_ROOT}"):
            raise LabError(f"adding up the counters failed:\n{tail(log, 30)}")
        for name in ("coverage.txt", "coverage.json"):
            shutil.copyfile(work / name, out / name)
    data = json.loads((out / "coverage.json").read_text())
    if total:
        total.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(out / "coverage.json", total)
    source = {f["file"]: (tree / f["file"]).read_text().splitlines()
              for f in data["files"]}
    print((out / "coverage.txt").read_text())
    lines = uncovered(data, source)
    (out / "uncovered.txt").write_text("\n".join(lines + [""]))
    errors = sum(line.startswith("E") for line in lines)
    print(f"{len(lines)} lines never ran, {errors} of them on error paths: "
          f"{out / 'uncovered.txt'}")
    said = [] if known is None else judge(lines, known)
    if said:
        raise LabError("\n".join(["error paths that never ran:", *said]))
