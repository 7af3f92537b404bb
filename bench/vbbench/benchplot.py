# SPDX-License-Identifier: GPL-2.0
"""How many times better than stock each mode is, for every figure of the bench.

Runs by itself in the folder with bench.json (needs matplotlib) and writes
bench-SCENARIO.svg and bench-SCENARIO.png there.
"""
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import plot, waitplot  # noqa: E402


def times_better(entry):
    ratio = entry.get("to_stock")
    if not ratio or None in ratio.values() or min(ratio.values()) <= 0:
        return None
    found = [ratio["ratio"], ratio["low"], ratio["high"]]
    if not entry["more_is_better"]:
        found = [1 / found[0], 1 / found[2], 1 / found[1]]
    return found


def panel(ax, scenario, which):
    entries = [e for e in scenario["results"] if e["slice"] == which]
    names = list(dict.fromkeys(e["metric"] for e in entries))
    modes = [m for m in scenario["modes"] if m != "stock"]
    ax.axvline(1, color="black", linewidth=0.9)
    for y in range(0, len(names), 2):
        ax.axhspan(y - .5, y + .5, color="#f3f4f6", zorder=0)
    for i, mode in enumerate(modes):
        shift = .76 * ((i + .5) / len(modes) - .5)
        points = [(y + shift, times_better(e)) for y, name in enumerate(names)
                  for e in entries if (e["metric"], e["mode"]) ==
                  (name, mode) and times_better(e)]
        colour = plot.COLOURS.get(mode, "black")
        for y, (_, low, high) in points:
            ax.plot([low, high], [y, y], color=colour, linewidth=1.2)
        ax.plot([p[0] for _, p in points], [y for y, _ in points],
                linestyle="none", marker="o", markersize=3.6,
                markeredgewidth=0, color=colour,
                label=plot.TITLES.get(mode, mode).replace("\n", ", "))
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
    low, high = ax.get_xlim()
    ticks = (.02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50) if high > 2 * low \
        else (.5, .6, .7, .8, .9, 1, 1.1, 1.2, 1.3, 1.5, 1.7)
    ticks = [t for t in ticks if low <= t <= high]
    ax.set_xticks(ticks)
    ax.minorticks_off()
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - .5, -.5)
    plot.rows(ax)
    ax.set_xlabel("times better than stock")
    ax.set_title(f"{scenario['name']}, {slice_name(which)}", fontsize=11,
                 loc="left", fontweight="bold")


def slice_name(which):
    return "default slice" if which == "default" \
        else f"slices of {which / 1e6:g} ms"


def draw(scenario):
    slices = [which for which in scenario["slices"]
              if any("to_stock" in e for e in scenario["results"]
                     if e["slice"] == which)]
    if not slices:
        return None
    lines = len({e["metric"] for e in scenario["results"]})
    height = .36 * lines + 2.3
    waits = scenario.get("waits")
    panels = len(slices) * (2 if waits else 1)
    if waits:
        height = max(height, 4.2)
    figure, axes = plt.subplots(
        1, panels, squeeze=False,
        figsize=(4.7 * max(panels, 1.5) + 0.3, height))
    legend = {}
    for ax, which in zip(axes[0][len(slices):], slices):
        waitplot.panel(ax, [e for e in waits if e["slice"] == which],
                       "mean wait and its closed forms")
    for ax, which in zip(axes[0], slices):
        panel(ax, scenario, which)
        handles, labels = ax.get_legend_handles_labels()
        legend.update(zip(labels, handles))
    figure.legend(legend.values(), legend.keys(), loc="upper left",
                  ncols=min(len(legend), 4), frameon=False,
                  fontsize=9, bbox_to_anchor=(0.005, 0.995))
    lines = ("Vertical lines of waits: interrupts stay with their vCPU "
             "(stock), or go to the one that runs or runs first (dashed). "
             if waits else "")
    figure.text(0.012, 0.012,
                "Right of 1 is better than stock; bars: 95 % intervals. "
                f"Logarithmic scale. {lines}\n{scenario['text']}.",
                fontsize=7.5, color="#4b5563", va="bottom")
    top = .3 * -(-len(legend) // 4) + .1
    figure.tight_layout(rect=(0, .45 / height, 1, 1 - top / height))
    return figure


def main():
    with open("bench.json") as f:
        bench = json.load(f)
    for scenario in bench["scenarios"]:
        figure = draw(scenario)
        if figure is not None:
            plot.save(figure, f"bench-{scenario['name']}")


if __name__ == "__main__":
    main()
