# SPDX-License-Identifier: GPL-2.0
"""The demo's table and its reading, for an 100 column terminal."""
from . import modeset


def number(value):
    """Three significant digits, no exponent."""
    if value is None:
        return "lost"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def interval(ratio):
    """Ratio with its interval: 1.02 (0.95-1.10)."""
    if not ratio or ratio["ratio"] is None:
        return "-"
    text = number(ratio["ratio"])
    if ratio["low"] is None or ratio["high"] is None:
        return text + " (?)"
    return f"{text} ({number(ratio['low'])}-{number(ratio['high'])})"


def slice_name(run):
    ms = f"{run['base_slice_ns'] / 1e6:.3g} ms"
    return f"default slice ({ms})" if run["slice"] == "default" \
        else f"slices of {ms}"


def groups(runs):
    """Runs by slice, in the order they come."""
    out = {}
    for run in runs:
        out.setdefault((run["slice"], run["base_slice_ns"]), []).append(run)
    return list(out.values())


def table(runs):
    head = (f"{'mode':<12}{'p50':>7}{'p90':>7}{'p99':>7}{'max':>7}"
            f"{'lost/sent':>11}  {'p50 to stock':<18}{'p99 to stock':<18}"
            f"{'moves':>6}")
    lines = ["Round trips in ms: ping through vhost-net into a guest whose "
             "4 vCPUs share one CPU", "", head, "-" * len(head)]
    for group in groups(runs):
        text = slice_name(group[0])
        stock = next((r for r in group if r["mode"] == "stock"), None)
        if stock and stock["mean_turn_ns"]:
            text += (f"; a vCPU runs {stock['mean_turn_ns'] / 1e6:.1f} ms "
                     "a turn in stock")
        lines.append(text)
        for run in group:
            rtt, ratio = run["rtt_ms"], run.get("ratio_to_stock", {})
            same = run["mode"] == "stock"
            lines.append(
                f"  {run['mode']:<10}"
                + "".join(f"{number(rtt[k]):>7}"
                          for k in ("p50", "p90", "p99", "max"))
                + f"{rtt['lost']:>5}/{rtt['n']:<5}  "
                + f"{'1' if same else interval(ratio.get('p50')):<18}"
                + f"{'1' if same else interval(ratio.get('p99')):<18}"
                + f"{run['moves']:>6}")
    most = max((r["rtt_ms"]["n"] for r in runs), default=0)
    lines += ["", "to stock: ratio with its 95 % interval (bootstrap over "
              "rounds and seconds); above 1 is slower",
              "than stock. Lost packets count as the slowest. The p99 of "
              f"{most} pings rests on the slowest {most // 100 + 1}.",
              "moves: retargeted interrupts; for irqbalance those found "
              "elsewhere at the end of a phase.",
              f"irqbalance runs with -t {modeset.IRQBALANCE_S}: it looks every "
              f"{modeset.IRQBALANCE_S} s, not every 10 s as by default, as a "
              "phase is short."]
    return "\n".join(lines)


def warnings(phases, other_cpus):
    """What may have spoilt the figures."""
    lines = []
    if other_cpus > .1:
        lines.append(f"Others used {other_cpus:.1f} CPUs of this machine "
                     "during the run: expect longer tails in all modes.")
    for p in phases:
        foreign = p["counters"].get("guest/stats", {}).get("foreign", 0)
        if foreign:
            lines.append(f"Phase {p['index']} ({p['mode']}): {foreign} "
                         "foreign moves seen; the module kept off for a "
                         "while.")
        if p.get("not_put_back"):
            lines.append(f"Phase {p['index']} ({p['mode']}): "
                         f"{p['not_put_back']} interrupts not back in place "
                         "after unloading.")
    return "\n".join(lines)


def verdict(ratio):
    """What a ratio with its interval allows to say."""
    if not ratio or ratio.get("low") is None or ratio.get("high") is None:
        return "no interval: too few answers"
    if ratio["low"] > 1:
        return "slower than stock"
    if ratio["high"] < 1:
        return "faster than stock"
    return "no difference beyond noise"


def reading(runs):
    """What was expected and what was seen, in words."""
    lines = []
    for group in groups(runs):
        mode = {r["mode"]: r for r in group}
        lines.append(slice_name(group[0]) + ":")
        if "idle" in mode and "stock" in mode:
            idle = mode["idle"]["rtt_ms"]["p50"]
            stock = mode["stock"]["rtt_ms"]["p50"]
            if idle and stock:
                lines.append(f"  stock      {number(stock / idle)} times the "
                             "idle guest's p50")
        for name in mode:
            if name in ("idle", "stock"):
                continue
            ratios = mode[name].get("ratio_to_stock")
            if not ratios:
                continue
            said = {}
            for q, ratio in ratios.items():
                said.setdefault(verdict(ratio), []).append(q)
            text = "; ".join(f"{', '.join(qs)} {what}"
                             for what, qs in said.items())
            source = mode[name].get("source")
            lines.append(f"  {name:<10} {text}"
                         + (f" (source {source})" if source else ""))
    return "\n".join(lines)


# Beyond its interval by more than this, a figure needs another explanation
# than chance and the tick.
SUSPECT_PERCENT = 25


def check_verdicts(entry):
    """How each figure with an interval compares with the closed form."""
    lines = []
    for f in entry["figures"]:
        if "verdict" not in f:
            continue
        said = "agrees"
        if f["verdict"] != "agrees":
            said = f"differs by {f['agreement_percent'] - 100:+.0f} %"
        lines.append(f"  {f['figure']:<5}{said} (measured "
                     f"{number(f['measured_ms'])}, 95 % interval "
                     f"{number(f['low_ms'])}-{number(f['high_ms'])})")
    for f in entry["figures"]:
        if f.get("outside_percent", 0) > SUSPECT_PERCENT:
            lines.append(
                f"WARNING: {f['figure']}: the closed form lies "
                f"{f['outside_percent']:.0f} % outside of the interval: "
                "other load on this machine?")
    return lines


def checks(entries):
    """Stock against the closed form."""
    if not entries:
        return "Check of the lab: not possible without stock and idle."
    names = [f["figure"] for f in entries[0]["figures"]]
    lines = ["Check of the lab: waits in stock (round trip less the idle "
             "guest's p50) against the closed",
             "form for k = 4 vCPUs on one CPU; S is the slice rounded up to "
             "the scheduler's tick. In ms:", "",
             " " * 31 + "".join(f"{n:>8}" for n in names)]
    for e in entries:
        lines.append(f"{slice_name(e)}, S = "
                     f"{e['slice_in_effect_ns'] / 1e6:.3g} ms, "
                     f"idle p50 {e['floor_ms']:.2f} ms")
        for label, key in (("closed form", "expected_ms"),
                           ("measured", "measured_ms")):
            lines.append(f"  {label:<29}"
                         + "".join(f"{number(f[key]):>8}"
                                   for f in e["figures"]))
        lines.append(f"  {'measured, % of closed form':<29}"
                     + "".join("       -" if f["agreement_percent"] is None
                               else f"{f['agreement_percent']:>7.0f}%"
                               for f in e["figures"]))
        lines += check_verdicts(e)
    lines.append("max and p99 rest on a few pings and are only shown.")
    return "\n".join(lines)
