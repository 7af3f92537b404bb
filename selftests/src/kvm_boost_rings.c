// SPDX-License-Identifier: GPL-2.0
/*
 * What vhost-net's rings say about a holder, and of which ring an interrupt is:
 * rings of our own, in our memory, in front of no network. Of both kinds (event
 * index or flag), of devices that cannot be read, and while devices are closed
 * and processes killed under the boosts that read them. Prints KTAP. Needs
 * /dev/kvm, /dev/vhost-net, vbalance_host, root and two CPUs.
 *
 *	kvm_boost_rings [DIR]	of tracefs, where vb_host_boost,
 *				vb_host_boost_end and sched_switch are recorded;
 *				without it, not how soon the CPU is given up
 */
#define _GNU_SOURCE
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "boosttrace.h"
#include "steady.h"
#include "vhostring.h"
#include "../core/serve.h"

#define DEVICES	17		/* one more than are known of a process */
#define TRIES	200
#define CLOSED	200		/* rings, while they are read */
#define KILLED	15		/* processes */
#define HOLDER_US	100000

static struct device device[DEVICES];

static int rings_are(long n)
{
	return AWAIT(count("rings") == n);
}

/* ---- what comes of it ---- */

/* To a vCPU that runs, as far as can be told: no fast path. */
static void interrupt(unsigned int us)
{
	if (in_state(0, "running"))
		send(0);
	usleep(us);
}

/* An interrupt every @us, and preemptions, until a counter has grown. */
static int grows_every(unsigned int us, const char *counter, long by)
{
	long n = count(counter);
	int i;

	for (i = 0; i < 10000 * slowness() && count(counter) < n + by; i++)
		interrupt(us);
	return count(counter) >= n + by;
}

static int grows(const char *counter, long by)
{
	return grows_every(1000, counter, by);
}

/*
 * Whose rings are open is taken to be at work for up to five times as long as
 * serving took, and half a millisecond at least (core/serve.h): a holder still,
 * with an interrupt that soon before it loses its CPU. With one each millisecond
 * that is often so; with these it is seldom. But what serving takes is measured
 * at such holders, late on a busy machine: then it may be long for a while.
 */
#define SELDOM_US	(HOLDER_US / 10)
#define WINDOWS		(10 * slowness())

static void no_holder(const char *name)
{
	int i, few = 0, good = at_rest() && grows("no_holder", 2) && at_rest();
	long n = count("holder");

	for (i = 0; i < WINDOWS && good && !few; i++) {
		n = count("holder");
		good = grows_every(SELDOM_US, "no_holder", PREEMPTIONS);
		few = count("holder") < n + PREEMPTIONS / 2;
	}
	if (!good || !few) {
		printf("# %s: %d windows, holder %ld more\n", name, i,
		       count("holder") - n);
		print_counts();
	}
	report(good && few, name);
}

static void holder(const char *name)
{
	/* What the last look has seen is as it was. */
	int good = at_rest() && grows("holder", 2);
	long n, done;

	n = count("no_holder");
	done = count("ended_done");
	good = good && grows("holder", 10) && at_rest();
	report(good && count("no_holder") == n && count("ended_done") == done,
	       name);
}

/* The driver gets done while its vCPU is boosted, wherever it is. */
static void gets_done(struct device *d, int i, const char *name)
{
	long done = count("ended_done"), n = 0;
	int good = 1;

	generous("20000");
	for (; n < TRIES && good && count("ended_done") < done + 5; n++) {
		ring_allows(d, i, 0);
		good = grows("holder", 1);
		ring_allows(d, i, 1);
		good = good && at_rest();
	}
	report(good && count("ended_done") >= done + 5, name);
	generous("2000");
}

