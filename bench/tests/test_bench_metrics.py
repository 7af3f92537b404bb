#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The bench: output of its tools, figures, targets and tables."""
import dataclasses
import functools
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "lab")]

from vbbench import benchreport, loads, metrics, modeset    # noqa: E402
from vbbench import parse, plan, scenarios, stats, targets  # noqa: E402

SOCKPERF = """\
------------------------------
test was performed using the following parameters: --mps=max --time=3
------------------------------
sockperf: [Valid Duration] RunTime=2.548 sec; SentMessages=5; ReceivedMessages=4
sockperf: # dropped messages = {lost}; # duplicated messages = 0; # out-of-order messages = 0
------------------------------
packet, txTime(sec), rxTime(sec), rtt(usec)
0, 2.500000000, 2.501000000, 1000.000
1, 2.600000000, 2.602000000, 2000.000
2, 2.700000000, 2.703000000, 3000.000
3, 3.500000000, 3.504000000, 4000.000
------------------------------
"""


def iperf3(bits, step=.25, **more):
    return json.dumps({"intervals": [
        {"sum": {"start": i * step, "seconds": step, "bits_per_second": b}}
        for i, b in enumerate(bits)], **more})


def fio(scale=1, depths=(1, 8), error=0):
    text = "==> json <==\n1 : Saving output of prerun in 1.prerun.txt\n"
    text += json.dumps({"jobs": [
        {"jobname": str(d), "error": error, "read": {
            "iops": 100.0, "clat_ns": {"percentile": {
                "50.000000": 2000000, "99.000000": 5000000}}}}
        for d in depths]}, indent=1) + "\n"
    for n, _ in enumerate(depths, 1):
        text += f"==> fio_clat.{n}.log <==\n" + "".join(
            f"{ms}, {(ms % 7 + 1) * 1000000 * scale}, 0, 4096, 0\n"
            for ms in range(0, 3000, 10))
    return text


def rr(pairs, per_second, seconds=.5):
    """An answer every 1/per_second, none lost."""
    step = 1 / per_second
    return "".join(
        f"==> {pair} <==\n" + "".join(
            f"{i * step:.6f} {step * 900:.3f}\n"
            for i in range(round(seconds * per_second)))
        + f"end {seconds:.6f}\n" for pair in pairs)


def sysbench(kinds, seconds):
    return "".join(
        f"==> {kind}.{n} <==\nsysbench 1.0.20\n\nGeneral statistics:\n"
        f"    total time:                          {s:.4f}s\n"
        "    total number of events:              50\n"
        for n, s in enumerate(seconds, 1) for kind in kinds)


def watched(share, switches, seconds=6):
    """Lines of cpu_sample(): @share of the CPU is the neighbours'."""
    return "".join(
        f"{100 + t:.2f} {1000 + round(switches * t)} {round(5e8 * t)} "
        f"{round(share * 1e9 * t)}\n"
        for t in (i / 2 for i in range(2 * seconds + 1)))


SCENARIOS = scenarios.SCENARIOS


