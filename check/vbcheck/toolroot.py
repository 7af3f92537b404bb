# SPDX-License-Identifier: GPL-2.0
"""The checkers from Debian, in a folder of the cache, and the kernel's own
scripts, which are in no package but the whole source."""

from __future__ import annotations

from pathlib import Path

from vblab import debroot, util
from vblab.root import REPO_IN_ROOT, WORK_IN_ROOT, PackageRoot

PACKAGES = ("coccinelle", "sparse", "shellcheck", "codespell", "pyflakes3",
            "linux-source",
            # coccinelle loads it by name, and its scripts need it
            "libpython3.13",
            # what these call, and what unpacks the source
            "perl", "dash", "coreutils", "diffutils", "findutils", "grep",
            "sed", "libc-bin", "tar", "xz-utils")
SCRIPTS = "usr/src/scripts"
WANTED = ("checkpatch.pl", "const_structs.checkpatch", "spelling.txt",
          "kernel-doc", "coccinelle")


def ensure() -> PackageRoot:
    return PackageRoot("check", debroot.ensure("check", PACKAGES, WANTED,
                                               _finish))


def _finish(made: Path) -> None:
    # coccinelle looks for the name that only the -dev package has, which is
    # large.
    for lib in (made / "usr/lib/x86_64-linux-gnu").glob("libpython3.*.so.1.0"):
        lib.with_name(lib.name.removesuffix(".1.0")).symlink_to(lib.name)
    _unpack_scripts(made)


def _unpack_scripts(made: Path) -> None:
    """Of 1.5 GB half a MB is needed."""
    for folder in ("proc", REPO_IN_ROOT, WORK_IN_ROOT):
        (made / folder).mkdir(parents=True, exist_ok=True)
    [archive] = (made / "usr/src").glob("linux-source-*.tar.xz")
    top = archive.name.removesuffix(".tar.xz")
    log = made.parent / "unpack-log"
    if PackageRoot("check", made).chroot(
            ["tar", "-xJf", archive.name, "--no-same-owner",
             "--strip-components=1", *(f"{top}/scripts/{w}" for w in WANTED)],
            log, cwd="/usr/src"):
        raise util.LabError(f"unpacking {archive.name} failed:\n"
                            + util.tail(log))
    archive.unlink()
