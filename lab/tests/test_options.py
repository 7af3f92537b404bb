# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import cli, options
from vblab.util import LabError


def parse(*words):
    return cli.parser().parse_args(["run", *words])


class Options(unittest.TestCase):
    def refused(self, *words):
        with contextlib.redirect_stderr(io.StringIO()), \
                self.assertRaises(SystemExit) as caught:
            parse(*words)
        self.assertEqual(caught.exception.code, 2)

    def test_defaults(self):
        o = parse()
        options.check(o)
        self.assertEqual((o.cpus, o.guests, o.vcpus, o.pin, o.net, o.blk),
                         (2, 1, 4, "stacked", 1, 0))
        self.assertIsNone(o.host_mod)

    def test_module_with_and_without_parameters(self):
        self.assertEqual(parse("--host-mod").host_mod, "")
        self.assertEqual(parse("--guest-mod", "a=1 b=2").guest_mod, "a=1 b=2")

    def test_additions(self):
        with tempfile.TemporaryDirectory() as d:
            f = Path(d) / "f"
            f.write_text("x")
            o = parse("--add", f"{f}:both", "--add-l1", str(f), "--add-l1", f"{f}:sub/g",
                      "--add-l2", f"{f}:/etc/h")
            self.assertEqual(o.add, [(f, "/lab/both")])
            self.assertEqual(o.add_l1, [(f, "/lab/f"), (f, "/lab/sub/g")])
            self.assertEqual(o.add_l2, [(f, "/etc/h")])
            for option in ("--add", "--add-l1", "--add-l2"):
                self.refused(option, str(Path(d) / "missing"))

    def test_tools(self):
        o = parse("--tools-l1", "sockperf,iperf3", "--tools-l2", "fio")
        self.assertEqual((o.tools_l1, o.tools_l2),
                         (["sockperf", "iperf3"], ["fio"]))

    def test_wrong_values(self):
        for words in (("--guests", "-1"), ("--vcpus", "0"), ("--net", "x"),
                      ("--pin", "both"), ("--env", "1A=b"), ("--env", "A"),
                      ("--allow-log", "("), ("--l1", "/nonexistent"),
                      ("--tools-l2", "fio,nothing"), ("--tools-l1", "")):
            with self.subTest(words):
                self.refused(*words)

    ICOUNT = ("--icount", "--pin", "none")

    def test_what_does_not_fit_together(self):
        for words in (("--cpus", "1"), ("--guests", "99"), ("--net", "9"),
                      ("--guests", "8"), ("--blk", "16", "--blk-size", "512"),
                      (*self.ICOUNT, "--cpus", "2", "--guests", "0"),
                      (*self.ICOUNT, "--cpus", "1", "--vcpus", "2"),
                      (*self.ICOUNT, "--cpus", "1", "--vcpus", "1",
                       "--guests", "2"),
                      ("--secure-boot", "/nonexistent"),
                      ("--secure-boot", __file__, "--append-l1", "a='b'")):
            with self.subTest(words), self.assertRaises(LabError):
                options.check(parse(*words))
        options.check(parse("--cpus", "1", "--pin", "none"))
        options.check(parse(*self.ICOUNT, "--cpus", "1", "--guests", "0"))
        options.check(parse(*self.ICOUNT, "--cpus", "1", "--vcpus", "1"))
        options.check(parse("--guests", "8", "--mem", "8192"))
        options.check(parse("--secure-boot", __file__, "--append-l1", "a=b"))


if __name__ == "__main__":
    unittest.main()
