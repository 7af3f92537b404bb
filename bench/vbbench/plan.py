# SPDX-License-Identifier: GPL-2.0
"""What is measured when: rounds of short phases in one boot."""
import dataclasses
import random

from . import loads, modeset, scenarios

# What a switch of modes takes on top (seen: 1 to 5 seconds, most of it for
# loading and unloading vbalance_host).
SWITCH_S = 2.5
# Nothing varies in the idle guest: less time is enough.
IDLE_SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class Phase:
    index: int          # from 1
    round: int          # from 1
    slice: object       # "default" or nanoseconds
    mode: str
    tests: tuple

    @property
    def seconds(self):
        return sum(t.seconds for t in self.tests) + SWITCH_S

    def test(self, name):
        return next((t for t in self.tests if t.name == name), None)

    def line(self):
        """One line of the plan file that the L1 script follows."""
        return " ".join([str(self.index), str(self.round), str(self.slice),
                         self.mode, *(t.word() for t in self.tests)])


def make(rounds, tests, modes=tuple(modeset.MODES),
         slices=scenarios.SLICES, seed=2012):
    """Phases in order. Within a round each slice comes once, under it each
    group of tests and there each mode once, in an order shuffled anew with a
    fixed seed, so that no mode always follows the same other one or always
    comes late. What is compared is measured within a minute or two: the
    machine may be slower in the next.

    @tests: called with a mode and a seed, returns groups of tests, each of
    them for a phase. The modes of a round get the same seed: their pings go
    at the same times.
    """
    rng = random.Random(seed)
    phases = []
    for r in range(1, rounds + 1):
        for s in rng.sample(slices, len(slices)):
            for group in range(len(tests(modes[0], seed))):
                for mode in rng.sample(modes, len(modes)):
                    phases.append(Phase(
                        len(phases) + 1, r, s, mode,
                        tuple(tests(mode, seed + r)[group])))
    return phases


def demo(rounds, seconds, modes=modeset.DEFAULT_MODES, seed=2012):
    def tests(mode, ping_seed):
        share = IDLE_SHARE if mode == "idle" else 1
        return [[loads.ping(seconds * share, ping_seed)]]
    return make(rounds, tests, modes, seed=seed)


def bench(rounds, scenario, slices, modes, names, seed=2012):
    """Phases for the tests of @names."""
    def tests(_, ping_seed):
        return scenarios.tests(scenario, names, ping_seed)
    return make(rounds, tests, modes,
                tuple(s for s in scenario.slices if s in slices), seed)


def total_seconds(phases):
    return sum(p.seconds for p in phases)
