# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import (cli, coverage, kernels, logs, machine, record, session,
                   suite)
from vblab.ktap import FAILED, PASSED, SKIPPED, Result
from vblab.record import Record
from vblab.suite import Boot, Test
from vblab.util import Interrupted, LabError

BOOT = Boot("b", [], [Test("l2-0", "g.sh"), Test("l1", "a.sh")], 9)


class Boots(unittest.TestCase):
    def load(self, entries):
        with tempfile.TemporaryDirectory() as d:
            for name in ("a.sh", "g.sh"):
                (Path(d) / name).write_text("")
            path = Path(d) / "lab-tests.json"
            path.write_text(json.dumps(entries))
            return suite.load_boots(path)

    def test_l2_tests_run_in_every_guest_and_first(self):
        (b,) = self.load([{"name": "x", "args": ["--guests", 2],
                           "l1": ["a.sh"], "l2": ["g.sh"]}])
        self.assertEqual([t.name for t in b.tests],
                         ["l2-0/g.sh", "l2-1/g.sh", "l1/a.sh"])

    def test_without_what_takes_long(self):
        boots = self.load([
            {"name": "x", "l1": ["a.sh"], "l1_long": ["g.sh"]},
            {"name": "y", "l1": ["a.sh"], "long": True}])
        self.assertEqual([t.name for t in boots[0].tests],
                         ["l1/a.sh", "l1/g.sh"])
        (x,), left_out = suite.without_long(boots)
        self.assertEqual((x.name, [t.name for t in x.tests]),
                         ("x", ["l1/a.sh"]))
        self.assertEqual(left_out, ["y", "x: l1/g.sh"])

    def test_mistakes_are_errors(self):
        for entry in ({"name": "x", "L1": ["a.sh"]}, {"l1": ["a.sh"]},
                      {"name": "x", "l1": ["missing.sh"]},
                      {"name": "x", "l1_long": ["a.sh"]},
                      {"name": "x", "host": ["no kernel"]},
                      {"name": "x", "guest": "debug"}):
            with self.subTest(entry), self.assertRaises(LabError):
                self.load([entry])

    def test_jobs(self):
        for cpus, mb, jobs in ((2, 24000, 2), (2, 9000, 1), (2, 100, 1),
                               (1, 24000, 1), (16, 24000, 4)):
            with self.subTest(cpus=cpus, mb=mb):
                self.assertEqual(suite.default_jobs(cpus, mb), jobs)

    def test_select(self):
        boots = [BOOT, Boot("c", [], [Test("l1", "a.sh")])]
        for pattern, expected in (("", [("b", 2), ("c", 1)]),
                                  ("^c$", [("c", 1)]),
                                  ("g\\.sh", [("b", 1)]), ("zzz", [])):
            chosen = suite.select(boots, re.compile(pattern))
            self.assertEqual([(b.name, len(b.tests)) for b in chosen],
                             expected)

    def test_kernels(self):
        only = Boot("c", ["--net", "2"], BOOT.tests, 9, host=("debug", "x"))
        self.assertEqual([b.name for b in suite.on_kernels(
            [BOOT, only], "6.12", "debug")], ["b"])
        b, c = suite.on_kernels([BOOT, only], "debug", "debug")
        self.assertEqual(c.args, ["--host-kernel", "debug", "--guest-kernel",
                                  "debug", "--net", "2"])
        own = Boot("d", ["--host-kernel", "6.1"], BOOT.tests)
        alone = Boot("e", ["--guests", "0"], BOOT.tests)
        for host, guest, names in (("6.12", "6.12", "de"), ("debug", "6.12", "e"),
                                   ("6.12", "debug", ""), ("debug", "debug", "e")):
            self.assertEqual("".join(b.name for b in suite.on_kernels(
                [own, alone], host, guest)), names)
        # Time limits are longer there.
        slow = kernels.slowness("debug")
        self.assertGreater(slow, 1)
        self.assertIn(f"timeout -k 60 {9 * slow} ./a.sh", suite.driver(b))
        self.assertIn("timeout -k 60 9 ./a.sh", suite.driver(BOOT))


