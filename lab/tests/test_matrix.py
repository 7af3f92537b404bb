# SPDX-License-Identifier: GPL-2.0
import os
import re
import tempfile
import unittest
from unittest import mock

import labpath  # noqa: F401
from vblab import cli, kernels, matrix, root, suite
from vblab.ktap import FAILED, PASSED, SKIPPED, Result
from vblab.matrix import Pair
from vblab.suite import Boot, Test
from vblab.util import LabError


def data(**change):
    spec = {"pairs": ["old/new"], "boots": ["b"], **change}
    return {"kernels": {"old": {}, "new": {}}, "matrix": {"some": spec}}


class Pairs(unittest.TestCase):
    def test_of_the_project(self):
        boots = [b.name for b in suite.load_boots(suite.TESTS)]
        pairs = [p.name for p in matrix.load(kernels.data(), boots)]
        series = kernels.series()
        self.assertGreaterEqual(len(series), 3)
        self.assertLessEqual({f"{h}/{g}" for h in series for g in series},
                             set(pairs))
        # Both levels get every flavour, beside the same one and the other.
        for one in series:
            self.assertIn(f"{one}-full/{one}-full", pairs)
            self.assertTrue({f"{one}-full/{g}" for g in series} & set(pairs))
            self.assertTrue({f"{h}/{one}-full" for h in series} & set(pairs))

    def test_no_boot_is_for_the_default_kernel_alone(self):
        boots = [b for b in suite.load_boots(suite.TESTS)
                 if "--host-kernel" not in b.args]
        pairs = {p.name: p.boots for p in
                 matrix.load(kernels.data(), [b.name for b in boots])}
        # Hours of the same that others do for minutes.
        left_out = {"soak"}
        for name in set(kernels.series()) - {kernels.default()}:
            wanted = {b.name for b in boots if suite.fits(b, name, name)}
            self.assertEqual(wanted - set(pairs[f"{name}/{name}"]), left_out)

    def test_load(self):
        self.assertEqual(matrix.load(data(), ["b", "c"]),
                         [Pair("old", "new", ("b",))])

    def test_a_pair_that_is_there_twice(self):
        twice = data(pairs=["old/new", "new/new"], boots=["b", "c"])
        twice["matrix"]["more"] = {"pairs": ["old/new"], "boots": ["c", "d"]}
        self.assertEqual(matrix.load(twice, ["b", "c", "d"]),
                         [Pair("old", "new", ("b", "c", "d")),
                          Pair("new", "new", ("b", "c"))])

    def test_mistakes_are_errors(self):
        for change in ({"pairs": ["old/older"]}, {"pairs": ["neww/old"]},
                       {"boots": ["b", "x"]}):
            with self.subTest(change), self.assertRaises(LabError):
                matrix.load(data(**change), ["b"])

    def test_a_boot_gets_its_kernels_last(self):
        boot = matrix.on_pair(Boot("b", ["--host-kernel", "x"],
                                   [Test("l1", "a.sh")]),
                              Pair("old", "new", ("b",)))
        self.assertEqual(boot.name, "old/new b")
        self.assertEqual(boot.args[-4:], ["--host-kernel", "old",
                                          "--guest-kernel", "new"])

    def test_time_limits_of_a_slow_kernel(self):
        for host, guest in (("debug", "6.12"), ("6.12", "debug")):
            boot = matrix.on_pair(Boot("b", [], [Test("l1", "a.sh")], 9),
                                  Pair(host, guest, ("b",)))
            limit = 9 * kernels.slowness("debug")
            self.assertGreater(limit, 9)
            self.assertIn(f" {limit} ./a.sh", suite.driver(boot))

    def test_boots_for_one_kernel_only(self):
        boots = {b.name: b for b in (
            Boot("any", [], []), Boot("host", [], [], host=("old",)),
            Boot("guest", [], [], guest=("new",)))}
        pairs = [Pair(host, guest, tuple(boots))
                 for host in ("old", "new") for guest in ("old", "new")]
        for pattern, names in ((".", [
                "old/old any", "old/old host",
                "old/new any", "old/new host", "old/new guest",
                "new/old any", "new/new any", "new/new guest"]),
                ("new/new ", ["new/new any", "new/new guest"])):
            self.assertEqual([b.name for b in matrix.chosen(
                pairs, boots, re.compile(pattern))], names)

    def test_all_boots_get_the_environment(self):
        o = cli.parser().parse_args(["matrix", "--env", "LONG=1", "--env",
                                     "A=b", "--filter", "host alone"])
        with mock.patch.object(suite, "run_boots") as run_boots, \
                mock.patch.object(suite, "report",
                                  lambda work, tally, last: work(None)):
            matrix.run(o)
        boots = run_boots.call_args[0][0]
        self.assertGreater(len(boots), 1)
        for b in boots:
            self.assertEqual(b.args[-4:], ["--env", "LONG=1", "--env", "A=b"])