class Tools(unittest.TestCase):
    def test_rr(self):
        got = parse.rr("==> 64/1024 <==\n0.000000 5.250\n0.006000 lost\n"
                       "end 1.010000\n==> 64/2048 <==\nend 0.500000\n")
        self.assertEqual(got, {"64/1024": ([(0, 5.25), (.006, None)], 1.01),
                               "64/2048": ([], .5)})
        for bad in ("", "==> 64/1024 <==\n0.000000 5.250\n",
                    "==> 64/1024 <==\n"):
            with self.assertRaises(parse.ParseError):
                parse.rr(bad)

    def test_sysbench(self):
        got = parse.sysbench(sysbench(("cpu", "mutex"), (1.5, 1.25)))
        self.assertEqual(got, {"cpu": [1.5, 1.25], "mutex": [1.5, 1.25]})
        for bad in ("", "==> cpu.1 <==\nFATAL: no memory\n"):
            with self.assertRaises(parse.ParseError):
                parse.sysbench(bad)

    def test_cpu_samples(self):
        text = "10.50 7 100 200\n11.00 9 150 260\n11.5"
        self.assertEqual(parse.cpu_samples(text),
                         [(10.5, 7, 100, 200), (11, 9, 150, 260)])
        for bad in ("", "11.5", "a b c d\n", "1 2 3\n"):
            with self.assertRaises(parse.ParseError):
                parse.cpu_samples(bad)

    def test_sockperf(self):
        got = parse.sockperf(SOCKPERF.format(lost=1))
        self.assertEqual([round(v, 6) if v else v for _, v in got],
                         [1, 2, 3, 4, None])
        self.assertEqual(got[0][0], 2.5)
        for bad in ("", SOCKPERF.format(lost=0).split("packet")[0],
                    SOCKPERF.split("sockperf: #", maxsplit=1)[0]):
            with self.assertRaises(parse.ParseError):
                parse.sockperf(bad)

    def test_iperf3(self):
        text = iperf3([9e6, 9e6, 5e6, 6e6, 7e6])
        self.assertEqual(parse.iperf3(text, .5), [5, 6, 7])
        # The piece at the end is none of them.
        data = json.loads(text)
        data["intervals"][-1]["sum"]["seconds"] = .01
        self.assertEqual(parse.iperf3(json.dumps(data), .5), [5, 6])
        for bad in ("", "{", iperf3([]), iperf3([1], error="server is busy")):
            with self.assertRaises(parse.ParseError):
                parse.iperf3(bad, .5)

    def test_fio(self):
        got = parse.fio(fio())
        self.assertEqual(sorted(got), [1, 8])
        self.assertEqual((got[8]["p50"], got[8]["p99"]), (2, 5))
        self.assertEqual(got[1]["samples"][1], (.01, 4))
        for bad in ("", "==> json <==\n{}\n", fio(error=5)):
            with self.assertRaises(parse.ParseError):
                parse.fio(bad)


class Rates(unittest.TestCase):
    def test_rates(self):
        times = [i / 100 for i in range(101)]
        self.assertEqual(metrics.rates(times), [100] * 4)
        self.assertEqual(metrics.rates([]), [])
        # Of a time that is known: also what was lost at the end counts.
        self.assertEqual(metrics.rates([0, .1, .2], .5), [12, 0])
        self.assertEqual(metrics.rates([], .5), [0, 0])
        self.assertEqual(metrics.rates([0, .05], .1), [20])
        # A stall is a piece without any.
        self.assertEqual(metrics.rates([0, .1, .2, .8, 1.0]), [12, 0, 0, 4])

    def test_timed(self):
        latency, rate = metrics.timed(parse.sockperf(SOCKPERF.format(lost=1)))
        self.assertEqual(len(latency.values), 5)
        self.assertAlmostEqual(latency.per_second, 5)
        self.assertEqual(sum(rate.values) * metrics.BIN_S, 3)


PING = loads.ping(4, 1)


class Watched(unittest.TestCase):
    def test_only_while_the_test_runs(self):
        samples = parse.cpu_samples(watched(.5, 300))
        # As if nothing had run at both ends.
        samples[0] = (samples[0][0], 0, 0, 0)
        samples[-1] = (samples[-1][0] + .2, 9 ** 9, 9 ** 9, 9 ** 9)
        got = metrics.watched(PING, samples)
        self.assertEqual(len(got["ping share"].values), 9)
        for value in got["ping share"].values:
            self.assertAlmostEqual(value, 50)
        for value in got["ping switches"].values:
            self.assertAlmostEqual(value, 300)
        self.assertAlmostEqual(got["ping share"].per_second, 2)

    def test_too_short_is_none(self):
        got = metrics.watched(PING, parse.cpu_samples("1 2 3 4\n2 3 4 5\n"))
        self.assertEqual([s.values for s in got.values()], [[], []])


