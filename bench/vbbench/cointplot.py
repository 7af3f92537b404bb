# SPDX-License-Identifier: GPL-2.0
"""Round trips, streams and request/response, after the CoINT paper's figures 4
and 5.

Runs by itself in the folder with bench.json and bench-samples.json (needs
matplotlib) and writes coint.svg and coint.png there.
"""
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from . import benchplot, plot  # noqa: E402

# Title, beginning of the metrics' names, what follows in the names.
BARS = (("TCP stream, Mbit/s", "tcp-in-", "bytes of a write"),
        ("TCP request/response, 1/s", "tcp-rr ", "bytes of both"),
        ("UDP request/response, 1/s", "udp-rr ", "bytes of both"))


def title(mode):
    return plot.TITLES.get(mode, mode).replace("\n", ", ")


def pings(ax, series, modes):
    """Share of the round trips above a time: the tail is what differs."""
    for mode in modes:
        values = [v for s in series if s["mode"] == mode for v in s["values"]]
        # A lost one never comes.
        answered = sorted(v for v in values if v is not None)
        if not answered:
            continue
        ax.plot(answered, [100 * (1 - i / len(values))
                           for i in range(len(answered))],
                drawstyle="steps-post", linewidth=1.6,
                color=plot.COLOURS.get(mode, "black"))
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set_xlabel("ms")
    ax.set_ylabel("% of round trips above")
    ax.set_title("Ping", fontsize=10, loc="left")
    ax.grid(color="#e5e7eb", linewidth=0.7)


def bars(ax, entries, modes, head, begin, below):
    names = list(dict.fromkeys(e["metric"] for e in entries
                               if e["metric"].startswith(begin)))
    width = .8 / len(modes)
    for i, mode in enumerate(modes):
        value = {e["metric"]: e["value"] for e in entries
                 if e["mode"] == mode}
        ax.bar([x + (i + .5) * width - .4 for x in range(len(names))],
               [value.get(n) or 0 for n in names], width * .92,
               color=plot.COLOURS.get(mode, "black"), label=title(mode))
    ax.set_xticks(range(len(names)), [n[len(begin):] for n in names],
                  rotation=90 if len(names) > 6 else 0, fontsize=8)
    ax.set_title(head, fontsize=10, loc="left")
    ax.set_xlabel(below)
    ax.grid(axis="y", color="#e5e7eb", linewidth=0.7)


def draw(scenario, samples):
    modes, slices = scenario["modes"], scenario["slices"]
    figure, axes = plt.subplots(
        len(slices), 4, squeeze=False, figsize=(17, 3.7 * len(slices) + .8),
        gridspec_kw={"width_ratios": (1, .8, 1.8, 1.8)})
    for row, which in zip(axes, slices):
        entries = [e for e in scenario["results"] if e["slice"] == which]
        pings(row[0], [s for s in samples["series"]
                       if (s["series"], s["slice"]) == ("ping", which)],
              modes)
        for ax, what in zip(row[1:], BARS):
            bars(ax, entries, modes, *what)
        for ax in row:
            ax.set_axisbelow(True)
            for side in ("top", "right"):
                ax.spines[side].set_visible(False)
        row[0].annotate(benchplot.slice_name(which), (0, 1.13),
                        xycoords="axes fraction", fontweight="bold")
    handles, labels = axes[0][1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=len(labels),
                  frameon=False, fontsize=9)
    figure.text(.008, .01, f"{scenario['text']}. Emulated host: compare the "
                "modes, not absolute rates with a real machine's.",
                fontsize=7.5, color="#4b5563")
    figure.tight_layout(rect=(0, .03, 1, .97))
    return figure


def main():
    with open("bench.json") as f:
        bench = json.load(f)
    with open("bench-samples.json") as f:
        samples = json.load(f)
    for one, raw in zip(bench["scenarios"], samples["scenarios"]):
        if one["name"] == "coint" and one["results"]:
            plot.save(draw(one, raw), "coint")


if __name__ == "__main__":
    main()
