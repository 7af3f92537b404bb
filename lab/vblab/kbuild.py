# SPDX-License-Identifier: GPL-2.0
"""Kernels that the lab builds by itself, from the source that the distribution
packages: allnoconfig and the fragments of lab/debug.

They end up in the package root that has the source and the compiler, where a
package of the distribution would put them, so that all else finds them.
"""

from __future__ import annotations

import re
from pathlib import Path

from . import paths
from .root import WORK_IN_ROOT, PackageRoot
from .util import Hasher, LabError, locked, remove_tree, say, tail, temp_dir

FRAGMENTS = paths.LAB / "debug"
# Bump when kernels made by older versions must not be used any more.
FORMAT = "1"

# $1: name of the source package, $2: what its release ends with, the rest:
# words for make.
UNPACK_AND_CONFIGURE = """
mkdir src
tar -C src --strip-components=1 -xf "/usr/src/$1.tar.xz"
cd src
KCONFIG_ALLCONFIG=../wanted make ARCH=x86_64 allnoconfig
"""
BUILD = """
cd src
release=$2
shift 2
kbuild() { make -j"$(nproc)" LOCALVERSION="$release" "$@"; }
kbuild "$@" bzImage modules
release=$(make -s LOCALVERSION="$release" kernelrelease)
out=$PWD/../out
base=$out/usr/lib/modules/$release
mkdir -p "$out/boot" "$base"
cp arch/x86/boot/bzImage "$out/boot/vmlinuz-$release"
cp System.map "$out/boot/System.map-$release"
cp .config "$out/boot/config-$release"
make INSTALL_MOD_PATH="$out/usr" INSTALL_MOD_STRIP=1 modules_install
make run-command \\
	KBUILD_RUN_COMMAND="scripts/package/install-extmod-build $base/headers"
cp .config "$base/headers/"
rm -f "$base/build"
ln -s headers "$base/build"
"""


def settings(text: str) -> dict[str, str]:
    """Of a configuration: option -> value, "n" when it is not set."""
    found = {}
    for line in text.splitlines():
        m = re.match(r"(CONFIG_\w+)=(.*)$", line)
        n = re.match(r"# (CONFIG_\w+) is not set$", line)
        if m:
            found[m[1]] = m[2]
        elif n:
            found[n[1]] = "n"
    return found


def missed(wanted: str, got: str) -> list[str]:
    """What was asked for and is not so: kconfig drops silently what another
    option forbids, and what this version does not know."""
    have = settings(got)
    return [f"{option}: wanted {value}, is {have.get(option, 'n')}"
            for option, value in settings(wanted).items()
            if have.get(option, "n") != value]


def _wanted(spec: dict) -> str:
    return "".join((FRAGMENTS / f"{name}.config").read_text()
                   for name in spec["config"])


def suffix(name: str, spec: dict) -> str:
    """What the release of that kernel ends with."""
    key = Hasher(FORMAT, _wanted(spec), *spec.get("make", []),
                 UNPACK_AND_CONFIGURE, BUILD)
    return f"-{name}-{key.short()[:8]}"


def find(root: PackageRoot, name: str, spec: dict) -> str | None:
    """The release of that kernel, if it has been built."""
    ending = suffix(name, spec)
    for image in (root.path / "boot").glob(f"vmlinuz-*{ending}"):
        return image.name.removeprefix("vmlinuz-")
    return None


def ensure(root: PackageRoot, name: str, spec: dict) -> str:
    """The release of that kernel, built if it is not there yet."""
    with locked(paths.lock(f"kernel-{name}")):
        release = find(root, name, spec)
        if release is None:
            _make(root, name, spec, suffix(name, spec))
            release = find(root, name, spec)
            _remove_older(root, name, release)
    return release


def _why(log: Path) -> str:
    """Compilers run side by side, and the others go on: what one of them says
    is far from the end."""
    said = [line for line in log.read_text(errors="replace").splitlines()
            if re.search(r"\berror: |undefined reference|not found|\*\*\* ",
                         line)]
    return "\n".join(said[:40]) or tail(log, 40)


def _step(root: PackageRoot, script: str, words: list[str],
          work: Path) -> None:
    log = work / "log"
    status = root.chroot(["nice", "sh", "-ec", script, "sh", *words], log,
                         work=work, cwd=f"/{WORK_IN_ROOT}")
    if status:
        raise LabError(f"building a kernel failed:\n{_why(log)}")


def _make(root: PackageRoot, name: str, spec: dict, ending: str) -> None:
    say(f"building the {name} kernel (once; some 1800 files, "
        "a quarter of an hour of two CPUs)")
    wanted = _wanted(spec)
    words = [spec["source"], ending, *spec.get("make", [])]
    with temp_dir(paths.tmp(), f"kernel-{name}-") as work:
        (work / "wanted").write_text(wanted)
        _step(root, UNPACK_AND_CONFIGURE, words, work)
        problems = missed(wanted, (work / "src/.config").read_text())
        if problems:
            raise LabError(f"the {name} kernel cannot be configured:\n"
                           + "\n".join(problems))
        _step(root, BUILD, words, work)
        _install(work / "out", root.path)


def _install(out: Path, root: Path) -> None:
    # The image last: it says that all is there.
    for folder in ("usr/lib/modules", "boot"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for path in sorted((out / folder).iterdir()):
            target = root / folder / path.name
            # Of a build that was ended between the two.
            if target.is_dir():
                remove_tree(target)
            path.rename(target)


def _remove_older(root: PackageRoot, name: str, release: str) -> None:
    for path in (root.path / "usr/lib/modules").glob(f"*-{name}-????????"):
        if path.name != release:
            for file in (root.path / "boot").glob(f"*-{path.name}"):
                file.unlink()
            remove_tree(path)