class Plan(unittest.TestCase):
    def test_scenarios(self):
        for name, scenario in SCENARIOS.items():
            self.assertLessEqual(set(scenario.tests), set(scenarios.TESTS), name)
            self.assertLessEqual(set(scenario.modes), set(modeset.MODES), name)
            self.assertIn("stock", scenario.modes)
            self.assertLessEqual(len(scenario.modes), len(modeset.DEFAULT_MODES))
        tail = SCENARIOS["tail"]
        phases = plan.bench(3, tail, ("default",), ("full",), tail.tests)
        self.assertGreaterEqual(
            sum(p.test("ping").count for p in phases), 2000)

    def test_modes_file(self):
        self.assertEqual(
            modeset.modes_file(modeset.MODES, ("stock", "remap-only", "full"), 4),
            "stock 0 1 4 none\n"
            "remap-only 1,boost=0 1 4 module\nfull 1 1 4 module\n")
        self.assertEqual(
            modeset.modes_file(modeset.MODES, ("idle", "alone"), 2),
            "idle 0 0 0 none\nalone 0 0 2 none\n")

    def test_every_round_has_every_test_in_every_mode_and_slice(self):
        scenario = SCENARIOS["stacked"]
        phases = plan.bench(2, scenario, scenario.slices, ["stock", "full"],
                            scenario.tests)
        for r in (1, 2):
            cells = [(p.slice, p.mode, t.name) for p in phases
                     if p.round == r for t in p.tests]
            self.assertEqual(len(set(cells)), len(cells))
            self.assertEqual(len(cells), 2 * 2 * (3 + 2 * len(scenarios.TCP_BYTES)))
        # Modes of one test are neighbours.
        for a, b in zip(phases[::2], phases[1::2]):
            self.assertEqual([t.name for t in a.tests],
                             [t.name for t in b.tests])
            self.assertEqual({a.mode, b.mode}, {"stock", "full"})

    def test_lines(self):
        phases = plan.bench(1, SCENARIOS["uncontended"], scenarios.SLICES,
                            ["stock"], ["fio", "udp"])
        self.assertEqual([p.line() for p in phases],
                         ["1 1 default stock udp:4:64",
                          "2 1 default stock fio:3:1:8"])
        neighbour = plan.bench(1, SCENARIOS["neighbour"], ("default",),
                               ["full"], ["udp-rr", "tcp-in"])
        self.assertEqual([p.line() for p in neighbour],
                         ["1 1 default full tcp-in:4:16384",
                          "2 1 default full udp-rr:4000:64/1024"])
        overhead = plan.bench(1, SCENARIOS["overhead-stacked"], ("default",),
                              ["full"], ["sysbench"])
        self.assertEqual(
            overhead[0].line(),
            "1 1 default full sysbench:2:5000:cpu:memory:threads:mutex")