class Detectors(unittest.TestCase):
    """A kernel of the lab's own takes too long to build for `make test`."""

    def listed(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            o = cli.parser().parse_args(["test", "--list", *words])
            self.assertEqual(o.func(o), 0)
        return suite.DETECTORS in out.getvalue().splitlines()

    def test_only_with_a_debug_kernel(self):
        self.assertFalse(self.listed())
        self.assertFalse(self.listed("--host-kernel", "6.1"))
        self.assertFalse(self.listed("--host-kernel", "coverage"))
        for name in ("debug", "debug-kcsan"):
            for level in ("host", "guest"):
                self.assertTrue(self.listed(f"--{level}-kernel", name))

    def test_by_name(self):
        self.assertFalse(self.listed("--host-kernel", "debug",
                                     "--filter", "^smoke$"))


class Results(unittest.TestCase):
    def results(self, output, code=0, reason=""):
        return [(r.name, r.state) for r in
                suite.boot_results(BOOT, output, code, reason)]

    def test_all_well(self):
        output = ("\n@test begin 0\n1..1\nok 1 - x\n\n@test end 0 0\n"
                  "\n@test begin 1\n1..1\nok 1 - y\n\n@test end 1 0\n")
        self.assertEqual(self.results(output),
                         [("b: l2-0/g.sh: x", "passed"),
                          ("b: l1/a.sh: y", "passed"),
                          ("b: boot and kernel logs", "passed")])

    def test_timeout_in_the_second(self):
        output = ("@test begin 0\n1..1\nok 1 - x\n@test end 0 0\n"
                  "@test begin 1\n1..2\nok 1 - y\n")
        states = [s for _, s in self.results(output, 4, "timeout")]
        self.assertEqual(states, ["passed", "passed", "failed", "failed",
                                  "failed"])

    def test_durations(self):
        output = ("@test begin 0\n# took 7 s\n1..0\n\n# took 12 s\n@test end 0 0\n"
                  "@test begin 1\n1..2\nok 1 - y\n")
        self.assertEqual(suite.durations(BOOT, output), "l2-0/g.sh 12")
        self.assertEqual(suite.durations(BOOT, ""), "")

    def test_marks(self):
        script = [*suite.MARKS, "begin 0", "printf x; false", "end 0 $?"]
        out = subprocess.run(["sh", "-c", "\n".join(script)], text=True,
                             capture_output=True, check=True).stdout
        self.assertEqual(suite.split_output(out)[0][1], 1)
        self.assertRegex(suite.durations(BOOT, out), r"^l2-0/g.sh \d+$")

    def test_boot_that_never_came_up(self):
        self.assertEqual([s for _, s in self.results("", 3, "panic")],
                         ["failed"] * 3)

    def test_driver_marks_every_test(self):
        text = suite.driver(BOOT)
        self.assertLess(text.index("begin 0"), text.index("begin 1"))
        self.assertIn("timeout -k 60 9 guest 0 "
                      "'cd /lab/selftests && exec ./g.sh'", text)

    def driven(self, tests, **how):
        """States, with shell text by name for tests, each of which has 1 s."""
        with tempfile.TemporaryDirectory() as d, \
                mock.patch.object(suite, "KILL_AFTER", 1):
            for name, text in {"lib.sh": "", **tests}.items():
                path = Path(d) / name
                path.write_text(f"#!/bin/sh\n{text}\n")
                path.chmod(0o755)
            boot = Boot("b", [], [Test("l1", name) for name in tests], 1)
            text = suite.driver(boot, **how)
            text = text.replace("/lab/lib.sh", f"{d}/lib.sh")
            text = text.replace("/lab/selftests", d)
            output = subprocess.run(["sh", "-c", text], timeout=60, text=True,
                                    capture_output=True, check=True).stdout
            results = suite.boot_results(boot, output, 0, "")
        return [r.state for r in results]

    def test_timeout_of_one_that_will_not_end(self):
        self.assertEqual(self.driven({
            "a.sh": "trap : TERM; echo 1..1; echo ok 1 - x\n"
                    "while :; do sleep 1; done",
            "b.sh": "echo 1..1; echo ok 1 - y"}),
            ["passed", "failed", "passed", "passed"])

    def test_late(self):
        # This machine's clock, and an hour.
        up = float(Path("/proc/uptime").read_text().split()[0])
        tests = {name: "echo 1..1; echo ok 1 - x" for name in ("a.sh", "b.sh")}
        for seconds, state in ((0.5, "skipped"), (up, "skipped"),
                               (up + 3600.5, "passed")):
            with self.subTest(seconds):
                self.assertEqual(self.driven(tests, seconds=seconds),
                                 ["passed", state, "passed"])


class Words(unittest.TestCase):
    def options(self, *args):
        with tempfile.TemporaryDirectory() as out:
            boot = Boot("a", list(args), [Test("l1", "b")], 10)
            words = suite._run_words(boot, Path(out))
            (Path(out) / "driver.sh").touch()
            o = cli.parser().parse_args(words)
        return o.append_l1, o.append_l2

    def test_no_queue_drops_packets(self):
        self.assertEqual(self.options("--guests", "2"),
                         (suite.LOSSLESS, suite.LOSSLESS))

    def test_words_of_a_boot_come_behind_that(self):
        # Of two the kernel takes the second: it may say otherwise.
        self.assertEqual(self.options("--append-l2", "b"),
                         (suite.LOSSLESS, f"{suite.LOSSLESS} b"))


class Lacking(unittest.TestCase):
    """What cannot be made fails, and nothing else does."""

    def setUp(self):
        out = io.StringIO()
        for context in (contextlib.redirect_stdout(out),
                        tempfile.TemporaryDirectory()):
            self.folder = context.__enter__()
            self.addCleanup(context.__exit__, None, None, None)
        self.said = out

    def patch(self, where, name, value):
        patch = mock.patch.object(where, name, value)
        self.addCleanup(patch.stop)
        return patch.start()

    def run_boots(self, boots, lacking, code=0, **how):
        """States by name, with a lab that only says that boots went well."""
        def prepare(o):
            prepared.append((o.host_kernel, o.guest_kernel))
            if lacking in prepared[-1]:
                raise LabError(f"no kernel {lacking}\nand a log")

        def start(boot, out, seconds, record):
            self.begun += 1
            self.seconds.append(seconds)
            out.mkdir(exist_ok=True)
            (out / "result.json").unlink(missing_ok=True)
            if code is not None:
                (out / "result.json").write_text("{}")
            proc = mock.Mock(returncode=code)
            return suite._Running(boot, out, proc, 0, record.conditions(
                suite._key(boot)[1]))

        prepared = []
        self.begun, self.seconds = 0, []
        self.patch(session, "prepare", prepare)
        self.patch(suite, "_start", start)
        self.patch(suite, "_finish", lambda r, output: [
            Result(f"{r.boot.name}: ran", PASSED)])
        self.patch(suite, "_show_failed_output", lambda *args: None)
        tally = suite.Tally()
        self.late = [b.name for b in suite.run_boots(
            boots, 2, lambda: 0, Path(self.folder), tally, **how)]
        return prepared, tally

    def test_a_kernel(self):
        for lacking in ("6.1", "newest"):
            with self.subTest(lacking):
                prepared, tally = self.run_boots([
                    Boot(name, ["--host-kernel", host, "--guest-kernel", guest],
                         BOOT.tests)
                    for name, host, guest in (("a", "6.1", "newest"),
                                              ("b", "6.12", "6.12"),
                                              ("c", "6.12", "6.12"),
                                              ("d", "6.1", "newest"))], lacking)
                # Each pair once, also one that cannot be had.
                self.assertEqual(prepared, [("6.1", "newest"),
                                            ("6.12", "6.12")])
                failed = [(f"{boot}: {what}", note) for boot in "ad"
                          for what, note in (
                              ("l2-0/g.sh", "was not run"),
                              ("l1/a.sh", "was not run"),
                              ("boot and kernel logs", f"no kernel {lacking}"))]
                self.assertEqual([(r.name, r.note) for r in tally.results
                                  if r.state == FAILED], failed)
                self.assertEqual([r.name for r in tally.results
                                  if r.state == PASSED], ["b: ran", "c: ran"])
                self.assertIn("and a log", self.said.getvalue())

    def test_time_is_over(self):
        for begins in (0, 1, 3):
            with self.subTest(begins):
                _, tally = self.run_boots(
                    [Boot(name, [], BOOT.tests) for name in "abc"], "no kernel",
                    left=lambda: 60 * (begins - self.begun))
                self.assertEqual(self.seconds,
                                 [60 * n for n in range(begins, 0, -1)])
                self.assertEqual([r.name for r in tally.results],
                                 [f"{name}: ran" for name in "abc"[:begins]])
                self.assertEqual(self.late, [*"abc"[begins:]])

    def test_what_is_done_is_not_run_again(self):
        self.all_is_there()
        path = Path(self.folder) / "record"
        boots = [Boot(name, ["--guest-kernel", "6.1"], BOOT.tests)
                 for name in "ab"]
        self.run_boots(boots[:1], "no kernel", record=Record(path))
        again = Record(path)
        prepared, tally = self.run_boots(boots, "no kernel", record=again)
        self.assertEqual((self.begun, len(prepared)), (1, 1))
        self.assertEqual(sorted(r.name for r in tally.results),
                         ["a: ran", "b: ran"])
        self.assertTrue(again.words().startswith("1 were done before"))
        # Nor is anything made for what is done.
        prepared, tally = self.run_boots(boots, "6.12", record=Record(path))
        self.assertEqual((prepared, self.begun), ([], 0))
        self.assertEqual(tally.count(FAILED), 0)
        # Some of its tests are not all.
        self.run_boots([Boot("a", boots[0].args, BOOT.tests[:1])], "no kernel",
                       record=Record(path))
        self.assertEqual(self.begun, 1)

    def all_is_there(self):
        self.patch(kernels, "build_there", lambda name: name)
        self.patch(record, "_tools", lambda: "tools")

    def test_what_was_not_judged_is_run_again(self):
        self.all_is_there()
        path = Path(self.folder) / "record"
        # The second one has not even begun.
        for code in (session.EXIT_INTERRUPTED, None):
            with self.subTest(code):
                with contextlib.suppress(Interrupted):
                    self.run_boots([Boot("a", [], BOOT.tests)], "no kernel",
                                   code=code, record=Record(path))
                self.run_boots([], "", record=Record(path))
                self.assertEqual(json.loads(path.read_text()), {})
        # Also where L1 stopped before its end.
        for code in (session.EXIT_SCRIPT, session.EXIT_SETUP,
                     session.EXIT_LOG, session.EXIT_TIMEOUT):
            with self.subTest(code):
                self.run_boots([Boot(f"{code}", [], BOOT.tests)], "no kernel",
                               code=code, record=Record(path))
                self.assertIn(f"{code} -- l2-0/g.sh l1/a.sh",
                              json.loads(path.read_text()))

    def test_a_record_is_of_whole_boots(self):
        for words in (["--coverage"], ["--begin-within", "3"]):
            with self.subTest(words), self.assertRaises(LabError):
                self.suite("--record", f"{self.folder}/record", *words)

    def test_detectors_are_recorded(self):
        seen = []
        self.all_is_there()
        self.patch(kernels, "get", lambda name: None)
        self.patch(suite, "_python_tests", lambda name, work, env: [
            seen.append(name) or Result(name, PASSED)])
        words = ("--filter", "lab/detectors", "--record",
                 f"{self.folder}/record", "--host-kernel", "debug")
        for guest in ("6.12", "6.12", "6.1"):
            self.suite(*words, "--guest-kernel", guest)
        self.assertEqual(seen, ["lab/detectors"] * 2)

    def test_late_boots_are_skipped(self):
        # Unless all are late.
        for words, late, said in (
                ((), 0, []), (("--begin-within", "3"), 0, []),
                (("--begin-within", "0"), 1, [
                    "SKIPPED boot smoke 6.1 (had not begun after 0 minutes)"]),
                (("--begin-within", "0"), 2, [
                    "FAILED boot smoke (had not begun after 0 minutes)",
                    "FAILED boot smoke 6.1 (had not begun after 0 minutes)"])):
            with self.subTest(words, late=late):
                self.said.truncate(0)
                status, lines = self.suite(
                    "--filter", r"^smoke( 6\.1)?$", *words,
                    boots=lambda boots, left: [
                        b for b in boots[2 - late:] if left() <= 0])
                self.assertEqual(status, int(late == 2))
                self.assertEqual([line for line in lines
                                  if re.match("(SKIPPED|FAILED) ", line)], said)

    def suite(self, *words, boots=lambda boots, left: []):
        def run_boots(wanted, side, taken, out, tally, left, record):
            tally.add([Result("boots", PASSED)])
            return boots(wanted, left)

        self.patch(session, "make_out", lambda explicit: Path(self.folder))
        self.patch(suite, "temp_dir", lambda parent, prefix:
                   contextlib.nullcontext(Path(self.folder)))
        self.patch(suite, "run_boots", run_boots)
        o = cli.parser().parse_args(["test", *words])
        status = o.func(o)
        return status, self.said.getvalue().splitlines()

    def lacks(self, *args, **kwargs):
        raise LabError("there is none")

    def test_coverage(self):
        self.patch(coverage, "report", self.lacks)
        self.patch(kernels, "get", lambda name: None)
        status, lines = self.suite("--coverage", "--filter", "^smoke$")
        self.assertEqual(status, 1)
        self.assertIn("FAILED coverage (there is none)", lines)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")

    def test_what_did_not_pass_is_named_at_the_end(self):
        self.patch(suite, "_python_tests", lambda name, work, env: [
            Result("a", SKIPPED, "no b"), Result("c", PASSED),
            Result("d", FAILED, "e"), Result("f", SKIPPED)])
        self.patch(suite, "MAKE", {})
        self.patch(suite, "PYTHON", ["lab/tests"])
        status, lines = self.suite()
        self.assertEqual(status, 1)
        self.assertEqual(lines[-5:-2],
                         ["FAILED d (e)", "SKIPPED a (no b)", "SKIPPED f"])
        # What was not even started.
        self.assertRegex(lines[-2], r"^left out: \w.* \(make test\)$")
        self.assertEqual(lines[-1], "2 passed, 1 failed, 2 skipped")

    def test_the_compiler(self):
        self.patch(suite.root, "ensure", self.lacks)
        # One runs before the others, one beside them.
        status, lines = self.suite("--filter", "^(unit|model|smoke)$")
        self.assertEqual(status, 1)
        self.assertIn("FAILED unit (there is none)", lines)
        self.assertIn("FAILED model (there is none)", lines)
        self.assertEqual(lines[-1], "1 passed, 2 failed, 0 skipped")


class Verdicts(unittest.TestCase):
    FINDING = logs.Finding("l1.log", 1, "WARNING: x", ())

    def verdict(self, **fields):
        return session.Outcome(**fields).verdict()[0]

    def test_codes(self):
        for fields, code in (
                ({"done": 0}, 0),
                ({"done": 0, "scripts": {"l1": 0}}, 0),
                ({"done": 1, "scripts": {"l1": 3}}, 1),
                ({"done": 2, "errors": ["insmod"]}, 2),
                ({}, 2),
                ({"done": 0, "findings": [self.FINDING]}, 3),
                ({"done": 1, "scripts": {"l1": 1},
                  "findings": [self.FINDING]}, 3),
                ({"timed_out": True}, 4),
                ({"timed_out": True, "findings": [self.FINDING]}, 3),
                ({"interrupted": True, "findings": [self.FINDING]}, 130)):
            with self.subTest(fields):
                self.assertEqual(self.verdict(**fields), code)

    def test_end_of_qemu_is_a_reason(self):
        for fields in ({}, {"scripts": {"l1": 1}},
                       {"findings": [self.FINDING]}):
            with self.subTest(fields):
                outcome = session.Outcome(qemu="QEMU was shot", **fields)
                self.assertIn("QEMU was shot", outcome.verdict()[1])
        self.assertNotIn("L1 stopped",
                         session.Outcome(timed_out=True).verdict()[1])

    def test_ways_to_end(self):
        self.assertIn("killed by SIGKILL", machine.ending(-9))
        self.assertIn("exited with status 1", machine.ending(1))
        self.assertIn("triple fault", machine.ending(0))


if __name__ == "__main__":
    unittest.main()