static void kind(__u64 features, const char *what)
{
	struct device *d = &device[0];
	char text[96];

	device_open(d, features);
	device_allows(d, 1);
	snprintf(text, sizeof(text), "%s: the rings are known", what);
	report(rings_are(RINGS), text);
	snprintf(text, sizeof(text), "%s: all allow interrupts: no holder",
		 what);
	no_holder(text);
	ring_allows(d, 1, 0);
	snprintf(text, sizeof(text), "%s: one does not: holder", what);
	holder(text);
	snprintf(text, sizeof(text), "%s: until it does", what);
	gets_done(d, 1, text);
	device_allows(d, 1);
	snprintf(text, sizeof(text), "%s: no holder again", what);
	no_holder(text);

	device_open(&device[1], features);
	device_allows(&device[1], 0);
	snprintf(text, sizeof(text), "%s: a second device does not: holder",
		 what);
	holder(text);
	device_close(&device[1]);
	snprintf(text, sizeof(text), "%s: that is closed: no holder", what);
	no_holder(text);
	device_close(d);
	snprintf(text, sizeof(text), "%s: closed: forgotten", what);
	report(rings_are(0), text);
}

/* ---- of which ring an interrupt is ---- */

/* The device has used one more, which the driver wants to be told. */
static void signals(struct device *d, int i)
{
	d->ring[i].used_event = d->ring[i].used_idx;
	d->ring[i].used_idx++;
}

static void is_emptied(struct device *d, int i)
{
	d->ring[i].used_event = d->ring[i].used_idx;
}

static void passes(struct device *d, int ring)
{
	signals(d, ring);
	send(0);
	is_emptied(d, ring);
}

/* Looks that found nothing left to do. */
static long done_looks(void)
{
	return count("ended_done") + count("no_holder");
}

/* The transmit ring is another vCPU's, which does not get to it. */
static void goes_by_its_ring(struct device *d)
{
	long done;
	int i, good = 1;

	generous("2000");
	device_allows(d, 1);
	/* What came before is done: of which ring that was is not known. */
	usleep(2 * HOLDER_US);
	signals(d, 1);
	send(1);
	done = done_looks();
	for (i = 0; i < TRIES && done_looks() < done + 5; i++) {
		passes(d, 0);
		good &= at_rest();
	}
	report(good && done_looks() >= done + 5,
	       "done when the ring of its interrupt is, whatever others are");
}

/*
 * It has no CPU in which it could be looked at: the answer itself tells, which
 * is another vCPU's interrupt.
 */
static void is_answered(struct device *d)
{
	long done, other = 0, again = 0, n, holder, ends;
	int i, j, answers, older = 0;

	generous("20000");
	device_allows(d, 1);
	report(grows("no_holder", 1) && at_rest(), "nothing is left");
	/* Each is the first one: none comes upon another that is not done. */
	set_parameter("holder_us", "1000");
	done = count("ended_done");
	hog_start(HOG_FIFO);
	/*
	 * Then what has been sent is older than the interrupt. Not by turns: who
	 * is not done has to pause, and would never be the one that answers.
	 */
	for (i = 0; i < TRIES && older < 5; i++) {
		answers = count("ended_done") < done + 5;
		n = begun();
		signals(d, 0);
		send(0);
		/* It may have to pause, or the CPU. */
		for (j = 0; j < 100 && begun() == n; j++)
			usleep(100);
		is_emptied(d, 0);
		d->ring[1].idx += answers;
		holder = count("holder");
		ends = count("ended_done");
		if (begun() > n) {
			signals(d, 1);
			send(1);
		}
		at_rest();
		ends = count("ended_done") - ends;
		older += !answers && begun() > n;
		other += !answers && ends;
		again += ends && count("holder") > holder;
	}
	report(count("ended_done") >= done + 5,
	       "done when the answer has been sent");
	expect(other, 0, "not when it is older than what it would answer");
	expect(again, 0, "and is no holder after that");
	percent("holder_us", HOLDER_US);
	hog_start(HOG_FAIR);
	at_rest();
	generous("2000");
}

/* Where the guest loop's VM_CMD_LEAVE writes to is an eventfd, or is not. */
static int kick_fd = -1;