class WholeBench(unittest.TestCase):
    """In `full` everything is twice as good as in stock."""
    MODES = ("idle", "stock", "full")

    def setUp(self):
        # Nothing here depends on how exact the intervals are.
        fast = mock.patch.object(stats, "bootstrap_ratio", functools.partial(
            stats.bootstrap_ratio, resamples=40))
        fast.start()
        self.addCleanup(fast.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        everything = dataclasses.replace(SCENARIOS["stacked"],
                                         tests=scenarios.TESTS)
        self.phases = plan.bench(2, everything, ("default",), self.MODES,
                                 scenarios.TESTS)
        self.samples = {}
        for p in self.phases:
            k = 1 if p.mode == "stock" else 2
            self.samples[p.index] = [
                (i * .04, (i % 10 + 1) * 10 / k) for i in range(100)]
            for t in p.tests:
                if t.name == "ping":
                    continue
                if t.kind == "udp":
                    rows = "".join(
                        f"{i}, {i / 50 / k:.6f}, {(i + .5) / 50 / k:.6f}, 0\n"
                        for i in range(150 * k))
                    text = SOCKPERF.format(lost=0).split("packet")[0] + rows
                elif t.kind == "fio":
                    text = fio(2 // k)
                elif t.kind in ("tcp-rr", "udp-rr"):
                    text = rr(t.pairs, 100 * k)
                elif t.kind == "sysbench":
                    text = sysbench(t.kinds, (2 / k, 2.2 / k))
                else:
                    text = iperf3([1e6 * k * (i % 3 + 1) for i in range(16)])
                with open(os.path.join(self.dir, f"{p.index}.{t.name}"),
                          "w") as f:
                    f.write(text)
            # As in the scenario `neighbour`.
            for t in p.tests:
                if t.name in metrics.WATCHED:
                    name = os.path.join(self.dir, f"{p.index}.{t.name}.cpu")
                    with open(name, "w") as f:
                        f.write(watched(.25 * k, 600 / k))

    def table(self):
        found, missing = metrics.read_all(self.dir, self.phases, self.samples)
        return (metrics.table(found, ["default"], self.MODES), missing, found)

    def scenario(self):
        entries, missing, _ = self.table()
        return {"name": "stacked", "text": "x", "modes": list(self.MODES),
                "slices": ["default"], "results": entries,
                "targets": targets.check_all("stacked", entries),
                "rounds": 2, "missing": missing, "other_cpus_used": 0}

    def test_every_metric_in_every_mode(self):
        entries, missing, found = self.table()
        self.assertEqual(missing, [])
        self.assertEqual(len(entries), len(metrics.METRICS) * 3)
        for e in entries:
            if e["mode"] != "full":
                continue
            better = metrics.times_better(e)
            want = 1 if e["metric"].startswith("fio") and \
                e["metric"].endswith("rate") else 2
            # Nearest ranks of an unequal number of samples.
            self.assertAlmostEqual(better[0], want, delta=.05 * want)
            self.assertLessEqual(better[1], better[0])
            self.assertLessEqual(better[0], better[2])
        json.dumps([entries, metrics.raw(found)], allow_nan=False)

    def test_targets(self):
        found = {(t["metric"], t["against"]): t
                 for t in self.scenario()["targets"]}
        self.assertEqual(found["ping p50", "idle"]["verdict"], "reached")
        self.assertEqual(found["ping p50", "stock"]["verdict"], "missed")
        self.assertEqual(found["tcp-in-64", "stock"]["verdict"], "reached")
        self.assertNotIn("guest-only",
                         [t["mode"] for t in found.values()])

    def test_points_are_compared_by_difference(self):
        entries = {(e["metric"], e["mode"]): e for e in self.table()[0]}
        entry = entries["ping share", "full"]
        self.assertAlmostEqual(entry["value"], 50)
        self.assertAlmostEqual(entry["less_stock"]["difference"], 25)
        self.assertNotIn("less_stock", entries["ping share", "stock"])
        self.assertNotIn("less_stock", entries["ping p50", "full"])

    def test_worst_of_all(self):
        found, _ = metrics.read_all(self.dir, self.phases, self.samples)
        got = {e["mode"]: e for e in metrics.table(
            found, ["default"], self.MODES, worst_ms={"default": 45})
            if e["metric"] == "ping worst"}
        self.assertEqual([got[m]["value"] for m in self.MODES], [50, 100, 50])
        # One ping in ten of each mode's 200 has each of ten values.
        self.assertEqual([got[m]["above_slice"] for m in self.MODES],
                         [20, 120, 20])
        self.assertNotIn("to_stock", got["full"])

    def test_pairs_and_all_of_them(self):
        entries = {(e["metric"], e["mode"]): e for e in self.table()[0]}
        for name in ("tcp-rr 64/1K", "udp-rr 512/8K", "tcp-rr all"):
            self.assertAlmostEqual(entries[name, "stock"]["value"], 100)

    def test_missing_is_said_and_left_out(self):
        victim = next(p for p in self.phases if p.mode == "full" and
                      p.test("udp-64"))
        with open(os.path.join(self.dir, f"{victim.index}.udp-64"),
                  "w") as f:
            f.write("sockperf: no server")
        other = next(p for p in self.phases if p.mode == "idle" and
                     p.test("udp-64"))
        del self.samples[other.index]
        scenario = self.scenario()
        self.assertEqual(len(scenario["missing"]), 2)
        self.assertIn("udp-64", benchreport.notes(scenario))
        rate = [e for e in scenario["results"] if e["metric"] == "udp rate"]
        self.assertEqual({e["mode"]: e["rounds"] for e in rate},
                         {"idle": 1, "stock": 2, "full": 1})

    def test_what_may_be_noise(self):
        for low, high, want in ((1.5, 3, "2.00"), (.9, 3, "~2.00"),
                                (2, 2, "~2.00")):
            entry = {"more_is_better": True, "to_stock": {
                "ratio": 2, "low": low, "high": high}}
            self.assertEqual(benchreport.better(entry), want)

    def test_what_full_takes_longer(self):
        scenario = self.scenario()
        text = benchreport.overhead(scenario)
        # Half of the time.
        self.assertIn("\n  sysbench mutex: -50.00 % (", text)
        self.assertNotIn("ping", text)
        scenario["results"] = [e for e in scenario["results"]
                               if e["unit"] == "ms"]
        self.assertEqual(benchreport.overhead(scenario), "")

    def test_parameters_of_the_modes(self):
        modes = {m: vars(modeset.MODES[m]) for m in ("idle", "stock")}
        scenario = {"ran_on": {"modes": modes}}
        self.assertEqual(benchreport.parameters(scenario), "")
        for m in ("cost", "guest-only", "remap-only", "full"):
            modes[m] = vars(modeset.MODES[m])
        modes["full"] = {**modes["full"], "params": "observe=1",
                         "host_params": "boost=0"}
        self.assertEqual(
            benchreport.parameters(scenario).splitlines()[1:],
            ["  cost        guest remap=affinity policy=cost",
             "  remap-only  host boost=0",
             "  full        host boost=0; guest observe=1"])

    def test_how_many_of_each_mode_were_above_one_slice(self):
        scenario = self.scenario()
        self.assertNotIn("above", benchreport.notes(scenario))
        found, _ = metrics.read_all(self.dir, self.phases, self.samples)
        scenario["results"] = metrics.table(found, ["default"], self.MODES,
                                            worst_ms={"default": 45})
        self.assertIn("default slice, stock: 120 of 200 round trips above "
                      "one slice of 45 ms", benchreport.notes(scenario))

    def test_what_spoils_figures_is_said(self):
        scenario = self.scenario()
        before = benchreport.notes(scenario)
        scenario.update(rounds=1, other_cpus_used=.5)
        text = benchreport.notes(scenario)
        self.assertIn("One round", text)
        self.assertIn("0.5 CPUs", text)
        self.assertNotIn("CPUs of this machine", before)
        self.assertNotIn("One round", before)

    def test_tables_fit(self):
        scenario = self.scenario()
        everything = scenario["results"]
        basic = {m.name for m in metrics.BASIC}
        # As wide as it gets: tests of few modes may have long names.
        for modes, entries in (
                (modeset.DEFAULT_MODES,
                 [e for e in everything if e["metric"] in basic]),
                (modeset.DEFAULT_MODES[:4], everything)):
            scenario.update(modes=list(modes), results=entries)
            for text in (benchreport.tables(scenario),
                         benchreport.targets(scenario), benchreport.FOOT):
                self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for metric in metrics.METRICS:
            self.assertEqual(benchreport.tables(scenario).count(
                f"\n{metric.name}, {metric.unit} "), 2)


class Verdicts(unittest.TestCase):
    def test_at_least(self):
        for low, value, high, want in (
                (5, 6, 7, "reached"), (4, 6, 7, "reached, within noise"),
                (4, 4.5, 7, "missed, within noise"), (2, 3, 4, "missed")):
            self.assertEqual(
                targets.verdict(value, low, high, 5, True), want)

    def test_at_most(self):
        for low, value, high, want in (
                (1, 2, 5, "reached"), (1, 2, 6, "reached, within noise"),
                (4, 6, 7, "missed, within noise"), (6, 7, 8, "missed")):
            self.assertEqual(
                targets.verdict(value, low, high, 5, False), want)

    def outcome(self, target, **entry):
        return targets.check(target, [
            {"slice": target.slice, "mode": target.mode, "value": 1.0,
             "metric": target.metric, "more_is_better": False, **entry}])

    def test_points(self):
        target = targets.Target("neighbour", "default", "full", "ping share",
                                2, how="points")
        for difference, low, high, want in (
                (-1, -1.9, 0, "reached"), (-1, -2.1, 0, "reached, within "
                                           "noise"),
                (-3, -4, -2.5, "missed"), (5, 4, 6, "reached")):
            got = self.outcome(target, less_stock={
                "difference": difference, "low": low, "high": high})
            self.assertEqual(got["verdict"], want)
            self.assertIn(f"{difference:+.2f} (", benchreport.target(got))

    def test_most_of_stock(self):
        target = targets.Target("overhead-stacked", "default", "full",
                                "sysbench cpu", 1.011, how="most")
        for value, want in ((1.01, "reached"), (1.02, "missed")):
            got = self.outcome(target, to_stock={
                "ratio": value, "low": value, "high": value})
            self.assertEqual(got["verdict"], want)
            self.assertIn(f"at most 1.011x stock: {value:.3f}x",
                          benchreport.target(got))

    def test_one_slice(self):
        target = targets.Target("tail", 30_000_000, "full", "ping worst", 0,
                                how="slice")
        for above, value, want in ((0, 29.0, "29.0 ms: reached"),
                                   (1, 31.0, "31.0 ms: missed"),
                                   (1, None, "lost ms: missed")):
            got = self.outcome(target, above_slice=above, slice_ms=30.0,
                               n=2001, value=value)
            self.assertTrue(benchreport.target(got).endswith(
                f"{above} of 2001 above 30 ms, worst {want}"),
                benchreport.target(got))

    def test_lost_is_missed(self):
        target = targets.Target("stacked", "default", "full", "ping p50", 3)
        entry = {"slice": "default", "mode": "full", "metric": "ping p50",
                 "value": None, "more_is_better": False,
                 "to_stock": {"ratio": None, "low": None, "high": None}}
        self.assertEqual(targets.check(target, [entry])["verdict"],
                         "missed, no answers")
        entry.pop("to_stock")
        entry["value"] = 1.0
        self.assertIsNone(targets.check(target, [entry]))
        self.assertIsNone(targets.check(target, []))

    def test_words(self):
        t = {"mode": "full", "slice": 30_000_000, "metric": "ping p50",
             "against": "stock", "how": "times", "limit": 10,
             "measured": 8.2, "low": 7.1,
             "high": 9, "verdict": "missed"}
        self.assertEqual(
            benchreport.target(t), "  full, 30 ms, ping p50: target 10x "
            "better than stock: 8.20x (7.10 to 9.00): missed")
        for limit, against, how, want in (
                (1, "stock", "times", "not below stock"),
                (targets.UNTOUCHED, "stock", "times", "within 2 % of stock"),
                (1.2, "idle", "most", "at most 1.2x idle"),
                (2, "stock", "points", "at most 2 points below stock")):
            t.update(limit=limit, against=against, how=how)
            self.assertIn(f"target {want}: ", benchreport.target(t))

    def test_every_target_has_a_metric(self):
        names = {m.name for m in metrics.METRICS} | {metrics.WORST.name}
        for t in targets.TARGETS:
            self.assertIn(t.metric, names)
            self.assertIn(t.mode, modeset.MODES)
            self.assertIn(t.slice, SCENARIOS[t.scenario].slices)
        self.assertEqual(len(set(targets.TARGETS)), len(targets.TARGETS))


if __name__ == "__main__":
    unittest.main()
