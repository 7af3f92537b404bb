# SPDX-License-Identifier: GPL-2.0
import contextlib
import io
import re
import threading
import unittest
from unittest import mock

import checkpath  # noqa: F401
from vbcheck import runner
from vbcheck.findings import Finding
from vbcheck.runner import Check
from vblab.util import LabError


def nothing(tree, tools):
    return []


def something(tree, tools):
    return [Finding("core/a.c", 1, "bad")]


def run(*checks):
    """Exit status and lines, with these checks."""
    said = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(said))
        for where, name, value in (
                (runner, "checks", lambda tree, tools: checks),
                (runner, "Tools", mock.Mock(return_value=mock.Mock(cpus=1))),
                (runner, "_tools_root", lambda whole: None),
                # These have no seeds.
                (runner, "_left", lambda check, future, *_: future.result())):
            stack.enter_context(mock.patch.object(where, name, value))
        # Of some, so that the project's exceptions need not be used.
        status = runner.run(re.compile("."))
    return status, said.getvalue().splitlines()


class Roots(unittest.TestCase):
    def test_made_side_by_side(self):
        """The checkers' one is not ready before the others have begun."""
        begun = [threading.Event() for _ in runner.kbuild.KERNELS]

        def get(name):
            begun[runner.kbuild.KERNELS.index(name)].set()
            raise LabError("not to be had")

        for whole in (True, False):
            for event in begun:
                event.clear()
            with mock.patch.object(runner, "install_host_packages"), \
                    mock.patch.object(runner.kernels, "get", get), \
                    mock.patch.object(
                        runner.toolroot, "ensure", lambda: [
                            e.wait(60 if whole else 0) for e in begun]):
                self.assertEqual(runner._tools_root(whole),
                                 [whole] * len(begun))


class Run(unittest.TestCase):
    def test_what_did_not_pass_is_named_at_the_end(self):
        status, lines = run(Check("a", nothing, ""),
                            Check("b", something, ""))
        self.assertEqual(status, 1)
        self.assertEqual(lines[-2:], ["FAILED b",
                                      "1 passed, 1 failed, 0 skipped"])


if __name__ == "__main__":
    unittest.main()