static void kicks_are_heard(int on)
{
	struct kvm_ioeventfd e = {
		.addr = 0xf4, .len = 1,
		.flags = KVM_IOEVENTFD_FLAG_PIO |
			 (on ? 0 : KVM_IOEVENTFD_FLAG_DEASSIGN),
	};

	if (on)
		kick_fd = vm_must(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				  "eventfd");
	e.fd = kick_fd;
	vm_must(ioctl(m.vm, KVM_IOEVENTFD, &e), "KVM_IOEVENTFD");
	if (!on)
		close(kick_fd);
}

static int was_kicked(void)
{
	__u64 n;

	return read(kick_fd, &n, sizeof(n)) == sizeof(n);
}

/* It has told a device, and is behind that: what its exit does is done. */
static int is_past_kick(void)
{
	__u64 beats;

	if (!AWAIT(was_kicked()))
		return 0;
	beats = vm_box(&m, 0)->beats;
	return AWAIT(vm_box(&m, 0)->beats > beats);
}

/*
 * Boosted for what it has received, it tells some device something. Return:
 * 1: that counts; 0: it does not; -1: it was not boosted then.
 */
static int kick_counts(struct device *d, int sends)
{
	long n = begun(), kicks = count("kicks"), boosts;
	int i, on, past;

	signals(d, 0);
	send(0);
	/* It may have to pause, or the CPU. */
	for (i = 0; i < 100 && begun() == n; i++)
		usleep(100);
	/* By the same boost before and after, or it may have begun in between. */
	boosts = begun();
	d->ring[1].idx += sends;
	/* One that came too late for the round before. */
	was_kicked();
	vm_command(&thread[0], VM_CMD_LEAVE);
	past = is_past_kick();
	kicks = count("kicks") - kicks;
	on = boosts > n && begun() == boosts && boosts > ended();
	is_emptied(d, 0);
	return past && at_rest() && on ? kicks > 0 : -1;
}

static void kicks(struct device *d)
{
	int i, seen[2] = { 0, 0 }, wrong = 0;

	generous("20000");
	device_allows(d, 1);
	at_rest();
	kicks_are_heard(1);
	for (i = 0; i < TRIES && (seen[0] < 10 || seen[1] < 10); i++) {
		int got = kick_counts(d, i & 1);

		/* Not over when it was told: it was boosted at the kick. */
		seen[i & 1] += got >= 0;
		if (got >= 0 && got != (i & 1)) {
			printf("# kick %d: %s\n", i,
			       got ? "counts" : "does not count");
			wrong++;
		}
	}
	report(seen[0] >= 10 && seen[1] >= 10, "it tells the device something");
	expect(wrong, 0, "which counts if it has sent something, and only then");
	kicks_are_heard(0);
	generous("2000");
}

/* ---- how soon the CPU is given up ---- */

#define OPENINGS	30
#define LONG_US		20000

static int is_boosted(void)
{
	return attributes_of(thread[0].tid).a.policy == SCHED_FIFO;
}

/*
 * Boosted for what it has received, it has emptied that ring just now, and, with
 * @kicks, told its device at once what it has sent. Return: it was boosted still.
 */
static int opening(struct device *d, int kicks)
{
	int on;

	AWAIT(in_state(0, "preempted"));
	signals(d, 0);
	trace_mark(0);
	send(0);
	for (on = 0; on < 2000 && !is_boosted(); on++)
		;
	on = is_boosted();
	if (on)
		trace_mark(1);
	is_emptied(d, 0);
	if (kicks) {
		d->ring[1].idx++;
		vm_command(&thread[0], VM_CMD_LEAVE);
		on &= AWAIT(was_kicked());
	}
	at_rest();
	return on;
}

/*
 * From each opening until the hog has the CPU, us: the median. There are marks
 * when the interrupt is sent, 0, and at the opening: less @times of that.
 */
