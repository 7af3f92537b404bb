# SPDX-License-Identifier: GPL-2.0
"""Secure Boot of L1: what a PC's firmware finds on a Debian's disk.

UEFI firmware with Microsoft's keys starts Debian's shim, which they have signed.
That verifies GRUB, and for it the kernel, by Debian's key, which it has itself,
and by those that the machine's owner has enrolled. (QEMU's own way from shim to
a kernel, -shim, needs a kernel with an .sbat section.)
"""

from __future__ import annotations

import shutil
from pathlib import Path

from . import root
from .util import LabError, qemu_path, tail, temp_dir

ROOT = "uefi"
# Needs system management mode, and that this machine.
MACHINE = "q35,smm=on"
CODE = "usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
CONFIG = """linux /vmlinuz {words}
initrd /initrd
boot
"""
# Bytes beside the kernel and what it starts with.
MORE = 16 << 20
MAKE = """set -e
cd /mnt/work
mformat -i disk -F -T "$SECTORS" -h 255 -s 63 ::
mmd -i disk ::/EFI ::/EFI/BOOT ::/EFI/debian
mcopy -i disk /usr/lib/shim/shimx64.efi.signed ::/EFI/BOOT/BOOTX64.EFI
mcopy -i disk /usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed \\
	::/EFI/BOOT/grubx64.efi
mcopy -i disk grub.cfg ::/EFI/debian/grub.cfg
mcopy -i disk vmlinuz initrd ::/
"""


def make_disk(disk: Path, kernel: Path, initrd: Path, words: str) -> None:
    """@words: kernel command line, without quotes; each is one for GRUB, too."""
    firmware = root.ensure(ROOT)
    with temp_dir(disk.parent, "disk-") as work:
        shutil.copy(kernel, work / "vmlinuz")
        (work / "initrd").hardlink_to(initrd)
        quoted = " ".join(f"'{word}'" for word in words.split())
        (work / "grub.cfg").write_text(CONFIG.format(words=quoted))
        size = MORE + sum((work / name).stat().st_size
                          for name in ("vmlinuz", "initrd"))
        with (work / "disk").open("wb") as file:
            file.truncate(size)
        log = work / "log"
        if firmware.chroot(["env", f"SECTORS={size // 512}", "sh", "-c", MAKE],
                           log, work=work):
            raise LabError("no disk to boot from:\n" + tail(log))
        (work / "disk").rename(disk)


def devices(variables: Path, disk: Path) -> list[str]:
    """For QEMU. @variables: of the firmware, which changes them."""
    code = root.ensure(ROOT).path / CODE
    words = ["-global", "driver=cfi.pflash01,property=secure,value=on"]
    for path, drive in ((code, "if=pflash,readonly=on"),
                        (variables, "if=pflash"),
                        (disk, "if=none,id=boot,readonly=on")):
        words += ["-drive", f"{drive},format=raw,file={qemu_path(path)}"]
    return words + ["-device", "virtio-blk-pci,drive=boot,bootindex=0"]
