# SPDX-License-Identifier: GPL-2.0
"""`lab/lab doctor`: says what the lab needs, and sets it up."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from typing import Callable

from . import apt, build, images, kernels, paths, root, session
from .util import LabError

# One package root, images and builds; each further root is half as large.
DISK_GB = 2
MEMORY_GB = 6
# Of which a kernel keeps some to itself: such a machine shows a little less.
RESERVED_GB = 0.4


def _architecture() -> str:
    if platform.machine() != "x86_64":
        raise LabError(f"{platform.machine()}: the lab needs x86_64")
    return "x86_64"


def _processors() -> str:
    n = len(os.sched_getaffinity(0))
    if n < 2:
        raise LabError(f"{n}; 2 are needed: those of L1 must run at once")
    return f"{n}"


def _memory() -> str:
    gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    if gb < MEMORY_GB - RESERVED_GB:
        raise LabError(f"{gb:.1f} GB; {MEMORY_GB} GB are needed: L1 alone "
                       "takes 4")
    return f"{gb:.1f} GB"


def _user() -> str:
    if os.geteuid() == 0:
        return "root"
    root.require_root_user("setting the lab up and building modules")
    return ""


def _cache() -> str:
    cache = paths.cache()
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free / 2**30
    if free < DISK_GB and not root.package_root(
            kernels.data()["tools_root"]).exists():
        raise LabError(f"{cache}: {free:.1f} GB free, {DISK_GB} needed "
                       "(VBALANCE_CACHE chooses another folder)")
    return f"{cache} ({free:.0f} GB free)"


def _mirror() -> str:
    line = apt.mirror_lines(["SUITE"])[0]
    return line if apt.has_security() else line + \
        "; none of security updates, so kernels may be older than their " \
        "users have (VBALANCE_SECURITY_MIRROR names one)"


def _mmdebstrap() -> str:
    return "installed now" if root.install_host_packages() else \
        shutil.which("mmdebstrap") or ""


def _kernel(name: str) -> Callable[[], str]:
    def check() -> str:
        kernel = kernels.get(name)
        return f"{kernel.release} in {kernel.root.ident}"
    return check


def _update(name: str) -> Callable[[], str]:
    def check() -> str:
        try:
            return "newer packages" if root.update(name) else \
                "has the newest packages"
        except LabError as e:
            raise LabError(f"not made anew, the old one stays: {e}")
    return check


def _images() -> str:
    kernel = kernels.get(kernels.default())
    tools = root.ensure(kernels.data()["tools_root"])
    parts = [images.tools_part(tools), images.qemu_part(tools),
             images.modules_part(kernel, "l1"),
             images.modules_part(kernel, "l2")]
    return f"{sum(p.stat().st_size for p in parts) >> 20} MB"


def _products() -> str:
    made = {**build.modules(kernels.get(kernels.default())),
            **build.programs(root.ensure(kernels.data()["tools_root"]))}
    return ", ".join(sorted(made))


def _check(items: list[tuple[str, Callable[[], str]]],
           bad: str = "MISSING") -> bool:
    good = True
    for name, check in items:
        try:
            print(f"ok      {name}: {check()}", flush=True)
        except LabError as e:
            print(f"{bad:7} {name}: {e}", flush=True)
            good = False
    return good


def run(o: argparse.Namespace) -> int:
    names = kernels.packaged() if o.all else [kernels.default()]
    machine = [("architecture", _architecture), ("processors", _processors),
               ("memory", _memory), ("user", _user), ("cache", _cache),
               ("mirror", _mirror)]
    old = [(f"package root {n}", _update(n)) for n in kernels.data()["roots"]
           if o.update and root.package_root(n).exists()]
    setup = [(f"kernel {n}", _kernel(n)) for n in names]
    setup += [("images", _images), ("products", _products)]
    # Nothing is downloaded to a machine that cannot use it, nor by anything
    # else than mmdebstrap.
    good = _check(machine) and _check([("mmdebstrap", _mmdebstrap)]) and all(
        [_check(old, bad="OLD"), _check(setup)])
    return session.EXIT_OK if good else session.EXIT_SETUP
