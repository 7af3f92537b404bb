# SPDX-License-Identifier: GPL-2.0
"""The bench's tables and targets, for a 100 column terminal."""
from . import metrics, report, scenarios

COLUMN = 11


def slice_name(which):
    return "default slice" if which == "default" \
        else f"slices of {which / 1e6:.3g} ms"


def near_one(value):
    """A ratio; another digit where it would be 1.00."""
    return f"{value:.3f}" if .9 < value < 1.1 else report.number(value)


def better(entry, reference="stock"):
    """How many times better than @reference; ~ where that may be noise, or
    where there is no interval (one round, and less of it than a block)."""
    found = metrics.times_better(entry, reference)
    if found is None:
        return "-"
    ratio, low, high = found
    return ("~" if low <= 1 <= high or low == high else "") + near_one(ratio)


def rows(entries, heads, cells):
    """A line for each metric. @cells: one for each column, called with
    {mode: entry}."""
    label = {e["metric"]: f"{e['metric']}, {e['unit']} " for e in entries}
    width = max(22, *map(len, label.values()))
    widths = [max(COLUMN, len(h) + 1) for h in heads]
    out = [" " * width + "".join(f"{h:>{w}}" for h, w in zip(heads, widths))]
    for name, text in label.items():
        found = {e["mode"]: e for e in entries if e["metric"] == name}
        out.append(f"{text:<{width}}" + "".join(
            f"{cell(found):>{w}}" for cell, w in zip(cells, widths)))
    return out


def value_of(mode):
    return lambda found: report.number(found[mode]["value"]) \
        if mode in found else "-"


def ratio_of(mode, reference):
    return lambda found: better(found[mode], reference) \
        if mode in found else "-"


def tables(scenario):
    """Values and ratios of one scenario, slice by slice."""
    modes = scenario["modes"]
    lines = [f"{scenario['name']}: {scenario['text']}"]
    for which in scenario["slices"]:
        entries = [e for e in scenario["results"] if e["slice"] == which]
        if not entries:
            continue
        lines += ["", slice_name(which)]
        lines += rows(entries, modes, [value_of(m) for m in modes])
        others = [(m, "stock") for m in modes if m != "stock"]
        if not any("to_stock" in e for e in entries):
            continue
        heads = [m for m, _ in others]
        if {"remap-only", "full"} <= set(modes):
            # What the boosts add: the CoINT paper's other comparison.
            others.append(("full", "remap-only"))
            heads.append("full:remap-only")
        lines += ["", f"{slice_name(which)}: times better than stock, or "
                  "than what follows the colon (~: may be noise)"]
        lines += rows(entries, heads, [ratio_of(*o) for o in others])
    return "\n".join(lines)


def wanted(t):
    """A target in words."""
    limit, against = t["limit"], t["against"]
    if t["how"] == "slice":
        return f"at most {limit:g} above one slice"
    if t["how"] == "points":
        return f"at most {limit:g} points below {against}"
    if t["how"] == "most":
        return f"at most {limit:g}x {against}"
    if limit > 1:
        return f"{limit:g}x better than stock"
    return "not below stock" if limit == 1 else \
        f"within {100 * (1 - limit):.0f} % of stock"


def got(t):
    """What was measured."""
    if t["how"] == "slice":
        return (f"{t['measured']} of {t['n']} above {t['slice_ms']:g} ms, "
                f"worst {report.number(t['worst_ms'])} ms")
    if "measured" not in t:
        return "-"
    unit, number = ("", lambda v: f"{v:+.2f}") if t["how"] == "points" \
        else ("x", near_one)
    return (f"{number(t['measured'])}{unit} ({number(t['low'])} to "
            f"{number(t['high'])})")


def target(t):
    where = "" if t["slice"] == "default" else f", {t['slice'] // 10**6} ms"
    return (f"  {t['mode']}{where}, {t['metric']}: target {wanted(t)}: "
            f"{got(t)}: {t['verdict']}")


def targets(scenario):
    found = scenario["targets"]
    if not found:
        return ""
    reached = sum(t["verdict"].startswith("reached") for t in found)
    return "\n".join([f"{scenario['name']}: {reached} of {len(found)} "
                      "targets reached"] + [target(t) for t in found])


