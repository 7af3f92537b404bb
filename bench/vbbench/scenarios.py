# SPDX-License-Identifier: GPL-2.0
"""The scenarios of the bench: guests, and which tests they get in which modes."""
import dataclasses

from . import loads, modeset

SLICES = ("default", 30_000_000)
UDP_BYTES = 64
TCP_BYTES = (64, 512, 1024, 16384)
FIO_DEPTHS = (1, 8)
# Figure 5 of the CoINT paper, and 128 bytes.
RR_REQUESTS = (64, 128, 256, 512)
RR_RESPONSES = (1024, 2048, 4096, 8192)
RR_PAIRS = tuple(f"{a}/{b}" for a in RR_REQUESTS for b in RR_RESPONSES)
# Its table I.
SYSBENCH = ("cpu", "memory", "threads", "mutex")
PING_S, UDP_S, TCP_S, FIO_S, RR_MS = 4, 4, 4, 3, 500
TESTS = ("ping", "udp", "tcp-in", "tcp-out", "tcp-rr", "udp-rr", "fio",
         "sysbench")
TAIL_PINGS = 2001
SPREAD_PING_S = 7
OVERHEAD_PING_US = 5000
SYSBENCH_REPEATS = 2


@dataclasses.dataclass(frozen=True)
class Scenario:
    vcpus: int
    hogs: int           # busy threads, in the modes that have them
    slices: tuple
    text: str
    tests: tuple = ("ping", "udp", "tcp-in", "tcp-out", "fio")
    modes: tuple = modeset.DEFAULT_MODES
    guests: int = 1     # all but the first: neighbours, busy all the time
    ping_s: float = PING_S
    tcp_bytes: tuple = TCP_BYTES
    rr_pairs: tuple = RR_PAIRS
    rr_ms: int = RR_MS
    ping_us: int = 0    # Sysbench.ping_us
    judge_worst: bool = False   # of all pings
    spread: bool = False        # labrun.options()
    cgroups: bool = False       # the same
    rounds: int = 1     # for each round that is asked for


NEIGHBOUR = Scenario(
    4, 4, SLICES, "as stacked, and another guest with 4 busy vCPUs on the "
    "same CPU", tests=("ping", "tcp-in", "tcp-out", "udp-rr"),
    modes=("stock", "host-only", "full"), guests=2, tcp_bytes=(16384,),
    rr_pairs=("64/1024",), rr_ms=4000)

SCENARIOS = {
    "stacked": Scenario(
        4, 4, SLICES, "4 vCPUs share one CPU, each with a busy thread"),
    # Not several vCPUs with a CPU each: the emulator is not reliable where
    # guests run on two CPUs at once (Documentation/measurements.md).
    "uncontended": Scenario(
        1, 0, ("default",), "one vCPU with a CPU of its own, nothing else "
        "runs (the emulator carries no more such vCPUs)"),
    # As many pings of each mode as the target for the worst one speaks of.
    "tail": Scenario(
        4, 4, SLICES, "as stacked, 2000 pings of each mode in three rounds",
        tests=("ping",), modes=("idle", "stock", "host-only", "full"),
        ping_s=TAIL_PINGS * loads.INTERVAL_MS / 1000 / 3, judge_worst=True),
    # Waits at the default slice would be less than the emulator's own jitter.
    # Two vCPUs: with what else is needed, three busy emulated CPUs.
    "spread": Scenario(
        2, 2, (30_000_000,), "2 vCPUs, each with a busy thread, each on a CPU "
        "of its own shared with a busy thread of the host",
        tests=("ping",),
        modes=("alone", "stock", "guest-only", "remap-only", "full"),
        ping_s=SPREAD_PING_S, rounds=2, spread=True),
    "coint": Scenario(
        4, 4, SLICES, "as stacked: the CoINT paper's comparison of stock KVM, "
        "remapping alone, and both",
        tests=("ping", "tcp-in", "tcp-rr", "udp-rr"),
        modes=("stock", "host-only", "remap-only", "full"),
        tcp_bytes=(64, 512, 1024)),
    "neighbour": NEIGHBOUR,
    # Boosts are paid back among the threads of one cgroup only.
    "neighbour-cgroups": dataclasses.replace(
        NEIGHBOUR, text="as neighbour, each guest in a cgroup of its own and "
        "each vCPU in one within that, as libvirt has them",
        modes=(*NEIGHBOUR.modes, "share-4"), cgroups=True),
    "overhead-stacked": Scenario(
        4, 0, ("default",), "sysbench with 4 threads, 4 vCPUs share one CPU, "
        f"a ping every {OVERHEAD_PING_US / 1000:g} ms",
        tests=("sysbench",), modes=("stock", "remap-only", "full"),
        rounds=4, ping_us=OVERHEAD_PING_US),
}


def tests(scenario, names, ping_seed):
    """Groups of tests, each for a phase, of those @names that it has."""
    known = {
        "ping": [loads.ping(scenario.ping_s, ping_seed)],
        "udp": [loads.Tool("udp", UDP_S, (UDP_BYTES,), 2.5)],
        **{kind: [loads.Tool(kind, TCP_S, (size,), .6)
                  for size in scenario.tcp_bytes]
           for kind in ("tcp-in", "tcp-out")},
        **{kind: [loads.RequestResponse(kind, scenario.rr_ms,
                                        scenario.rr_pairs)]
           for kind in ("tcp-rr", "udp-rr")},
        "fio": [loads.Tool("fio", FIO_S, FIO_DEPTHS, 4)],
        "sysbench": [loads.Sysbench(SYSBENCH_REPEATS, scenario.ping_us,
                                    SYSBENCH)]}
    return [known[name] for name in scenario.tests if name in names]
