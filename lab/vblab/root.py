# SPDX-License-Identifier: GPL-2.0
"""Package roots: Debian in a folder of the cache, and commands run in them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from . import apt, kernels, paths
from .util import (Hasher, LabError, die_with_parent, locked, remove_tree,
                   run_logged, say, tail, temp_dir)

# Bump when roots made by older versions must not be used any more.
FORMAT = "1"
REPO_IN_ROOT = "mnt/repo"
WORK_IN_ROOT = "mnt/work"
# Its packages, and their versions.
STATUS = "var/lib/dpkg/status"
# Debian's stable kernels get security updates every week or two.
OLD_DAYS = 14
# The root below a layer in memory, mounted where the root itself needs nothing.
SCRATCH = [
    'mount -t tmpfs -o mode=755 tmpfs "$ROOT/mnt"',
    'mkdir "$ROOT/mnt/upper" "$ROOT/mnt/work" "$ROOT/mnt/root"',
    'mount -t overlay -o "lowerdir=$ROOT,upperdir=$ROOT/mnt/upper,'
    'workdir=$ROOT/mnt/work" overlay "$ROOT/mnt/root"',
    'ROOT=$ROOT/mnt/root',
]


def require_root_user(what: str) -> None:
    if os.geteuid() != 0:
        raise LabError(f"{what} needs root; run it as root (or with sudo)")


def install_host_packages() -> bool:
    """mmdebstrap is all that is put on the user's own system.

    Returns whether something had to be installed.
    """
    if shutil.which("mmdebstrap"):
        return False
    require_root_user("installing mmdebstrap")
    say("installing mmdebstrap")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    with temp_dir(paths.tmp(), "apt-") as work:
        log = work / "log"
        install = ["apt-get", "install", "-y", "--no-install-recommends",
                   "mmdebstrap"]
        # The package lists may be missing or old: refresh only when needed.
        if run_logged(install, log, env) != 0:
            run_logged(["apt-get", "update"], log, env)
            if run_logged(install, log, env) != 0:
                raise LabError("cannot install mmdebstrap:\n" + tail(log))
    return True


@dataclass(frozen=True)
class PackageRoot:
    name: str
    path: Path

    @property
    def ident(self) -> str:
        """What was asked for: the folder's name."""
        return self.path.name

    @functools.cached_property
    def content(self) -> str:
        """What is in it: a root that is made again may get newer packages."""
        return Hasher(self.ident).file(self.path / STATUS).short()

    def exists(self) -> bool:
        return self.path.is_dir()

    @property
    def days(self) -> int:
        """Since it had the newest packages that there were."""
        made = (self.path / STATUS).stat().st_mtime
        return int((time.time() - made) // 86400)

    def program(self, rel: str) -> list[str]:
        """argv prefix that runs a program of the root without chroot."""
        return [str(self.path / "lib64/ld-linux-x86-64.so.2"),
                "--library-path", str(self.path / "usr/lib/x86_64-linux-gnu"),
                str(self.path / rel)]

    def libraries(self, rel: str) -> list[str]:
        """Paths (relative to the root) of the libraries a program needs."""
        out = subprocess.run(
            self.program(rel)[:-1] + ["--list", str(self.path / rel)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if out.returncode:
            # Static programs have none.
            return []
        libs = []
        for line in out.stdout.splitlines():
            words = line.split()
            if "=>" in words and words[2].startswith(str(self.path)):
                libs.append(os.path.relpath(words[2], self.path))
            elif "not found" in line:
                raise LabError(f"{self.name} root: {rel}: {line.strip()}")
        return libs

    def chroot_argv(self, argv: Sequence[str], work: Path | None = None,
                    cwd: str = "/", scratch: bool = False) -> list[str]:
        """Command line that runs argv in the root.

        Mounts live in a namespace of their own and processes in a PID
        namespace, so that nothing of either is left when it ends. @scratch:
        nor of what it writes, other than into @work.
        """
        require_root_user("a command in the package root")
        root = str(self.path)
        script = ["set -e"] + SCRATCH * scratch + [
            'mount -t proc proc "$ROOT/proc"',
            f'mount --bind "$REPO" "$ROOT/{REPO_IN_ROOT}"',
            f'mount -o remount,bind,ro "$ROOT/{REPO_IN_ROOT}"',
        ]
        env = [f"ROOT={root}", f"REPO={paths.REPO}", f"CWD={cwd}"]
        if work is not None:
            script.append(f'mount --bind "$WORK" "$ROOT/{WORK_IN_ROOT}"')
            env.append(f"WORK={work}")
        script.append('exec chroot "$ROOT" /usr/bin/env -i PATH=/usr/bin:/usr/sbin '
                      'HOME=/root LC_ALL=C.UTF-8 TERM="$TERM" '
                      '/bin/sh -c \'cd "$0" && exec "$@"\' "$CWD" "$@"')
        return ["env", *env, "unshare", "--mount", "--pid", "--fork",
                "--kill-child", "--propagation", "private",
                "sh", "-c", "\n".join(script), "sh", *argv]

    def chroot(self, argv: Sequence[str], log: Path,
               work: Path | None = None, cwd: str = "/",
               scratch: bool = False) -> int:
        return run_logged(self.chroot_argv(argv, work, cwd, scratch), log)

    def chroot_interactive(self, argv: Sequence[str]) -> int:
        return subprocess.call(
            self.chroot_argv(argv, cwd="/" + REPO_IN_ROOT),
            preexec_fn=die_with_parent)


def package_root(name: str) -> PackageRoot:
    """The root of that name in kernels.json; it need not exist yet."""
    spec = kernels.data()["roots"][name]
    ident = Hasher(FORMAT, spec["release"], *spec["suites"], "/",
                   *spec["packages"]).short()
    return PackageRoot(name, paths.cache() / f"root-{name}-{ident[:10]}")


def ensure(name: str) -> PackageRoot:
    root = package_root(name)
    if root.exists():
        return root
    with locked(paths.lock(f"root-{name}")):
        if root.exists():
            return root
        _make(root)
        for old in paths.cache().glob(f"root-{name}-*"):
            # Only this root's own older versions: "trixie" is not the
            # beginning of "trixie-backports".
            suffix = old.name[len(f"root-{name}-"):]
            if old != root.path and "-" not in suffix:
                remove_tree(old)
    return root


def update(name: str) -> bool:
    """Makes a root that is there anew, from what the mirror has now. Where that
    fails (LabError) or gives the same packages, the old one stays, with the
    kernels that the lab has built in it. Nothing may run in it meanwhile.

    Returns whether it was replaced.
    """
    with locked(paths.lock(f"root-{name}")):
        return _make(package_root(name))


def old() -> str:
    """A line for each root of kernels in which newer ones are to be expected,
    of those that are there."""
    names = {spec["root"] for spec in kernels.data()["kernels"].values()}
    there = [r for r in map(package_root, sorted(names))
             if r.exists() and r.days >= OLD_DAYS]
    return "".join(f"package root {r.name}: {r.days} days old, its kernels "
                   "may be too: lab/lab doctor --update\n" for r in there)


def _make(root: PackageRoot) -> bool:
    require_root_user(f"making the {root.name} package root")
    install_host_packages()
    spec = kernels.data()["roots"][root.name]
    say(f"making the {root.name} package root (once, about a minute)")
    with temp_dir(paths.tmp(), f"root-{root.name}-") as work:
        target = work / "root"
        log = work / "log"
        argv = ["mmdebstrap", "--mode=root", "--variant=apt",
                "--architectures=amd64",
                "--include=" + ",".join(spec["packages"]),
                # Nobody reads them there, and they cost time and space.
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                "--customize-hook=mkdir -p "
                f'"$1/{REPO_IN_ROOT}" "$1/{WORK_IN_ROOT}"']
        argv += [f"--aptopt={o}" for o in apt.machine_options()]
        argv += [spec["release"], str(target)]
        argv += apt.mirror_lines(spec["suites"])
        # The kernel package's hook would make an initramfs: not needed.
        env = dict(os.environ, INITRD="No", TMPDIR=str(work))
        if run_logged(argv, log, env) != 0:
            raise LabError(f"mmdebstrap failed for {root.name}:\n"
                           + tail(log, 30))
        if root.exists():
            if (target / STATUS).read_bytes() == \
                    (root.path / STATUS).read_bytes():
                os.utime(root.path / STATUS)
                return False
            root.path.rename(work / "old")
        target.rename(root.path)
    return True