def overhead(scenario):
    """The CoINT paper's table I: what full takes longer, percent."""
    lines = []
    for e in scenario["results"]:
        if e["mode"] != "full" or e["unit"] != "s":
            continue
        for other in scenario["modes"]:
            ratio = e.get(f"to_{other}")
            if ratio and None not in ratio.values():
                best, low, high = (100 * (v - 1) for v in ratio.values())
                lines.append(f"  {e['metric']}: {best:+.2f} % ({low:+.2f} to "
                             f"{high:+.2f}) to {other}")
    return "\n".join(["What full takes longer:", *lines]) if lines else ""


def waits(scenario):
    """Mean waits against the closed forms."""
    found = scenario.get("waits")
    if found is None:
        return ""
    if not found:
        return "Mean waits: not possible without the mode alone."
    lines = ["Mean wait: mean round trip less that of alone, against the "
             "closed form (95 % intervals)."]
    for which in dict.fromkeys(e["slice"] for e in found):
        entries = [e for e in found if e["slice"] == which]
        first = entries[0]
        lines += [
            "", f"{slice_name(which)}: S = {first['slice_in_effect_ms']:g} "
            f"ms, {first['cpus']} CPUs, {first['busy_per_cpu']} busy threads "
            f"on each, alone {first['wait']['floor_ms']:.2f} ms",
            f"  {'':<12}{'mean wait, ms':<20}{'closed form, ms':<24}"
            "measured to closed form"]
        for e in entries:
            form = f"{report.number(e['closed_form_ms'])} {e['closed_form']}"
            wait = {name: e["wait"][f"{key}_ms"] for name, key in
                    (("ratio", "mean"), ("low", "low"), ("high", "high"))}
            said = ", differs" if e["verdict"] == "differs" else ""
            lines.append(f"  {e['mode']:<12}{report.interval(wait):<20}"
                         f"{form:<24}{report.interval(e)}{said}")
        lines += ["WARNING: stock's closed form lies outside of its interval: "
                  "other load on this machine?" for e in entries
                  if e["mode"] == "stock" and e["verdict"] == "differs"]
    lines += ["", "Closed form of stock: interrupts stay with their vCPU. "
              "Ideal steering: they go to one that runs,",
              "or else to the one that runs first; less than that only boosts "
              "can reach."]
    return "\n".join(lines)


def parameters(scenario):
    """What the modes' modules were loaded with."""
    lines = []
    for name, mode in scenario["ran_on"]["modes"].items():
        words = [f"{side} {params}" for side, params in (
            ("host", mode["host_params"]), ("guest", mode["params"]))
            if params]
        if words:
            lines.append(f"  {name:<12}{'; '.join(words)}")
    if lines:
        lines.insert(0, "Parameters of the modules that are not their "
                     "defaults:")
    return "\n".join(lines)


def notes(scenario):
    lines = [f"{slice_name(e['slice'])}, {e['mode']}: {e['above_slice']} of "
             f"{e['n']} round trips above one slice of {e['slice_ms']:g} ms"
             for e in scenario["results"] if "above_slice" in e]
    if scenario["other_cpus_used"] > .1:
        lines.append(f"Others used {scenario['other_cpus_used']:.1f} CPUs of "
                     "this machine during the run: differences may be theirs.")
    if scenario["rounds"] == 1:
        lines.append("One round: the intervals do not hold what differs from "
                     "phase to phase.")
    lines += [f"Missing: {m}" for m in scenario["missing"]]
    return "\n".join(lines)


FOOT = f"""Latencies: round trips of ping and of {scenarios.UDP_BYTES} byte UDP messages (echo server in the guest's
user space, one message at a time); fio: random reads of 4 KB from virtio-blk on a file in the
host's memory, one and eight at a time. tcp-in and tcp-out, as seen from the guest: iperf3 with
writes of that many bytes. tcp-rr, udp-rr: requests a second, one at a time, bytes of request/
response. share: of the CPU, what the other guest gets; switches of that CPU to a task. sysbench:
time for a given work. Intervals (in the JSON, the plot and with the targets): 95 %, bootstrap
over rounds and seconds. Lost messages count as the slowest."""