class Table(unittest.TestCase):
    PAIRS = [Pair("old", "new", ("b",)), Pair("new", "new", ("b", "c"))]
    RELEASES = {"old": "6.1.0-50", "new": "7.3.4"}
    RESULTS = [
        Result("old/new b: l1/a.sh: one", PASSED),
        Result("old/new b: l1/a.sh: two", FAILED),
        Result("old/new b: l1/a.sh: three", PASSED),
        Result("old/new b: boot and kernel logs", PASSED),
        Result("new/new b: l1/a.sh: one", PASSED),
        Result("new/new b: l1/a.sh: two", SKIPPED),
        Result("new/new b: boot and kernel logs", FAILED),
        Result("new/new c: l1/c.sh", SKIPPED, "no device"),
        Result("new/new c: l1/d.sh: one", PASSED),
    ]

    def test_the_worst_counts(self):
        self.assertEqual(matrix.cells(self.PAIRS[0], self.RESULTS),
                         {"b: l1/a.sh": "FAIL", "b: boot and kernel logs": "ok"})
        self.assertEqual(matrix.cells(self.PAIRS[1], self.RESULTS),
                         {"b: l1/a.sh": "part", "b: boot and kernel logs": "FAIL",
                          "c: l1/c.sh": "skip", "c: l1/d.sh": "ok"})

    def test_table(self):
        lines = matrix.table(self.PAIRS, self.RESULTS,
                             self.RELEASES).splitlines()
        self.assertEqual([l.split() for l in lines if l], [
            ["1", "old/new", "6.1.0-50", "/", "7.3.4"],
            ["2", "new/new", "7.3.4", "/", "7.3.4"],
            ["host/guest", "1", "2"],
            ["b:", "boot", "and", "kernel", "logs", "ok", "FAIL"],
            ["b:", "l1/a.sh", "FAIL", "part"],
            ["c:", "l1/c.sh", "-", "skip"],
            ["c:", "l1/d.sh", "-", "ok"]])

    def test_releases_are_looked_up_and_nothing_is_made(self):
        with tempfile.TemporaryDirectory() as cache, \
                mock.patch.dict(os.environ, VBALANCE_CACHE=cache):
            self.assertEqual({kernels.release_there(name)
                              for name in kernels.names()}, {"?"})
            there = root.package_root("bookworm").path
            for name in ("6.1.0-9-x", "6.1.0-10-x"):
                (there / "usr/lib/modules" / name).mkdir(parents=True)
                (there / "usr/lib/modules" / name / "build").symlink_to("x")
                (there / "boot").mkdir(exist_ok=True)
                (there / "boot" / f"vmlinuz-{name}").touch()
            self.assertEqual(kernels.release_there("6.1"), "6.1.0-10-x")

    def test_no_results(self):
        self.assertIn("old/new", matrix.table(self.PAIRS, [], self.RELEASES))


if __name__ == "__main__":
    unittest.main()
