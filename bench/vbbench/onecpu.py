# SPDX-License-Identifier: GPL-2.0
"""A boot of the lab with one CPU, as -icount needs it."""
import subprocess


class Failed(Exception):
    """For the person who waits."""


def run(lab, script, out, *options):
    """@script in an emulated host; what it leaves is in the folder @out, also
    when the boot failed."""
    done = subprocess.run(
        [lab, "run", "--cpus", "1", "--pin", "none", "--quiet", "--out", out,
         "--l1", script, *options], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it does not say why"]
        raise Failed(f"the lab run failed (exit {done.returncode}): "
                     f"{lines[-1].strip()}")
