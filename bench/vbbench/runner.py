# SPDX-License-Identifier: GPL-2.0
"""What the measuring commands have in common: options, a boot, what it ran on."""
import json
import os
import shutil
import time

from vblab import util

from . import collect, labrun, machine, modeset, plan, plotroot


def add_options(p, rounds, modes, here):
    p.add_argument("--rounds", type=int, default=rounds, metavar="N",
                   help="times each mode is measured (default %(default)s)")
    p.add_argument("--modes", default=modes and ",".join(modes),
                   metavar="LIST", help="default "
                   + ("%(default)s" if modes else "what the scenario has"))
    p.add_argument("--guest-params", action="append", default=[],
                   metavar="MODE=PARAMS", help="load vbalance_guest with "
                   "other parameters in this mode (repeatable)")
    p.add_argument("--seed", type=int, default=2012, metavar="N",
                   help="of the order of modes (default %(default)s)")
    p.add_argument("--out", default=os.path.join(here, "out"), metavar="DIR",
                   help="default bench/out")
    p.add_argument("--lab-option", action="append", default=[], metavar="OPT",
                   help="passed to `lab/lab run` (repeatable)")


def chosen(p, what, text, known):
    """A list of names given by an option."""
    names = text.split(",")
    unknown = [n for n in names if n not in known]
    if unknown:
        p.error(f"unknown {what} {unknown[0]}; known: {', '.join(known)}")
    return names


def check_options(p, args):
    if args.modes is not None:
        args.modes = chosen(p, "mode", args.modes, modeset.MODES)
    if len(args.modes or ()) > len(modeset.DEFAULT_MODES):
        p.error(f"more than {len(modeset.DEFAULT_MODES)} modes at once")
    try:
        args.mode_set = modeset.with_params(args.guest_params)
    except ValueError as error:
        p.error(str(error))
    if args.rounds < 1:
        p.error("--rounds must be positive")


class Session:
    """One call of a measuring command."""

    def __init__(self, here, args):
        self.here, self.args = here, args
        self.repo = os.path.dirname(here)
        self.lab = os.path.join(self.repo, "lab", "lab")
        self.began = time.monotonic()
        self.load_before = os.getloadavg()[0]

    def step(self, text):
        print(f"[{self.clock()}] {text}", flush=True)

    def clock(self):
        return labrun.clock(time.monotonic() - self.began)

    def prepare(self):
        self.step("checking what is needed and installing what is missing "
                  "(first time: about a minute)")
        labrun.doctor(self.lab)
        if not plotroot.path().is_dir():
            self.step("unpacking matplotlib into the cache")
        plotroot.ensure()
        os.makedirs(self.args.out, exist_ok=True)

    def boot(self, name, phases, modes, hogs, options):
        """Goes through @phases in a boot with its files in the folder
        @name; @hogs: busy threads in @modes. Returns a Boot."""
        work = os.path.join(self.args.out, name)
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        self.step("building the modules, booting host and guest, then "
                  f"{len(phases)} phases, "
                  f"{labrun.clock(plan.total_seconds(phases))} in all")
        others = machine.OtherLoad()
        options = options + self.args.lab_option
        status = labrun.run(
            self.lab, self.here, phases,
            modeset.modes_file(self.args.mode_set, modes, hogs),
            options, work, self.began, lambda line: print(line, flush=True))
        folder = labrun.find_output(work)
        if folder is None:
            raise util.LabError(f"the lab run failed (exit {status}) before "
                                f"anything was measured; logs: {work}")
        return Boot(self, work, folder, status, round(others.cpus(), 2),
                    options, modes)


class Boot:
    def __init__(self, session, work, folder, status, other_cpus, options,
                 modes):
        self.session, self.work, self.folder = session, work, folder
        self.status, self.other_cpus = status, other_cpus
        self.options, self.modes = options, modes

    def key_values(self):
        return dict(line.split(" ", 1) for line in
                    collect.read(self.folder, "machine").splitlines()
                    if " " in line)

    def tick_ns(self):
        """Of the emulated host's scheduler."""
        kernel = self.key_values()["l1_kernel"]
        hz = machine.output([self.session.lab, "chroot", "--", "sed", "-n",
                             "s/^CONFIG_HZ=//p", f"/boot/config-{kernel}"])
        if not hz:
            raise util.LabError(f"CONFIG_HZ of {kernel} is not known")
        return 10**9 // int(hz)

    def ran_on(self, reports):
        """What the figures were measured on and with."""
        args = self.session.args
        on = machine.describe(self.session.repo)
        on["load_before"] = self.session.load_before
        on["other_cpus_used"] = self.other_cpus
        on["qemu_l1"] = machine.output(
            [self.session.lab, "chroot", "--", "qemu-system-x86_64",
             "--version"])
        on.update(self.key_values())
        versions = {}
        for sections in reports.values():
            for side in ("guest", "host"):
                text = sections.get(f"{side}/features")
                if text:
                    versions[f"vbalance_{side}"] = \
                        collect.module_version(text)
        on["modules"] = versions
        on["modes"] = {m: vars(args.mode_set[m]) for m in self.modes}
        on["lab_options"] = self.options
        on["rounds"], on["order_seed"] = args.rounds, args.seed
        on["irqbalance_interval_s"] = modeset.IRQBALANCE_S
        try:
            with open(os.path.join(self.work, "lab", "result.json")) as f:
                on["lab_result"] = json.load(f)
            # Of no use elsewhere: paths of this machine.
            for name in ("add", "add_l1", "add_l2", "l1", "l2", "out"):
                on["lab_result"].get("options", {}).pop(name, None)
        except (OSError, ValueError):
            on["lab_result"] = None
        return on


def write_json(path, data, **how):
    with open(path + ".new", "w") as f:
        json.dump(data, f, allow_nan=False, **how)
        f.write("\n")
    os.replace(path + ".new", path)