static long openings_us(int times)
{
	FILE *f = trace_read();
	long us[2 * OPENINGS], sent = 0, open = -1;
	struct boost_event e;
	int n = 0;

	while (trace_next(f, &e) && n < 2 * OPENINGS) {
		if (e.kind == MARK && !e.ns) {
			sent = e.us;
			open = -1;
		} else if (e.kind == MARK) {
			open = e.us;
		} else if (e.kind == SWITCH && open >= 0) {
			us[n++] = e.us - open - times * (open - sent);
			open = -1;
		}
	}
	fclose(f);
	return median(us, n, OPENINGS);
}

static void open_again(struct device *d, int kicks)
{
	int i, seen = 0;

	generous("20000");
	percent("boost_us", LONG_US);
	device_allows(d, 1);
	at_rest();
	trace_filter("sched_switch", "next_pid == %d", hog.tid);
	trace_empty();
	for (i = 0; i < TRIES && seen < OPENINGS * 3 / 2; i++)
		seen += opening(d, kicks);
	generous("2000");
}

/*
 * What may come on top of what a ring is given on purpose: little, unless the
 * timer that looks at rings is much too slow.
 */
static long soon_us(void)
{
	long us = LONG_US / 8 * slowness();

	return us < LONG_US / 2 ? us : LONG_US / 2;
}

/*
 * Not at the end of the boost, nor anywhere near, but for what it is given on
 * purpose: as long as it took to get there, on a loaded machine that is long.
 */
static void how_soon(struct device *d)
{
	long timer, more, kick;
	struct looks looks;

	steady_start();
	looks = looks_now();
	open_again(d, 0);
	timer = openings_us(0);
	more = openings_us(VB_SERVE_REST);
	kicks_are_heard(1);
	open_again(d, 1);
	kick = openings_us(0);
	kicks_are_heard(0);
	looks = looks_since(looks);
	steady_stop();
	printf("# the CPU is given up %ld us after the ring is open, %ld more than it may take, %ld with a kick (medians; by time %d us)\n",
	       timer, more, kick, LONG_US);
	report_if(was_steady(&looks), timer >= 0 && more < soon_us(), &looks,
		  "done: the CPU is given up, and not by time");
	report_if(was_steady(&looks), kick >= 0 && kick < LONG_US / 2, &looks,
		  "done, the device is told: given up, and not by time");
	report_if(was_steady(&looks), kick <= timer, &looks,
		  "done, the device is told: no later than without");
}

/*
 * vCPU 0 has lost its CPU to vCPU 1. Return: boosts for what waits; -1: there
 * was no such moment.
 */
static long boosts_for(struct device *d, int ring)
{
	long n, no, before;
	int i, good;

	for (i = 0; i < TRIES; i++) {
		if (!AWAIT(in_state(0, "preempted") && in_state(1, "running")))
			return -1;
		n = vm_preempted(&m, 0);
		no = refused();
		before = count("waiting");
		signals(d, ring);
		send(0);
		good = in_state(0, "preempted") && vm_preempted(&m, 0) == n &&
			in_state(1, "running");
		at_rest();
		is_emptied(d, ring);
		/* The last one was a long one: it has to pause, or to pay. */
		if (count("waiting") == before && refused() > no)
			usleep(20000);
		else if (good)
			return count("waiting") - before;
	}
	return -1;
}

static void has_received(void)
{
	passes(&device[0], 0);
}

static void has_sent(void)
{
	passes(&device[0], 1);
}

/* vCPU 1 runs where vCPU 0 went to sleep. */
static void sleeps_for(void)
{
	int slept = to_sleep();

	expect(thought_of_sleeper(has_sent), 0,
	       "something has been sent, it sleeps: left alone");
	report(sleeper_is_thought_of(has_received),
	       "something has been received, it sleeps: thought of");
	report(slept && wake_up(), "it slept all the time");
}

static void waits_for(struct device *d)
{
	struct sched_param fifo = { .sched_priority = 50 };

	hog_stop();
	start(1);
	/*
	 * It is a holder as long as its interrupt, which it gets with its first
	 * CPU: boosts for that would be taken for those of the other one.
	 */
	usleep(2 * HOLDER_US);
	sleeps_for();
	sched_setscheduler(thread[1].tid, SCHED_FIFO, &fifo);
	expect(boosts_for(d, 1), 0,
	       "something has been sent, another one runs: not boosted");
	expect(boosts_for(d, 0), 1,
	       "something has been received, another one runs: boosted");
	vm_join(&thread[1]);
	vm_mp_state(&m, 1, KVM_MP_STATE_RUNNABLE);
	hog_start(HOG_FAIR);
}

