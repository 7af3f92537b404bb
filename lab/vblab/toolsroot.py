# SPDX-License-Identifier: GPL-2.0
"""fio, iperf3, sockperf and sysbench from Debian, for the boots that ask for them.

Not in the lab's package root: fio alone brings the clients of Ceph, GlusterFS
and NFS with it, for which most boots need not wait.
"""

from __future__ import annotations

from . import debroot, root
from .cpio import Archive

PROGRAMS = ("fio", "iperf3", "sockperf", "sysbench")
# In the lab's machines.
FOLDER = "lab/tools"
LOADER = "lib64/ld-linux-x86-64.so.2"
# What the C library loads by itself when a thread is cancelled (iperf3's).
UNWINDER = "usr/lib/x86_64-linux-gnu/libgcc_s.so.1"

WRAPPER = """#!/bin/sh
exec /{folder}/lib/{loader} --library-path /{folder}/lib /{folder}/real/{name} "$@"
"""


class Root(root.PackageRoot):
    def program(self, rel: str) -> list[str]:
        lib = self.path / "usr/lib/x86_64-linux-gnu"
        # librados finds its half by a path in itself, which is absolute.
        return [str(self.path / LOADER), "--library-path",
                f"{lib}:{lib / 'ceph'}", str(self.path / rel)]


def ensure() -> Root:
    return Root("tools", debroot.ensure("tools", PROGRAMS))


def add(archive: Archive, names: list[str]) -> None:
    """Programs with their libraries, and a wrapper for each in /lab/bin. With
    their own loader they do not depend on the libraries that the lab has."""
    if not names:
        return
    tools = ensure()
    for name in names:
        rel = f"usr/bin/{name}"
        archive.add(tools.path / rel, f"{FOLDER}/real/{name}")
        for lib in (LOADER, UNWINDER, *tools.libraries(rel)):
            path = tools.path / lib
            archive.add(path, f"{FOLDER}/lib/{path.name}")
        archive.file(f"lab/bin/{name}", WRAPPER.format(
            folder=FOLDER, loader=LOADER.split("/")[-1],
            name=name).encode(), mode=0o755)
