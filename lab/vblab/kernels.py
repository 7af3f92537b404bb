# SPDX-License-Identifier: GPL-2.0
"""The kernels and package roots that lab/kernels.json describes."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import paths
from .util import LabError

if TYPE_CHECKING:
    from .root import PackageRoot


@functools.cache
def data() -> dict:
    return json.loads((paths.LAB / "kernels.json").read_text())


def names() -> list[str]:
    return list(data()["kernels"])


def packaged() -> list[str]:
    """Those that need not be built."""
    return [n for n, spec in data()["kernels"].items() if "config" not in spec]


def series() -> list[str]:
    """One of each series, the cloud flavour: the others have its name and a
    word more."""
    return [n for n in packaged() if "-" not in n]


def watching() -> list[str]:
    """Those that watch memory, locks or races (debug kernels)."""
    return [n for n, spec in data()["kernels"].items()
            if spec.get("detectors")]


def default() -> str:
    return data()["default"]


def variant(name: str | None) -> list[str]:
    """Words for make, when our modules are built in that way."""
    return data()["variants"][name] if name else []


def slowness(*used: str) -> int:
    """Time limits are to be so many times longer with these kernels."""
    return max(data()["kernels"].get(n, {}).get("slow", 1) for n in used)


@dataclass(frozen=True)
class Kernel:
    name: str
    release: str            # uname -r
    root: "PackageRoot"

    @property
    def image(self) -> Path:
        return self.root.path / "boot" / f"vmlinuz-{self.release}"

    @property
    def args(self) -> str:
        """Words for its command line."""
        return data()["kernels"][self.name].get("args", "")

    @property
    def module_words(self) -> list[str]:
        """For make, when our modules are built for it."""
        return data()["kernels"][self.name].get("module_make", [])

    @property
    def modules(self) -> Path:
        return self.root.path / "usr/lib/modules" / self.release


def _version_key(release: str) -> list:
    return [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", release)]


def find_release(root: Path, prefix: str) -> str | None:
    """The newest kernel of a root that has an image and headers."""
    found = [p.name for p in (root / "usr/lib/modules").glob("*")
             if p.name.startswith(prefix)
             and (p / "build").is_symlink()
             and (root / "boot" / f"vmlinuz-{p.name}").exists()]
    return max(found, key=_version_key, default=None)


def release_there(name: str) -> str:
    """Its release; "?" while there is none: nothing is made."""
    from . import kbuild, root as rootmod
    spec = data()["kernels"][name]
    root = rootmod.package_root(spec["root"])
    found = kbuild.find(root, name, spec) if "config" in spec else \
        find_release(root.path, spec["release"])
    return found or "?"


def build_there(name: str) -> str:
    """Tells it from others of its release, as Debian's security updates of 6.1
    are; "?" while there is none: nothing is made."""
    from . import root as rootmod
    release = release_there(name)
    if release == "?":
        return release
    root = rootmod.package_root(data()["kernels"][name]["root"])
    return f"{release} {root.content}"


def get(name: str) -> Kernel:
    """The kernel of that name, its package root made if necessary."""
    from . import kbuild, root as rootmod
    spec = data()["kernels"].get(name)
    if spec is None:
        raise LabError(f"unknown kernel {name!r}; known: " + ", ".join(names()))
    root = rootmod.ensure(spec["root"])
    release = kbuild.ensure(root, name, spec) if "config" in spec else \
        find_release(root.path, spec["release"])
    if release is None:
        raise LabError(f"the {root.name} package root has no kernel "
                       f"{spec['release']}* with headers")
    return Kernel(name, release, root)
