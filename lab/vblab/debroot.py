# SPDX-License-Identifier: GPL-2.0
"""Debian packages in a folder of the cache, unpacked but not configured.

The user's system stays as it is, and the lab's package root, which the tests
need too, stays small. That the packages are not configured takes a third of
the time, and is enough for what is run from them.
"""
import os

from . import apt, paths, root, util

RELEASE = "trixie"
# Bump when folders made by older versions must not be used any more.
FORMAT = "1"


def path(name, packages, kept=()):
    ident = util.Hasher(FORMAT, RELEASE, *packages, *kept).short()
    return paths.cache() / f"{name}-{RELEASE}-{ident[:10]}"


def ensure(name, packages, kept=(), finish=None):
    """The folder, made if it is not there yet; finish(it) ends the making.
    @kept: what that keeps of packages, for another one is another folder."""
    target = path(name, packages, kept)
    if target.is_dir():
        return target
    with util.locked(paths.lock(name)):
        if not target.is_dir():
            _make(target, name, packages, finish)
    return target


def _make(target, name, packages, finish):
    root.require_root_user(f"unpacking {packages[0]} into the cache")
    root.install_host_packages()
    with util.temp_dir(paths.tmp(), f"{name}-") as work:
        made, log = work / "root", work / "log"
        argv = ["mmdebstrap", "--mode=root", "--variant=extract",
                "--architectures=amd64", "--include=" + ",".join(packages)]
        argv += [f"--aptopt={o}" for o in apt.machine_options()]
        argv += [RELEASE, str(made)] + apt.mirror_lines([RELEASE])
        if util.run_logged(argv, log, dict(os.environ, TMPDIR=str(work))):
            raise util.LabError(f"mmdebstrap failed for {packages[0]}:\n"
                                + util.tail(log, 30))
        # These links belong to base-files, which nothing here depends on.
        for link in ("bin", "sbin", "lib", "lib64"):
            if not (made / link).exists():
                (made / link).symlink_to(f"usr/{link}")
        if finish:
            finish(made)
        made.rename(target)
