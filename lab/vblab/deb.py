# SPDX-License-Identifier: GPL-2.0
"""`lab/lab deb`: the Debian package, built in the packaging root."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from . import build as products
from . import paths, root
from .root import WORK_IN_ROOT
from .util import LabError, say, tail, temp_dir

ROOT = "packaging"
# What is made in the checkout by other targets.
MADE = {"out", "build", "__pycache__"}


def build(out: Path,
          edit: Callable[[Path], None] = lambda tree: None) -> list[Path]:
    """The source and the binary package of this checkout, put into @out.

    @edit: changes something before, in a copy of it."""
    packaging = root.ensure(ROOT)
    with temp_dir(paths.tmp(), "deb-") as work:
        _copy_checkout(work / "vbalance")
        edit(work / "vbalance")
        log = work / "log"
        say("building the Debian package")
        # What it says it needs; of build-essential only make is.
        for words in (["dpkg-checkbuilddeps", "-I"],
                      ["dpkg-buildpackage", "--no-sign",
                       "--no-check-builddeps"]):
            if packaging.chroot(words, log, work=work, scratch=True,
                                cwd=f"/{WORK_IN_ROOT}/vbalance"):
                raise LabError(f"{words[0]} failed:\n" + tail(log, 40))
        out.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, out))
                for path in sorted(work.glob("vbalance[-_]*"))]


def _copy_checkout(tree: Path) -> None:
    tops = [p.name for p in paths.REPO.iterdir()
            if not p.name.startswith(".")]
    for path in products.source_files(tops, paths.REPO):
        rel = path.relative_to(paths.REPO)
        if MADE.isdisjoint(rel.parts):
            copy = tree / rel
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
