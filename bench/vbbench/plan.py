# SPDX-License-Identifier: GPL-2.0
"""What is measured, in which modes, and when: rounds of short phases in one boot."""
import dataclasses
import random


@dataclasses.dataclass(frozen=True)
class Mode:
    """host: vbalance_host is loaded in the emulated host. guest: what runs in
    the guest: none, irqbalance or module, with the module's parameters.
    hogs: are the vCPUs kept busy?"""
    host: bool = False
    guest: str = "none"
    params: str = ""
    hogs: bool = True


MODES = {
    "idle": Mode(hogs=False),
    "stock": Mode(),
    "irqbalance": Mode(guest="irqbalance"),
    "paper": Mode(True, "module", "remap=affinity policy=paper"),
    "cost": Mode(True, "module", "remap=affinity policy=cost"),
    "host-only": Mode(True),
    "guest-only": Mode(False, "module", "remap=borrow source=steal"),
    "full": Mode(True, "module", "remap=redirect"),
}
# What an unmodified guest gets is left out unless asked for: the demo has six
# minutes, and the bench's table 100 columns.
DEFAULT_MODES = tuple(m for m in MODES if m != "host-only")
SLICES = ("default", 30_000_000)

# The paper pings at 100 ms; a finer interval gives more samples in the time
# there is, and still leaves the guest alone for most of it. This is the mean:
# bench/src/jping.c sends at random times, because four stacked vCPUs take
# turns every 120 ms with 30 ms slices (128 ms when the scheduler's 4 ms tick
# rounds them up) and every 16 ms with the default: fixed intervals would visit
# the same few moments of that rotation again and again.
INTERVAL_MS = 30

# How often irqbalance looks, its -t. Its default of 10 s would not let it act
# even once in a phase of the demo; like this it gets in a phase about as many
# looks as in the paper's minute. Nothing else about it is changed.
IRQBALANCE_S = 1

# Unmeasured pings before the measured ones: the scheduler, irqbalance and the modules see the load first.
WARM_S = 1.0
# What a switch of modes takes on top (seen: 1 to 5 seconds, most of it for
# loading and unloading vbalance_host).
SWITCH_S = 2.5
# Nothing varies in the idle guest: less time is enough.
IDLE_SHARE = 0.5


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


UDP_BYTES = 64
TCP_BYTES = (64, 512, 1024, 16384)
FIO_DEPTHS = (1, 8)
PING_S, UDP_S, TCP_S, FIO_S = 4, 4, 4, 3
TESTS = ("ping", "udp", "tcp-in", "tcp-out", "fio")


@dataclasses.dataclass(frozen=True)
class Scenario:
    vcpus: int
    hogs: int           # busy threads, in the modes that have them
    slices: tuple
    text: str


SCENARIOS = {
    "stacked": Scenario(
        4, 4, SLICES, "4 vCPUs share one CPU, each with a busy thread"),
    # Not several vCPUs with a CPU each: the emulator is not reliable where
    # guests run on two CPUs at once (Documentation/measurements.md).
    "uncontended": Scenario(
        1, 0, ("default",), "one vCPU with a CPU of its own, nothing else "
        "runs (the emulator carries no more such vCPUs)"),
}


@dataclasses.dataclass(frozen=True)
class Phase:
    index: int          # from 1
    round: int          # from 1
    slice: object       # "default" or nanoseconds
    mode: str
    tests: tuple

    @property
    def seconds(self):
        return sum(t.seconds for t in self.tests) + SWITCH_S

    def test(self, name):
        return next((t for t in self.tests if t.name == name), None)

    def line(self):
        """One line of the plan file that the L1 script follows."""
        return " ".join([str(self.index), str(self.round), str(self.slice),
                         self.mode, *(t.word() for t in self.tests)])


def make(rounds, tests, modes=tuple(MODES), slices=SLICES, seed=2012):
    """Phases in order. Within a round each slice comes once, under it each
    group of tests and there each mode once, in an order shuffled anew with a
    fixed seed, so that no mode always follows the same other one or always
    comes late. What is compared is measured within a minute or two: the
    machine may be slower in the next.

    @tests: called with a mode and a seed, returns groups of tests, each of
    them for a phase. The modes of a round get the same seed: their pings go
    at the same times.
    """
    rng = random.Random(seed)
    phases = []
    for r in range(1, rounds + 1):
        for s in rng.sample(slices, len(slices)):
            for group in range(len(tests(modes[0], seed))):
                for mode in rng.sample(modes, len(modes)):
                    phases.append(Phase(
                        len(phases) + 1, r, s, mode,
                        tuple(tests(mode, seed + r)[group])))
    return phases


def demo(rounds, seconds, modes=DEFAULT_MODES, seed=2012):
    def tests(mode, ping_seed):
        share = IDLE_SHARE if mode == "idle" else 1
        return [[ping(seconds * share, ping_seed)]]
    return make(rounds, tests, modes, seed=seed)


def bench(rounds, scenario, slices, modes, names, seed=2012):
    """Phases for the tests of @names."""
    def tests(_, ping_seed):
        known = {
            "ping": [ping(PING_S, ping_seed)],
            "udp": [Tool("udp", UDP_S, (UDP_BYTES,), 2.5)],
            **{kind: [Tool(kind, TCP_S, (size,), .6) for size in TCP_BYTES]
               for kind in ("tcp-in", "tcp-out")},
            "fio": [Tool("fio", FIO_S, FIO_DEPTHS, 4)]}
        return [known[name] for name in TESTS if name in names]
    return make(rounds, tests, modes,
                tuple(s for s in scenario.slices if s in slices), seed)


def total_seconds(phases):
    return sum(p.seconds for p in phases)


def with_params(text):
    """MODES with other parameters of the guest's module, from "MODE=PARAMS"
    words; raises ValueError."""
    modes = dict(MODES)
    for one in text:
        name, _, params = one.partition("=")
        if name not in modes or modes[name].guest != "module":
            raise ValueError(f"no mode with our module in the guest: {name}")
        modes[name] = dataclasses.replace(modes[name], params=params)
    return modes


def modes_file(modes, names, hogs):
    """What the scripts need to know of each mode, one line each:
    NAME HOST-MODULE(0|1) BUSY-THREADS GUEST(none|irqbalance|module) PARAMS"""
    return "".join(
        f"{n} {modes[n].host:d} {hogs if modes[n].hogs else 0} "
        f"{modes[n].guest} {modes[n].params}".rstrip() + "\n" for n in names)
