# SPDX-License-Identifier: GPL-2.0
"""What a measurement was run on."""
import os
import platform
import re
import resource
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
    }


def busy_seconds(stat):
    """CPU seconds spent by everybody, from the text of /proc/stat."""
    fields = [int(v) for v in stat.split("\n")[0].split()[1:]]
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    return ((user + nice + system + irq + softirq + steal)
            / os.sysconf("SC_CLK_TCK"))


class OtherLoad:
    """CPUs that others than our child processes used in a stretch of time
    (steal included): what they took, the measurement did not get."""

    def __init__(self):
        self.began = self._now()

    @staticmethod
    def _now():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open("/proc/stat") as f:
            return (time.monotonic(), busy_seconds(f.read()),
                    used.ru_utime + used.ru_stime)

    def cpus(self):
        elapsed, busy, own = (b - a for a, b in zip(self.began, self._now()))
        return max(0.0, busy - own) / elapsed if elapsed > 0 else 0.0
