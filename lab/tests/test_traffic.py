# SPDX-License-Identifier: GPL-2.0
"""What selftests/ktap.sh says of numbered packets and their answers."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import labpath  # noqa: F401
from vblab import paths

# Like ping: answers, and on SIGQUIT how many were sent by then.
PING = f"""#!{sys.executable}
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit())
asked = []
def quit(*_):
    asked.append(True)
    print("\\r2/3 packets, 33% loss", file=sys.stderr, flush=True)
def answer(n):
    print(f"64 bytes from 10.9.0.2: icmp_seq={{n}} ttl=64 time=1 ms", flush=True)
signal.signal(signal.SIGQUIT, quit)
open(sys.argv[0] + ".up", "w")
while not asked:
    time.sleep(0.01)
for n in sys.argv[-1].split(","):
    answer(n)
    time.sleep(0.2)
open(sys.argv[0] + ".done", "w")
while True:
    time.sleep(1)
"""
STOP = """. ./ktap.sh
# As long as there is something to come, however slow this machine is.
await() {
	shift
	until "$@"; do
		[ ! -e "$PING.done" ] || { "$@"; return; }
		sleep 0.1
	done
}
traffic_start "$ANSWERS"
until [ -e "$PING.up" ]; do sleep 0.1; done
traffic_stop "all"
ktap_end
"""


class Stop(unittest.TestCase):
    def stop(self, answers):
        """Of three packets, and of more that were sent later."""
        with tempfile.TemporaryDirectory() as folder:
            ping = Path(folder) / "ping"
            ping.write_text(PING)
            ping.chmod(0o755)
            return subprocess.run(
                ["sh", "-c", STOP], cwd=paths.REPO / "selftests", text=True,
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}",
                     "PING": str(ping), "ANSWERS": answers},
                stdout=subprocess.PIPE, check=False).stdout

    def assert_passes(self, answers, behind):
        said = self.stop(answers)
        self.assertIn("\nok 1 - all\n", said)
        self.assertIn(f"all: 3 packets, {behind} of all answered behind", said)

    def assert_fails(self, answers, why):
        said = self.stop(answers)
        self.assertIn("\nnot ok 1 - all\n", said)
        self.assertIn(f"got '{why}'", said)

    def test_in_their_order(self):
        self.assert_passes("1,2,3,4", 0)

    def test_behind_later_ones(self):
        self.assert_passes("1,3,4,2", 1)
        self.assert_passes("1,2,5,4,3", 2)

    def test_one_that_is_lost(self):
        self.assert_fails("1,2,4,5", "packet 3: 0 answers")

    def test_one_that_is_answered_twice(self):
        self.assert_fails("1,2,2,3,4", "packet 2: 2 answers")


if __name__ == "__main__":
    unittest.main()