static void whose(void)
{
	struct device *d = &device[0];

	device_open(d, VB_RING_F_EVENT_IDX);
	device_allows(d, 1);
	/* Known from now on. */
	start(1);
	vm_join(&thread[1]);
	vm_mp_state(&m, 1, KVM_MP_STATE_RUNNABLE);
	goes_by_its_ring(d);
	waits_for(d);
	is_answered(d);
	kicks(d);
	if (trace)
		how_soon(d);
	else
		skip("how soon the CPU is given up", "no trace events");
	device_close(d);
}

/* vhost may wait for the page in which it is told something. */
static void is_told_unseen(struct device *d)
{
	struct vhost_vring_state num = { .index = 0, .num = NUM };
	int fd = vm_must(memfd_create("told", MFD_CLOEXEC), "memfd_create");
	void *p;

	vm_must(write(fd, &num, sizeof(num)), "write");
	p = mmap(NULL, sizeof(num), PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		vm_must(-1, "mmap");
	device_must(d, VHOST_SET_VRING_NUM, p, "VHOST_SET_VRING_NUM");
	munmap(p, sizeof(num));
	close(fd);
}

/* By time alone; and no look at what may be anything. */
static void unknown(void)
{
	struct device *d = &device[0];
	struct vhost_vring_file none = { .fd = -1 };
	__u64 offered = 0;
	int i;

	device_open(d, 0);
	device_allows(d, 1);
	device_must(d, VHOST_GET_FEATURES, &offered, "VHOST_GET_FEATURES");
	if (offered & VB_RING_F_PACKED) {
		expect(set_features(d, VB_RING_F_PACKED), 0, "packed rings");
		report(rings_are(0), "packed rings: none can be read");
		holder("packed rings: by time alone");
	} else {
		expect(set_features(d, VB_RING_F_PACKED), EOPNOTSUPP,
		       "packed rings: vhost has none");
		report(rings_are(RINGS), "packed rings: refused, all is as it was");
		no_holder("packed rings: refused, no holder");
	}
	if (offered & VB_RING_F_ACCESS_PLATFORM) {
		expect(set_features(d, VB_RING_F_ACCESS_PLATFORM), 0,
		       "behind an IOMMU");
		report(rings_are(0), "behind an IOMMU: none can be read");
		holder("behind an IOMMU: by time alone");
		expect(set_features(d, 0), 0, "behind none any more");
	}
	munmap(d->ring, getpagesize());
	report(rings_are(RINGS), "memory that has gone: known");
	holder("memory that has gone: by time alone");
	d->ring = mmap(d->ring, getpagesize(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE,
		       -1, 0);
	device_allows(d, 1);
	no_holder("memory that is back: no holder");

	is_told_unseen(d);
	report(rings_are(0), "what is told in a page that is not there: forgotten");
	holder("what is told in a page that is not there: by time alone");
	expect(set_features(d, 0), 0, "told again");
	set_addresses(d);
	report(rings_are(RINGS), "told again: known");
	no_holder("told again: no holder");

	none.index = 1;
	device_must(d, VHOST_NET_SET_BACKEND, &none, "VHOST_NET_SET_BACKEND");
	report(rings_are(1), "a ring that is stopped: forgotten");
	no_holder("the other one is open: no holder");
	device_must(d, VHOST_RESET_OWNER, NULL, "VHOST_RESET_OWNER");
	report(rings_are(0), "VHOST_RESET_OWNER: forgotten");
	holder("no ring: by time alone");
	device_close(d);

	for (i = 0; i < DEVICES; i++) {
		device_open(&device[i], 0);
		device_allows(&device[i], 1);
	}
	holder("more devices than are known: by time alone");
	for (i = 0; i < DEVICES; i++)
		device_close(&device[i]);
	report(rings_are(0), "all are closed: forgotten");
}

/* ---- who closes them meanwhile ---- */

static struct {
	pthread_t thread;
	volatile int stop;
} closer;

/* Open and not, with memory and without, and gone. */
static void *closer_fn(void *unused)
{
	struct device d;
	unsigned int n;

	vm_pin(here);
	for (n = 0; !closer.stop; n++) {
		device_open(&d, n & 1 ? VB_RING_F_EVENT_IDX : 0);
		device_allows(&d, n & 2);
		usleep(1000);
		device_allows(&d, !(n & 2));
		usleep(n % 7 * 100);
		if (n % 3)
			madvise(d.ring, getpagesize(), MADV_DONTNEED);
		device_close(&d);
	}
	return unused;
}

static void closer_start(void)
{
	closer.stop = 0;
	vm_pthread(&closer.thread, closer_fn, NULL);
}

static void devices_go(void)
{
	long forgotten = stat_of("rings_forgotten");
	long open = count("no_holder"), held = count("holder");
	long done = count("ended_done");
	int i, most = 30000 * slowness();

	generous("5000");
	device_open(&device[0], VB_RING_F_EVENT_IDX);
	device_allows(&device[0], 1);
	closer_start();
	for (i = 0; i < most; i++) {
		if (stat_of("rings_forgotten") >= forgotten + CLOSED &&
		    count("no_holder") >= open + 50 &&
		    count("holder") >= held + 20 &&
		    count("ended_done") >= done + 5)
			break;
		interrupt(1000);
	}
	closer.stop = 1;
	pthread_join(closer.thread, NULL);
	forgotten = stat_of("rings_forgotten") - forgotten;
	printf("# %ld rings were closed; %ld looks found none held, %ld holders, %ld of them done\n",
	       forgotten, count("no_holder") - open, count("holder") - held,
	       count("ended_done") - done);
	report(i < most, "devices are closed while their rings are read");
	report(at_rest(), "devices are closed: at rest");
	device_close(&device[0]);
	report(rings_are(0), "devices are closed: forgotten");
}

static void victim(void)
{
	vm_set_up();
	hog.kind = HOG_NONE;
	hog_start(HOG_FAIR);
	start(0);
	device_open(&device[0], 0);
	device_allows(&device[0], 1);
	closer_start();
	for (;;) {
		send(0);
		usleep(1000);
	}
}

/* Read, and the reader is the vCPU of a process that has just been killed. */
static void processes_go(void)
{
	int i, good = 1;
	pid_t pid;

	for (i = 0; i < KILLED && good; i++) {
		fflush(stdout);
		pid = vm_must(fork(), "fork");
		if (!pid)
			victim();
		good = AWAIT(count_of(pid, "no_holder") > i % 4 &&
			     count_of(pid, "holder") > i % 3);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		good = good && AWAIT(count_of(pid, "holder") == -1);
	}
	report(good, "processes are killed while their rings are read");
	report(AWAIT(stat_of("rings_learnt") == stat_of("rings_forgotten")),
	       "processes are killed: their rings are forgotten");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		trace = argv[1];
	if (access("/dev/vhost-net", R_OK | W_OK)) {
		printf("1..0 # SKIP no /dev/vhost-net\n");
		return 4;
	}
	if (!set_up())
		return 4;
	defaults();
	generous("5000");
	percent("holder_us", HOLDER_US);
	processes_go();
	generous("2000");
	start(0);
	hog_start(HOG_FAIR);
	kind(0, "without event index");
	kind(VB_RING_F_EVENT_IDX, "with event index");
	whose();
	unknown();
	devices_go();
	hog_stop();
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	defaults();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	vm_destroy(&m);
	report(stat_of("rings_learnt") > 0 &&
	       AWAIT(stat_of("rings_learnt") == stat_of("rings_forgotten")),
	       "all rings are forgotten");
	return end();
}
