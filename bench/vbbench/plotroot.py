# SPDX-License-Identifier: GPL-2.0
"""matplotlib from Debian, in a folder of the cache.

The user's system stays as it is (matplotlib would bring some 50 packages) and
the lab's package root, which the tests need too, stays small. The packages
are only unpacked, not configured: that is enough to run Python by chroot and
takes a third of the time.
"""
import os
import subprocess

from vblab import apt, paths, root, util

RELEASE = "trixie"
PACKAGES = ("python3-matplotlib", "fonts-dejavu-core")
# Bump when folders made by older versions must not be used any more.
FORMAT = "1"
PYTHON = "/usr/bin/python3"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def path():
    ident = util.Hasher(FORMAT, RELEASE, *PACKAGES).short()
    return paths.cache() / f"plot-{RELEASE}-{ident[:10]}"


def ensure():
    """The folder, made if it is not there yet."""
    target = path()
    if target.is_dir():
        return target
    with util.locked(paths.lock("plot")):
        if not target.is_dir():
            _make(target)
    return target


def _make(target):
    root.require_root_user("unpacking matplotlib into the cache")
    root.install_host_packages()
    with util.temp_dir(paths.tmp(), "plot-") as work:
        made, log = work / "root", work / "log"
        argv = ["mmdebstrap", "--mode=root", "--variant=extract",
                "--architectures=amd64", "--include=" + ",".join(PACKAGES)]
        argv += [f"--aptopt={o}" for o in apt.machine_options()]
        argv += [RELEASE, str(made)] + apt.mirror_lines([RELEASE])
        if util.run_logged(argv, log, dict(os.environ, TMPDIR=str(work))):
            raise util.LabError("mmdebstrap failed for matplotlib:\n"
                                + util.tail(log, 30))
        # These links belong to base-files, which nothing here depends on.
        for name in ("bin", "sbin", "lib", "lib64"):
            if not (made / name).exists():
                (made / name).symlink_to(f"usr/{name}")
        made.rename(target)


def run(script, folder):
    """Run a Python script of this repository there, in @folder of the host;
    the script sees it as its working folder. Mounts are in a namespace of
    their own and gone with it."""
    base = ensure()
    env = {
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin"),
        "ROOT": str(base), "SCRIPT": str(script), "FOLDER": str(folder),
        "INNER": "PATH=/usr/bin LC_ALL=C.UTF-8 HOME=/tmp "
                 "MPLCONFIGDIR=/tmp/matplotlib MPLBACKEND=Agg "
                 # Their links are made by update-alternatives when the
                 # packages are configured.
                 f"LD_LIBRARY_PATH={LIBRARIES}/blas:{LIBRARIES}/lapack",
        "PYTHON": PYTHON,
    }
    shell = """set -e
mkdir -p "$ROOT/mnt/out" "$ROOT/tmp"
mount -t tmpfs tmp "$ROOT/tmp"
mount --bind "$FOLDER" "$ROOT/mnt/out"
cp "$SCRIPT" "$ROOT/tmp/script.py"
exec env -i $INNER "$(command -v chroot)" "$ROOT" $PYTHON -B -c '
import os, runpy
os.chdir("/mnt/out")
runpy.run_path("/tmp/script.py", run_name="__main__")'
"""
    done = subprocess.run(["unshare", "--mount", "--propagation", "private",
                           "sh", "-c", shell], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise util.LabError("drawing the plot failed:\n" + done.stdout[-3000:])
