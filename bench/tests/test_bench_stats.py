#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""vbbench.stats and vbbench.theory."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from vbbench import stats, theory  # noqa: E402


class Quantiles(unittest.TestCase):
    def test_nearest_rank(self):
        data = list(range(1, 101))
        self.assertEqual(stats.quantile(data, .5), 50)
        self.assertEqual(stats.quantile(data, .99), 99)
        self.assertEqual(stats.quantile(data, 1), 100)
        self.assertEqual(stats.quantile(data, 0), 1)
        self.assertEqual(stats.quantile([7], .99), 7)

    def test_rank_is_exact_where_floats_are_not(self):
        # 0.07 * 100 is 7.000000000000001
        self.assertEqual(stats.quantile(list(range(1, 101)), .07), 7)

    def test_empty(self):
        with self.assertRaises(ValueError):
            stats.quantile([], .5)


class Summary(unittest.TestCase):
    def test_lost_is_slowest(self):
        s = stats.summary([1.0] * 95 + [None] * 5)
        self.assertEqual(s["p50"], 1.0)
        self.assertEqual(s["p90"], 1.0)
        self.assertIsNone(s["p99"])
        self.assertEqual(s["max"], 1.0)
        self.assertEqual((s["n"], s["lost"]), (100, 5))

    def test_losing_slow_packets_does_not_help(self):
        slow = [1.0] * 80 + [50.0] * 20
        lossy = [1.0] * 80 + [None] * 20
        self.assertEqual(stats.summary(slow)["p90"], 50.0)
        self.assertIsNone(stats.summary(lossy)["p90"])

    def test_all_lost_and_none_sent(self):
        s = stats.summary([None, None])
        self.assertEqual((s["p50"], s["max"], s["mean"], s["lost"]),
                         (None, None, None, 2))
        self.assertEqual(stats.summary([])["n"], 0)


class Blocks(unittest.TestCase):
    def test_cover_everything_in_order(self):
        for n in range(1, 60):
            for length in range(1, 25):
                data = list(range(n))
                pieces = stats.blocks(data, length)
                self.assertEqual(sum(pieces, []), data)
                self.assertTrue(all(pieces))


class Bootstrap(unittest.TestCase):
    def rounds(self, rng, scale, n=3, per_round=100):
        return {r: [scale * rng.expovariate(1) + .1 for _ in range(per_round)]
                for r in range(n)}

    def test_equal_samples_give_an_interval_around_one(self):
        rng = random.Random(3)
        a, b = self.rounds(rng, 1), self.rounds(rng, 1)
        ratio, low, high = stats.bootstrap_ratio(a, b, [.5], 10,
                                                 resamples=300)[.5]
        self.assertLess(low, ratio)
        self.assertGreater(high, ratio)
        self.assertLess(low, 1.1)
        self.assertGreater(high, .9)

    def test_true_ratio_is_covered(self):
        inside = 0
        for seed in range(30):
            rng = random.Random(seed)
            a, b = self.rounds(rng, 3), self.rounds(rng, 1)
            truth = (3 * .6931 + .1) / (.6931 + .1)
            _, low, high = stats.bootstrap_ratio(
                a, b, [.5], 10, random.Random(seed), resamples=200)[.5]
            inside += low <= truth <= high
        # With three rounds only the interval is a little narrow.
        self.assertGreaterEqual(inside, 25)

    def test_same_seed_same_interval(self):
        rng = random.Random(4)
        a, b = self.rounds(rng, 1), self.rounds(rng, 2)

        def once():
            return stats.bootstrap_ratio(a, b, [.5, .9], 10,
                                         random.Random(9), resamples=100)
        self.assertEqual(once(), once())

    def test_correlated_samples_widen_the_interval(self):
        rng = random.Random(5)
        runs = {0: [v for _ in range(20) for v in [rng.random() + .1] * 20]}
        other = {0: [v for _ in range(20) for v in [rng.random() + .1] * 20]}

        def width(block):
            _, low, high = stats.bootstrap_ratio(
                runs, other, [.5], block, random.Random(1), 300)[.5]
            return high - low
        self.assertGreater(width(20), width(1))

    def test_lost_percentiles(self):
        a = {0: [1.0] * 50 + [None] * 50}
        b = {0: [1.0] * 100}
        ratio, low, high = stats.bootstrap_ratio(a, b, [.9], 100,
                                                 resamples=50)[.9]
        self.assertEqual((ratio, low, high), (None, None, None))
        self.assertEqual(stats.bootstrap_ratio({}, {}, [.5], 10)[.5],
                         (None, None, None))


