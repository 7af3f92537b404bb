# SPDX-License-Identifier: GPL-2.0
"""From the files of a bench run to figures with ratios to stock and to idle."""
import dataclasses
import os
import random

from . import collect, parse, scenarios, stats

BIN_S = 0.25            # rates are counted in such pieces; iperf3's -i too
TCP_WARM_S = 1          # until the window is open and the buffers are full
# Of the neighbour's figures: a test has begun, and is not yet over.
WATCH_S = (1, .5)
# Modes that the others are compared with, where they are measured.
REFERENCES = ("stock", "idle", "remap-only")


@dataclasses.dataclass(frozen=True)
class Series:
    """What one test of one phase has measured, in the order of time.
    per_second: how many of @values fall into a second."""
    values: list
    per_second: float


def rates(times, length=None):
    """Events per second in each piece of BIN_S between the first and the
    last, or of @length seconds."""
    if length is None:
        if not times:
            return []
        first, length = min(times), max(times) - min(times)
    else:
        first = 0
    bins = max(1, int(length / BIN_S + 1e-9))
    # Less than that was measured.
    size = min(BIN_S, length) or BIN_S
    counts = [0] * bins
    for t in times:
        i = int((t - first) / size)
        if i < bins:
            counts[i] += 1
    return [c / size for c in counts]


def timed(rows):
    """Latencies and rate of [(second, ms or None)]."""
    times = [t for t, v in rows if v is not None]
    length = max(times) - min(times) if len(times) > 1 else 0
    return (Series([v for _, v in rows], len(rows) / (length or 1)),
            Series(rates(times), 1 / BIN_S))


def pair_name(kind, pair):
    """tcp-rr, 64/1024 -> tcp-rr 64/1K"""
    return f"{kind} " + "/".join(
        f"{int(n) // 1024}K" if int(n) % 1024 == 0 else n
        for n in pair.split("/"))


def request_response(kind, text):
    """Rates of each pair of sizes, and of all of them."""
    out, every = {}, []
    for pair, (rows, length) in parse.rr(text).items():
        found = rates([t for t, ms in rows if ms is not None], length)
        out[pair_name(kind, pair)] = Series(found, 1 / BIN_S)
        every += found
    if len(out) > 1:
        out[f"{kind} all"] = Series(every, 1 / BIN_S)
    return out


def watched(test, samples):
    """What the neighbour got and how often the CPU switched during a test."""
    first, last = samples[0][0] + WATCH_S[0], samples[-1][0] - WATCH_S[1]
    rows = [s for s in samples if first <= s[0] <= last]
    steps = [[b - a for a, b in zip(*pair)] for pair in zip(rows, rows[1:])]
    per_second = 1 / (sum(s[0] for s in steps) / len(steps)) if steps else 0
    return {f"{test.name} share": Series([s[3] / 1e7 / s[0] for s in steps],
                                         per_second),
            f"{test.name} switches": Series([s[1] / s[0] for s in steps],
                                            per_second)}


def read_test(folder, index, test, ping_samples):
    """{name of a series: Series} of one test of a phase."""
    watch = collect.read(folder, f"{index}.{test.name}.cpu", "")
    return {**(watched(test, parse.cpu_samples(watch)) if watch else {}),
            **read_tool(folder, index, test, ping_samples)}


def read_tool(folder, index, test, ping_samples):
    if test.name == "ping":
        return {"ping": Series([v for _, v in ping_samples],
                               1000 / test.interval_ms)}
    text = collect.read(folder, f"{index}.{test.name}")
    if test.kind == "udp":
        latency, rate = timed(parse.sockperf(text))
        return {"udp": latency, "udp rate": rate}
    if test.kind in ("tcp-in", "tcp-out"):
        return {test.name: Series(parse.iperf3(text, TCP_WARM_S), 1 / BIN_S)}
    if test.kind in ("tcp-rr", "udp-rr"):
        return request_response(test.kind, text)
    if test.kind == "sysbench":
        # A value stands for itself.
        return {f"sysbench {kind}": Series(values, 0)
                for kind, values in parse.sysbench(text).items()}
    out = {}
    for depth, found in parse.fio(text).items():
        latency, rate = timed(found["samples"])
        out[f"fio-{depth}"] = latency
        out[f"fio-{depth} rate"] = rate
    return out


def read_all(folder, phases, samples):
    """({(slice, mode): {series: {round: Series}}}, [what is missing]).
    @samples: of the pings, of completed phases only."""
    found, missing = {}, []
    for p in phases:
        if p.index not in samples:
            missing.append(f"phase {p.index} ({p.mode}): not completed")
            continue
        cell = found.setdefault((p.slice, p.mode), {})
        # Each phase of a round has other tests.
        for test in p.tests:
            try:
                series = read_test(folder, p.index, test, samples[p.index])
            except (parse.ParseError, FileNotFoundError) as error:
                missing.append(f"phase {p.index} ({p.mode}), {test.name}: "
                               f"{error}")
                continue
            for name, one in series.items():
                if one.values:
                    cell.setdefault(name, {})[p.round] = one
    return found, missing


@dataclasses.dataclass(frozen=True)
class Metric:
    name: str
    series: str
    q: object           # a quantile or "mean"
    unit: str
    more_is_better: bool = False
    points: bool = False        # a share: less stock's is what counts


