#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The bench: output of its tools, figures, targets and tables."""
import json
import os
import sys
import tempfile
import unittest

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "lab")]

from vbbench import benchreport, metrics, parse, plan, targets  # noqa: E402

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


class Tools(unittest.TestCase):
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
        # A stall is a piece without any.
        self.assertEqual(metrics.rates([0, .1, .2, .8, 1.0]), [12, 0, 0, 4])

    def test_timed(self):
        latency, rate = metrics.timed(parse.sockperf(SOCKPERF.format(lost=1)))
        self.assertEqual(len(latency.values), 5)
        self.assertAlmostEqual(latency.per_second, 5)
        self.assertEqual(sum(rate.values) * metrics.BIN_S, 3)


class Plan(unittest.TestCase):
    def test_every_round_has_every_test_in_every_mode_and_slice(self):
        scenario = plan.SCENARIOS["stacked"]
        phases = plan.bench(2, scenario, scenario.slices, ["stock", "full"],
                            plan.TESTS)
        for r in (1, 2):
            cells = [(p.slice, p.mode, t.name) for p in phases
                     if p.round == r for t in p.tests]
            self.assertEqual(len(set(cells)), len(cells))
            self.assertEqual(len(cells), 2 * 2 * (3 + 2 * len(plan.TCP_BYTES)))
        # Modes of one test are neighbours.
        for a, b in zip(phases[::2], phases[1::2]):
            self.assertEqual([t.name for t in a.tests],
                             [t.name for t in b.tests])
            self.assertEqual({a.mode, b.mode}, {"stock", "full"})

    def test_lines(self):
        phases = plan.bench(1, plan.SCENARIOS["uncontended"], plan.SLICES,
                            ["stock"], ["fio", "udp"])
        self.assertEqual([p.line() for p in phases],
                         ["1 1 default stock udp:4:64",
                          "2 1 default stock fio:3:1:8"])


class WholeBench(unittest.TestCase):
    """In `full` everything is twice as good as in stock."""
    MODES = ("idle", "stock", "full")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.phases = plan.bench(2, plan.SCENARIOS["stacked"], ("default",),
                                 self.MODES, plan.TESTS)
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
                else:
                    text = iperf3([1e6 * k * (i % 3 + 1) for i in range(16)])
                with open(os.path.join(self.dir, f"{p.index}.{t.name}"),
                          "w") as f:
                    f.write(text)

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
        # As wide as it gets.
        scenario["modes"] = list(plan.DEFAULT_MODES)
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
             "against": "stock", "limit": 10, "measured": 8.2, "low": 7.1,
             "high": 9, "verdict": "missed"}
        self.assertEqual(
            benchreport.target(t), "  full, 30 ms, ping p50: target 10x "
            "better than stock: 8.20x (7.10-9.00): missed")
        for limit, against, want in (
                (1, "stock", "not below stock"),
                (targets.UNTOUCHED, "stock", "within 2 % of stock"),
                (1.2, "idle", "at most 1.2x idle")):
            t.update(limit=limit, against=against)
            self.assertIn(f"target {want}: ", benchreport.target(t))

    def test_every_target_has_a_metric(self):
        names = {m.name for m in metrics.METRICS}
        for t in targets.TARGETS:
            self.assertIn(t.metric, names)
            self.assertIn(t.mode, plan.MODES)
            self.assertIn(t.slice, plan.SCENARIOS[t.scenario].slices)
        self.assertEqual(len(set(targets.TARGETS)), len(targets.TARGETS))


if __name__ == "__main__":
    unittest.main()
