# SPDX-License-Identifier: GPL-2.0
"""What is done, in a file: what takes hours may be ended, and go on later."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

from . import build, kernels, paths, root
from .ktap import FAILED, PASSED, SKIPPED, Result
from .util import Hasher, LabError, locked, warn

# What a boot's results depend on, besides selftests.
SOURCES = build.MODULE_SOURCES + build.PROGRAM_FOLDERS + [
    "lab/boots/booting.py", "lab/common", "lab/debug", "lab/detectors",
    "lab/kernels.json", "lab/l1", "lab/l2", "lab/vblab"]
NO_SOURCES = (".md", ".pyc")


def sources(repo: Path) -> str:
    """Another one whenever results may be others."""
    return Hasher().files(repo, {
        f for f in itertools.chain(build.source_files(SOURCES, repo),
                                   build.selftest_files(repo))
        if f.suffix not in NO_SOURCES}).short()


def _tools() -> str:
    tools = root.package_root(kernels.data()["tools_root"])
    return tools.content if tools.exists() else "?"


def _read(path: Path) -> dict[str, dict]:
    try:
        data = json.loads(path.read_text())
        for entry in data.values():
            assert set(entry) == {"on", "seconds", "results"}
            entry["seconds"] + 0.0
            for name, state, note in entry["results"]:
                assert state in (PASSED, FAILED, SKIPPED)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError,
            AssertionError) as e:
        raise LabError(f"{path}: no record of this lab's: {e!r}")
    return data


class Record:
    """Results by what gave them. Those of other sources, or of other builds of
    kernels or emulator, are not taken, and replaced when there are newer
    ones."""

    def __init__(self, path: Path | None, repo: Path = paths.REPO) -> None:
        """@path: none: nothing is kept, nor taken."""
        self._path, self._repo = path, repo
        self._taken: list[float] = []
        if path is None:
            return
        # What cannot be kept is known before hours have gone by.
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._change({})
        except OSError as e:
            raise LabError(f"--record: {e}")

    def _change(self, more: dict[str, dict]) -> None:
        # Another lab may have the same file.
        with locked(paths.lock("record")):
            data = {**_read(self._path), **more}
            new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            try:
                new.write_text(json.dumps(data, indent=1) + "\n")
                new.replace(self._path)
            finally:
                new.unlink(missing_ok=True)

    def conditions(self, used: tuple[str, ...]) -> list[str]:
        """What there is now for a run on these kernels: see add()."""
        if self._path is None:
            return []
        return [sources(self._repo), _tools(),
                *(kernels.build_there(name) for name in used)]

    def get(self, what: str, used: tuple[str, ...]) -> list[Result] | None:
        """None: not done."""
        entry = self._path and _read(self._path).get(what)
        if not entry or entry["on"] != self.conditions(used):
            return None
        self._taken.append(entry["seconds"])
        return [Result(*r) for r in entry["results"]]

    def add(self, what: str, used: tuple[str, ...], on: list[str],
            seconds: float, results: list[Result]) -> None:
        """@on: conditions() as it began. Where they are others by now, nobody
        knows with what it ran: not kept."""
        if self._path is None:
            return
        if on != self.conditions(used) or "?" in on:
            warn("--record: sources or packages have changed meanwhile: "
                 f"not kept: {what}")
            return
        try:
            self._change({what: {
                "on": on, "seconds": round(seconds),
                "results": [[r.name, r.state, r.note] for r in results]}})
        except (OSError, LabError) as e:
            warn(f"--record: {e}: not kept: {what}")

    def words(self) -> str:
        """How much was not run now; a line, or nothing."""
        if not self._taken:
            return ""
        return (f"{len(self._taken)} were done before, in "
                f"{sum(self._taken):.0f} s ({self._path})\n")
