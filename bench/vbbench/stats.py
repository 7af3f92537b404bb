# SPDX-License-Identifier: GPL-2.0
"""Percentiles of round trips with losses, and bootstrap intervals.

A lost packet is a sample without a value (None). It counts as slower than
every answered one: a mode that loses its slow packets must not look faster.
"""
import math
import random


def quantile(ordered, q):
    """Nearest-rank quantile of a sorted list: the smallest sample that at
    least a share of q of all samples does not exceed."""
    if not ordered:
        raise ValueError("quantile of no samples")
    return ordered[max(0, math.ceil(q * len(ordered) - 1e-9) - 1)]


def ranked(samples):
    """Sorted samples, lost ones (None) as infinity."""
    return sorted(math.inf if s is None else s for s in samples)


def finite(value):
    """For JSON, which has no infinity: null where the value was lost."""
    return None if value is None or not math.isfinite(value) else value


def summary(samples):
    """p50, p90, p99 over all requests that were sent, max and mean over the
    answered ones, number sent and number lost. A percentile that falls
    among the lost is None."""
    answered = [s for s in samples if s is not None]
    order = ranked(samples)
    out = {name: finite(quantile(order, q)) if order else None
           for name, q in (("p50", .5), ("p90", .9), ("p99", .99))}
    out["max"] = max(answered, default=None)
    out["mean"] = sum(answered) / len(answered) if answered else None
    out["n"] = len(samples)
    out["lost"] = len(samples) - len(answered)
    return out


def blocks(samples, length):
    """Consecutive pieces of about @length samples; a short rest joins the
    last piece."""
    length = max(1, length)
    count = max(1, len(samples) // length)
    size = len(samples) / count
    return [samples[round(i * size):round((i + 1) * size)]
            for i in range(count)]


def figure(ordered, q):
    """The q-quantile of a sorted list, or its mean where @q is "mean"."""
    if q == "mean":
        return sum(ordered) / len(ordered)
    return quantile(ordered, q)


def common_rounds(a, b):
    return sorted(r for r in a if a[r] and b.get(r))


def resample(a, b, rounds, block, rng, resamples):
    """Pairs of sorted samples, drawn from those of two sides.

    @block: samples in a block, one number or one for each side.

    @a, @b: {round: [samples in order of time]}. Round trips that follow
    each other are not independent (several pings wait in the same absence of
    a vCPU), and rounds differ as well. So this draws rounds, the same ones
    for both sides since modes of one round ran next to each other, and in
    each round blocks of @block consecutive samples, both with replacement.
    """
    def cut(side, length):
        return {r: [ranked(b) for b in blocks(side[r], length)]
                for r in rounds}

    def draw(cuts, chosen):
        out = []
        for r in chosen:
            pieces = cuts[r]
            for _ in pieces:
                out += pieces[int(rng.random() * len(pieces))]
        out.sort()
        return out

    lengths = block if isinstance(block, tuple) else (block, block)
    a_cut, b_cut = cut(a, lengths[0]), cut(b, lengths[1])
    for _ in range(resamples):
        chosen = [rng.choice(rounds) for _ in rounds]
        yield draw(a_cut, chosen), draw(b_cut, chosen)


def middle(values, level):
    """The interval that holds a share of @level of the values; its ends are
    None where they are lost."""
    if not values:
        return None, None
    values = sorted(values)
    return (finite(quantile(values, (1 - level) / 2)),
            finite(quantile(values, (1 + level) / 2)))


def bootstrap_ratio(num, den, qs, block, rng=None, resamples=1000,
                    level=0.95, difference=False):
    """Interval for the ratio (or difference) of the q-quantiles (or means,
    where q is "mean") of two sets of samples, which resample() describes.

    Returns {q: (ratio, low, high)}, entries None where it has no value.
    """
    def compared(upper, lower):
        # Lost against lost says nothing about the ratio.
        if not math.isfinite(lower) or lower <= 0:
            return None
        return upper - lower if difference else upper / lower

    rng = rng or random.Random(1)
    rounds = common_rounds(num, den)
    if not rounds:
        return {q: (None, None, None) for q in qs}
    seen = {q: [] for q in qs}
    for a, b in resample(num, den, rounds, block, rng, resamples):
        for q in qs:
            value = compared(figure(a, q), figure(b, q))
            if value is not None:
                seen[q].append(value)
    out = {}
    for q in qs:
        point = compared(*(figure(ranked([s for r in rounds
                                          for s in side[r]]), q)
                           for side in (num, den)))
        out[q] = (finite(point), *middle(seen[q], level))
    return out


def bootstrap_waits(loaded, idle, block, rng=None, resamples=1000,
                    level=0.95):
    """Intervals for what round trips of a loaded guest take longer than the
    idle guest's p50, as {"mean", "p50", "p90": (low, high)}; None where there
    is no value. The mean is that of the answered ones, as in summary()."""
    rng = rng or random.Random(1)
    rounds = common_rounds(loaded, idle)
    seen = {"mean": [], "p50": [], "p90": []}
    for a, b in resample(loaded, idle, rounds, block, rng,
                         resamples if rounds else 0):
        floor = quantile(b, .5)
        answered = [v for v in a if math.isfinite(v)]
        if not answered or not math.isfinite(floor):
            continue
        seen["mean"].append(sum(answered) / len(answered) - floor)
        seen["p50"].append(quantile(a, .5) - floor)
        seen["p90"].append(quantile(a, .9) - floor)
    return {name: middle(values, level) for name, values in seen.items()}
