# SPDX-License-Identifier: GPL-2.0
"""fio, iperf3 and sockperf from Debian, ready to be added to a lab boot.

Not in the lab's package root: fio alone brings the clients of Ceph, GlusterFS
and NFS with it, for which the tests and the demo need not wait.
"""
import os
import shutil

from vblab import root

from . import debroot

PACKAGES = ("fio", "iperf3", "sockperf")
# In the lab's machines.
FOLDER = "/lab/bench/tools"
LOADER = "lib64/ld-linux-x86-64.so.2"

WRAPPER = """#!/bin/sh
exec {folder}/lib/{loader} --library-path {folder}/lib {folder}/real/{name} "$@"
"""


class Root(root.PackageRoot):
    def program(self, rel):
        lib = self.path / "usr/lib/x86_64-linux-gnu"
        # librados finds its half by a path in itself, which is absolute.
        return [str(self.path / LOADER), "--library-path",
                f"{lib}:{lib / 'ceph'}", str(self.path / rel)]


def ensure():
    return Root("bench", debroot.ensure("bench", PACKAGES))


def collect(tools, names, target):
    """Programs with their libraries and a wrapper for each in @target. With
    their own loader they do not depend on the libraries that the lab has."""
    for sub in ("bin", "lib", "real"):
        os.makedirs(os.path.join(target, sub))
    for name in names:
        rel = f"usr/bin/{name}"
        shutil.copy(tools.path / rel, os.path.join(target, "real", name))
        for lib in [LOADER, *tools.libraries(rel)]:
            shutil.copy(tools.path / lib, os.path.join(target, "lib"))
        wrapper = os.path.join(target, "bin", name)
        with open(wrapper, "w") as f:
            f.write(WRAPPER.format(folder=FOLDER, name=name,
                                   loader=os.path.basename(LOADER)))
        os.chmod(wrapper, 0o755)

