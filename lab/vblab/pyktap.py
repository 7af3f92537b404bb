# SPDX-License-Identifier: GPL-2.0
"""Runs the unittest files of one folder and prints KTAP."""

from __future__ import annotations

import sys
import unittest


class _KtapResult(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        # Some tests redirect it, and their parts fail meanwhile.
        self._out = sys.stdout

    def _line(self, test: unittest.TestCase, ok: bool, note: str = "") -> None:
        self._number += 1
        print(f"{'ok' if ok else 'not ok'} {self._number} - {test.id()}{note}",
              file=self._out, flush=True)

    def _details(self, test, err) -> None:
        text = self._exc_info_to_string(err, test)
        print("".join(f"# {line}\n" for line in text.splitlines()),
              end="", file=self._out)

    def addSuccess(self, test) -> None:
        super().addSuccess(test)
        self._line(test, True)

    def addFailure(self, test, err) -> None:
        super().addFailure(test, err)
        self._details(test, err)
        self._line(test, False)

    def addError(self, test, err) -> None:
        super().addError(test, err)
        self._details(test, err)
        self._line(test, False)

    def addSkip(self, test, reason) -> None:
        super().addSkip(test, reason)
        self._line(test, True, f" # SKIP {reason}")

    def addExpectedFailure(self, test, err) -> None:
        super().addExpectedFailure(test, err)
        self._line(test, True)

    def addUnexpectedSuccess(self, test) -> None:
        super().addUnexpectedSuccess(test)
        self._line(test, False)

    def addSubTest(self, test, subtest, err) -> None:
        # Only failures: the test's own line follows when all were good.
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._details(subtest, err)
            self._line(subtest, False)


def main(folder: str) -> int:
    suite = unittest.defaultTestLoader.discover(folder)
    print("KTAP version 1")
    print(f"1..{suite.countTestCases()}", flush=True)
    result = _KtapResult()
    suite.run(result)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
