# SPDX-License-Identifier: GPL-2.0
"""Command-line options of a lab boot."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from . import build, kernels, toolsroot
from .util import LabError

# Addresses are 10.9.(guest * 8 + device).x, each guest has a console port.
MAX_GUESTS = 24
MAX_NET = 8
MAX_BLK = 16
# What L1 needs beside its guests: itself and the images in its memory.
L1_OWN_MB = 900


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


class Joined(argparse.Action):
    """Words of each time that it is given, one behind the other."""
    def __call__(self, parser, namespace, values, option_string=None):
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{before} {values}".strip())


def natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as e:
        raise argparse.ArgumentTypeError(f"not a regular expression: {e}")
    return text


def _assignment(text: str) -> tuple[str, str]:
    name, sep, value = text.partition("=")
    if not sep or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise argparse.ArgumentTypeError("must be NAME=VALUE")
    return name, value


def _addition(text: str) -> tuple[Path, str]:
    source, sep, dest = text.rpartition(":")
    if not sep or Path(text).exists():
        source, dest = text, ""
    path = Path(source)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{source} does not exist")
    # Relative to /lab, where all that is ours lives.
    return path.absolute(), os.path.join("/lab", dest or path.absolute().name)


def _tools(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in toolsroot.PROGRAMS:
            raise argparse.ArgumentTypeError(
                f"{name} is none of {', '.join(toolsroot.PROGRAMS)}")
    return names


def _script(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return path.absolute()


def add_boot_options(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("machines")
    add_kernel_options(g)
    g.add_argument("--cpus", type=positive, default=2, metavar="N",
                   help="CPUs of L1 (default 2)")
    g.add_argument("--mem", type=positive, default=4096, metavar="MB",
                   help="memory of L1 (default 4096)")
    g.add_argument("--guests", type=natural, default=1, metavar="N",
                   help="number of guests (default 1)")
    g.add_argument("--vcpus", type=positive, default=4, metavar="N",
                   help="vCPUs of each guest (default 4)")
    g.add_argument("--guest-mem", type=positive, default=512, metavar="MB",
                   help="memory of each guest (default 512)")
    g.add_argument("--pin", choices=("stacked", "spread", "none"),
                   default="stacked",
                   help="vCPU threads: all on L1's CPU 1, or vCPU i on CPU "
                        "1 + i %% (cpus - 1); all else on CPU 0 "
                        "(default stacked)")
    g.add_argument("--net", type=natural, default=1, metavar="N",
                   help="virtio-net devices of each guest (default 1)")
    g.add_argument("--net-queues", type=positive, default=1, metavar="N",
                   help="queue pairs of each (default 1)")
    g.add_argument("--blk", type=natural, default=0, metavar="N",
                   help="virtio-blk devices of each guest (default 0)")
    g.add_argument("--blk-queues", type=positive, default=1, metavar="N",
                   help="queues of each (default 1)")
    g.add_argument("--blk-size", type=positive, default=64, metavar="MB",
                   help="size of each, a file in L1's memory (default 64)")
    g.add_argument("--icount", action="store_true",
                   help="a nanosecond of L1's clock is one instruction; "
                        "needs --cpus 1, and of guests one at most, with one "
                        "vCPU")
    g.add_argument("--slice", type=positive, metavar="NS",
                   help="base slice of L1's scheduler (default: L1's own)")
    g.add_argument("--qemu-l1", default="", metavar="WORDS",
                   help="extra words for QEMU")
    g.add_argument("--qemu-l2", default="", metavar="WORDS",
                   help="extra words for the guests' QEMU")
    g.add_argument("--secure-boot", type=Path, metavar="VARS",
                   help="boot L1 with Secure Boot, by firmware with these "
                        "variables, which it changes: a file made with "
                        "virt-fw-vars of OVMF's (default: by QEMU itself)")
    g.add_argument("--append-l1", action=Joined, default="",
                   metavar="WORDS",
                   help="extra kernel command line of L1; each time that it is "
                        "given adds to it")
    g.add_argument("--append-l2", action=Joined, default="",
                   metavar="WORDS",
                   help="extra kernel command line of the guests, likewise")
    g.add_argument("--start-guests", action=argparse.BooleanOptionalAction,
                   default=True,
                   help="start the guests before the scripts (default), or "
                        "leave it to the L1 script")

    g = p.add_argument_group("what is in them")
    g.add_argument("--host-mod", nargs="?", const="", metavar="PARAMS",
                   help="load vbalance_host in L1 before the guests start")
    g.add_argument("--guest-mod", nargs="?", const="", metavar="PARAMS",
                   help="load vbalance_guest in the guests before the scripts")
    for name, where in (("--add", "L1 and the guests"), ("--add-l1", "L1"),
                        ("--add-l2", "the guests")):
        g.add_argument(name, type=_addition, action="append", default=[],
                       metavar="SRC[:DEST]", help="file or folder for "
                       f"{where}; DEST is relative to /lab")
    for level, where in (("l1", "L1"), ("l2", "the guests")):
        g.add_argument(f"--tools-{level}", type=_tools, default=[],
                       metavar="NAMES", help="programs from Debian for "
                       f"{where}, in /lab/bin: {', '.join(toolsroot.PROGRAMS)}; "
                       "separated by commas")
    add_env_option(g, "environment of the scripts")
    g.add_argument("--variant", action="append", default=[],
                   choices=list(kernels.data()["variants"]),
                   help="also our modules as kernels.json says under this "
                        "name, in /lab/NAME")
    g.add_argument("--test-module", action="append", default=[],
                   choices=sorted(f.name for f in
                                  build.TEST_MODULES.iterdir()),
                   help="also this module of selftests/modules, "
                        "in /lab")
    g.add_argument("--coverage", action="store_true",
                   help="modules of ours that count which of their lines "
                        "run; the counters come back in gcov/ (kernels with "
                        "CONFIG_GCOV_KERNEL)")


def add_kernel_options(p: argparse._ActionsContainer) -> None:
    known = ", ".join(kernels.names())
    p.add_argument("--host-kernel", metavar="K", default=kernels.default(),
                   help=f"kernel of L1: {known} (default %(default)s)")
    p.add_argument("--guest-kernel", metavar="K", default=kernels.default(),
                   help="kernel of the guests (default %(default)s)")


def add_env_option(p: argparse._ActionsContainer, text: str) -> None:
    p.add_argument("--env", type=_assignment, action="append", default=[],
                   metavar="NAME=VALUE", help=text)


def add_run_options(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("the run")
    g.add_argument("--l1", type=_script, metavar="SCRIPT",
                   help="script to run in L1")
    g.add_argument("--l2", type=_script, metavar="SCRIPT",
                   help="script to run in every guest, before the L1 script")
    g.add_argument("--timeout", type=positive, default=300, metavar="S",
                   help="seconds for the boot and the scripts (default 300)")
    g.add_argument("--allow-log", type=_regex, action="append", default=[],
                   metavar="REGEX", help="an expected bad line in a kernel log")
    add_out_options(p)


def add_out_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--out", type=Path, metavar="DIR",
                   help="folder for logs and results (default: a new one in "
                        "the cache, of which the newest 20 are kept)")
    p.add_argument("--quiet", action="store_true",
                   help="no progress on standard error")


def check(o: argparse.Namespace) -> None:
    """What single options cannot see."""
    for name, value, most in (("--guests", o.guests, MAX_GUESTS),
                              ("--net", o.net, MAX_NET),
                              ("--blk", o.blk, MAX_BLK)):
        if value > most:
            raise LabError(f"{name}: at most {most}")
    if o.icount and (o.cpus > 1 or o.guests > 1 or
                     o.guests and o.vcpus > 1):
        raise LabError("--icount needs --cpus 1, and of guests one at most, "
                       "with one vCPU")
    if o.secure_boot and not o.secure_boot.is_file():
        raise LabError(f"--secure-boot: there is no file {o.secure_boot}")
    if o.secure_boot and "'" in o.append_l1:
        raise LabError("--append-l1: no quotes with --secure-boot: the words "
                       "go through GRUB")
    if o.pin != "none" and o.cpus < 2 and o.guests:
        raise LabError(f"--pin {o.pin} needs --cpus 2 or more")
    need = L1_OWN_MB + o.guests * (o.guest_mem + o.blk * o.blk_size)
    if need > o.mem:
        raise LabError(f"--mem {o.mem} is too little for {o.guests} guest(s) "
                       f"of {o.guest_mem} MB; give at least --mem {need}")
