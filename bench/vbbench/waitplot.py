# SPDX-License-Identifier: GPL-2.0
"""A panel for benchplot: mean waits beside the closed forms."""
from . import plot


def panel(ax, waits, title):
    modes = [e["mode"] for e in waits]
    forms = {e["closed_form"]: e["closed_form_ms"] for e in waits}
    for name, ms in forms.items():
        ax.axvline(ms, color="black", linewidth=0.9,
                   linestyle=(0, (5, 3)) if name == "ideal steering" else "-")
        ax.annotate(f"{name}\n{ms:.2f} ms", (ms, 1),
                    xycoords=("data", "axes fraction"), xytext=(4, -3),
                    textcoords="offset points", fontsize=8, va="top")
    for y, e in enumerate(waits):
        colour = plot.COLOURS.get(e["mode"], "black")
        wait = e["wait"]
        if None not in (wait["low_ms"], wait["high_ms"]):
            ax.plot([wait["low_ms"], wait["high_ms"]], [y, y], color=colour,
                    linewidth=1.6)
        ax.plot([wait["mean_ms"]], [y], linestyle="none", marker="o",
                markersize=6, markeredgewidth=0, color=colour)
        ax.annotate(f"{e['ratio']:.2f} times {e['closed_form_ms']:.2f} ms",
                    (max(wait["high_ms"] or 0, wait["mean_ms"]), y),
                    xytext=(7, -3), va="baseline", textcoords="offset points",
                    fontsize=8, color=colour,
                    bbox={"facecolor": "white", "edgecolor": "none",
                          "pad": 1})
    ax.set_yticks(range(len(modes)), modes)
    # Above the first mode the closed forms have their names.
    ax.set_ylim(len(modes) - .5, -1.2)
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set_xlim(0, 1.45 * max([*forms.values(), *(
        e["wait"]["high_ms"] or e["wait"]["mean_ms"] for e in waits)]))
    plot.rows(ax)
    ax.set_xlabel("mean wait, ms")
    ax.set_title(title, fontsize=11, loc="left", fontweight="bold")
