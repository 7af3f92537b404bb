# SPDX-License-Identifier: GPL-2.0
"""Output of ping and the other tools, schedstat, and the modules' debugfs files."""
import json
import re

REPLY = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from .*icmp_seq=(\d+) .*"
                   r"time[=<]([\d.]+) ms(.*)$")
UNANSWERED = re.compile(r"^\[(\d+\.\d+)\] no answer yet for icmp_seq=(\d+)")
SENT = re.compile(r"^(\d+) packets transmitted, (\d+) received")


class ParseError(Exception):
    pass


def ping(text):
    """Output of `ping -D -O` (iputils and jping).

    Returns ({sequence number: (time of reply in s, round trip in ms)},
    {sequence number: time at which it was known to be missing}, number sent).

    Sequence numbers count from 1 without the wrap at 65536. Duplicates keep
    the first answer. The number sent is the summary line's: without it the
    output is cut short and nobody knows what was lost.
    """
    replies, missing, sent, high = {}, {}, None, 0

    def unwrap(low):
        seq = low + (high & ~0xffff)
        return seq + 0x10000 if seq + 0x8000 < high else seq

    for line in text.splitlines():
        m = REPLY.match(line)
        if m:
            if "DUP!" in m[4]:
                continue
            seq = unwrap(int(m[2]))
            high = max(high, seq)
            replies.setdefault(seq, (float(m[1]), float(m[3])))
            continue
        m = UNANSWERED.match(line)
        if m:
            missing[unwrap(int(m[2]))] = float(m[1])
            continue
        m = SENT.match(line)
        if m:
            sent = int(m[1])
    if sent is None:
        raise ParseError("ping's summary line is missing: cut short?")
    return replies, missing, sent


def phase_samples(text, warm, count, interval_s):
    """Round trips of one phase as [(seconds since the first measured ping,
    ms or None)], in the order they were sent.

    The first @warm pings are the settle time. The time of a lost ping is that
    of its "no answer" line (jping prints the time of sending there), else it
    is taken one interval after the one before.
    """
    replies, missing, sent = ping(text)
    if sent < warm + count:
        raise ParseError(f"{sent} pings sent, {warm + count} expected")
    out, last, origin = [], None, None
    for seq in range(1, warm + count + 1):
        rtt = None
        if seq in replies:
            at, rtt = replies[seq]
            last = at - rtt / 1000
        elif seq in missing:
            last = missing[seq]
        else:
            last = 0.0 if last is None else last + interval_s
        if seq <= warm:
            continue
        origin = last if origin is None else origin
        out.append((round(last - origin, 4), rtt))
    return out


def schedstat(text):
    """Lines "TID RUN WAIT TURNS" -> {tid: (run ns, wait ns, turns)}."""
    out = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 4 or not all(f.isdigit() for f in fields):
            raise ParseError(f"not a schedstat line: {line!r}")
        tid, run, wait, turns = map(int, fields)
        out[tid] = (run, wait, turns)
    return out


def schedstat_delta(before, after):
    """Per-thread differences, for threads that are in both."""
    return [tuple(b - a for a, b in zip(before[tid], after[tid]))
            for tid in sorted(before) if tid in after]


def sections(text):
    """Files printed one after the other, each headed by "==> NAME <==", as
    {name: text}."""
    out, name = {}, None
    for line in text.splitlines():
        m = re.match(r"^==> (.+) <==$", line)
        if m:
            name = m[1]
            out[name] = ""
        elif name is not None:
            out[name] += line + "\n"
    return out


def counters(text):
    """A debugfs stats file: "v: N", then "name value" lines. Values that are
    numbers become int, others stay text."""
    out = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        value = value.strip()
        if not key or key == "v:":
            continue
        out[key.rstrip(":")] = int(value) if re.fullmatch(r"-?\d+", value) \
            else value
    return out


DROPPED = re.compile(r"# dropped messages = (\d+)")


