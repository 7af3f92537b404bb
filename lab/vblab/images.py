# SPDX-License-Identifier: GPL-2.0
"""Initramfs images, made of cached parts.

The kernel unpacks archives that lie behind one another. What does not change
between runs (programs, QEMU, kernel modules) is cached by its recipe and the
packages that it is made of; only the part of one run (scripts, our modules) is made each time.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from pathlib import Path
from typing import Callable

from . import kernels, paths
from .cpio import MERGED, Archive
from .kernels import Kernel
from .root import PackageRoot
from .util import Hasher, LabError, locked

# In both levels. Real shells and real programs that start others: those of
# busybox would run busybox's own ping, ip and so on, not the full ones.
PROGRAMS = ["usr/bin/dash", "usr/bin/bash",
            "usr/bin/env", "usr/bin/timeout", "usr/bin/nice", "usr/bin/nohup",
            "usr/bin/taskset", "usr/bin/chrt", "usr/bin/setsid",
            "usr/bin/ionice", "usr/bin/xargs", "usr/bin/find",
            "usr/bin/ping", "usr/sbin/ip", "usr/sbin/tc", "usr/bin/ss",
            "usr/sbin/ethtool", "usr/sbin/irqbalance", "usr/sbin/kexec"]
QEMU = "usr/bin/qemu-system-x86_64"
QEMU_DATA = ["usr/share/seabios/bios-256k.bin",
             "usr/share/qemu/kvmvapic.bin",
             "usr/share/qemu/linuxboot_dma.bin"]
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
KEEP_PARTS = 6       # of each kind


def _recipe() -> str:
    """Changes whenever the code that makes the parts does."""
    here = Path(__file__).parent
    return Hasher().file(Path(__file__)).file(here / "cpio.py").short()


def _part(name: str, key: Hasher, make: Callable[[Archive], None]) -> Path:
    path = paths.images() / f"{name}-{key.text(_recipe()).short()}.cpio"
    if path.exists():
        path.touch()
        return path
    with locked(paths.lock("images")):
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        archive = Archive()
        make(archive)
        partial = path.with_suffix(".partial")
        try:
            archive.save(partial)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
        by_age = sorted(path.parent.glob(f"{name}-*.cpio"),
                        key=lambda p: p.stat().st_mtime, reverse=True)
        for old in by_age[KEEP_PARTS:]:
            old.unlink(missing_ok=True)
    return path


def _add_program(archive: Archive, root: PackageRoot, rel: str) -> None:
    archive.add(root.path / rel, rel)
    for lib in root.libraries(rel):
        if lib not in archive:
            archive.add(root.path / lib, lib)


def tools_part(root: PackageRoot) -> Path:
    """Shells, busybox, network tools: the same in both levels."""
    def make(archive: Archive) -> None:
        for link, real in MERGED.items():
            archive.folder(real)
            archive.raw_link(link, os.path.relpath(real, os.path.dirname(link)))
        for name in ("proc", "sys", "dev", "tmp", "run", "etc", "root",
                     "lab/bin", "run/irqbalance"):
            archive.folder(name)
        # Standard input and output of process 1, before devtmpfs is there.
        archive.node("dev/console", 0o600, 5, 1)
        archive.node("dev/null", 0o666, 1, 3)
        archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"
                     b"nobody:x:65534:65534:nobody:/tmp:/bin/sh\n")
        archive.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        archive.link("var/run", "../run")
        archive.add(root.path / LOADER, LOADER)
        for rel in PROGRAMS:
            _add_program(archive, root, rel)
        archive.link("bin/sh", "dash")
        busybox = root.path / "usr/bin/busybox"
        archive.add(busybox, "bin/busybox")
        applets = subprocess.run([str(busybox), "--list"], check=True,
                                 text=True, stdout=subprocess.PIPE).stdout
        for applet in applets.split():
            if f"bin/{applet}" not in archive:
                archive.link(f"bin/{applet}", "busybox")

    return _part("tools", Hasher(root.content), make)


def qemu_part(root: PackageRoot) -> Path:
    def make(archive: Archive) -> None:
        _add_program(archive, root, QEMU)
        for rel in QEMU_DATA:
            archive.add(root.path / rel, rel)

    return _part("qemu", Hasher(root.content), make)


def _module_name(path: str) -> str:
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def read_dep(text: str) -> dict[str, list[str]]:
    """modules.dep: path of a module -> paths of all that it needs."""
    deps = {}
    for line in text.splitlines():
        path, _, needs = line.partition(":")
        deps[path] = needs.split()
    return deps


def select_modules(deps: dict[str, list[str]], wanted: list[str]) -> list[str]:
    """Paths of the wanted modules that exist, and of what they need."""
    by_name = {_module_name(p): p for p in deps}
    chosen: dict[str, None] = {}
    for name in wanted:
        path = by_name.get(name.replace("-", "_"))
        if path:
            for p in [path, *deps[path]]:
                chosen[p] = None
    return list(chosen)


def _decompressed(path: Path) -> bytes:
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".ko":
        return path.read_bytes()
    raise LabError(f"{path.name}: unknown compression")


def modules_part(kernel: Kernel, level: str) -> Path:
    """Modules of the distribution kernel, for `modprobe`."""
    spec = kernels.data()["modules"][level]
    wanted = spec["load"] + spec["have"]
    base = kernel.modules

    def plain(path: str) -> str:
        return path.split(".ko")[0] + ".ko"

    def make(archive: Archive) -> None:
        deps = read_dep((base / "modules.dep").read_text())
        chosen = select_modules(deps, wanted)
        target = f"lib/modules/{kernel.release}"
        lines = []
        for path in chosen:
            archive.file(f"{target}/{plain(path)}", _decompressed(base / path))
            lines.append(" ".join([plain(path) + ":"]
                                  + [plain(d) for d in deps[path]]))
        archive.file(f"{target}/modules.dep", "\n".join(lines + [""]).encode())
        names = {_module_name(p) for p in chosen}
        alias = [l for l in (base / "modules.alias").read_text().splitlines()
                 if l.split()[-1].replace("-", "_") in names]
        archive.file(f"{target}/modules.alias",
                     "\n".join(alias + [""]).encode())
        for name in ("modules.builtin", "modules.order"):
            archive.add(base / name, f"{target}/{name}")

    key = Hasher(kernel.root.content, kernel.release, *wanted)
    return _part(f"modules-{level}", key, make)


def loadable(kernel: Kernel, level: str) -> list[str]:
    """Those to load at boot that this kernel has as modules."""
    deps = read_dep((kernel.modules / "modules.dep").read_text())
    names = {_module_name(p) for p in deps}
    return [m for m in kernels.data()["modules"][level]["load"]
            if m.replace("-", "_") in names]


def concatenate(parts: list[Path], target: Path) -> None:
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
