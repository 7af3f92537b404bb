# SPDX-License-Identifier: GPL-2.0
"""A boot of the lab that goes through a plan, with progress for the person who waits."""
import contextlib
import os
import re
import signal
import subprocess
import time

from vblab.util import LabError, die_with_parent

from . import modeset
from . import plan as planmod

PROGRESS = re.compile(r" phase (\d+) of (\d+): (.*)$")


def options(vcpus, blk=0, guests=1, spread=False, cgroups=False):
    """Guests with their vCPUs on one CPU; all else is on the other. @spread:
    each vCPU on a CPU of its own, shared with a busy thread of the host.
    @cgroups: guests and vCPUs in cgroups of their own."""
    # They boot like the others: phases.sh does these two.
    return ["--cpus", str(1 + vcpus if spread else 2), "--guests", str(guests), "--vcpus", str(vcpus),
            "--pin", "stacked", "--net", "1", "--blk", str(blk),
            "--env", f"IRQBALANCE_S={modeset.IRQBALANCE_S}",
            "--env", f"SPREAD={spread:d}", "--env", f"CGROUPS={cgroups:d}"]


def clock(seconds):
    seconds = max(0, round(seconds))
    return f"{seconds // 60}:{seconds % 60:02d}"


@contextlib.contextmanager
def _ended(child):
    """Leaves no child behind when we are interrupted."""
    try:
        yield
    except BaseException:
        # Ctrl-C reaches lab too when it comes from the terminal; it then
        # ignores this one and finishes cleaning up.
        child.send_signal(signal.SIGTERM)
        child.wait()
        raise


def doctor(lab):
    """Sets the lab up; its report is for the user."""
    child = subprocess.Popen([lab, "doctor"], stdin=subprocess.DEVNULL,
                             preexec_fn=die_with_parent)
    with _ended(child):
        status = child.wait()
    if status:
        raise LabError("the lab cannot run here: see what is MISSING above")


class Progress:
    """Lines with the time spent and an estimate of what is left."""

    def __init__(self, phases, began):
        self.phases, self.began = phases, began
        self.first = None

    def line(self, index, text):
        now = time.monotonic()
        if self.first is None:
            self.first = now
        done = sum(p.seconds for p in self.phases[:index - 1])
        left = sum(p.seconds for p in self.phases[index - 1:])
        # What a phase really takes is known after a few of them.
        if done > 20:
            left *= (now - self.first) / done
        return (f"[{clock(now - self.began)}] phase {index}/"
                f"{len(self.phases)}: {text:<38} about {clock(left)} left")


def run(lab, here, phases, modes, lab_options, out, began, show=print):
    """Boot, measure, collect in @out. @modes: text of the scripts' file of
    modes. Returns lab's exit status."""
    plan_file = os.path.join(out, "plan")
    with open(plan_file, "w") as f:
        f.writelines(p.line() + "\n" for p in phases)
    modes_file = os.path.join(out, "modes")
    with open(modes_file, "w") as f:
        f.write(modes)
    limit = round(2 * planmod.total_seconds(phases)) + 120
    argv = [lab, "run",
            "--l1", os.path.join(here, "l1", "phases.sh"),
            "--add-l1", plan_file + ":/lab/bench/plan",
            "--add-l1", modes_file + ":/lab/bench/modes",
            "--add-l2", os.path.join(here, "l2", "mode.sh")
            + ":/lab/bench/mode.sh",
            "--timeout", str(limit), "--out", os.path.join(out, "lab"),
            *lab_options]
    progress = Progress(phases, began)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True,
                             errors="replace", preexec_fn=die_with_parent)
    with _ended(child):
        for line in child.stdout:
            m = PROGRESS.search(line)
            if m:
                show(progress.line(int(m[1]), m[3]))
            elif "phases done" not in line:
                show("  " + line.rstrip())
        return child.wait()


def find_output(out):
    """The folder that the L1 script has filled, None if there is none."""
    for folder, _, files in os.walk(os.path.join(out, "lab")):
        if os.path.basename(folder) == "phases" and "machine" in files:
            return folder
    return None
