# SPDX-License-Identifier: GPL-2.0
"""Errors, child processes, locks and temporary folders shared by the lab's parts."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Iterable, Iterator, Sequence

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_quiet = False


class LabError(Exception):
    """A set-up or usage error; its text is all that the user needs to see."""


class Interrupted(Exception):
    """SIGINT or SIGTERM arrived."""


def qemu_path(path: Path) -> str:
    """For an option of QEMU's, whose parts commas separate."""
    return str(path).replace(",", ",,")


def set_quiet(quiet: bool) -> None:
    global _quiet
    _quiet = quiet


def say(message: str) -> None:
    """Progress of the lab itself: stderr, so that stdout is the script's."""
    if not _quiet:
        print(f"lab: {message}", file=sys.stderr, flush=True)


def warn(message: str) -> None:
    print(f"lab: {message}", file=sys.stderr, flush=True)


def die_with_parent(sig: int = signal.SIGKILL) -> None:
    """preexec_fn: a child must not survive us, whatever way we end."""
    _libc.prctl(PR_SET_PDEATHSIG, sig, 0, 0, 0)


def install_signal_handlers() -> None:
    def on_signal(signum, frame):
        # A second signal must not interrupt the cleaning up after the first.
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        raise Interrupted(signal.Signals(signum).name)

    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, on_signal)


def stop_group(proc: subprocess.Popen, grace: float = 5.0) -> None:
    """End a process started with start_new_session, with all of its group."""
    for sig, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, sig)
        try:
            proc.wait(wait)
            break
        except subprocess.TimeoutExpired:
            continue
    # The leader is gone; stragglers of its group go as well.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proc.pid, signal.SIGKILL)


def run_logged(argv: Sequence[str], log: Path, env: dict | None = None,
               cwd: Path | None = None) -> int:
    """Run a command with its output in a file; leaves no process behind."""
    with log.open("ab") as out:
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, env=env, cwd=cwd,
                                start_new_session=True,
                                preexec_fn=die_with_parent)
        try:
            return proc.wait()
        except BaseException:
            stop_group(proc)
            raise


def tail(path: Path, lines: int = 20) -> str:
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


class Hasher:
    """Content hash over strings and files, in the order given."""

    def __init__(self, *parts: str) -> None:
        self._h = hashlib.sha256()
        for part in parts:
            self.text(part)

    def text(self, value: str) -> "Hasher":
        data = value.encode()
        self._h.update(b"%d:" % len(data) + data)
        return self

    def file(self, path: Path, name: str | None = None) -> "Hasher":
        data = path.read_bytes()
        self.text(name if name is not None else path.name)
        self._h.update(b"%d:" % len(data) + data)
        return self

    def files(self, base: Path, paths: Iterable[Path]) -> "Hasher":
        for path in sorted(paths):
            self.file(path, str(path.relative_to(base)))
        return self

    def short(self) -> str:
        return self._h.hexdigest()[:16]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One lab process at a time for what `path` stands for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another lab process ({path.stem})")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def remove_tree(path: Path) -> None:
    """rmtree that refuses to walk into something that is mounted."""
    real = os.path.realpath(path)
    for line in Path("/proc/self/mounts").read_text().splitlines():
        point = line.split()[1].encode().decode("unicode_escape")
        if point == real or point.startswith(real + "/"):
            raise LabError(f"{point} is still mounted; "
                           f"unmount it before {path} can be removed")
    shutil.rmtree(path, ignore_errors=True)


def surplus(found: Iterable[Path], keep: int, seconds: float) -> list[Path]:
    """All but the newest `keep`, and but what is younger than `seconds`."""
    by_age = []
    for path in found:
        # Another lab process may have removed it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            by_age.append((path.stat().st_mtime, path))
    by_age.sort(reverse=True)
    young = time.time() - seconds
    return [path for mtime, path in by_age[keep:] if mtime < young]


def _open_folder(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def hold(path: Path) -> int:
    """A lock on a folder, which lasts as long as this descriptor is open."""
    fd = _open_folder(path)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def remove_unless_held(path: Path) -> None:
    try:
        fd = _open_folder(path)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    except (BlockingIOError, LabError):
        pass
    finally:
        os.close(fd)


@contextlib.contextmanager
def temp_dir(parent: Path, prefix: str) -> Iterator[Path]:
    """A temporary folder that goes away on every exit.

    A lock held on it tells live folders from those of a killed process, which
    the next call removes.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent)
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    fd = hold(path)
    try:
        yield path
    finally:
        if path.exists():
            remove_tree(path)
        os.close(fd)


def _sweep(parent: Path) -> None:
    for path in parent.iterdir():
        try:
            # Fresh ones may not be locked yet.
            if not path.is_dir() or time.time() - path.stat().st_mtime < 60:
                continue
        except OSError:
            continue
        remove_unless_held(path)
