# SPDX-License-Identifier: GPL-2.0
"""One lab boot: images, machine, scripts, results, verdict."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import tarfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from . import (build, images, kernels, logs, machine, options, paths, root,
               toolsroot)
from .cpio import Archive
from .kernels import Kernel
from .util import (Interrupted, LabError, hold, remove_unless_held, say,
                   surplus, tail, temp_dir, warn)

EXIT_OK, EXIT_SCRIPT, EXIT_SETUP, EXIT_LOG, EXIT_TIMEOUT = range(5)
EXIT_INTERRUPTED = 130
KEEP_RUNS = 20
# Nor is what another checkout has just written thrown away: somebody is about
# to read it.
KEEP_SECONDS = 86400
POLL = 0.05
# Of kernels' watchdogs, where a kernel is slow. The defaults are 10, 21 and
# 120 s.
PATIENCE = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 " \
           "sysctl.kernel.hung_task_timeout_secs=600"
STOPPED = "L1 stopped before its scripts had ended"


@dataclass
class Outcome:
    """What happened, collected while it happens."""
    scripts: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    done: int | None = None         # L1's own summary
    qemu: str = ""                  # how its QEMU ended, if by itself
    timed_out: bool = False
    interrupted: bool = False
    findings: list[logs.Finding] = field(default_factory=list)
    boot_seconds: dict[str, float] = field(default_factory=dict)
    releases: dict[str, str] = field(default_factory=dict)

    def verdict(self) -> tuple[int, str]:
        failed = [f"{who} script exited {rc}"
                  for who, rc in self.scripts.items() if rc]
        if self.interrupted:
            return EXIT_INTERRUPTED, "interrupted"
        reasons = [f"{f.name}:{f.number}: {f.line.strip()}"
                   for f in self.findings]
        if self.timed_out:
            reasons.append("timeout")
        reasons += self.errors + failed
        if self.done is None and not self.timed_out:
            reasons.append(f"{STOPPED}: {self.qemu}")
        if self.findings:
            code = EXIT_LOG
        elif self.timed_out:
            code = EXIT_TIMEOUT
        elif self.errors or self.done is None:
            code = EXIT_SETUP
        elif failed or self.done:
            code = EXIT_SCRIPT
        else:
            code = EXIT_OK
        return code, "; ".join(reasons)


@dataclass
class Payload:
    """What a boot puts into the machines."""
    tools: root.PackageRoot
    host: Kernel
    guest: Kernel
    host_modules: dict[str, Path]
    guest_modules: dict[str, Path]
    programs: dict[str, Path]


def prepare(o: argparse.Namespace) -> Payload:
    tools = root.ensure(kernels.data()["tools_root"])
    host = kernels.get(o.host_kernel)
    guest = kernels.get(o.guest_kernel)
    host_modules = build.modules(host, o.coverage)
    guest_modules = host_modules if guest == host else \
        build.modules(guest, o.coverage)
    payload = Payload(tools, host, guest, host_modules, guest_modules,
                      build.programs(tools))
    if o.tools_l1 or o.tools_l2:
        toolsroot.ensure()
    for option, wanted, have, name in (
            ("--host-mod", o.host_mod, payload.host_modules,
             "vbalance_host.ko"),
            ("--guest-mod", o.guest_mod, payload.guest_modules,
             "vbalance_guest.ko")):
        if wanted is not None and name not in have:
            raise LabError(f"{option}: there is no {name} to load")
    return payload


def _slowness(payload: Payload) -> int:
    return kernels.slowness(payload.host.name, payload.guest.name)


def _patience(payload: Payload) -> str:
    """For both levels: what is slow below makes slow what is above."""
    return PATIENCE if _slowness(payload) > 1 else ""


def _config(values: dict[str, object], exported: list[tuple[str, str]]) -> bytes:
    lines = [f"{k}={shlex.quote(str(v))}" for k, v in values.items()]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in exported]
    return "\n".join(lines + [""]).encode()


def _common(archive: Archive, payload: Payload, modules: dict[str, Path],
            script: Path | None) -> None:
    for name, path in modules.items():
        archive.add(path, f"lab/{name}")
    for name, path in payload.programs.items():
        archive.file(f"lab/bin/{name}", path, mode=0o755)
    archive.link("lab/bin/guest", "agent")
    for name in ("leaks", "detectors", "coverage", "locked_down"):
        archive.file(f"lab/bin/{name}", paths.LAB / "common" / name,
                     mode=0o755)
    archive.folder("lab/selftests")
    for path in build.selftest_files(paths.REPO):
        archive.add(path, f"lab/{path.relative_to(paths.REPO)}")
    if script is not None:
        text = script.read_bytes()
        if not text.startswith((b"#!", b"\x7fELF")):
            text = b"#!/bin/sh\n" + text
        archive.file("lab/script", text, mode=0o755)


def _l2_archive(o: argparse.Namespace, payload: Payload) -> Archive:
    a = Archive()
    a.file("init", paths.LAB / "l2/init", mode=0o755)
    a.file("lab/config", _config(
        {"LAB_MODULES": " ".join(images.loadable(payload.guest, "l2"))},
        [("GUESTS", str(o.guests)), ("VCPUS", str(o.vcpus)),
         ("SLOW", str(_slowness(payload))), *o.env]))
    _common(a, payload, payload.guest_modules, o.l2)
    toolsroot.add(a, o.tools_l2)
    for source, dest in o.add + o.add_l2:
        a.add(source, dest)
    return a


def _l1_archive(o: argparse.Namespace, payload: Payload, mode: str,
                l2_parts: list[Path]) -> Archive:
    a = Archive()
    a.file("init", paths.LAB / "l1/init", mode=0o755)
    for name in ("lib.sh", "shellrc"):
        a.file(f"lab/{name}", paths.LAB / "l1" / name)
    # Exported: what scripts, and programs that they start, may want to know.
    exported = {
        "GUESTS": o.guests, "VCPUS": o.vcpus, "CPUS": o.cpus, "PIN": o.pin,
        "NET": o.net, "NET_QUEUES": o.net_queues, "BLK": o.blk,
        "BLK_QUEUES": o.blk_queues, "BLK_SIZE": o.blk_size,
        "GUEST_MEM": o.guest_mem, "SLOW": _slowness(payload),
    }
    a.file("lab/config", _config({
        "MODE": mode,
        "LAB_MODULES": " ".join(images.loadable(payload.host, "l1")),
        "SLICE": o.slice or "",
        "START_GUESTS": int(o.start_guests),
        "COVERAGE": int(o.coverage),
        "HOST_MOD": int(o.host_mod is not None),
        "HOST_MOD_PARAMS": o.host_mod or "",
        "GUEST_MOD": int(o.guest_mod is not None),
        "GUEST_MOD_PARAMS": o.guest_mod or "",
        "L1_SCRIPT": int(o.l1 is not None),
        "L2_SCRIPT": int(o.l2 is not None),
        "QEMU_L2": o.qemu_l2,
        "KERNEL_ARGS": machine.KERNEL_ARGS,
        "APPEND_L2": " ".join([payload.guest.args, _patience(payload),
                               o.append_l2]).strip(),
    }, [(k, str(v)) for k, v in exported.items()] + o.env))
    _common(a, payload, payload.host_modules, o.l1)
    a.file("lab/l2/vmlinuz", payload.guest.image)
    a.file("lab/l2/initrd", *l2_parts)
    toolsroot.add(a, o.tools_l1)
    for source, dest in o.add + o.add_l1:
        a.add(source, dest)
    return a


def _make_initrd(o: argparse.Namespace, payload: Payload, mode: str,
                 work: Path) -> Path:
    tools = images.tools_part(payload.tools)
    l2 = work / "l2.cpio"
    _l2_archive(o, payload).save(l2)
    l1 = work / "l1.cpio"
    _l1_archive(o, payload, mode, [
        tools, images.modules_part(payload.guest, "l2"), l2]).save(l1)
    initrd = work / "initrd"
    images.concatenate([tools, images.qemu_part(payload.tools),
                        images.modules_part(payload.host, "l1"), l1], initrd)
    l1.unlink()
    l2.unlink()
    return initrd


class _Follower:
    """Reads a growing file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pos = 0

    def read(self) -> bytes:
        try:
            with self._path.open("rb") as f:
                f.seek(self._pos)
                data = f.read()
        except FileNotFoundError:
            return b""
        self._pos += len(data)
        return data


