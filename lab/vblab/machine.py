# SPDX-License-Identifier: GPL-2.0
"""The L1 machine: an emulated host in one QEMU process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Sequence

from . import tsc, uefi
from .images import QEMU
from .kernels import Kernel
from .root import PackageRoot
from .util import die_with_parent, qemu_path

# Both levels: warnings and worse on the console, no more; end on an oops.
# Mitigations cost much under emulation and change nothing that is compared;
# the crypto code's self-tests alone take a second of an emulated guest's boot.
# The emulated TSC is one clock for all CPUs, but on a loaded machine the
# clocksource watchdog compares it too late with the HPET, calls it unstable,
# and KVM then gives its guests a TSC that jumps. Those of 7.2 do the same with
# their own.
KERNEL_ARGS = ("loglevel=5 panic=-1 oops=panic printk.devkmsg=on tsc=reliable "
               "random.trust_cpu=on mitigations=off cryptomgr.notests "
               "initcall_blacklist=crypto_kdf108_init,jent_mod_init,"
               "init_encrypted")


@dataclass
class Machine:
    tools: PackageRoot
    kernel: Kernel
    initrd: Path
    console: Path
    cpus: int
    mem: int
    append: str = ""
    # virtio-serial ports: name -> file that collects what L1 writes there
    ports: dict[str, Path] = field(default_factory=dict)
    interactive: bool = False
    icount: bool = False    # a nanosecond is an instruction; one CPU
    # Secure Boot: the firmware's variables, and the disk, which start() makes
    secure_boot: tuple[Path, Path] | None = None
    more: Sequence[str] = ()    # words for QEMU

    def words(self) -> str:
        """The kernel command line."""
        clock = "" if self.icount else f"tsc_early_khz={tsc.khz()} "
        return f"console=ttyS0 {KERNEL_ARGS} {clock}{self.append}".strip()

    def argv(self) -> list[str]:
        if self.interactive:
            console = f"stdio,signal=off,logfile={qemu_path(self.console)}"
        else:
            console = f"file,path={qemu_path(self.console)}"
        share = self.tools.path / "usr/share"
        argv = self.tools.program(QEMU) + [
            "-name", "vbalance-l1", "-nodefaults", "-no-user-config",
            "-L", str(share / "qemu"), "-L", str(share / "seabios"),
            "-machine", uefi.MACHINE if self.secure_boot else "pc", "-accel",
            "tcg,thread=single" if self.icount else "tcg,thread=multi",
            # Nested paging is what makes real KVM inside an emulator quick.
            "-cpu", "EPYC,+svm,+npt",
            "-smp", str(self.cpus), "-m", str(self.mem),
            "-display", "none", "-vga", "none", "-no-reboot",
            "-chardev", f"{console},id=console", "-serial", "chardev:console",
            "-device", "virtio-serial-pci,max_ports=31",
        ]
        if self.secure_boot:
            argv += uefi.devices(*self.secure_boot)
        else:
            argv += ["-kernel", str(self.kernel.image),
                     "-initrd", str(self.initrd), "-append", self.words()]
        if self.icount:
            argv += ["-icount", "shift=0"]
        for n, (name, path) in enumerate(self.ports.items()):
            argv += ["-chardev", f"file,id=port{n},path={qemu_path(path)}",
                     "-device", f"virtserialport,chardev=port{n},name={name}"]
        return [*argv, *self.more]

    def start(self, log: Path) -> subprocess.Popen:
        env = {k: v for k, v in os.environ.items()
               if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD")}
        # The distribution's modules of QEMU are for another libc than ours.
        env["QEMU_MODULE_DIR"] = str(
            self.tools.path / "usr/lib/x86_64-linux-gnu/qemu")
        if self.secure_boot:
            uefi.make_disk(self.secure_boot[1], self.kernel.image, self.initrd,
                           self.words())
        with log.open("wb") as err:
            return subprocess.Popen(
                self.argv(), env=env,
                stdin=None if self.interactive else subprocess.DEVNULL,
                stdout=None if self.interactive else err, stderr=err,
                # A terminal's Ctrl-C is for us; in a shell, for L1.
                start_new_session=not self.interactive,
                preexec_fn=die_with_parent)


def ending(status: int) -> str:
    """How QEMU ended, from its process's return code."""
    if status < 0:
        return f"QEMU was killed by {signal.Signals(-status).name}"
    if status == 0:
        # -no-reboot: a reset ends it like that as well.
        return "QEMU exited with status 0: L1 was reset (a reboot or a " \
               "triple fault) or switched off"
    return f"QEMU exited with status {status}"


def stop(proc: subprocess.Popen) -> None:
    """QEMU is one process and holds no state worth a clean end."""
    with contextlib.suppress(ProcessLookupError):
        proc.kill()
    proc.wait()
