# SPDX-License-Identifier: GPL-2.0
"""What sysbench takes longer than in stock: table of bench/overhead."""
import os
import statistics

from . import parse

MODES = ("host-only", "guest-only", "full")
LOADS = {"none": "no traffic", "ping": "pings come in"}


def collect(folder):
    """Files MODE.LOAD of sysbench's output -> {(mode, load): {kind: seconds of
    virtual time}}. Raises ParseError where it was not finished."""
    found = {}
    for mode in ("stock", *MODES):
        for load in LOADS:
            path = os.path.join(folder, f"{mode}.{load}")
            if not os.path.exists(path):
                raise parse.ParseError(f"it did not come to {mode}, {load}")
            with open(path) as f:
                found[mode, load] = {kind: statistics.fmean(s) for kind, s in
                                     parse.sysbench(f.read()).items()}
    return found


def more(found, mode, load, kind):
    """Percent more than stock, of each boot."""
    return [100 * (r[mode, load][kind] / r["stock", load][kind] - 1)
            for r in found]


def table(found):
    """Of what collect() found in each boot: text, a line for each load and
    kind."""
    lines = [f"{len(found)} boots; stock in 10^9 instructions, the others in "
             "percent more (mean, least to most of the boots)", "",
             f"{'':<14} {'':<8} {'stock':>7} "
             + " ".join(f"{m:>24}" for m in MODES)]
    for load, text in LOADS.items():
        for kind in found[0]["stock", load]:
            cells = []
            for mode in MODES:
                values = more(found, mode, load, kind)
                cells.append(f"{statistics.fmean(values):+.2f} "
                             f"({min(values):+.2f} to {max(values):+.2f})")
            stock = statistics.fmean(r["stock", load][kind] for r in found)
            lines.append(f"{text:<14} {kind:<8} {stock:7.4f} "
                         + " ".join(f"{c:>24}" for c in cells))
    return "\n".join(lines)
