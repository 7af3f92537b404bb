# SPDX-License-Identifier: GPL-2.0
"""From the files of a bench run to figures with ratios to stock and to idle."""
import dataclasses
import os
import random

from . import collect, parse, plan, stats

BIN_S = 0.25            # rates are counted in such pieces; iperf3's -i too
TCP_WARM_S = 1          # until the window is open and the buffers are full


@dataclasses.dataclass(frozen=True)
class Series:
    """What one test of one phase has measured, in the order of time.
    per_second: how many of @values fall into a second."""
    values: list
    per_second: float


def rates(times):
    """Events per second in each piece of BIN_S between the first and the
    last."""
    if not times:
        return []
    bins = max(1, int((max(times) - min(times)) / BIN_S))
    counts = [0] * bins
    for t in times:
        i = int((t - min(times)) / BIN_S)
        if i < bins:
            counts[i] += 1
    return [c / BIN_S for c in counts]


def timed(rows):
    """Latencies and rate of [(second, ms or None)]."""
    times = [t for t, v in rows if v is not None]
    length = max(times) - min(times) if len(times) > 1 else 0
    return (Series([v for _, v in rows], len(rows) / (length or 1)),
            Series(rates(times), 1 / BIN_S))


def read_test(folder, index, test, ping_samples):
    """{name of a series: Series} of one test of a phase."""
    if test.name == "ping":
        return {"ping": Series([v for _, v in ping_samples],
                               1000 / test.interval_ms)}
    text = collect.read(folder, f"{index}.{test.name}")
    if test.kind == "udp":
        latency, rate = timed(parse.sockperf(text))
        return {"udp": latency, "udp rate": rate}
    if test.kind in ("tcp-in", "tcp-out"):
        return {test.name: Series(parse.iperf3(text, TCP_WARM_S), 1 / BIN_S)}
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


def _latency(name, quantiles):
    return [Metric(f"{name} p{q * 100:.0f}", name, q, "ms")
            for q in quantiles]


METRICS = (
    _latency("ping", (.5, .9, .99))
    + [Metric("udp rate", "udp rate", "mean", "1/s", True)]
    + _latency("udp", (.5, .9, .99))
    + [Metric(f"{kind}-{size}", f"{kind}-{size}", "mean", "Mbit/s", True)
       for kind in ("tcp-in", "tcp-out") for size in plan.TCP_BYTES]
    + [m for depth in plan.FIO_DEPTHS for m in
       _latency(f"fio-{depth}", (.5, .99))
       + [Metric(f"fio-{depth} rate", f"fio-{depth} rate", "mean", "1/s",
                 True)]])


def _values(rounds):
    return {r: s.values for r, s in rounds.items()}


def _block(rounds):
    rate = sum(s.per_second for s in rounds.values()) / len(rounds)
    return max(1, round(rate * collect.BLOCK_S))


def compare(rounds, reference, q, seed):
    """Ratio to the same metric of another mode, with its interval."""
    found = stats.bootstrap_ratio(
        _values(rounds), _values(reference), [q],
        (_block(rounds), _block(reference)), random.Random(seed))
    return dict(zip(("ratio", "low", "high"), found[q]))


def table(found, slices, modes, seed=2012):
    """One entry per slice, metric and mode."""
    out = []
    for which in slices:
        for metric in METRICS:
            for mode in modes:
                rounds = found.get((which, mode), {}).get(metric.series)
                if not rounds:
                    continue
                everything = stats.ranked(
                    [v for s in rounds.values() for v in s.values])
                entry = {
                    "slice": which, "metric": metric.name, "mode": mode,
                    "unit": metric.unit,
                    "more_is_better": metric.more_is_better,
                    "value": stats.finite(stats.figure(everything, metric.q)),
                    "n": len(everything), "rounds": len(rounds)}
                for name in ("stock", "idle"):
                    other = found.get((which, name), {}).get(metric.series)
                    if other and name != mode:
                        entry[f"to_{name}"] = compare(
                            rounds, other, metric.q, seed)
                out.append(entry)
    return out


def times_better(entry):
    """(ratio, low, high) to stock, above 1 when better; None without one."""
    ratio = entry.get("to_stock")
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
