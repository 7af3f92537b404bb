# SPDX-License-Identifier: GPL-2.0
"""Builds our modules and helper programs in a package root.

Nothing is written into the checkout: sources are copied into a temporary
folder, what comes out is cached by the content of what went in.
"""

from __future__ import annotations

import argparse
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Iterator

from . import kernels, paths
from .kernels import Kernel
from .root import WORK_IN_ROOT, PackageRoot
from .util import Hasher, LabError, locked, say, surplus, tail, temp_dir

# Everything that the top Makefile's `modules` target reads.
MODULE_SOURCES = re.search(r"^MODULE_SOURCES := (.*)",
                           (paths.REPO / "Makefile").read_text(),
                           re.MULTILINE)[1].split()
MODULES = ["host-mod/vbalance_host.ko", "guest-mod/vbalance_guest.ko"]
# One C file here is one program.
PROGRAM_FOLDERS = ["lab/src", "bench/src", "selftests/src"]
# One folder here is one module that is no product.
TEST_MODULES = paths.REPO / "selftests/modules"
CFLAGS = ["-O2", "-Wall", "-Wextra", "-static", "-pthread"]
KEEP_BUILDS = 40
# Nor is what another checkout has built just now thrown away: it is about to
# be used, and waits for this one perhaps.
KEEP_SECONDS = 3600
# Where modules are built, and what is kept of that for coverage.
TREE = "tree"

# What a build in the checkout leaves there.
PRODUCTS = (".o", ".ko", ".mod", ".mod.c", ".cmd", ".symvers", ".order", ".a",
            ".d", ".tmp", "~", ".swp")


def source_files(tops: list[str], repo: Path) -> Iterator[Path]:
    for top in tops:
        path = repo / top
        if path.is_file():
            yield path
        elif path.is_dir():
            for p in sorted(path.rglob("*")):
                if p.is_file() and not p.name.endswith(PRODUCTS) \
                        and not p.name.startswith("."):
                    yield p


def selftest_files(repo: Path) -> Iterator[Path]:
    """What the machines get. The others are for the user's own system, and
    large when built."""
    selftests = repo / "selftests"
    for path in source_files(["selftests"], repo):
        if path.relative_to(selftests).parts[0] not in ("unit", "model"):
            yield path


@dataclass
class Products:
    """What a level gets: files by the name that they have there."""
    modules: dict[str, Path]
    programs: dict[str, Path]


def modules(kernel: Kernel, coverage: bool = False,
            repo: Path = paths.REPO, variant: str | None = None) -> dict[str, Path]:
    """Our modules for that kernel; empty while there are none to build.

    With `coverage` they count which of their lines run (CONFIG_GCOV_KERNEL),
    and the tree that they were built in stays beside them.
    @variant: of kernels.json, for tests.
    """
    if not any((repo / m).parent.is_dir() for m in MODULES):
        return {}
    files = list(source_files(MODULE_SOURCES, repo))
    words = kernel.module_words + ["GCOV_PROFILE=y"] * coverage
    words += [w for w in kernels.variant(variant) if w not in words]
    key = Hasher(kernel.root.content, kernel.release, *words)
    key.files(repo, files)
    target = paths.builds() / f"modules-{key.short()}"
    with locked(paths.lock("build")):
        if not target.exists():
            say(f"building the modules for {kernel.release}")
            _make_modules(kernel, repo, files, target, words, coverage)
    target.touch()
    return {p.name: p for p in sorted(target.glob("*.ko"))}


def add_variants(o: argparse.Namespace) -> None:
    """What --variant asks for, as further files of each level (--add-l1,
    --add-l2)."""
    for name in o.variant:
        for kernel, added in ((o.host_kernel, o.add_l1),
                              (o.guest_kernel, o.add_l2)):
            found = kernels.get(kernel)
            # Counters of other modules could not be added up.
            same = set(kernels.variant(name)) <= set(found.module_words)
            built = modules(found, o.coverage and same, variant=name)
            added += [(path, f"/lab/{name}/{file}")
                      for file, path in built.items()]


def add_test_modules(o: argparse.Namespace) -> None:
    """What --test-module asks for, as further files of each level (--add-l1,
    --add-l2), and what an emulated host needs, which lab/l1/init loads."""
    host = kernels.get(o.host_kernel)
    for name in kernels.data()["host_modules"]:
        o.add_l1.append((outside(host, TEST_MODULES / name),
                         f"/lab/host-modules/{name}.ko"))
    for name in o.test_module:
        for kernel, added in ((o.host_kernel, o.add_l1),
                              (o.guest_kernel, o.add_l2)):
            built = outside(kernels.get(kernel), TEST_MODULES / name)
            added.append((built, f"/lab/{name}.ko"))


