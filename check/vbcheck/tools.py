# SPDX-License-Identifier: GPL-2.0
"""Runs the checkers in their root; the checkout is read-only there."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vblab.root import REPO_IN_ROOT, WORK_IN_ROOT, PackageRoot
from vblab.util import LabError, tail


@dataclass
class Tools:
    root: PackageRoot
    work: Path
    cpus: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    _number: itertools.count = field(default_factory=itertools.count)

    def inside(self, path: Path) -> str:
        """What a file in @work is called in a root."""
        return f"/{WORK_IN_ROOT}/{path.relative_to(self.work)}"

    def run(self, argv: Sequence[str], ok: Sequence[int] = (0,),
            root: PackageRoot | None = None,
            cwd: str = f"/{REPO_IN_ROOT}") -> str:
        """Output of a command. Any exit status but @ok is no result at all."""
        log = self.work / f"log-{next(self._number)}"
        log.touch()
        status = (root or self.root).chroot(argv, log, self.work, cwd)
        if status not in ok:
            raise LabError(f"{argv[0]} ended with status {status}:\n"
                           + tail(log, 60))
        return log.read_text(errors="replace")
