# SPDX-License-Identifier: GPL-2.0
"""`lab/lab debug`: the whole suite on each kernel that watches memory, locks or
races, as host and then as guest. One level at a time: a debug kernel under a
debug kernel takes too long to boot where anything else runs."""

from __future__ import annotations

import argparse
import copy

from . import kernels, session, suite
from .ktap import FAILED, Result
from .suite import Tally
from .util import LabError


def runs(o: argparse.Namespace) -> list[tuple[str, argparse.Namespace]]:
    """What `lab/lab test` gets, and what that is called."""
    found = []
    for kernel in kernels.watching():
        for level in ("host", "guest"):
            test = copy.copy(o)
            test.host_kernel = test.guest_kernel = kernels.default()
            setattr(test, f"{level}_kernel", kernel)
            found.append((f"{kernel} as {level}", test))
    return found


def run(o: argparse.Namespace) -> int:
    worst, ended = 0, []
    for name, test in runs(o):
        print(f"==== {name}", flush=True)
        tally = Tally()
        try:
            status = suite.run(test, tally)
        except LabError as e:    # a kernel that cannot be built, for instance
            tally.add([Result(name, FAILED, str(e))])
            status = 1
        worst = max(worst, status)
        ended.append((name, tally))
        if status == session.EXIT_INTERRUPTED:
            break
    return worst if o.list else _say(ended, worst)


def _say(ended: list[tuple[str, Tally]], status: int) -> int:
    total = Tally()
    for name, tally in ended:
        print(f"==== {name}: {tally.summary()}")
        print(tally.recap(), end="")
        total.results += tally.results
    print(total.summary(), flush=True)
    return status
