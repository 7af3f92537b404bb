# SPDX-License-Identifier: GPL-2.0
"""The bench's tables and targets, for a 100 column terminal."""
from . import metrics, plan, report

COLUMN = 11


def slice_name(which):
    return "default slice" if which == "default" \
        else f"slices of {which / 1e6:.3g} ms"


def better(entry):
    """How many times better than stock; ~ where that may be noise."""
    found = metrics.times_better(entry)
    if found is None:
        return "-"
    ratio, low, high = found
    return ("~" if low <= 1 <= high else "") + report.number(ratio)


def rows(entries, modes, cell):
    """A line for each metric, a column for each mode."""
    out = [" " * 22 + "".join(f"{m:>{COLUMN}}" for m in modes)]
    names = list(dict.fromkeys(e["metric"] for e in entries))
    for name in names:
        found = {e["mode"]: e for e in entries if e["metric"] == name}
        unit = next(iter(found.values()))["unit"]
        out.append(f"{name + ', ' + unit:<22}" + "".join(
            f"{cell(found[m]) if m in found else '-':>{COLUMN}}"
            for m in modes))
    return out


def tables(scenario):
    """Values and ratios of one scenario, slice by slice."""
    modes = scenario["modes"]
    lines = [f"{scenario['name']}: {scenario['text']}"]
    for which in scenario["slices"]:
        entries = [e for e in scenario["results"] if e["slice"] == which]
        if not entries:
            continue
        lines += ["", slice_name(which)]
        lines += rows(entries, modes, lambda e: report.number(e["value"]))
        others = [m for m in modes if m != "stock"]
        if any("to_stock" in e for e in entries):
            lines += ["", f"{slice_name(which)}: times better than stock "
                      "(~: may be noise)"]
            lines += rows(entries, others, better)
    return "\n".join(lines)


def target(t):
    limit = t["limit"]
    if t["against"] == "idle":
        want = f"at most {limit:g}x idle"
    elif limit > 1:
        want = f"{limit:g}x better than stock"
    else:
        want = "not below stock" if limit == 1 else \
            f"within {100 * (1 - limit):.0f} % of stock"
    got = "-"
    if "measured" in t:
        got = (f"{report.number(t['measured'])}x "
               f"({report.number(t['low'])}-{report.number(t['high'])})")
    where = "" if t["slice"] == "default" else f", {t['slice'] // 10**6} ms"
    return (f"  {t['mode']}{where}, {t['metric']}: target {want}: {got}: "
            f"{t['verdict']}")


def targets(scenario):
    found = scenario["targets"]
    if not found:
        return ""
    reached = sum(t["verdict"].startswith("reached") for t in found)
    return "\n".join([f"{scenario['name']}: {reached} of {len(found)} "
                      "targets reached"] + [target(t) for t in found])


def notes(scenario):
    lines = []
    if scenario["name"] == "stacked":
        lines.append("Not measured: vCPUs spread over several CPUs. The "
                     "emulator is not reliable there.")
    if scenario["other_cpus_used"] > .1:
        lines.append(f"Others used {scenario['other_cpus_used']:.1f} CPUs of "
                     "this machine during the run: differences may be theirs.")
    if scenario["rounds"] == 1:
        lines.append("One round: the intervals do not hold what differs from "
                     "phase to phase.")
    lines += [f"Missing: {m}" for m in scenario["missing"]]
    return "\n".join(lines)


FOOT = f"""Latencies: round trips of ping and of {plan.UDP_BYTES} byte UDP messages (echo server in the guest's
user space, one message at a time); fio: random reads of 4 KB from virtio-blk on a file in the
host's memory, one and eight at a time. tcp-in and tcp-out, as seen from the guest: iperf3 with
writes of that many bytes. Intervals (in the JSON, the plot and with the targets): 95 %,
bootstrap over rounds and seconds. Lost messages count as the slowest."""