class _Control:
    """Messages of L1's init and of its scripts' progress function."""

    def __init__(self, path: Path, outcome: Outcome, start: float,
                 echo: bool) -> None:
        self._echo = echo
        self._follower = _Follower(path)
        self._rest = b""
        self._outcome = outcome
        self._start = start

    def poll(self) -> None:
        *lines, self._rest = (self._rest + self._follower.read()).split(b"\n")
        for line in lines:
            self._handle(line.decode(errors="replace"))

    def _handle(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        seconds = time.monotonic() - self._start
        if verb == "up":
            who, _, release = rest.partition(" ")
            self._outcome.boot_seconds[who] = round(seconds, 1)
            self._outcome.releases[who] = release
            say(f"{seconds:6.1f} s  {who} is up ({release})")
        elif verb == "progress" and self._echo:
            sys.stdout.write(f"{seconds:6.1f} s  {rest}\n")
            sys.stdout.flush()
        elif verb == "script":
            who, rc = rest.split()
            self._outcome.scripts[who] = int(rc)
        elif verb == "error":
            self._outcome.errors.append(rest)
        elif verb == "end":
            self._outcome.done = int(rest)


def _unpack(tar: Path, out: Path) -> None:
    """Regular files and folders only, and only below `out`."""
    if not tar.exists() or not tar.stat().st_size:
        return
    try:
        with tarfile.open(tar) as t:
            for member in t:
                rel = PurePosixPath(member.name)
                if rel.is_absolute() or ".." in rel.parts:
                    continue
                if member.isdir():
                    (out / rel).mkdir(parents=True, exist_ok=True)
                elif member.isfile():
                    (out / rel).parent.mkdir(parents=True, exist_ok=True)
                    source = t.extractfile(member)
                    with (out / rel).open("wb") as f:
                        shutil.copyfileobj(source, f)
    except (tarfile.TarError, EOFError) as e:
        warn(f"what L1 sent back is incomplete: {e}")


# Locks on the folders that this process writes its runs into, while it lives.
_held: list[int] = []


def make_out(explicit: Path | None) -> Path:
    if explicit is not None:
        explicit.mkdir(parents=True, exist_ok=True)
        for pattern in ("l1*.log", "l2-*.log", "*.dmesg", "qemu-l*.log",
                        "result.json"):
            for old in explicit.glob(pattern):
                old.unlink()
        return explicit
    runs = paths.runs()
    runs.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    out = runs / stamp
    n = 1
    while True:
        # Another run may begin in the same second.
        try:
            out.mkdir()
            break
        except FileExistsError:
            n += 1
            out = runs / f"{stamp}-{n}"
    _held.append(hold(out))
    for old in surplus(runs.iterdir(), KEEP_RUNS, KEEP_SECONDS):
        remove_unless_held(old)
    return out


def _follow(proc: subprocess.Popen, o: argparse.Namespace, control: _Control,
            output: _Follower | None, outcome: Outcome) -> None:
    deadline = time.monotonic() + o.timeout
    closing = None
    while True:
        ended = proc.poll() is not None
        control.poll()
        data = output.read() if output else b""
        if data:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        if ended:
            outcome.qemu = machine.ending(proc.returncode)
            return
        now = time.monotonic()
        if outcome.done is not None:
            # The last message: L1 switches itself off now.
            closing = closing or now + 5
            if now > closing:
                return
        elif now > deadline:
            outcome.timed_out = True
            return
        time.sleep(POLL)


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _options_json(o: argparse.Namespace) -> dict:
    return {k: v for k, v in vars(o).items() if k not in ("func", "command")}


def _without_noise(text: str, lines: int = 20) -> str:
    """The end of a log without what QEMU says about every EPYC it emulates."""
    kept = [l for l in text.splitlines()
            if "TCG doesn't support requested feature" not in l]
    return "\n".join(kept[-lines:]).strip()


def _report(outcome: Outcome, out: Path, qemu_log: Path,
            o: argparse.Namespace) -> None:
    for finding in outcome.findings:
        warn(f"bad line in a kernel log:\n{finding}")
    for error in outcome.errors:
        warn(error)
    lost = outcome.done is None and not outcome.interrupted
    if outcome.timed_out:
        warn(f"timeout after {o.timeout} s; ends of the logs:")
    elif lost:
        warn(f"{STOPPED}: {outcome.qemu}; ends of the logs:")
    if lost or outcome.errors:
        shown = [out / "l1.log", *sorted(out.glob("l2-*.log")),
                 *sorted(out.glob("qemu-l2-*.log")), qemu_log]
        for path in shown:
            text = _without_noise(tail(path, 60))
            if text:
                warn(f"--- {path.name}\n{text}")


def run(o: argparse.Namespace, mode: str = "run", echo: bool = True) -> int:
    """Boot, run the scripts, judge. Returns lab/lab's exit status.

    Without `echo` the scripts' output goes into the log only.
    """
    options.check(o)
    payload = prepare(o)
    out = make_out(o.out)
    outcome = Outcome()
    start = time.monotonic()
    with temp_dir(paths.tmp(), "run-") as work:
        initrd = _make_initrd(o, payload, mode, work)
        qemu_log = out / "qemu-l1.log"
        ports = {"lab.ctl": work / "ctl", "lab.out": out / "l1-script.log",
                 "lab.tar": work / "out.tar"}
        for n in range(o.guests):
            ports[f"l2-{n}"] = out / f"l2-{n}.log"
        l1 = machine.Machine(payload.tools, payload.host, initrd,
                             out / "l1.log", o.cpus, o.mem,
                             " ".join([payload.host.args, _patience(payload),
                                       o.append_l1]),
                             ports, interactive=mode == "shell",
                             icount=o.icount, more=shlex.split(o.qemu_l1),
                             secure_boot=o.secure_boot and
                             (o.secure_boot, work / "disk"))
        start = time.monotonic()
        control = _Control(ports["lab.ctl"], outcome, start, echo)
        proc = l1.start(qemu_log)
        try:
            _follow(proc, o, control,
                    _Follower(ports["lab.out"]) if echo else None, outcome)
        except (Interrupted, KeyboardInterrupt):
            outcome.interrupted = True
        finally:
            machine.stop(proc)
        said = _without_noise(tail(qemu_log, 60), 1)
        if outcome.qemu and said:
            outcome.qemu += f", its last words: {said}"
        _unpack(ports["lab.tar"], out)
        for who in ["l1", *(f"l2-{n}" for n in range(o.guests))]:
            outcome.findings += logs.judge_both(
                *((str(path), _text(path)) for path in
                  (out / f"{who}.log", out / f"{who}.dmesg")), o.allow_log)
        _report(outcome, out, qemu_log, o)
    code, reason = outcome.verdict()
    result = {
        "exit": code, "reason": reason,
        "kernels": {"l1": payload.host.release, "l2": payload.guest.release},
        "scripts": outcome.scripts, "boot_seconds": outcome.boot_seconds,
        "options": _options_json(o),
        "seconds": round(time.monotonic() - start, 1),
    }
    (out / "result.json").write_text(
        json.dumps(result, indent=2, default=str) + "\n")
    say(f"{result['seconds']:6.1f} s  "
        + ("done" if code == 0 else f"FAILED ({code}): {reason}")
        + f"; logs in {out}")
    return code


def shell(o: argparse.Namespace) -> int:
    """A prompt in L1; the terminal is handed to its console."""
    o.l1 = o.l2 = None
    o.timeout = 10 * 365 * 86400
    o.allow_log = []
    tty = sys.stdin.isatty()
    saved = termios.tcgetattr(sys.stdin) if tty else None
    try:
        return run(o, mode="shell")
    finally:
        if saved is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
