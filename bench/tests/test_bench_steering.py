#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Mean waits against the closed forms, with made-up rotations of two CPUs."""
import functools
import json
import os
import random
import sys
import unittest
from unittest import mock

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "lab")]

from vbbench import benchreport, labrun, metrics  # noqa: E402
from vbbench import modeset, scenarios            # noqa: E402
from vbbench import stats, steering               # noqa: E402

SLICE, TICK_NS, FLOOR = 30_000_000, 4_000_000, 2.5
TURN = 32               # ms: the slice rounded up to the tick
SPREAD = scenarios.SCENARIOS["spread"]
# Of a steered interrupt in the mode: as if boosts halved it.
SCALE = {"full": .5}


def rtts(mode, rng, count=600):
    out = []
    for _ in range(count):
        waits = [0 if p < TURN else 2 * TURN - p for p in
                 (rng.random() * 2 * TURN for _ in range(SPREAD.vcpus))]
        wait = {"alone": 0, "stock": waits[0]}.get(
            mode, min(waits) * SCALE.get(mode, 1))
        out.append(FLOOR + wait)
    return out


class Waits(unittest.TestCase):
    def setUp(self):
        fast = mock.patch.object(stats, "bootstrap_ratio", functools.partial(
            stats.bootstrap_ratio, resamples=100))
        fast.start()
        self.addCleanup(fast.stop)
        rng = random.Random(8)
        self.found = {(SLICE, m): {"ping": {
            r: metrics.Series(rtts(m, rng), 33) for r in (1, 2, 3)}}
            for m in SPREAD.modes}

    def entries(self):
        return {e["mode"]: e for e in steering.table(
            self.found, {SLICE: SLICE / 1e6}, SPREAD.modes, SPREAD.vcpus,
            TICK_NS)}

    def test_each_mode_against_its_closed_form(self):
        found = self.entries()
        self.assertEqual(list(found), [m for m in SPREAD.modes
                                       if m != "alone"])
        self.assertEqual({m for m, e in found.items()
                          if e["closed_form"] == "stock"}, {"stock"})
        self.assertAlmostEqual(found["stock"]["closed_form_ms"], 8)
        self.assertAlmostEqual(found["full"]["closed_form_ms"], 8 / 3)
        for mode, want in (("stock", 1), ("guest-only", 1),
                           ("remap-only", 1), ("full", .5)):
            e = found[mode]
            self.assertAlmostEqual(e["ratio"], want, delta=.15 * want)
            self.assertLess(e["low"], e["ratio"])
            self.assertLess(e["ratio"], e["high"])
            self.assertAlmostEqual(e["wait"]["mean_ms"],
                                   e["ratio"] * e["closed_form_ms"])
            self.assertEqual(e["verdict"] == "agrees",
                             e["low"] <= 1 <= e["high"])
        self.assertEqual(found["full"]["verdict"], "differs")
        json.dumps(found, allow_nan=False)

    def test_lost_are_counted_and_have_no_mean(self):
        before = self.entries()["full"]["wait"]
        self.found[SLICE, "full"]["ping"][1].values.extend([None] * 5)
        after = self.entries()["full"]["wait"]
        self.assertEqual((before["lost"], after["lost"]), (0, 5))
        self.assertAlmostEqual(before["mean_ms"], after["mean_ms"])

    def test_report(self):
        text = benchreport.waits({"waits": list(self.entries().values())})
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertIn("S = 32 ms, 2 CPUs, 2 busy threads on each", text)
        rows = {line.split()[0]: line for line in text.splitlines()
                if line.startswith("  ") and line.split()[0] in SPREAD.modes}
        self.assertEqual(len(rows), 4)
        self.assertIn("8.00 stock ", rows["stock"])
        self.assertIn("2.67 ideal steering ", rows["remap-only"])
        self.assertTrue(rows["full"].endswith(", differs"))
        self.assertNotIn("WARNING", text)

    def test_waits_of_stock_that_cannot_be_are_noticed(self):
        for one in self.found[SLICE, "stock"]["ping"].values():
            one.values[:] = [v + 10 for v in one.values]
        text = benchreport.waits({"waits": list(self.entries().values())})
        self.assertIn("\nWARNING: stock's closed form", text)

    def test_nothing_to_compare(self):
        del self.found[SLICE, "alone"]
        self.assertEqual(self.entries(), {})
        self.assertIn("not possible", benchreport.waits({"waits": []}))
        # Of another scenario.
        self.assertEqual(benchreport.waits({}), "")

    def test_one_mode_is_missing(self):
        del self.found[SLICE, "remap-only"]
        self.found[SLICE, "stock"] = {}
        self.assertEqual(set(self.entries()), {"guest-only", "full"})


class Scenario(unittest.TestCase):
    def test_a_cpu_for_each_vcpu(self):
        for vcpus, spread, cpus in ((3, True, 4), (3, False, 2)):
            words = labrun.options(vcpus, spread=spread)
            self.assertEqual(words[words.index("--cpus") + 1], str(cpus))
            self.assertIn(f"SPREAD={spread:d}", words)
            self.assertIn("CGROUPS=0", words)
        self.assertIn("CGROUPS=1", labrun.options(4, guests=2, cgroups=True))
        self.assertEqual([name for name, s in scenarios.SCENARIOS.items()
                          if s.spread], ["spread"])

    def test_modes_have_their_closed_form(self):
        self.assertEqual({m for m in SPREAD.modes
                          if modeset.MODES[m].guest == "module"},
                         {"guest-only", "remap-only", "full"})
        self.assertIn(steering.FLOOR, SPREAD.modes)


if __name__ == "__main__":
    unittest.main()
