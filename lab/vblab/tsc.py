# SPDX-License-Identifier: GPL-2.0
"""How fast this machine's time stamp counter is, which the emulated one is.

An emulated host counts it against an emulated timer when it boots, and where
the emulator waits for a CPU then its clock may be wrong for good: 16 times too
fast, seen twice in some thousand boots.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import time
from typing import Callable

# Linux/x86, a function without arguments: rdtsc; shl $32,%rdx; or %rdx,%rax; ret
RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")
SECONDS = 0.1
# Of clock readings before and after: one that was not interrupted.
CLOSE_NS = 20_000
TRIES = 1000


def _counter() -> Callable[[], int]:
    code = mmap.mmap(-1, mmap.PAGESIZE,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(RDTSC)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(
        ctypes.addressof(ctypes.c_char.from_buffer(code)))

    function.code = code        # lives as long as it may be called
    return function


def _both(read: Callable[[], int]) -> tuple[int, int]:
    """Nanoseconds and counter of one moment."""
    best = None
    for _ in range(TRIES):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        count = read()
        took = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - before
        if best is None or took < best[0]:
            best = took, before + took // 2, count
        if took < CLOSE_NS:
            break
    return best[1:]


@functools.lru_cache(maxsize=None)
def khz() -> int:
    read = _counter()
    ns, count = _both(read)
    time.sleep(SECONDS)
    later_ns, later = _both(read)
    return round((later - count) * 1_000_000 / (later_ns - ns))
