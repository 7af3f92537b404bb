# SPDX-License-Identifier: GPL-2.0
"""The tests: what is sent to a guest, or run in it, and for how long."""
import dataclasses

# The paper pings at 100 ms; a finer interval gives more samples in the time
# there is, and still leaves the guest alone for most of it. This is the mean:
# bench/src/jping.c sends at random times, because four stacked vCPUs take
# turns every 120 ms with 30 ms slices (128 ms when the scheduler's 4 ms tick
# rounds them up) and every 16 ms with the default: fixed intervals would visit
# the same few moments of that rotation again and again.
INTERVAL_MS = 30

# Unmeasured pings before the measured ones: the scheduler, irqbalance and the
# modules see the load first.
WARM_S = 1.0


@dataclasses.dataclass(frozen=True)
class Ping:
    interval_ms: int
    warm: int           # pings
    count: int
    seed: int           # of the times of the pings
    name = "ping"

    @property
    def pings(self):
        return self.warm + self.count

    @property
    def seconds(self):
        return self.pings * self.interval_ms / 1000

    def word(self):
        return f"ping:{self.interval_ms * 1000}:{self.pings}:{self.seed}"


def ping(seconds, seed, interval_ms=INTERVAL_MS):
    return Ping(interval_ms, round(WARM_S * 1000 / interval_ms),
                max(1, round(seconds * 1000 / interval_ms)), seed)


@dataclasses.dataclass(frozen=True)
class Tool:
    """A test that a tool runs for a time. @kind: udp, tcp-in, tcp-out or fio;
    @args: bytes of a message or a write, or queue depths."""
    kind: str
    run: int            # seconds, whole ones: iperf3 and sockperf know no other
    args: tuple
    around: float       # seconds that it takes on top (seen)

    @property
    def name(self):
        return "-".join([self.kind, *map(str, self.args)])

    @property
    def seconds(self):
        return self.run * (len(self.args) if self.kind == "fio" else 1) \
            + self.around

    def word(self):
        return ":".join([self.kind, str(self.run), *map(str, self.args)])


@dataclasses.dataclass(frozen=True)
class RequestResponse:
    """bench/src/rr.c, for @ms with each of @pairs ("REQUEST/RESPONSE",
    bytes). @kind: tcp-rr or udp-rr."""
    kind: str
    ms: int
    pairs: tuple

    @property
    def name(self):
        return self.kind

    @property
    def seconds(self):
        return self.ms * len(self.pairs) / 1000 + .5

    def word(self):
        return ":".join([self.kind, str(self.ms), *self.pairs])


@dataclasses.dataclass(frozen=True)
class Sysbench:
    """@repeats times each of @kinds in the guest, each for about a second.
    @ping_us: meanwhile pings come in, this far apart; 0: none do."""
    repeats: int
    ping_us: int
    kinds: tuple
    name = kind = "sysbench"

    @property
    def seconds(self):
        return self.repeats * len(self.kinds) * 1.3

    def word(self):
        return ":".join(["sysbench", str(self.repeats), str(self.ping_us),
                         *self.kinds])
