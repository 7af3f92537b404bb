#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""From the files of a run to the table, with a made-up run."""
import json
import os
import sys
import tempfile
import unittest

BENCH = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path[:0] = [BENCH, os.path.join(os.path.dirname(BENCH), "lab")]

from vbbench import collect, labrun, machine           # noqa: E402
from vbbench import modeset, overhead, parse, plan     # noqa: E402
from vbbench import report                              # noqa: E402

TICK_NS = 4_000_000
GUEST = """==> guest/stats <==
v: 1
source page
moves 7
ebusy 3
==> guest/features <==
v: 1
version 1.2.3
==> /sys/module/vbalance_guest/parameters/remap <==
redirect
==> /sys/module/vbalance_guest/parameters/redirect_tx <==
Y
==> affinities_before <==
24 1 f
25 2 f
==> affinities <==
24 4 f
25 2 f
==> after_unload <==
24 1 f
25 2 f
"""


def write_phase(folder, p, lose=()):
    """Files as phases.sh leaves them, from the closed form's own model."""
    turn = 32 if p.slice != "default" else 4     # rounded up to the tick
    ping = p.test("ping")
    lines = []
    for seq in range(1, ping.pings + 1):
        at = 1000 + seq * ping.interval_ms / 1000
        # Evenly spread arrivals: no luck in the percentiles.
        phase = seq * 0.618034 % 1 * 4 * turn
        wait = 0 if p.mode == "idle" or phase < turn else 4 * turn - phase
        rtt = 2.5 + wait
        if seq not in lose:
            lines.append(f"[{at + rtt / 1000:.6f}] 64 bytes from 10.9.0.2: "
                         f"icmp_seq={seq} ttl=64 time={rtt:.3g} ms")
    lines.append(f"{ping.pings} packets transmitted, {ping.pings - len(lose)} "
                 "received, 0% packet loss, time 1ms")
    base = p.slice if p.slice != "default" else 3_000_000
    files = {
        "ping": "\n".join(lines) + "\n",
        "meta": f"base_slice_ns {base}\nrestore_tries 0\n"
                "uptime 1.0 2.0 3.0 4.0\n",
        "ping.sched": "7 0 0 0\n\n"
                 f"7 {turn * 100}000000 {turn * 300}000000 100\n",
        "guest": GUEST if modeset.MODES[p.mode].guest == "module" else
        "".join("==> affi" + s for s in
                GUEST.split("==> affi")[1:]).split("==> after")[0],
        "host": "",
    }
    for name, text in files.items():
        with open(os.path.join(folder, f"{p.index}.{name}"), "w") as f:
            f.write(text)


