# SPDX-License-Identifier: GPL-2.0
"""What the modes are meant to reach, and whether they did: information, no test."""
import dataclasses

from . import metrics, plan

XEN = 30_000_000        # ns, the slice of Xen


@dataclasses.dataclass(frozen=True)
class Target:
    """limit: how many times better than stock at least, or, against idle, how
    many times the idle guest's value at most."""
    scenario: str
    slice: object
    mode: str
    metric: str
    limit: float
    against: str = "stock"


TCP = [f"{kind}-{size}" for kind in ("tcp-in", "tcp-out")
       for size in plan.TCP_BYTES]
ALL = [m.name for m in metrics.METRICS]
# Nothing to wait for but a difference that nobody would notice.
UNTOUCHED = 0.98

TARGETS = [
    t for s in plan.SLICES for t in (
        Target("stacked", s, "full", "ping p50", 1.2, "idle"),
        Target("stacked", s, "full", "ping p90", 1.5, "idle"),
        Target("stacked", s, "full", "ping p50", 10 if s == XEN else 3),
        Target("stacked", s, "full", "udp rate", 5),
        *(Target("stacked", s, "full", m,
                 1.5 if m.endswith("-16384") else 1) for m in TCP),
        *(Target("stacked", s, "full", f"fio-{d} p50", 5)
          for d in plan.FIO_DEPTHS),
        Target("stacked", s, "guest-only", "ping p50",
               10 if s == XEN else 2),
        *([Target("stacked", s, "guest-only", "ping p90", 10)]
          if s == XEN else []),
        *(Target("stacked", s, "guest-only", m, 1)
          for m in ["udp rate", *TCP]))
] + [Target("uncontended", "default", mode, m, UNTOUCHED)
     for mode in ("guest-only", "full") for m in ALL]


def verdict(value, low, high, limit, at_least):
    """reached or missed; in brackets when the interval holds the limit."""
    good = value >= limit if at_least else value <= limit
    sure = low >= limit or high < limit if at_least \
        else high <= limit or low > limit
    return ("reached" if good else "missed") + ("" if sure
                                                else ", within noise")


def check(target, entries):
    """The outcome, None where it was not measured."""
    entry = next((e for e in entries if (
        e["slice"], e["mode"], e["metric"]) ==
        (target.slice, target.mode, target.metric)), None)
    if entry is None:
        return None
    if target.against == "stock":
        found = metrics.times_better(entry)
    else:
        ratio = entry.get("to_idle")
        found = (ratio["ratio"], ratio["low"], ratio["high"]) \
            if ratio and None not in ratio.values() else None
    out = dataclasses.asdict(target)
    if found is None:
        # What was lost is missed; what has no reference was not measured.
        if entry["value"] is not None:
            return None
        out["verdict"] = "missed, no answers"
        return out
    out.update(measured=found[0], low=found[1], high=found[2],
               verdict=verdict(*found, target.limit,
                               target.against == "stock"))
    return out


def check_all(scenario, entries):
    found = [check(t, entries) for t in TARGETS if t.scenario == scenario]
    return [f for f in found if f]
