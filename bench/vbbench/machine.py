# SPDX-License-Identifier: GPL-2.0
"""What a measurement was run on."""
import os
import platform
import re
import subprocess
import time


def output(argv, cwd=None):
    """First line that a command prints, None when it cannot be run."""
    try:
        done = subprocess.run(argv, cwd=cwd, text=True,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    except OSError:
        return None
    if done.returncode:
        return None
    return done.stdout.strip().split("\n")[0]


def cpu_model(text):
    m = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return m[1].strip() if m else None


def commit(repo):
    head = output(["git", "rev-parse", "HEAD"], repo)
    if head is None:
        return None
    changed = output(["git", "status", "--porcelain"], repo)
    return head + (" with local changes" if changed else "")


def describe(repo):
    with open("/proc/cpuinfo") as f:
        model = cpu_model(f.read())
    with open(os.path.join(repo, "VERSION")) as f:
        version = f.read().strip()
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit(repo),
        "version": version,
        "cpu_model": model,
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "load_before": os.getloadavg()[0],
    }
