# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import os
import platform
import tempfile
import unittest
from unittest import mock

import labpath  # noqa: F401
from vblab import cli, doctor
from vblab.util import LabError

GB = 2**30


class Machines(unittest.TestCase):
    """On machines that are made up; nothing is ever set up."""

    def doctor(self, *words, cpus=2, memory=8 * GB, machine="x86_64", user=0):
        pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": memory // 4096}
        out = io.StringIO()
        setup = ("_mmdebstrap", "_images", "_products")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            enter = stack.enter_context
            enter(mock.patch.dict(os.environ, VBALANCE_CACHE=folder))
            enter(mock.patch.object(os, "sched_getaffinity",
                                    lambda pid: range(cpus)))
            enter(mock.patch.object(os, "sysconf", pages.get))
            enter(mock.patch.object(os, "geteuid", lambda: user))
            enter(mock.patch.object(platform, "machine", lambda: machine))
            enter(mock.patch.object(doctor, "DISK_GB", 0))
            enter(mock.patch.object(doctor, "_mirror", lambda: "mirror"))
            enter(mock.patch.object(doctor, "_kernel",
                                    lambda name: lambda: "kernel"))
            steps = [enter(mock.patch.object(doctor, name, mock.Mock(
                return_value=name))) for name in setup]
            enter(contextlib.redirect_stdout(out))
            status = doctor.run(cli.parser().parse_args(["doctor", *words]))
        return status, out.getvalue(), [s.called for s in steps]

    def test_good_machine(self):
        # What a kernel shows of 6 GB.
        for fields in ({}, {"memory": 59 * GB // 10}):
            status, text, called = self.doctor(**fields)
            self.assertEqual((status, called), (0, [True] * 3))
            self.assertNotIn("MISSING", text)

    def test_what_no_set_up_can_mend(self):
        for fields, line in (
                ({"cpus": 1}, "MISSING processors: 1; 2 are needed"),
                ({"memory": 5 * GB}, "MISSING memory: 5.0 GB; 6 GB are"),
                ({"machine": "aarch64"}, "MISSING architecture: aarch64"),
                ({"user": 1000}, "MISSING user:")):
            with self.subTest(fields):
                status, text, called = self.doctor(**fields)
                self.assertEqual((status, called), (2, [False] * 3))
                self.assertIn(line, text)
                self.assertEqual(text.count("MISSING"), 1)


    def test_update(self):
        def update(name):
            if name == "bookworm":
                raise LabError("no mirror")
            return name == "trixie"

        there = {"trixie", "bookworm", "debug"}
        with mock.patch.object(doctor.root, "update", update), \
                mock.patch.object(doctor.root, "package_root", lambda name:
                                  mock.Mock(exists=lambda: name in there)):
            self.assertNotIn("package root", self.doctor()[1])
            status, text, called = self.doctor("--update")
        # What is there is set up all the same.
        self.assertEqual((status, called), (2, [True] * 3))
        self.assertEqual([line for line in text.splitlines()
                          if "package root" in line], [
            "ok      package root trixie: newer packages",
            "OLD     package root bookworm: not made anew, the old one stays: "
            "no mirror",
            "ok      package root debug: has the newest packages"])


if __name__ == "__main__":
    unittest.main()
