#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""vbbench.parse, vbbench.plan and vbbench.modeset."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from vbbench import modeset, parse, plan  # noqa: E402

PING = """\
PING 10.9.0.2 (10.9.0.2) 56(84) bytes of data.
[100.010000] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=10.0 ms
[100.052000] 64 bytes from 10.9.0.2: icmp_seq=2 ttl=64 time=2.00 ms
[100.192000] 64 bytes from 10.9.0.2: icmp_seq=4 ttl=64 time=42.0 ms
[100.193000] 64 bytes from 10.9.0.2: icmp_seq=4 ttl=64 time=43.0 ms (DUP!)
[100.202000] 64 bytes from 10.9.0.2: icmp_seq=5 ttl=64 time=2 ms
From 10.9.0.1 icmp_seq=6 Destination Host Unreachable

--- 10.9.0.2 ping statistics ---
7 packets transmitted, 5 received, +1 duplicates, +1 errors, 28% packet loss, time 302ms
rtt min/avg/max/mdev = 2.000/15.750/42.000/14.7 ms
"""


class Ping(unittest.TestCase):
    def test_replies(self):
        replies, missing, sent = parse.ping(PING)
        self.assertEqual((sent, missing), (7, {}))
        self.assertEqual({s: r[1] for s, r in replies.items()},
                         {1: 10.0, 2: 2.0, 4: 42.0, 5: 2.0})

    def test_samples_keep_the_lost(self):
        got = parse.phase_samples(PING, warm=1, count=5, interval_s=.05)
        self.assertEqual([r for _, r in got], [2.0, None, 42.0, 2.0, None])
        for (at, _), want in zip(got, (0, .05, .1, .15, .2)):
            self.assertAlmostEqual(at, want, places=3)

    def test_time_of_a_lost_one(self):
        text = ("[10.001000] 64 bytes from a: icmp_seq=1 time=1.000 ms\n"
                "[10.030000] no answer yet for icmp_seq=2\n"
                "2 packets transmitted, 1 received\n")
        self.assertEqual(parse.phase_samples(text, 0, 2, .05),
                         [(0.0, 1.0), (.03, None)])

    def test_warm_up_is_left_out(self):
        got = parse.phase_samples(PING, warm=1, count=1, interval_s=.05)
        self.assertEqual(len(got), 1)

    def test_everything_lost(self):
        text = "3 packets transmitted, 0 received, 100% packet loss\n"
        got = parse.phase_samples(text, 0, 3, .05)
        self.assertEqual([r for _, r in got], [None] * 3)

    def test_cut_short(self):
        with self.assertRaises(parse.ParseError):
            parse.ping(PING.split("---")[0])
        with self.assertRaises(parse.ParseError):
            parse.phase_samples(PING, 4, 4, .05)

    def test_late_answers_out_of_order(self):
        text = ("[10.30] 64 bytes from a: icmp_seq=2 ttl=64 time=200 ms\n"
                "[10.31] 64 bytes from a: icmp_seq=1 ttl=64 time=310 ms\n"
                "2 packets transmitted, 2 received\n")
        got = parse.phase_samples(text, 0, 2, .1)
        self.assertEqual([r for _, r in got], [310.0, 200.0])

    def test_sequence_numbers_wrap(self):
        text = "".join(f"[{i / 10:.2f}] 64 bytes from a: icmp_seq="
                       f"{i & 0xffff} ttl=64 time=1 ms\n"
                       for i in range(65530, 65545))
        replies, _, _ = parse.ping(text + "65544 packets transmitted, "
                                "15 received\n")
        self.assertEqual(sorted(replies), list(range(65530, 65545)))


class Files(unittest.TestCase):
    def test_schedstat(self):
        before = parse.schedstat("10 5 6 7\n11 1 1 1\n")
        after = parse.schedstat("10 15 26 9\n12 1 1 1\n")
        self.assertEqual(parse.schedstat_delta(before, after), [(10, 20, 2)])
        with self.assertRaises(parse.ParseError):
            parse.schedstat("cat: no such file")

    def test_sections_and_counters(self):
        got = parse.sections("noise\n==> guest/stats <==\nv: 1\nsource page\n"
                             "moves 12\n==> affinities <==\n24 2 f\n")
        self.assertEqual(sorted(got), ["affinities", "guest/stats"])
        self.assertEqual(parse.counters(got["guest/stats"]),
                         {"source": "page", "moves": 12})


class Plan(unittest.TestCase):
    def test_every_round_has_every_cell_once(self):
        phases = plan.demo(3, 5)
        self.assertEqual([p.index for p in phases],
                         list(range(1, len(phases) + 1)))
        for r in (1, 2, 3):
            cells = [(p.slice, p.mode) for p in phases if p.round == r]
            self.assertEqual(len(cells), 2 * len(modeset.DEFAULT_MODES))
            self.assertEqual(len(set(cells)), len(cells))
            self.assertEqual(len({p.test("ping").interval_ms for p in phases
                                  if p.round == r}), 1)

    def test_order_is_fixed_by_the_seed_and_differs_between_rounds(self):
        self.assertEqual(plan.demo(3, 5), plan.demo(3, 5))
        orders = {tuple(p.mode for p in plan.demo(3, 5)
                        if p.round == r and p.slice == "default")
                  for r in (1, 2, 3)}
        self.assertGreater(len(orders), 1)

    def test_modes_of_a_round_are_pinged_at_the_same_times(self):
        for r in (1, 2):
            self.assertEqual(len({p.test("ping").seed for p in plan.demo(2, 5)
                                  if p.round == r}), 1)
        self.assertEqual(len({p.test("ping").seed for p in plan.demo(2, 5)}), 2)

    def test_plan_line(self):
        p = plan.demo(1, 5)[0]
        fields = p.line().split()
        self.assertEqual(fields[:4], ["1", "1", str(p.slice), p.mode])
        self.assertEqual(len(fields), 5)
        self.assertEqual(fields[4].split(":")[2], str(p.test("ping").pings))

    def test_modes_file(self):
        text = modeset.modes_file(modeset.MODES, ["idle", "irqbalance", "full"], 4)
        self.assertEqual(text, "idle 0 0 0 none\nirqbalance 0 1 4 irqbalance\n"
                         "full 1 1 4 module\n")

    def test_other_parameters(self):
        modes = modeset.with_params(["full=remap=none policy=cost"])
        self.assertEqual(modes["full"].params, "remap=none policy=cost")
        self.assertTrue(modes["full"].host)
        self.assertEqual(modes["paper"], modeset.MODES["paper"])
        for bad in ("stock=x", "nothing=x"):
            with self.assertRaises(ValueError):
                modeset.with_params([bad])


if __name__ == "__main__":
    unittest.main()
