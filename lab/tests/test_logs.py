# SPDX-License-Identifier: GPL-2.0
import unittest

import labpath  # noqa: F401
from vblab import logs

WARNING = """\
[   10.1] fine
[   12.0] ------------[ cut here ]------------
[   12.0] WARNING: CPU: 1 PID: 99 at kernel/irq/manage.c:123 foo+0x1/0x2
[   12.0] Modules linked in: vbalance_guest(OE)
[   12.1] Call Trace:
[   12.1]  <TASK>
[   12.2] ---[ end trace 0000000000000000 ]---
[   13.0] fine again
"""

LOCKDEP = """\
[    5.0] ============================================
[    5.0] WARNING: possible recursive locking detected
[    5.0] 6.12.0 #1 Not tainted
[    5.1] stack backtrace:
[    5.1] Call Trace:
[    5.1]  dump_stack_lvl+0x5d/0x80
"""


class BadLines(unittest.TestCase):
    def test_each_kind_is_found(self):
        for line in (
                "Kernel panic - not syncing: Fatal exception",
                "Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI",
                "BUG: kernel NULL pointer dereference, address: 0",
                "BUG: unable to handle page fault for address: ffff",
                "kernel BUG at mm/slub.c:1!",
                "WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x0/0x1",
                "general protection fault, probably for non-canonical",
                "WARNING: possible circular locking dependency detected",
                "WARNING: inconsistent lock state",
                "WARNING: suspicious RCU usage",
                "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
                "rcu: INFO: rcu_sched self-detected stall on CPU",
                "rcu: rcu_preempt kthread starved for 5250 jiffies!",
                "irq 27: nobody cared (try booting with irqpoll)",
                "INFO: task kworker/0:1:10 blocked for more than 120 seconds.",
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
                "BUG: KASAN: use-after-free in f+0x0/0x1",
                "UBSAN: shift-out-of-bounds in f.c:1:2",
                "lab: detector lockdep is off: debug_locks: 0",
                "lab: guest 0 was not asked what its detectors saw",
                "unchecked MSR access error: RDMSR from 0x1",
                "BUG: scheduling while atomic: swapper/0/0/0x2",
                "BUG: sleeping function called from invalid context at f.c:1",
                "unregister_netdevice: waiting for eth0 to become free",
                "Call Trace:"):
            with self.subTest(line):
                found = logs.judge("log", f"[    1.000000] {line}\n")
                self.assertEqual(len(found), 1)
                self.assertEqual(found[0].number, 1)

    def test_ordinary_lines_pass(self):
        text = "\n".join([
            "vbalance_host: loading out-of-tree module taints kernel.",
            "vbalance_host: module verification failed: signature and/or "
            "required key missing - tainting kernel",
            "Speculative Return Stack Overflow: WARNING: See "
            "https://kernel.org/doc/html/latest/x.html for mitigation options.",
            "clocksource: Marking clocksource 'tsc' as unstable",
            "mtrr: your CPUs had inconsistent fixed MTRR settings",
            "rcu: \tRCU restricting CPUs from NR_CPUS=8192 to nr_cpu_ids=2.",
            "rcu: Hierarchical RCU implementation.",
            "kvm: vcpu0, guest rIP: 0x0 Unhandled WRMSR(0xc0010007) = 0xffff",
            "Warning: unable to open an initial console."])
        self.assertEqual(logs.judge("log", text), [])

    def test_empty(self):
        self.assertEqual(logs.judge("log", ""), [])


class Reports(unittest.TestCase):
    def test_one_finding_for_a_whole_report(self):
        found = logs.judge("l1.log", WARNING)
        self.assertEqual([f.number for f in found], [3])
        self.assertEqual(found[0].name, "l1.log")
        self.assertIn("manage.c:123", str(found[0]))

    def test_context_is_five_lines_on_both_sides(self):
        text = "".join(f"line {i}\n" for i in range(1, 21))
        text = text.replace("line 10\n", "WARNING: x\n")
        (found,) = logs.judge("log", text)
        self.assertEqual(len(found.context), 11)
        self.assertIn("line 5", found.context[0])
        self.assertIn("line 15", found.context[-1])

    def test_lockdep_with_its_trace_is_one_finding(self):
        self.assertEqual(len(logs.judge("log", LOCKDEP)), 1)

    def test_two_reports_are_two_findings(self):
        self.assertEqual(len(logs.judge("log", WARNING + WARNING)), 2)

    def test_report_cut_off_by_the_end_of_the_log(self):
        text = "\n".join(WARNING.splitlines()[:3])
        self.assertEqual(len(logs.judge("log", text)), 1)

    def test_cut_here_without_any_known_word(self):
        text = "------------[ cut here ]------------\nnovel trouble\n"
        self.assertEqual(len(logs.judge("log", text)), 1)

    def test_panic_after_a_report(self):
        found = logs.judge("log", WARNING + "Kernel panic - not syncing: x\n")
        self.assertEqual(len(found), 2)


class ConsoleAndKernelLog(unittest.TestCase):
    def judge(self, console, dmesg, allow=()):
        return [(f.name, f.number) for f in logs.judge_both(
            ("l1.log", console), ("l1.dmesg", dmesg), allow)]

    def test_same_line_is_reported_once(self):
        line = "[   12.000001] WARNING: x\n"
        self.assertEqual(self.judge("[    1.000000] a\r\nlogin: "
                                    + line.replace("\n", "\r\n"), line),
                         [("l1.log", 2)])

    def test_line_of_a_lower_level(self):
        self.assertEqual(self.judge("", "[   12.000001] WARNING: x\n"),
                         [("l1.dmesg", 1)])

    def test_same_words_at_another_time(self):
        self.assertEqual(self.judge("[   12.000001] WARNING: x\n",
                                    "[   13.000001] WARNING: x\n"),
                         [("l1.log", 1), ("l1.dmesg", 1)])

    def test_kernel_log_of_a_machine_that_crashed_is_missing(self):
        self.assertEqual(self.judge("Kernel panic - not syncing: x\n", ""),
                         [("l1.log", 1)])

    def test_report_with_quiet_lines(self):
        stamped = "".join(f"[   12.{i:06}] {line.split('] ')[1]}\n"
                          for i, line in enumerate(WARNING.splitlines()))
        console = "".join(line + "\n" for line in stamped.splitlines()
                          if "Modules linked" not in line)
        self.assertEqual(self.judge(console, stamped), [("l1.log", 3)])

    def test_allowed_in_both(self):
        line = "[   12.000001] WARNING: x\n"
        self.assertEqual(self.judge("", line, ["x$"]), [])


class Allowed(unittest.TestCase):
    def test_allowed_line(self):
        self.assertEqual(logs.judge("log", "WARNING: x\n", ["^WARNING: x$"]),
                         [])

    def test_allowed_line_that_is_not_bad_allows_its_trace(self):
        text = "[1.0] vmalloc error: size 8\n[1.0] Call Trace:\n[1.0]  x+0x1/0x2\n"
        self.assertEqual(logs.judge("x", text, ["vmalloc error"]), [])
        self.assertEqual(len(logs.judge("x", text)), 1)

    def test_allowing_one_line_allows_its_report(self):
        self.assertEqual(logs.judge("log", WARNING, [r"manage\.c:123"]), [])
        self.assertEqual(logs.judge("log", LOCKDEP, ["recursive locking"]), [])

    def test_other_lines_still_count(self):
        found = logs.judge("log", WARNING + "BUG: y\n", [r"manage\.c"])
        self.assertEqual([f.line for f in found], ["BUG: y"])


if __name__ == "__main__":
    unittest.main()