class Waits(unittest.TestCase):
    def rotation(self, rng, k=4, s=32, floor=2, rounds=3, per_round=100):
        def wait():
            phase = rng.random() * k * s
            return 0 if phase < s else k * s - phase
        return ({r: [floor + wait() for _ in range(per_round)]
                 for r in range(rounds)},
                {r: [floor + rng.random() - .5 for _ in range(per_round // 2)]
                 for r in range(rounds)})

    def test_closed_form_is_covered(self):
        want = {"mean": theory.mean_wait(4, 32),
                "p50": theory.quantile_wait(4, 32, .5),
                "p90": theory.quantile_wait(4, 32, .9)}
        inside = dict.fromkeys(want, 0)
        for seed in range(20):
            rng = random.Random(seed)
            found = stats.bootstrap_waits(*self.rotation(rng), 20,
                                          random.Random(seed), 200)
            for name, (low, high) in found.items():
                self.assertLess(high - low, want[name])
                inside[name] += low <= want[name] <= high
        # With three rounds only the interval is a little narrow.
        self.assertGreaterEqual(min(inside.values()), 14)

    def test_lost_and_none(self):
        idle = {0: [1.0] * 10}
        found = stats.bootstrap_waits({0: [3.0] * 10 + [None] * 10}, idle, 20,
                                      resamples=20)
        self.assertEqual(found["mean"], (2, 2))
        self.assertEqual(found["p90"], (None, None))
        for a, b in (({}, {}), ({0: [None]}, idle), (idle, {0: [None]})):
            self.assertEqual(stats.bootstrap_waits(a, b, 1, resamples=20),
                             dict.fromkeys(("mean", "p50", "p90"),
                                           (None, None)))


class Means(unittest.TestCase):
    def test_ratio_of_means_with_blocks_of_two_lengths(self):
        rng = random.Random(4)
        many = {r: [rng.gauss(200, 20) for _ in range(400)] for r in (1, 2)}
        few = {r: [rng.gauss(100, 10) for _ in range(40)] for r in (1, 2)}
        got = stats.bootstrap_ratio(many, few, ["mean", .5], (20, 2),
                                    random.Random(1), 200)
        for q in ("mean", .5):
            point, low, high = got[q]
            self.assertAlmostEqual(point, 2, delta=.1)
            self.assertLess(low, point)
            self.assertLess(point, high)
            self.assertLess(high - low, .3)

    def test_lost_have_no_mean(self):
        got = stats.bootstrap_ratio({1: [1.0, None]}, {1: [1.0, 2.0]},
                                    ["mean"], 2, resamples=20)
        self.assertEqual(got["mean"], (None, None, None))


class Theory(unittest.TestCase):
    def test_figures_of_the_design(self):
        self.assertAlmostEqual(theory.mean_wait(4, 30), 33.75)
        self.assertAlmostEqual(theory.max_wait(4, 30), 90)
        self.assertAlmostEqual(theory.quantile_wait(4, 30, .5), 30)
        self.assertAlmostEqual(theory.quantile_wait(4, 30, 1), 90)
        self.assertEqual(theory.quantile_wait(4, 30, .1), 0)

    def test_quantile_and_cdf_are_inverse(self):
        for q in (.3, .5, .9, .99):
            w = theory.quantile_wait(4, 30, q)
            self.assertAlmostEqual(theory.cdf_wait(4, 30, w), q)
        self.assertEqual(theory.cdf_wait(4, 30, -1), 0)
        self.assertEqual(theory.cdf_wait(4, 30, 90), 1)

    def test_against_a_simulated_rotation(self):
        rng = random.Random(6)
        k, s = 4, 30.0
        waits = []
        for _ in range(40000):
            phase = rng.random() * k * s
            waits.append(0 if phase < s else k * s - phase)
        waits.sort()
        self.assertAlmostEqual(sum(waits) / len(waits),
                               theory.mean_wait(k, s), delta=.5)
        for q in (.5, .9, .99):
            self.assertAlmostEqual(stats.quantile(waits, q),
                                   theory.quantile_wait(k, s, q), delta=1)

    def test_ideal_steering_of_the_design(self):
        # Times less than stock's, for n CPUs with k busy threads each.
        for n, k, times in ((2, 2, 3), (4, 2, 20), (4, 4, 5.9)):
            self.assertAlmostEqual(
                theory.mean_wait(k, 30) / theory.steered_mean_wait(n, k, 30),
                times, delta=.05)
        # Nowhere to go.
        for k in (2, 4):
            self.assertAlmostEqual(theory.steered_mean_wait(1, k, 30),
                                   theory.mean_wait(k, 30))

    def test_ideal_steering_against_simulated_rotations(self):
        rng = random.Random(7)
        s, draws = 30.0, 40000
        for n, k in ((2, 2), (2, 4), (3, 2)):
            total = 0
            for _ in range(draws):
                phases = [rng.random() * k * s for _ in range(n)]
                total += min(0 if p < s else k * s - p for p in phases)
            self.assertAlmostEqual(total / draws,
                                   theory.steered_mean_wait(n, k, s),
                                   delta=.02 * theory.mean_wait(k, s))

    def test_effective_slice(self):
        turns = [(32_000_000 * 10, 96_000_000 * 10, 10)] * 4
        self.assertEqual(theory.effective_slice_ns(turns), 32_000_000)
        self.assertEqual(theory.rotation_ns(turns), 128_000_000)
        self.assertIsNone(theory.effective_slice_ns([(0, 0, 0)]))

    def test_slice_in_effect(self):
        for base, want in ((1_400_000, 4_000_000), (4_000_000, 4_000_000),
                           (30_000_000, 32_000_000)):
            self.assertEqual(theory.slice_in_effect_ns(base, 4_000_000), want)

    def test_check(self):
        rows = {r["figure"]: r for r in theory.check(
            4, 30, 2, {"mean": 35.75, "p50": 47, "p90": None, "max": 92},
            {"mean": (33.75, 34), "p50": (36, 50), "p90": (70, None)})}
        self.assertAlmostEqual(rows["mean"]["agreement_percent"], 100)
        self.assertAlmostEqual(rows["p50"]["agreement_percent"], 150)
        self.assertIsNone(rows["p90"]["agreement_percent"])
        self.assertIsNone(rows["p99"]["measured_ms"])
        self.assertAlmostEqual(rows["max"]["agreement_percent"], 100)
        self.assertEqual(rows["mean"]["verdict"], "agrees")
        self.assertEqual(rows["p50"]["verdict"], "differs")
        self.assertAlmostEqual(rows["p50"]["outside_percent"], 20)
        for figure in ("p90", "p99", "max"):
            self.assertNotIn("verdict", rows[figure])

    def test_verdict_at_the_ends_of_the_interval(self):
        for low, high, want in ((10, 12, ("agrees", 0)),
                                (8, 10, ("agrees", 0)),
                                (12, 20, ("differs", .2)),
                                (5, 7.5, ("differs", .25)),
                                (None, 20, None), (5, None, None)):
            self.assertEqual(theory.verdict(10, low, high), want)


if __name__ == "__main__":
    unittest.main()
