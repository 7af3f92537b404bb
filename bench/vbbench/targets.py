# SPDX-License-Identifier: GPL-2.0
"""What the modes are meant to reach, and whether they did: information, no test."""
import dataclasses

from . import metrics, scenarios

XEN = 30_000_000        # ns, the slice of Xen


@dataclasses.dataclass(frozen=True)
class Target:
    """@how, and what @limit then is:
    times: how many times better than @against at least
    most: how many times the value of @against at most
    points: how many percentage points below @against at most
    slice: how many round trips above one time slice at most"""
    scenario: str
    slice: object
    mode: str
    metric: str
    limit: float
    against: str = "stock"
    how: str = "times"


TCP = [f"{kind}-{size}" for kind in ("tcp-in", "tcp-out")
       for size in scenarios.TCP_BYTES]
BASIC = [m.name for m in metrics.BASIC]
# Nothing to wait for but a difference that nobody would notice.
UNTOUCHED = 0.98
# The CoINT paper's table I: at most 1.1 % slower.
OVERHEAD = 1.011
# The vBalance paper's figures 8 and 11 have +35 and +69 %.
SWITCHES = 1.7
SHARE_POINTS = 2

TARGETS = [
    t for s in scenarios.SLICES for t in (
        Target("stacked", s, "full", "ping p50", 1.2, "idle", "most"),
        Target("stacked", s, "full", "ping p90", 1.5, "idle", "most"),
        Target("stacked", s, "full", "ping p50", 10 if s == XEN else 3),
        Target("stacked", s, "full", "udp rate", 5),
        *(Target("stacked", s, "full", m,
                 1.5 if m.endswith("-16384") else 1) for m in TCP),
        *(Target("stacked", s, "full", f"fio-{d} p50", 5)
          for d in scenarios.FIO_DEPTHS),
        Target("stacked", s, "guest-only", "ping p50",
               10 if s == XEN else 2),
        *([Target("stacked", s, "guest-only", "ping p90", 10)]
          if s == XEN else []),
        *(Target("stacked", s, "guest-only", m, 1)
          for m in ["udp rate", *TCP]))
] + [Target("uncontended", "default", mode, m, UNTOUCHED)
     for mode in ("guest-only", "full") for m in BASIC] + [
    t for s in scenarios.SLICES for t in (
        Target("tail", s, "full", "ping p99", 2, "idle", "most"),
        *([Target("tail", s, "full", "ping p99", 10)] if s == XEN else []),
        Target("tail", s, "full", metrics.WORST.name, 0, how="slice"),
        Target("tail", s, "host-only", "ping p99", 2))
] + [
    t for name in ("neighbour", "neighbour-cgroups") for s in scenarios.SLICES
    for mode in scenarios.SCENARIOS[name].modes if mode != "stock"
    for test in metrics.WATCHED for t in (
        Target(name, s, mode, f"{test} share", SHARE_POINTS, how="points"),
        Target(name, s, mode, f"{test} switches", SWITCHES, how="most"))
] + [
    Target("overhead-stacked", "default", "full", f"sysbench {kind}", OVERHEAD,
           how="most")
    for kind in scenarios.SYSBENCH]


def verdict(value, low, high, limit, at_least):
    """reached or missed; in brackets when the interval holds the limit."""
    good = value >= limit if at_least else value <= limit
    sure = low >= limit or high < limit if at_least \
        else high <= limit or low > limit
    return ("reached" if good else "missed") + ("" if sure
                                                else ", within noise")


def compared(target, entry):
    """(value, low, high) that the target's limit is for, None without one."""
    if target.how == "times":
        return metrics.times_better(entry)
    name = "less_stock" if target.how == "points" \
        else f"to_{target.against}"
    found = entry.get(name)
    return None if not found or None in found.values() \
        else tuple(found.values())


def check_worst(target, entry):
    """@entry: that of metrics.WORST."""
    above = entry["above_slice"]
    return dict(dataclasses.asdict(target), measured=above, n=entry["n"],
                slice_ms=entry["slice_ms"], worst_ms=entry["value"],
                verdict="reached" if above <= target.limit else "missed")


def check(target, entries):
    """The outcome, None where it was not measured."""
    entry = next((e for e in entries if (
        e["slice"], e["mode"], e["metric"]) ==
        (target.slice, target.mode, target.metric)), None)
    if entry is None:
        return None
    if target.how == "slice":
        return check_worst(target, entry)
    found = compared(target, entry)
    out = dataclasses.asdict(target)
    if found is None:
        # What was lost is missed; what has no reference was not measured.
        if entry["value"] is not None:
            return None
        out["verdict"] = "missed, no answers"
        return out
    limit = -target.limit if target.how == "points" else target.limit
    out.update(measured=found[0], low=found[1], high=found[2],
               verdict=verdict(*found, limit, target.how != "most"))
    return out


def check_all(scenario, entries):
    found = [check(t, entries) for t in TARGETS if t.scenario == scenario]
    return [f for f in found if f]