def sockperf(text):
    """The log of `sockperf ping-pong --full-log` as [(second of sending,
    round trip in ms or None)], in the order they were sent. Messages without
    an answer are only counted there: they come last."""
    rows = []
    lost = None
    for line in text.splitlines():
        m = DROPPED.search(line)
        if m:
            lost = int(m[1])
            continue
        fields = line.split(",")
        if len(fields) == 4 and fields[0].isdigit():
            sent, received = float(fields[1]), float(fields[2])
            rows.append((sent, (received - sent) * 1000))
    if lost is None or not rows:
        raise ParseError("sockperf: no observations")
    return rows + [(rows[-1][0], None)] * lost


def iperf3(text, warm_s):
    """Mbit/s of each interval that begins after @warm_s."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ParseError(f"iperf3: {error}") from None
    if "error" in data:
        raise ParseError(f"iperf3: {data['error']}")
    sums = [i["sum"] for i in data["intervals"]]
    if not sums:
        raise ParseError("iperf3: no intervals")
    # What is left over at the end is a piece of an interval.
    whole = sums[0]["seconds"] / 2
    return [s["bits_per_second"] / 1e6 for s in sums
            if s["start"] >= warm_s - .01 and s["seconds"] >= whole]


def rr(text):
    """Output of rr -> {"REQUEST/RESPONSE": ([(second of sending, ms or None)],
    seconds in all)}."""
    out = {}
    for pair, body in sections(text).items():
        *lines, last = body.splitlines() or [""]
        if not last.startswith("end "):
            raise ParseError(f"rr: {pair} is cut short")
        rows = []
        for line in lines:
            at, ms = line.split()
            rows.append((float(at), None if ms == "lost" else float(ms)))
        out[pair] = rows, float(last.split()[1])
    if not out:
        raise ParseError("rr: nothing was measured")
    return out


TOTAL_TIME = re.compile(r"^\s*total time:\s*([\d.]+)s$", re.M)


def sysbench(text):
    """Sections "KIND.N" of sysbench's output -> {KIND: [seconds in all]}."""
    out = {}
    for name, body in sections(text).items():
        m = TOTAL_TIME.search(body)
        if not m:
            raise ParseError(f"sysbench: {name} has no total time")
        out.setdefault(name.split(".")[0], []).append(float(m[1]))
    if not out:
        raise ParseError("sysbench: nothing was measured")
    return out


def cpu_samples(text):
    """Lines of cpu_sample() in phases.sh -> [(uptime s, switches, own ns,
    neighbours' ns)]. What was written when it was ended may be cut short."""
    rows = [line.split() for line in text.splitlines(True)
            if line.endswith("\n")]
    if not rows:
        raise ParseError("no CPU samples")
    try:
        return [(float(up), int(switches), int(own), int(others))
                for up, switches, own, others in rows]
    except ValueError as error:
        raise ParseError(f"CPU samples: {error}") from None


def fio(text):
    """Sections as mode.sh prints them -> {queue depth: {"iops", "p50", "p99"
    (in ms, fio's own), "samples": [(second, ms)]}}."""
    files = sections(text)
    try:
        # Remarks of fio stand before it in the same file.
        text = files.get("json", "")
        jobs = json.loads(text[text.find("{"):])["jobs"]
    except (ValueError, KeyError) as error:
        raise ParseError(f"fio: {error!r}") from None
    out = {}
    for n, job in enumerate(jobs, 1):
        if job.get("error"):
            raise ParseError(f"fio: job {job['jobname']}: error "
                             f"{job['error']}")
        rows = [line.split(",") for line in
                files.get(f"fio_clat.{n}.log", "").splitlines()]
        percentile = job["read"]["clat_ns"].get("percentile", {})
        out[int(job["jobname"])] = {
            "iops": job["read"]["iops"],
            "p50": percentile.get("50.000000", 0) / 1e6,
            "p99": percentile.get("99.000000", 0) / 1e6,
            "samples": [(int(r[0]) / 1000, int(r[1]) / 1e6) for r in rows]}
    return out
