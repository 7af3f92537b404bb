# SPDX-License-Identifier: GPL-2.0
"""From the files of a lab run to the figures: per phase, per mode and slice."""
import os
import random
import re

from . import parse, stats, theory

RATIO_QUANTILES = {"p50": .5, "p90": .9, "p99": .99}
# Files of the modules that are "name value" lines.
COUNTER_FILES = ("guest/stats", "guest/decisions", "host/stats")
# Round trips within this time are treated as one draw by the bootstrap: with
# 30 ms slices it is five rotations.
BLOCK_S = 0.7


def read(folder, name, default=None):
    try:
        with open(os.path.join(folder, name), errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        if default is None:
            raise
        return default


def affinity_changes(before, after):
    """Interrupts that are delivered elsewhere than before."""
    def where(text):
        return {line.split()[0]: line.split()[1]
                for line in text.splitlines() if len(line.split()) > 1}
    old, new = where(before), where(after)
    return sum(1 for irq in old if irq in new and old[irq] != new[irq])


def module_version(features):
    """The version that a module names in its features file."""
    return parse.counters(features).get("version")


PARAMETER = re.compile(r"/sys/module/vbalance_(guest|host)/parameters/(.+)")


def parameters(reports):
    """{"guest" or "host": {parameter: value}}: all of them, also those that
    the mode leaves at their defaults."""
    out = {}
    for name, text in reports.items():
        m = PARAMETER.fullmatch(name)
        if m:
            out.setdefault(m[1], {})[m[2]] = text.strip()
    return out


def phase(folder, plan):
    """All that is known of one phase. Raises FileNotFoundError or
    parse.ParseError when it was not completed."""
    n = plan.index
    meta = parse.counters(read(folder, f"{n}.meta"))
    ping, samples, before, after = plan.test("ping"), [], "", ""
    if ping:
        samples = parse.phase_samples(
            read(folder, f"{n}.ping"), ping.warm, ping.count,
            ping.interval_ms / 1000)
        before, _, after = read(folder,
                                f"{n}.ping.sched").partition("\n\n")
    reports = parse.sections(read(folder, f"{n}.guest"))
    reports.update(parse.sections(read(folder, f"{n}.host", "")))
    turns = parse.schedstat_delta(parse.schedstat(before),
                                  parse.schedstat(after))
    counters = {name: parse.counters(reports[name])
                for name in COUNTER_FILES if name in reports}
    base = reports.get("affinities_before", "")
    times = [float(t) for t in str(meta.get("uptime", "")).split()]
    out = {
        "index": n, "round": plan.round, "mode": plan.mode,
        "base_slice_ns": meta["base_slice_ns"],
        "slice": "default" if plan.slice == "default" else "set",
        "interval_ms": ping.interval_ms if ping else None,
        "l1_uptime_s": dict(zip(("entered", "ready", "pinged", "left"),
                                times)),
        "turns": [{"run_ns": r, "wait_ns": w, "turns": t}
                  for r, w, t in turns],
        "counters": counters,
        "parameters": parameters(reports),
        "affinity_changes": affinity_changes(
            base, reports.get("affinities", "")),
    }
    if "guest/stats" in counters:
        out["source"] = counters["guest/stats"].get("source")
        # Where unloading has left them. A move back still in flight is not
        # seen: it ends with the next interrupt.
        out["not_put_back"] = affinity_changes(
            base, reports.get("after_unload", ""))
    return out, samples, reports


def phases(folder, plans):
    """([phase], {index: samples}, {index: reports}) of all completed ones."""
    found, samples, reports = [], {}, {}
    for plan in plans:
        try:
            one, s, r = phase(folder, plan)
        except FileNotFoundError:
            continue
        found.append(one)
        samples[plan.index] = s
        reports[plan.index] = r
    return found, samples, reports


def moves(group):
    """Moves in the phases of one mode: counted by our module, else the
    interrupts that were found elsewhere at the end of each phase."""
    return sum(p["counters"].get("guest/stats", {}).get(
        "moves", p["affinity_changes"]) for p in group)


def by_round(found, samples, mode, kind, base):
    """{round: [round trips]} of the phases of one mode and slice."""
    return {p["round"]: [s[1] for s in samples[p["index"]]]
            for p in found if (p["mode"], p["slice"], p["base_slice_ns"]) ==
            (mode, kind, base)}


def block_length(found):
    """Samples that the bootstrap treats as one draw."""
    interval = sum(p["interval_ms"] for p in found) / len(found) / 1000
    return round(BLOCK_S / interval)


def runs(found, samples, modes, seed=2012):
    """One entry per mode and slice, in the order of @modes."""
    slices = []
    for p in found:
        if (p["slice"], p["base_slice_ns"]) not in slices:
            slices.append((p["slice"], p["base_slice_ns"]))
    out = []
    for kind, base in sorted(slices):
        groups = {m: [p for p in found if p["mode"] == m and
                      (p["slice"], p["base_slice_ns"]) == (kind, base)]
                  for m in modes}
        for mode in modes:
            group = groups[mode]
            if not group:
                continue
            per_round = by_round(found, samples, mode, kind, base)
            rtt = stats.summary([s for r in sorted(per_round)
                                 for s in per_round[r]])
            turns = [(t["run_ns"], t["wait_ns"], t["turns"])
                     for p in group for t in p["turns"]]
            run = {"mode": mode, "base_slice_ns": base, "slice": kind,
                   "rtt_ms": rtt, "moves": moves(group),
                   "phases": len(group),
                   "mean_turn_ns": theory.effective_slice_ns(turns),
                   "mean_rotation_ns": theory.rotation_ns(turns)}
            sources = sorted({p["source"] for p in group if p.get("source")})
            if sources:
                run["source"] = "+".join(sources)
            stock = by_round(found, samples, "stock", kind, base)
            if mode != "stock" and stock:
                ratios = stats.bootstrap_ratio(
                    per_round, stock, list(RATIO_QUANTILES.values()),
                    block_length(group), random.Random(seed))
                run["ratio_to_stock"] = {
                    name: dict(zip(("ratio", "low", "high"), ratios[q]))
                    for name, q in RATIO_QUANTILES.items()}
            out.append(run)
    return out


def stock_checks(all_runs, found, samples, k, tick_ns, seed=2012):
    """Stock against the closed form, once per slice.

    The slice in effect is base_slice_ns rounded up to the scheduler's tick:
    only its ticks end the turn of a vCPU that never sleeps, so one whose
    slice of 30 ms is over runs on until the tick at 32 ms (ticks of 4 ms, as
    in Debian's cloud kernels). It is not the mean turn that the scheduler
    counts: a kernel thread's work of a moment cuts a turn in two for the
    counter, but not for who waits."""
    out = []
    for stock in (r for r in all_runs if r["mode"] == "stock"):
        which = (stock["slice"], stock["base_slice_ns"])
        idle = next((r for r in all_runs if r["mode"] == "idle" and
                     (r["slice"], r["base_slice_ns"]) == which), None)
        if not idle or not idle["rtt_ms"]["p50"]:
            continue
        turn = theory.slice_in_effect_ns(stock["base_slice_ns"], tick_ns)
        floor = idle["rtt_ms"]["p50"]
        intervals = stats.bootstrap_waits(
            by_round(found, samples, "stock", *which),
            by_round(found, samples, "idle", *which), block_length(found),
            random.Random(seed))
        out.append({"slice": stock["slice"],
                    "base_slice_ns": stock["base_slice_ns"],
                    "slice_in_effect_ns": turn, "k": k, "floor_ms": floor,
                    "figures": theory.check(k, turn / 1e6, floor,
                                            stock["rtt_ms"], intervals)})
    return out
