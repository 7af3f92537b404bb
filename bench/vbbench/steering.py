# SPDX-License-Identifier: GPL-2.0
"""Mean waits of the scenario `spread` against the closed forms."""
from . import metrics, modeset, stats, theory

# A vCPU and a busy thread of the host.
BUSY_PER_CPU = 2


# A wait is what a round trip takes longer than there: a busy guest that need not
# wait. An idle one has to be woken, which takes longer than an interrupt of a
# vCPU that runs.
FLOOR = "alone"


def answered(rounds):
    return {r: metrics.Series([v for v in s.values if v is not None],
                              s.per_second) for r, s in rounds.items()}


def wait_of(rounds, alone, seed):
    """Mean wait of the answered round trips with its interval, ms; None where
    none were."""
    found = metrics.compare(answered(rounds), answered(alone), "mean", seed,
                            difference=True)
    if found["difference"] is None:
        return None
    samples, floor = (stats.summary([v for s in side.values()
                                     for v in s.values])
                      for side in (rounds, alone))
    return {"mean_ms": found["difference"], "low_ms": found["low"],
            "high_ms": found["high"], "floor_ms": floor["mean"],
            "n": samples["n"], "lost": samples["lost"]}


def table(found, slices_ms, modes, cpus, tick_ns, seed=2012):
    """One entry per slice and mode. @found: from metrics.read_all();
    @slices_ms: from metrics.slices_ms().

    Whom the closed form is of: stock's, where interrupts stay with a vCPU,
    and that of ideal steering, where they can go to another."""
    out = []
    for which, base in slices_ms.items():
        turn = theory.slice_in_effect_ns(base * 1e6, tick_ns) / 1e6
        stays = theory.mean_wait(BUSY_PER_CPU, turn)
        steered = theory.steered_mean_wait(cpus, BUSY_PER_CPU, turn)
        pings = {m: found.get((which, m), {}).get("ping") for m in modes}
        alone = pings.get(FLOOR)
        for mode in modes:
            if not modeset.MODES[mode].rivals or not alone or \
                    not pings[mode]:
                continue
            wait = wait_of(pings[mode], alone, seed)
            if wait is None:
                continue
            ideal = modeset.MODES[mode].guest == "module"
            form = steered if ideal else stays
            low, high = wait["low_ms"], wait["high_ms"]
            said = theory.verdict(form, low, high)
            out.append({
                "slice": which, "mode": mode, "slice_in_effect_ms": turn,
                "cpus": cpus, "busy_per_cpu": BUSY_PER_CPU, "wait": wait,
                "closed_form": "ideal steering" if ideal else "stock",
                "closed_form_ms": form,
                "ratio": wait["mean_ms"] / form,
                "low": low and low / form, "high": high and high / form,
                "verdict": said and said[0]})
    return out
