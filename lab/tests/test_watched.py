# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import unittest
from unittest import mock

import labpath  # noqa: F401
from vblab import cli, kernels, session, suite
from vblab.ktap import FAILED, PASSED, SKIPPED, Result
from vblab.util import LabError


def called(*words, **results):
    """(status, output, kernels of each call) of `lab/lab debug`; @results: by
    "host of HOST, guest of GUEST", what a call gives or raises."""
    calls = []

    def run(o, tally):
        pair = (o.host_kernel, o.guest_kernel)
        calls.append(pair)
        what = results.get("_".join(pair).replace("-", "_").replace(".", "_"),
                           (0, []))
        if isinstance(what, Exception):
            raise what
        tally.results += what[1]
        return what[0]

    out = io.StringIO()
    o = cli.parser().parse_args(["debug", *words])
    with mock.patch.object(suite, "run", run), \
            mock.patch.object(kernels, "watching", lambda: ["k", "races"]), \
            mock.patch.object(kernels, "default", lambda: "plain"), \
            contextlib.redirect_stdout(out):
        return o.func(o), out.getvalue(), calls


class Debug(unittest.TestCase):
    ALL = [("k", "plain"), ("plain", "k"), ("races", "plain"),
           ("plain", "races")]

    def test_one_level_at_a_time(self):
        status, _, calls = called()
        self.assertEqual((status, calls), (0, self.ALL))

    def test_each_has_its_results_and_all_have_a_sum(self):
        status, out, _ = called(
            k_plain=(0, [Result("a", PASSED), Result("b", SKIPPED, "why")]),
            plain_races=(1, [Result("c", FAILED, "what"), Result("d", PASSED)]))
        self.assertEqual(status, 1)
        self.assertEqual(out[out.index("==== k as host:"):].splitlines(), [
            "==== k as host: 1 passed, 0 failed, 1 skipped",
            "SKIPPED b (why)",
            "==== k as guest: 0 passed, 0 failed, 0 skipped",
            "==== races as host: 0 passed, 0 failed, 0 skipped",
            "==== races as guest: 1 passed, 1 failed, 0 skipped",
            "FAILED c (what)",
            "2 passed, 1 failed, 1 skipped"])

    def test_one_that_cannot_be_run_is_a_failure_and_no_end(self):
        status, out, calls = called(k_plain=LabError("no such compiler"))
        self.assertEqual((status, calls), (1, self.ALL))
        self.assertIn("FAILED k as host (no such compiler)\n", out)
        self.assertEqual(out.splitlines()[-1], "0 passed, 1 failed, 0 skipped")

    def test_an_interrupt_is_the_end(self):
        status, out, calls = called(
            k_plain=(session.EXIT_INTERRUPTED, [Result("a", PASSED)]))
        self.assertEqual((status, calls),
                         (session.EXIT_INTERRUPTED, self.ALL[:1]))
        self.assertEqual(out.splitlines()[-1], "1 passed, 0 failed, 0 skipped")

    def test_a_list_has_no_sum(self):
        _, out, calls = called("--list")
        self.assertEqual(calls, self.ALL)
        self.assertNotIn("passed", out)


if __name__ == "__main__":
    unittest.main()
