# SPDX-License-Identifier: GPL-2.0
"""matplotlib from Debian, in a folder of the cache: it would bring some 50
packages to the user's system."""
import os
import subprocess

from vblab import debroot, util

PACKAGES = ("python3-matplotlib", "fonts-dejavu-core")
PYTHON = "/usr/bin/python3"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
HERE = os.path.dirname(os.path.realpath(__file__))


def path():
    return debroot.path("plot", PACKAGES)


def ensure():
    return debroot.ensure("plot", PACKAGES)


def run(module, folder):
    """Run a module of this package there, in @folder of the host; it sees that
    as its working folder. Mounts are in a namespace of their own and gone
    with it."""
    base = ensure()
    env = {
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin"),
        "ROOT": str(base), "PACKAGE": HERE, "FOLDER": str(folder),
        "INNER": "PATH=/usr/bin LC_ALL=C.UTF-8 HOME=/tmp PYTHONPATH=/tmp "
                 "MPLCONFIGDIR=/tmp/matplotlib MPLBACKEND=Agg "
                 # Their links are made by update-alternatives when the
                 # packages are configured.
                 f"LD_LIBRARY_PATH={LIBRARIES}/blas:{LIBRARIES}/lapack",
        "PYTHON": PYTHON, "MODULE": f"vbbench.{module}",
    }
    shell = """set -e
mkdir -p "$ROOT/mnt/out" "$ROOT/tmp"
mount -t tmpfs tmp "$ROOT/tmp"
mount --bind "$FOLDER" "$ROOT/mnt/out"
cp -r "$PACKAGE" "$ROOT/tmp/vbbench"
exec env -i $INNER "$(command -v chroot)" "$ROOT" $PYTHON -B -c '
import os, runpy, sys
os.chdir("/mnt/out")
runpy.run_module(sys.argv[1], run_name="__main__")' "$MODULE"
"""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private",
                           "sh", "-c", shell], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise util.LabError("drawing the plot failed:\n" + done.stdout[-3000:])
