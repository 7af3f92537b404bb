# SPDX-License-Identifier: GPL-2.0
"""newc cpio archives, as the kernel's initramfs code reads them."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Union

Content = Union[bytes, Path]

# The image has merged folders. The kernel replaces a symbolic link by a
# folder when a later archive says so: every path must use the real ones.
MERGED = {"bin": "usr/bin", "sbin": "usr/bin", "usr/sbin": "usr/bin",
          "lib": "usr/lib", "lib64": "usr/lib64"}


def normal(path: str) -> str:
    clean = os.path.normpath("/" + path).lstrip("/")
    for link, real in MERGED.items():
        if clean == link or clean.startswith(link + "/"):
            return real + clean[len(link):]
    return clean


@dataclass
class _Entry:
    mode: int
    content: list[Content] = field(default_factory=list)
    rdev: tuple[int, int] = (0, 0)


class Archive:
    """Collects files and folders, then writes them as one archive."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def _put(self, path: str, entry: _Entry) -> None:
        parent = str(PurePosixPath(path).parent)
        if parent != "." and parent not in self._entries:
            self._put(parent, _Entry(stat.S_IFDIR | 0o755))
        self._entries[path] = entry

    def __contains__(self, path: str) -> bool:
        return normal(path) in self._entries

    def folder(self, path: str, mode: int = 0o755) -> None:
        self._put(normal(path), _Entry(stat.S_IFDIR | mode))

    def link(self, path: str, target: str) -> None:
        self._put(normal(path), _Entry(stat.S_IFLNK | 0o777,
                                       [target.encode()]))

    def raw_link(self, path: str, target: str) -> None:
        """A link at one of the merged folders' own names."""
        self._put(path, _Entry(stat.S_IFLNK | 0o777, [target.encode()]))

    def node(self, path: str, mode: int, major: int, minor: int) -> None:
        self._put(normal(path), _Entry(stat.S_IFCHR | mode, [],
                                       (major, minor)))

    def file(self, path: str, *content: Content, mode: int = 0o644) -> None:
        """A file made of all the contents given, one behind the other."""
        self._put(normal(path), _Entry(stat.S_IFREG | mode, list(content)))

    def add(self, source: Path, path: str) -> None:
        """A file or a whole folder, with its modes and links."""
        info = source.stat()
        if stat.S_ISDIR(info.st_mode):
            self.folder(path, stat.S_IMODE(info.st_mode))
            for child in sorted(source.iterdir()):
                if child.name == "__pycache__":
                    continue
                if child.is_symlink():
                    self.link(f"{path}/{child.name}", os.readlink(child))
                else:
                    self.add(child, f"{path}/{child.name}")
        else:
            self.file(path, source, mode=stat.S_IMODE(info.st_mode))

    def write(self, out: BinaryIO) -> None:
        for number, (path, entry) in enumerate(self._entries.items(), 1):
            _write_entry(out, number, path, entry)
        _write_entry(out, 0, "TRAILER!!!", _Entry(0))
        _pad(out, 512)

    def save(self, path: Path) -> None:
        with path.open("wb") as out:
            self.write(out)


def _pad(out: BinaryIO, unit: int) -> None:
    out.write(b"\0" * (-out.tell() % unit))


def _size(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _write_entry(out: BinaryIO, number: int, path: str, entry: _Entry) -> None:
    name = path.encode() + b"\0"
    size = sum(_size(c) for c in entry.content)
    if size >= 1 << 32:
        raise ValueError(f"{path}: too large for a cpio archive")
    fields = (number, entry.mode, 0, 0, 1, 0, size, 0, 0,
              entry.rdev[0], entry.rdev[1], len(name), 0)
    out.write(b"070701" + b"".join(b"%08X" % f for f in fields) + name)
    _pad(out, 4)
    start = out.tell()
    for content in entry.content:
        if isinstance(content, bytes):
            out.write(content)
        else:
            with content.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
    if out.tell() - start != size:
        raise ValueError(f"{path}: changed while it was read")
    _pad(out, 4)
