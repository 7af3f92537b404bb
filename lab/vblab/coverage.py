# SPDX-License-Identifier: GPL-2.0
"""Which lines of our modules ran, summed over the boots of a test run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from . import build, paths
from .kernels import Kernel
from .root import WORK_IN_ROOT
from .util import LabError, tail, temp_dir

# One set of counters for each kernel that ran: merged pair by pair.
MERGE_AND_COUNT = """
sum=empty
for set in sets/*; do
	gcov-tool merge -o "sum-${set#sets/}" "$sum" "$set" 2>/dev/null || continue
	sum=sum-${set#sets/}
done
cp -r "$sum/." tree/
cd tree
gcovr --root . --object-directory . --gcov-executable gcov --exclude-unreachable-branches \\
	--exclude '.*\\.mod\\.c' --json ../coverage.json --txt ../coverage.txt
"""


def uncovered(data: dict, source: dict[str, list[str]]) -> list[str]:
    """FILE:LINE: TEXT of each line that never ran, from gcovr's JSON."""
    return [f"{f['file']}:{line['line_number']}: "
            + source[f["file"]][line["line_number"] - 1].strip()
            for f in data["files"] for line in f["lines"]
            if not line["count"] and not line.get("gcovr/noncode")]


def collect(out: Path, work: Path) -> int:
    """The counters that came back, each kernel's in a folder of its own."""
    sets = [p for p in out.glob("*/gcov/*") if any(p.rglob("*.gcda"))]
    for n, path in enumerate(sets):
        shutil.copytree(path / WORK_IN_ROOT / build.TREE,
                        work / "sets" / f"{n:03}")
    return len(sets)


def report(kernel: Kernel, out: Path) -> None:
    """Prints a table by file; details go into files in `out`."""
    modules = build.modules(kernel, coverage=True)
    tree = next(iter(modules.values())).parent / build.TREE
    with temp_dir(paths.tmp(), "coverage-") as work:
        shutil.copytree(tree, work / build.TREE)
        (work / "empty").mkdir()
        if not collect(out, work):
            raise LabError("no counters came back: was the kernel built "
                           "with CONFIG_GCOV_KERNEL?")
        log = work / "log"
        if kernel.root.chroot(["sh", "-ec", MERGE_AND_COUNT], log, work=work,
                              cwd=f"/{WORK_IN_ROOT}"):
            raise LabError(f"gcovr failed:\n{tail(log, 30)}")
        shutil.copyfile(work / "coverage.txt", out / "coverage.txt")
        data = json.loads((work / "coverage.json").read_text())
        source = {f["file"]: (tree / f["file"]).read_text().splitlines()
                  for f in data["files"]}
    print((out / "coverage.txt").read_text())
    lines = uncovered(data, source)
    (out / "uncovered.txt").write_text("\n".join(lines + [""]))
    print(f"{len(lines)} lines never ran: {out / 'uncovered.txt'}")
