# SPDX-License-Identifier: GPL-2.0
"""Closed forms for the wait of an interrupt whose vCPU shares its CPU.

k busy vCPUs take turns on one CPU with slice S. An interrupt for one fixed
vCPU arrives at a random time: with probability 1/k its vCPU has the CPU and
the wait is zero, otherwise the wait is uniform between 0 and (k - 1) S.

Ideal steering: n vCPUs on n such CPUs, whose rotations are independent. An
interrupt goes to a vCPU that has its CPU, or else to the one that gets its own
first: the least of n uniform waits.
"""


def mean_wait(k, s):
    return (k - 1) ** 2 * s / (2 * k)


def max_wait(k, s):
    return (k - 1) * s


def quantile_wait(k, s, q):
    return max(0.0, (k - 1) * s * (1 - (1 - q) * k / (k - 1)))


def steered_mean_wait(n, k, s):
    return ((k - 1) / k) ** n * (k - 1) * s / (n + 1)


def cdf_wait(k, s, w):
    """Share of interrupts that wait @w at most."""
    if w < 0:
        return 0.0
    if w >= (k - 1) * s:
        return 1.0
    return 1 / k + w / (k * s)


def effective_slice_ns(deltas):
    """Mean time on the CPU per turn, from the scheduler's own counters.

    @deltas: (run ns, wait ns, turns) per vCPU thread, differences of
    /proc/TID/schedstat. None when the threads never ran.
    """
    run = sum(d[0] for d in deltas)
    turns = sum(d[2] for d in deltas)
    return run / turns if turns else None


def slice_in_effect_ns(base_slice_ns, tick_ns):
    """What a vCPU that is never interrupted runs at a stretch: the scheduler
    looks at the end of a slice only at its ticks."""
    return -(-base_slice_ns // tick_ns) * tick_ns


def rotation_ns(deltas):
    """Mean time from one turn of a vCPU to its next: on the CPU plus off it."""
    turns = sum(d[2] for d in deltas)
    return sum(d[0] + d[1] for d in deltas) / turns if turns else None


def verdict(expected, low, high):
    """("agrees" or "differs", by how much of @expected it lies outside of the
    measured interval); None without an interval."""
    if low is None or high is None:
        return None
    outside = max(low - expected, expected - high, 0.0)
    return ("differs" if outside else "agrees"), outside / expected


def check(k, slice_ms, floor_ms, rtt, intervals):
    """Stock's measured round trips against the closed form.

    @floor_ms: what a round trip takes without any wait (p50 of the idle
    guest); @rtt: summary of stock's round trips, in ms; @intervals: {figure:
    (low, high)} of the waits. Returns one row per figure: the wait expected,
    the wait measured (round trip less floor) and measured in percent of
    expected, None where there is no value; a verdict where there is an
    interval.
    """
    expected = {
        "mean": mean_wait(k, slice_ms),
        "p50": quantile_wait(k, slice_ms, .5),
        "p90": quantile_wait(k, slice_ms, .9),
        "p99": quantile_wait(k, slice_ms, .99),
        "max": max_wait(k, slice_ms),
    }
    rows = []
    for name, want in expected.items():
        got = rtt.get(name)
        wait = None if got is None else got - floor_ms
        row = {"figure": name, "expected_ms": want, "measured_ms": wait,
               "agreement_percent":
               None if wait is None or not want else 100 * wait / want}
        low, high = intervals.get(name, (None, None))
        said = verdict(want, low, high)
        if said and wait is not None:
            row.update(low_ms=low, high_ms=high, verdict=said[0],
                       outside_percent=100 * said[1])
        rows.append(row)
    return rows