class WholeRun(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.phases = plan.demo(2, 5)
        for p in self.phases:
            write_phase(self.dir.name, p)

    def collect(self):
        found, samples, reports = collect.phases(self.dir.name, self.phases)
        return (found, samples, reports,
                collect.runs(found, samples, modeset.DEFAULT_MODES))

    def stock_checks(self, tick_ns=TICK_NS):
        found, samples, _, runs = self.collect()
        return collect.stock_checks(runs, found, samples, 4, tick_ns)

    def test_runs(self):
        found, samples, reports, runs = self.collect()
        self.assertEqual(len(found), len(self.phases))
        self.assertEqual([r["mode"] for r in runs], list(modeset.DEFAULT_MODES) * 2)
        for run in runs:
            self.assertEqual(run["rtt_ms"]["lost"], 0)
            self.assertEqual(run["rtt_ms"]["n"],
                             sum(p.test("ping").count for p in self.phases
                                 if p.mode == run["mode"] and
                                 (p.slice == "default") ==
                                 (run["slice"] == "default")))
        cost = next(r for r in runs if r["mode"] == "cost")
        self.assertEqual((cost["moves"], cost["source"]), (14, "page"))
        balanced = next(r for r in runs if r["mode"] == "irqbalance")
        self.assertEqual(balanced["moves"], 2)
        json.dumps(runs, allow_nan=False)

    def test_parameters(self):
        found, *_ = self.collect()
        known = {p["mode"]: p["parameters"] for p in found}
        self.assertEqual(known["full"], {"guest": {
            "remap": "redirect", "redirect_tx": "Y"}})
        self.assertEqual(known["stock"], {})

    def test_put_back(self):
        found, *_ = self.collect()
        self.assertEqual({p.get("not_put_back") for p in found
                          if p["mode"] == "cost"}, {0})

    def test_table_fits_and_has_every_mode(self):
        *_, runs = self.collect()
        text = report.table(runs)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for mode in modeset.DEFAULT_MODES:
            self.assertEqual(text.count(f"\n  {mode:<10}"), 2)
        checks = report.checks(self.stock_checks())
        self.assertLessEqual(max(map(len, checks.splitlines())), 100)
        self.assertLessEqual(
            max(map(len, report.reading(runs).splitlines())), 100)

    def test_closed_form_fits_its_own_model(self):
        entries = self.stock_checks()
        self.assertEqual(len(entries), 2)
        for entry in entries:
            for figure in entry["figures"]:
                self.assertAlmostEqual(figure["agreement_percent"], 100,
                                       delta=5)
                # Evenly spread arrivals: next to no statistical error.
                self.assertLess(figure.get("outside_percent", 0), 5)
            self.assertEqual([f["figure"] for f in entry["figures"]
                              if "verdict" in f], ["mean", "p50", "p90"])
        self.assertNotIn("WARNING", report.checks(entries))
        json.dumps(entries, allow_nan=False)

    def test_another_slice_than_assumed_is_noticed(self):
        # As if the tick were 40 ms: the closed form expects longer waits.
        entries = self.stock_checks(tick_ns=40_000_000)
        text = report.checks(entries)
        for entry in entries:
            for figure in entry["figures"][:3]:
                self.assertEqual(figure["verdict"], "differs")
        self.assertIn("mean differs by -", text)
        self.assertIn("WARNING: mean: the closed form", text)

    def test_unfinished_phases_are_left_out(self):
        os.unlink(os.path.join(self.dir.name, "3.meta"))
        found, *_ = self.collect()
        self.assertEqual(len(found), len(self.phases) - 1)
        self.assertNotIn(3, [p["index"] for p in found])

    def test_lost_in_table(self):
        for p in self.phases:
            if p.mode == "paper":
                write_phase(self.dir.name, p,
                            lose=range(p.test("ping").warm + 1,
                                       p.test("ping").warm + 20))
        *_, runs = self.collect()
        line = next(row for row in report.table(runs).splitlines()
                    if "paper" in row)
        self.assertIn(" lost ", line)
        self.assertIn("38/", line)


class Words(unittest.TestCase):
    def test_warnings(self):
        phase = {"index": 3, "mode": "paper", "not_put_back": 1,
                 "counters": {"guest/stats": {"foreign": 2}}}
        text = report.warnings([phase], .5)
        self.assertEqual(len(text.splitlines()), 3)
        phase.update(not_put_back=0, counters={})
        self.assertEqual(report.warnings([phase], 0), "")

    def test_busy_seconds(self):
        tick = os.sysconf("SC_CLK_TCK")
        self.assertAlmostEqual(machine.busy_seconds(
            "cpu  100 1 50 99999 7 2 3 4 0 0\ncpu0 1 1"), 160 / tick)

    def test_verdicts(self):
        def say(low, high):
            return report.verdict({"ratio": 1, "low": low, "high": high})
        self.assertEqual(say(1.1, 1.3), "slower than stock")
        self.assertEqual(say(.5, .9), "faster than stock")
        self.assertEqual(say(.9, 1.1), "no difference beyond noise")
        self.assertIn("no interval", say(.9, None))
        self.assertIn("no interval", report.verdict(None))

    def test_check_verdicts(self):
        def lines(outside, **more):
            return report.check_verdicts({"figures": [
                {"figure": "mean", "measured_ms": 50, "low_ms": 45,
                 "high_ms": 55, "agreement_percent": 140,
                 "outside_percent": outside, **more},
                {"figure": "max", "measured_ms": 99}]})
        self.assertEqual(lines(0, verdict="agrees"),
                         ["  mean agrees (measured 50.0, 95 % interval "
                          "45.0-55.0)"])
        self.assertEqual(lines(25, verdict="differs"),
                         ["  mean differs by +40 % (measured 50.0, 95 % "
                          "interval 45.0-55.0)"])
        line, warning = lines(26, verdict="differs")
        self.assertTrue(warning.startswith("WARNING: mean: the closed form"))

    def test_numbers(self):
        self.assertEqual([report.number(v) for v in
                          (2.345, 12.345, 123.45, None)],
                         ["2.35", "12.3", "123", "lost"])

    def test_progress(self):
        phases = plan.demo(1, 5)
        progress = labrun.Progress(phases, 0)
        m = labrun.PROGRESS.search(
            "  12.3 s  phase 2 of 10: round 1, slice 3000000, cost")
        self.assertIsNotNone(m)
        self.assertIn("phase 2/14", progress.line(int(m[1]), m[3]))
        self.assertEqual(labrun.clock(125), "2:05")


class Overhead(unittest.TestCase):
    BOOTS = ({"stock": 2, "host-only": 2, "guest-only": 1.98, "full": 2.02},
             {"stock": 4, "host-only": 4, "guest-only": 4.04, "full": 4.12})

    def collect(self, seconds, cut=None, left_out=None):
        with tempfile.TemporaryDirectory() as folder:
            for mode, s in seconds.items():
                for load in overhead.LOADS:
                    name = f"{mode}.{load}"
                    if name == left_out:
                        continue
                    with open(os.path.join(folder, name), "w") as f:
                        f.write("==> cpu.1 <==\n")
                        if name != cut:
                            f.write(f"    total time:          {s:.4f}s\n")
            return overhead.collect(folder)

    def test_from_files_to_the_table(self):
        found = [self.collect(s) for s in self.BOOTS]
        self.assertEqual(found[1]["full", "ping"], {"cpu": 4.12})
        rows = [line for line in overhead.table(found).splitlines()
                if " cpu " in line]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertRegex(row, r" 3\.0000 +\+0.00 \(\+0.00 to \+0.00\)"
                             r" +\+0.00 \(-1.00 to \+1.00\)"
                             r" +\+2.00 \(\+1.00 to \+3.00\)$")

    def test_a_boot_that_did_not_come_to_its_end(self):
        for words in ({"cut": "guest-only.ping"}, {"left_out": "full.none"}):
            with self.subTest(words), self.assertRaises(parse.ParseError):
                self.collect(self.BOOTS[0], **words)


if __name__ == "__main__":
    unittest.main()