def _latency(name, quantiles):
    return [Metric(f"{name} p{q * 100:.0f}", name, q, "ms")
            for q in quantiles]


BASIC = (
    _latency("ping", (.5, .9, .99))
    + [Metric("udp rate", "udp rate", "mean", "1/s", True)]
    + _latency("udp", (.5, .9, .99))
    + [Metric(f"{kind}-{size}", f"{kind}-{size}", "mean", "Mbit/s", True)
       for kind in ("tcp-in", "tcp-out") for size in scenarios.TCP_BYTES]
    + [m for depth in scenarios.FIO_DEPTHS for m in
       _latency(f"fio-{depth}", (.5, .99))
       + [Metric(f"fio-{depth} rate", f"fio-{depth} rate", "mean", "1/s",
                 True)]])
# Tests whose effect on a neighbour is measured.
WATCHED = [t.name for group in scenarios.tests(
    scenarios.SCENARIOS["neighbour"], scenarios.TESTS, 0) for t in group]
METRICS = (
    BASIC
    + [Metric(name, name, "mean", "1/s", True)
       for kind in ("tcp-rr", "udp-rr")
       for name in [*(pair_name(kind, p) for p in scenarios.RR_PAIRS),
                    f"{kind} all"]]
    + [m for test in WATCHED for m in (
        Metric(f"{test} share", f"{test} share", "mean", "%", True, True),
        Metric(f"{test} switches", f"{test} switches", "mean", "1/s"))]
    + [Metric(f"sysbench {kind}", f"sysbench {kind}", "mean", "s")
       for kind in scenarios.SYSBENCH])
# Of a test with enough samples to ask for it.
WORST = Metric("ping worst", "ping", 1.0, "ms")


def values(rounds):
    return {r: s.values for r, s in rounds.items()}


def block(rounds):
    rate = sum(s.per_second for s in rounds.values()) / len(rounds)
    return max(1, round(rate * collect.BLOCK_S))


def compare(rounds, reference, q, seed, difference=False):
    """Ratio to the same metric of another mode (or the difference), with its
    interval."""
    found = stats.bootstrap_ratio(
        values(rounds), values(reference), [q],
        (block(rounds), block(reference)), random.Random(seed),
        difference=difference)
    name = "difference" if difference else "ratio"
    return dict(zip((name, "low", "high"), found[q]))


def slices_ms(phases, slices):
    """{slice: ms}, from what the phases say."""
    return {which: p["base_slice_ns"] / 1e6 for which in slices
            for p in phases
            if (which == "default") == (p["slice"] == "default")
            and which in ("default", p["base_slice_ns"])}


def entry_of(metric, cells, mode, seed):
    """@cells: {mode: {round: Series}} of one slice."""
    rounds = cells[mode]
    everything = stats.ranked([v for s in rounds.values() for v in s.values])
    entry = {"metric": metric.name, "mode": mode, "unit": metric.unit,
             "more_is_better": metric.more_is_better,
             "value": stats.finite(stats.figure(everything, metric.q)),
             "n": len(everything), "rounds": len(rounds)}
    if metric is WORST:
        # Of a single sample there is no interval.
        return entry, everything
    for name in REFERENCES:
        if name in cells and name != mode:
            entry[f"to_{name}"] = compare(rounds, cells[name], metric.q, seed)
    if metric.points and "stock" in cells and mode != "stock":
        entry["less_stock"] = compare(rounds, cells["stock"], metric.q, seed,
                                      difference=True)
    return entry, everything


def table(found, slices, modes, seed=2012, worst_ms=None):
    """One entry per slice, metric and mode. @worst_ms: {slice: ms}, for
    scenarios whose worst round trip counts."""
    out = []
    for which in slices:
        for metric in METRICS + [WORST] * bool(worst_ms):
            cells = {mode: found[which, mode][metric.series] for mode in modes
                     if metric.series in found.get((which, mode), {})}
            for mode in cells:
                entry, everything = entry_of(metric, cells, mode, seed)
                entry["slice"] = which
                if metric is WORST:
                    entry["slice_ms"] = worst_ms[which]
                    entry["above_slice"] = sum(v > worst_ms[which]
                                               for v in everything)
                out.append(entry)
    return out


def times_better(entry, reference="stock"):
    """(ratio, low, high) to a mode, above 1 when better; None without one."""
    ratio = entry.get(f"to_{reference}")
    if not ratio or None in ratio.values():
        return None
    found = ratio["ratio"], ratio["low"], ratio["high"]
    if entry["more_is_better"]:
        return found
    if min(found) <= 0:
        return None
    return 1 / found[0], 1 / found[2], 1 / found[1]


def raw(found):
    """All that was measured, for the file of raw data."""
    return [{"slice": which, "mode": mode, "series": name, "round": r,
             "per_second": round(s.per_second, 3),
             "values": [None if v is None else round(v, 4)
                        for v in s.values]}
            for (which, mode), cell in found.items()
            for name, rounds in cell.items() for r, s in rounds.items()]


def failed(folder):
    """Tests that the scripts found failing: "INDEX TEST" each."""
    return sorted(f"{name.split('.')[0]} {test}"
                  for name in os.listdir(folder) if name.endswith(".failed")
                  for test in collect.read(folder, name).split())