def copy_sources(repo: Path, files: Iterable[Path], tree: Path) -> None:
    for path in files:
        copy = tree / path.relative_to(repo)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        shutil.copymode(path, copy)


def _make_modules(kernel: Kernel, repo: Path, files: list[Path],
                  target: Path, words: list[str], coverage: bool) -> None:
    with temp_dir(paths.tmp(), "build-") as work:
        tree = work / TREE
        copy_sources(repo, files, tree)
        log = work / "log"
        status = kernel.root.chroot(
            # Debug information would only make the images larger.
            ["sh", "-ec", 'make -j"$(nproc)" "$@" modules; '
             "find . -name '*.ko' -exec strip -g {} +", "sh",
             f"KDIR=/lib/modules/{kernel.release}/build", *words],
            log, work=work, cwd=f"/{WORK_IN_ROOT}/{TREE}")
        if status:
            raise LabError(f"building the modules for {kernel.release} "
                           f"failed:\n{_without_noise(tail(log, 60))}")
        out = work / "out"
        out.mkdir()
        for rel in MODULES:
            if (tree / rel).exists():
                shutil.copyfile(tree / rel, out / Path(rel).name)
        shutil.copyfile(log, out / "log")
        if coverage:
            tree.rename(out / TREE)
        target.parent.mkdir(parents=True, exist_ok=True)
        out.rename(target)
    _trim("modules-*")


def outside(kernel: Kernel, folder: Path) -> Path:
    """A module that is no product, from a folder with one source and a
    Kbuild. What it is built with is what ours are."""
    files = list(source_files(["."], folder))
    key = Hasher(kernel.root.content, kernel.release).files(folder, files)
    target = paths.builds() / f"outside-{key.short()}.ko"
    with locked(paths.lock("build")), temp_dir(paths.tmp(), "build-") as work:
        if target.exists():
            target.touch()
            return target
        tree, log = work / TREE, work / "log"
        copy_sources(folder, files, tree)
        status = kernel.root.chroot(
            ["make", "-C", f"/lib/modules/{kernel.release}/build",
             f"M=/{WORK_IN_ROOT}/{TREE}", "modules"], log, work=work)
        if status:
            raise LabError(f"building {folder.name} for {kernel.release} "
                           f"failed:\n{tail(log, 40)}")
        (made,) = tree.glob("*.ko")
        target.parent.mkdir(parents=True, exist_ok=True)
        made.rename(target)
    _trim("outside-*")
    return target


def _without_noise(text: str) -> str:
    return "\n".join(l for l in text.splitlines()
                     if "Entering directory" not in l
                     and "Leaving directory" not in l)


def programs(root: PackageRoot,
             repo: Path = paths.REPO) -> dict[str, Path]:
    """Static helper programs by name."""
    found: dict[str, Path] = {}
    missing: list[tuple[Path, Path]] = []
    headers = list(source_files(["include", "core"], repo))
    for folder in PROGRAM_FOLDERS:
        local = sorted((repo / folder).glob("*.h"))
        for source in sorted((repo / folder).glob("*.c")):
            if source.stem in found:
                raise LabError(f"two programs are named {source.stem}: "
                               f"{source.relative_to(repo)} is the second")
            key = Hasher(root.content, *CFLAGS, folder)
            key.files(repo, headers + local).file(source)
            target = paths.builds() / f"program-{source.stem}-{key.short()}"
            found[source.stem] = target
            if target.exists():
                target.touch()
            else:
                missing.append((source, target))
    if missing:
        with locked(paths.lock("build")):
            for source, target in missing:
                if not target.exists():
                    _compile(root, repo, source, target)
        _trim("program-*")
    return found


def _compile(root: PackageRoot, repo: Path, source: Path,
             target: Path) -> None:
    rel = source.relative_to(repo)
    with temp_dir(paths.tmp(), "cc-") as work:
        log = work / "log"
        status = root.chroot(
            ["gcc", *CFLAGS, "-I", "include", "-I", ".",
             "-o", f"/{WORK_IN_ROOT}/out", str(rel)],
            log, work=work, cwd="/mnt/repo")
        if status:
            raise LabError(f"compiling {rel} failed:\n{tail(log, 40)}")
        if log.stat().st_size:
            say(f"compiling {rel}:\n{tail(log, 20)}")
        target.parent.mkdir(parents=True, exist_ok=True)
        (work / "out").rename(target)


def _trim(pattern: str) -> None:
    for old in surplus(paths.builds().glob(pattern), KEEP_BUILDS,
                       KEEP_SECONDS):
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)
