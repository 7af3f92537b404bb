# SPDX-License-Identifier: GPL-2.0
"""Boots the lab as a user does, for the lab's own tests."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(LAB))

from vblab import paths, util  # noqa: E402

# Also what takes long, or a boot that tests of something else do without.
WHOLE = os.environ.get("LAB_WHOLE")


class Run:
    """One `lab/lab run`, in a process group of its own."""

    def __init__(self, *words: str, **scripts: str) -> None:
        """@scripts: what --l1 and --l2 are to run."""
        self._stack = contextlib.ExitStack()
        folder = self._stack.enter_context(
            util.temp_dir(paths.tmp(), "boots-"))
        argv = [str(LAB / "lab"), "run"]
        for level, text in scripts.items():
            path = folder / f"{level}.sh"
            path.write_text(text)
            argv += [f"--{level}", str(path)]
        self.out = folder / "out"
        self._errors = folder / "stderr"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*argv, "--out", str(self.out), *words], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, start_new_session=True,
                # It cleans up even if it is this test that is stopped.
                preexec_fn=functools.partial(util.die_with_parent,
                                             signal.SIGTERM))

    def await_line(self, text: str) -> None:
        for line in self.process.stdout:
            if text in line:
                return
        raise AssertionError(f"no line with {text!r}:\n{self.stderr}")

    def wait(self) -> int:
        """The exit status of lab/lab."""
        for _ in self.process.stdout:
            pass
        return self.process.wait()

    @property
    def stderr(self) -> str:
        return self._errors.read_text()

    def read(self, name: str) -> str:
        return (self.out / name).read_text()

    @property
    def reason(self) -> str:
        return json.loads(self.read("result.json"))["reason"]

    def remove(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()
        self.process.stdout.close()
        self._stack.close()
