# SPDX-License-Identifier: GPL-2.0
"""Which mode is measured when: rounds of short phases in one boot."""
import dataclasses
import random

MODES = ("idle", "stock", "irqbalance", "paper", "cost")
SLICES = ("default", 30_000_000)

# The paper pings at 100 ms; a finer interval gives more samples in the time
# there is, and still leaves the guest alone for most of it. This is the mean:
# bench/src/jping.c sends at random times, because four stacked vCPUs take
# turns every 120 ms with 30 ms slices (128 ms when the scheduler's 4 ms tick
# rounds them up) and every 16 ms with the default: fixed intervals would visit
# the same few moments of that rotation again and again.
INTERVAL_MS = 50

# How often irqbalance looks, its -t. Its default of 10 s would not let it act
# even once in a phase of the demo; like this it gets in a phase about as many
# looks as in the paper's minute. Nothing else about it is changed.
IRQBALANCE_S = 1

# Unmeasured pings before the measured ones: the scheduler, irqbalance and the modules see the load first.
WARM_S = 1.2
# What a switch of modes takes on top (seen: about a second).
SWITCH_S = 1.3
# Nothing varies in the idle guest: less time is enough.
IDLE_SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class Phase:
    index: int          # from 1
    round: int          # from 1
    slice: object       # "default" or nanoseconds
    mode: str
    interval_ms: int
    warm: int           # pings
    count: int
    seed: int           # of the times of the pings

    @property
    def pings(self):
        return self.warm + self.count

    @property
    def seconds(self):
        return self.pings * self.interval_ms / 1000 + SWITCH_S

    def line(self):
        """One line of the plan file that the L1 script follows."""
        return (f"{self.index} {self.round} {self.slice} {self.mode} "
                f"{self.interval_ms * 1000} {self.pings} {self.seed}")


def make(rounds, seconds, modes=MODES, slices=SLICES, seed=2012):
    """Phases in order. Within a round each slice comes once and under it each
    mode once, in an order shuffled anew with a fixed seed, so that no mode
    always follows the same other one or always comes late."""
    rng = random.Random(seed)
    phases = []
    for r in range(1, rounds + 1):
        for s in rng.sample(slices, len(slices)):
            for mode in rng.sample(modes, len(modes)):
                share = IDLE_SHARE if mode == "idle" else 1
                # The modes of a round get their pings at the same times.
                phases.append(Phase(
                    len(phases) + 1, r, s, mode, INTERVAL_MS,
                    round(WARM_S * 1000 / INTERVAL_MS),
                    max(1, round(seconds * share * 1000 / INTERVAL_MS)),
                    seed + r))
    return phases


def total_seconds(phases):
    return sum(p.seconds for p in phases)
