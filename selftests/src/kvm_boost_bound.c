// SPDX-License-Identifier: GPL-2.0
/*
 * How long boosts are: of a vCPU that never has enough, each ends by its time,
 * and none is longer than that and the allowance for a late end, but for those
 * that are counted as late. By what the host says of each at its end, with the
 * worker left alone and disturbed at any point. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and two CPUs.
 *
 *	kvm_boost_bound DIR	of tracefs, where vb_host_boost_end is recorded
 */
#define _GNU_SOURCE
#include "boosttrace.h"

#define BOOSTS		150
#define BOUND_US	2000

struct ends {
	long all, by_time, too_long;
	long longest;			/* ns */
};

/* What was recorded of ours since the trace was emptied. */
static struct ends ends_of(long limit)
{
	FILE *f = trace_read();
	struct ends e = { };
	struct boost_event b;

	while (trace_next(f, &b)) {
		if (b.kind != BOOST_ENDS)
			continue;
		e.all++;
		e.by_time += !strcmp(b.why, "bound");
		e.too_long += b.ns > limit;
		if (b.ns > e.longest)
			e.longest = b.ns;
	}
	fclose(f);
	return e;
}

/* ---- somebody more important on the worker's CPU ---- */

static struct {
	pthread_t thread;
	volatile int stop;
} disturber;

/* For up to a few times of what a boost may take, and as long not. */
static void *disturb(void *unused)
{
	struct sched_param p = { .sched_priority = 99 };
	unsigned int seed = 1;
	__u64 end;

	vm_pin(here);
	vm_must(sched_setscheduler(0, SCHED_FIFO, &p), "sched_setscheduler");
	while (!disturber.stop) {
		end = now_ns() + rand_r(&seed) % (4 * BOUND_US) * 1000ULL;
		while (!disturber.stop && now_ns() < end)
			;
		usleep(rand_r(&seed) % (4 * BOUND_US));
	}
	return unused;
}

static void disturber_start(void)
{
	disturber.stop = 0;
	vm_pthread(&disturber.thread, disturb, NULL);
}

/* ---- as many boosts as it takes ---- */

static int goes_on(long wanted)
{
	long last;

	while (begun() < wanted) {
		last = begun();
		if (!AWAIT(begun() > last))
			return 0;
	}
	return 1;
}

static void bound(int row, int disturbed)
{
	static long longest;	/* of all of them */
	/*
	 * As long again as is allowed before an end counts as late, for each
	 * extension, and one in a hundred as there are two clocks.
	 */
	long limit = VB_BOOST_FEE_NS + row * BOUND_US * 1510L;
	char what[64], text[128];
	long late, extended, n;
	struct ends e;
	int good;

	snprintf(what, sizeof(what), "boost_row=%d%s", row,
		 disturbed ? ", the worker is disturbed" : "");
	generous("2000");
	percent("boost_row", row);
	trace_empty();
	hog_start(HOG_FAIR);
	late = count("late_ends");
	extended = count("extended");
	n = begun();
	if (disturbed)
		disturber_start();
	guest[0].critical = CRITICAL;
	good = goes_on(n + BOOSTS);
	guest[0].critical = VB_CRITICAL_SAID;
	if (disturbed) {
		disturber.stop = 1;
		pthread_join(disturber.thread, NULL);
	}
	snprintf(text, sizeof(text), "%s: boosted again and again", what);
	report(at_rest() && good, text);
	hog_stop();

	late = count("late_ends") - late;
	extended = count("extended") - extended;
	n = begun() - n;
	e = ends_of(limit);
	printf("# %s: %ld boosts, %ld extensions, %ld late; longest %ld us, %ld above %ld us\n",
	       what, n, extended, late, e.longest / 1000, e.too_long,
	       limit / 1000);
	snprintf(text, sizeof(text), "%s: each end is recorded", what);
	expect(e.all, n, text);
	snprintf(text, sizeof(text), "%s: it is time that ends them", what);
	expect(e.by_time, n, text);
	snprintf(text, sizeof(text), "%s: extended no more often than allowed",
		 what);
	report(extended <= n * (row - 1), text);
	snprintf(text, sizeof(text), "%s: each that is longer counts as late",
		 what);
	report(e.too_long <= late, text);
	snprintf(text, sizeof(text), "%s: longest_ns is what the longest took",
		 what);
	if (e.longest > longest)
		longest = e.longest;
	expect(count("longest_ns"), longest, text);
	if (disturbed) {
		snprintf(text, sizeof(text), "%s: some are longer", what);
		report(e.too_long > 0, text);
	}
	defaults();
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv);
	struct attributes before;
	pid_t tid, boosts;
	cpu_set_t was;

	if (status)
		return status;
	tid = start(0);
	before = attributes_of(tid);
	bound(1, 0);
	bound(4, 0);
	boosts = worker_pin(here, &was);
	report(boosts, "the worker is there");
	if (boosts) {
		bound(1, 1);
		bound(4, 1);
		sched_setaffinity(boosts, sizeof(was), &was);
	}
	return trace_end(tid, &before);
}
