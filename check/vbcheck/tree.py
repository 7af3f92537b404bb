# SPDX-License-Identifier: GPL-2.0
"""The files of the checkout by kind, whether or not it is a clone."""

from __future__ import annotations

import os
import re
from pathlib import Path

from vblab.build import PRODUCTS

from .findings import SEEDS

# Built or measured, as in .gitignore; in debian/ by dpkg-buildpackage.
FOLDERS_LEFT_OUT = {".git", "__pycache__", "build", "out", ".debhelper"}
_DEBIAN = re.compile(r"debian/(vbalance-dkms/|files$|debhelper-build-stamp$|.*\.(substvars|debhelper[^/]*)$)")
KERNEL_C = ("host-mod/", "guest-mod/", "core/", "common/", "compat/",
            "include/", "selftests/modules/")


def _head(path: Path) -> str:
    with path.open("rb") as f:
        return f.read(200).decode("latin-1")


class Tree:
    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.files: list[str] = []
        for top, folders, names in os.walk(repo):
            folders[:] = sorted(f for f in folders
                                if f not in FOLDERS_LEFT_OUT)
            self.files += [os.path.relpath(os.path.join(top, n), repo)
                           for n in sorted(names)
                           if not n.endswith(PRODUCTS) and n != ".git"]
        self.files = [f for f in self.files if not _DEBIAN.match(f)]

    def plain(self) -> list[str]:
        return [f for f in self.files if not f.startswith(SEEDS)]

    def seeds(self, check: str) -> list[str]:
        return [f for f in self.files if f.startswith(f"{SEEDS}{check}/")]

    def _script(self, suffix: str, head: str) -> list[str]:
        """By what they begin with as well: programs have no suffix."""
        return [f for f in self.plain() if f.endswith(suffix)
                or re.search(head, _head(self.repo / f))]

    def shell(self) -> list[str]:
        return self._script(
            ".sh", r"\A#!.*\b(?:ba|da)?sh\b|(?:\A|\n)# shellcheck shell=")

    def python(self) -> list[str]:
        return self._script(".py", r"\A#!.*\bpython3\b")

    def c(self) -> list[str]:
        return [f for f in self.plain() if f.endswith((".c", ".h"))]

    def kernel_c(self) -> list[str]:
        return [f for f in self.c() if f.startswith(KERNEL_C)]

    def texts(self) -> list[str]:
        """All that people write, but for the licence, which is the FSF's."""
        return [f for f in self.plain() if f != "LICENSE"
                and not f.endswith((".png", ".svg"))]
