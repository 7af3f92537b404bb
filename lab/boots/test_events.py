# SPDX-License-Identifier: GPL-2.0
"""No guest's interrupt is delivered twice (selftests/modules/vb_events), however
often QEMU is asked out of its loop while the guest has one."""

import contextlib
import json
import shlex
import socket
import tempfile
import unittest

from booting import WHOLE, Run

# System calls on each vCPU: an interrupt more in the entry of one is a double
# fault. Seconds of a machine that is stopped at times.
GUEST = """
. /lab/lib.sh
guest 0 'for vcpu in 1 2 3 4; do
	while :; do
		dd if=/dev/zero of=/dev/null bs=1 count=100000
	done </dev/null >/dev/null 2>&1 &
done' </dev/null
echo now
for i in $(seq 30); do
	sleep 2
	guest 0 true </dev/null || exit
done
cd /sys/module/vb_events/parameters && cat injected again >"$LAB_OUT/events"
"""


class Monitor:
    """QEMU's, of which only what it answers is of interest."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._file = self._socket.makefile("rw")
        self._file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command):
        print(json.dumps({"execute": command}), file=self._file, flush=True)
        for line in self._file:
            answer = json.loads(line)
            assert "error" not in answer, answer
            if "return" in answer:
                return
        raise BrokenPipeError

    def close(self):
        # What it did not take any more is flushed again.
        with contextlib.suppress(OSError):
            self._file.close()
        self._socket.close()


def stop_until_it_ends(path):
    """Return: how many times."""
    times = 0
    monitor = Monitor(path)
    try:
        while True:
            monitor.ask("stop")
            monitor.ask("cont")
            times += 1
    except (ConnectionError, json.JSONDecodeError):
        return times
    finally:
        monitor.close()


@unittest.skipUnless(WHOLE, "takes a boot: make test")
class Twice(unittest.TestCase):
    def test_a_machine_that_is_stopped_over_and_over(self):
        # Not in the cache: a socket's name must be short.
        with tempfile.TemporaryDirectory() as folder:
            qmp = shlex.quote(f"unix:{folder}/qmp,server=on,wait=off")
            run = Run("--timeout", "900", "--qemu-l1", f"-qmp {qmp}", l1=GUEST)
            self.addCleanup(run.remove)
            run.await_line("now")
            times = stop_until_it_ends(f"{folder}/qmp")
            self.assertEqual(run.wait(), 0, run.stderr)
        print(f"# stopped {times} times")
        self.assertGreater(times, 1000)
        injected, again = map(int, run.read("events").split())
        self.assertGreater(injected, 1000)
        self.assertGreater(again, 0)


if __name__ == "__main__":
    unittest.main()
