# SPDX-License-Identifier: GPL-2.0
"""Round trips over time, after figure 5 of the vBalance paper.

Runs by itself in the folder with demo.json and demo-samples.json (needs
matplotlib) and writes demo.svg and demo.png there.
"""
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = {"idle": "#6b7280", "alone": "#6b7280", "stock": "#b91c1c", "irqbalance": "#c2710c",
           "paper": "#6d28d9", "cost": "#0f6ab4", "guest-only": "#db2777",
           "host-only": "#0f766e", "remap-only": "#b45309",
           "full": "#15803d", "share-4": "#4d7c0f"}
TITLES = {"idle": "idle guest", "alone": "CPUs not shared", "stock": "stock KVM",
          "irqbalance": "irqbalance", "paper": "vBalance\npolicy=paper",
          "cost": "vBalance\npolicy=cost", "guest-only": "vBalance\nguest-only",
          "host-only": "vBalance\nhost-only",
          "remap-only": "vBalance\nremapping only",
          "full": "vBalance\nfull",
          "share-4": "vBalance\nboost_share=4"}


def save(figure, name):
    """As SVG (the same data give the same file) and as PNG."""
    matplotlib.rcParams["svg.hashsalt"] = "vbalance"
    figure.savefig(f"{name}.svg", metadata={"Date": None})
    figure.savefig(f"{name}.png", dpi=110)
    plt.close(figure)


def rows(ax):
    """Figures of named rows: lines for the figures only."""
    ax.grid(axis="x", color="#d1d5db", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)


def load():
    with open("demo.json") as f:
        demo = json.load(f)
    with open("demo-samples.json") as f:
        samples = json.load(f)
    return demo, samples


def points(samples, run):
    """Times (measured seconds, phases one after the other), round trips,
    times of losses, borders between rounds."""
    times, rtts, lost, borders, offset = [], [], [], [], 0.0
    for phase in samples["phases"]:
        if (phase["mode"], phase["slice"], phase["base_slice_ns"]) != \
                (run["mode"], run["slice"], run["base_slice_ns"]):
            continue
        if offset:
            borders.append(offset)
        for t, rtt in phase["samples"]:
            if rtt is None:
                lost.append(offset + t)
            else:
                times.append(offset + t)
                rtts.append(rtt)
        offset += len(phase["samples"]) * phase["interval_ms"] / 1000
    return times, rtts, lost, borders, offset


def number(value):
    if value is None:
        return "lost"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def qemu(text):
    """QEMU emulator version 10.0.13 (Debian ...) -> QEMU 10.0.13"""
    return (text or "QEMU").split(" (")[0].replace(" emulator version", "")


def slice_title(run):
    ms = f"{run['base_slice_ns'] / 1e6:.3g} ms"
    return f"default slice, {ms}" if run["slice"] == "default" \
        else f"slices of {ms}"


def draw(demo, samples):
    runs = demo["runs"]
    rows, cols = [], []
    for r in runs:
        if (r["slice"], r["base_slice_ns"]) not in rows:
            rows.append((r["slice"], r["base_slice_ns"]))
        if r["mode"] not in cols:
            cols.append(r["mode"])
    longest = max(points(samples, r)[4] for r in runs)
    slowest = max(r["rtt_ms"]["max"] or 1 for r in runs)
    top = 10 ** (len(str(int(slowest))) - 1)
    top = next(m * top for m in (2, 4, 8, 20) if m * top >= slowest * 1.25)
    fastest = min(rtt for p in samples["phases"] for _, rtt in p["samples"]
                  if rtt)
    bottom = next((b for b in (1, .5, .2, .1) if b <= fastest * .9), .05)
    figure, axes = plt.subplots(
        len(rows), len(cols), sharex=True, sharey=True, squeeze=False,
        figsize=(1.9 * len(cols) + 1.2, 3.1 * len(rows) + 1.3))
    for y, row in enumerate(rows):
        for x, mode in enumerate(cols):
            ax = axes[y][x]
            run = next((r for r in runs if r["mode"] == mode and
                        (r["slice"], r["base_slice_ns"]) == row), None)
            if run is None:
                ax.axis("off")
                continue
            panel(ax, run, samples, (bottom, top), longest)
            if y == 0:
                ax.set_title(TITLES.get(mode, mode), fontsize=11,
                             color=COLOURS.get(mode, "black"),
                             fontweight="bold", pad=8)
            if x == 0:
                ax.set_ylabel(f"{slice_title(run)}\n\nround trip, ms")
            if y == len(rows) - 1:
                ax.set_xlabel("time, s")
    on = demo["ran_on"]
    figure.suptitle(
        "Round trips over time: ping into a guest with 4 busy vCPUs on one "
        "CPU", fontsize=13, x=0.012, ha="left")
    figure.text(
        0.012, 0.012,
        f"Logarithmic scale. Dashed: p50. Grey lines: borders of rounds, in "
        "which the modes take turns. Crosses: lost. Time: only what was "
        "measured, the idle guest for less.\nEmulated host: compare the panels, not "
        f"absolute times. Host {on.get('l1_kernel')}, guest "
        f"{on.get('l2_kernel')}, {qemu(on.get('qemu_l1'))}, "
        f"{on.get('cpus')} CPUs, {on.get('date', '')[:10]}.",
        fontsize=7.5, color="#4b5563")
    figure.tight_layout(rect=(0, 0.05, 1, 0.975))
    return figure


def panel(ax, run, samples, limits, longest):
    times, rtts, lost, borders, _ = points(samples, run)
    colour = COLOURS.get(run["mode"], "black")
    rtt = run["rtt_ms"]
    for border in borders:
        ax.axvline(border, color="#d1d5db", linewidth=0.8, zorder=0)
    ax.plot(times, rtts, linestyle="none", marker="o", markersize=2.2,
            markeredgewidth=0, color=colour, alpha=0.65)
    if lost:
        ax.plot(lost, [limits[1] * 0.4] * len(lost), linestyle="none", marker="x",
                markersize=6, color="black")
    if rtt["p50"] is not None:
        ax.axhline(rtt["p50"], color="black", linewidth=0.9,
                   linestyle=(0, (5, 3)))
    ax.set_yscale("log")
    ax.minorticks_off()
    ax.set_ylim(*limits)
    ax.set_xlim(0, longest)
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.grid(axis="y", which="major", color="#e5e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    text = f"p50 {number(rtt['p50'])}  p99 {number(rtt['p99'])}"
    if rtt["lost"]:
        text += f"\nlost {rtt['lost']}"
    ax.text(0.98, 0.985, text, transform=ax.transAxes, ha="right", va="top",
            fontsize=9, bbox={"facecolor": "white", "edgecolor": "none",
                              "alpha": 0.85, "pad": 1.5})


def main():
    demo, samples = load()
    save(draw(demo, samples), "demo")


if __name__ == "__main__":
    main()
