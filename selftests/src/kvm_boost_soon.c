// SPDX-License-Identifier: GPL-2.0
/*
 * How soon a boost has given the CPU to its vCPU, for each reason that there is:
 * from when it lost its CPU, or was sent an interrupt, until it runs. Prints
 * KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs.
 *
 *	kvm_boost_soon DIR	of tracefs, where vb_host_boost,
 *				vb_host_boost_end and sched_switch are recorded
 *
 * Without a boost it would wait until somebody else's turn is over: some ticks, with
 * slices of our own.
 */
#define _GNU_SOURCE
#include "boosttrace.h"
#include "steady.h"

#define BOOSTS		40
#define SLICE_TICKS	5

/*
 * Of vCPU 0, us: from what it is boosted for, @why, until it has the CPU, by that
 * or at last. That it was boosted may be recorded a little after it has it.
 */
static int waits_of(pid_t tid, const char *why, long *us)
{
	long from = 0, on = -1, waits = -1;
	FILE *f = trace_read();
	struct boost_event e;
	int n = 0;

	while (trace_next(f, &e) && n < 2 * BOOSTS) {
		if (e.kind == MARK || (e.kind == SWITCH && e.prev == tid)) {
			/* One that runs is interrupted, and need not wait. */
			if (waits < 0)
				from = e.us;
			on = -1;
		} else if (e.kind == BOOST_BEGINS && !e.vcpu) {
			if (!strcmp(e.why, why) && on >= 0)
				us[n++] = on - from;
			else if (!strcmp(e.why, why) && waits < 0)
				waits = from;
		} else if (e.kind == SWITCH && e.next == tid) {
			if (waits >= 0)
				us[n++] = e.us - waits;
			waits = -1;
			on = e.us;
		}
	}
	fclose(f);
	return n;
}

static void soon(const char *why, void (*ask)(void))
{
	long us[2 * BOOSTS], middle, tick_us = tick_ns() / 1000;
	long n = count(why);
	struct looks looks = looks_now();
	pid_t tid = thread[0].tid;
	char text[96];
	int i;

	generous("500");
	trace_filter("sched_switch", "prev_pid == %d || next_pid == %d", tid);
	trace_empty();
	for (i = 0; i < 100 * BOOSTS && count(why) < n + BOOSTS; i++)
		ask();
	guest[0].critical = VB_CRITICAL_SAID;
	snprintf(text, sizeof(text), "%s: at rest", why);
	report(at_rest(), text);
	looks = looks_since(looks);
	n = waits_of(tid, why, us);
	middle = median(us, n, BOOSTS / 2);
	printf("# %s: %ld boosts, the CPU after %ld us (median; a tick: %ld us)\n",
	       why, n, middle, tick_us);
	snprintf(text, sizeof(text), "%s: it has the CPU before a tick could come",
		 why);
	report_if(was_steady(&looks), middle >= 0 && middle < tick_us, &looks,
		  text);
	defaults();
}

static void critical(void)
{
	guest[0].critical = CRITICAL;
	usleep(10000);
}

/* An interrupt to one that runs makes a holder, which loses its CPU soon. */
static void to_running(void)
{
	guest[0].critical = 0;
	set_parameter("holder_us", "100000");
	if (in_state(0, "running"))
		send(0);
	usleep(10000);
}

static void to_preempted(void)
{
	if (in_state(0, "preempted")) {
		trace_mark(0);
		send(0);
	}
	usleep(5000);
}

/* Not for long, or it would be a holder at its next loss. */
static void to_silent(void)
{
	guest[0].critical = 0;
	set_parameter("holder_us", "1");
	if (in_state(1, "running"))
		to_preempted();
	usleep(5000);
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv);
	struct attributes before;
	pid_t tid;
	long base;

	if (status)
		return status;
	tid = start(0);
	before = attributes_of(tid);
	base = base_slice(SLICE_TICKS * tick_ns());
	steady_start();
	hog_start(HOG_FAIR);
	soon("hint", critical);
	soon("fast_path", to_preempted);
	soon("holder", to_running);
	hog_stop();
	start(1);
	soon("waiting", to_silent);
	steady_stop();
	if (base >= 0)
		base_slice(base);
	/* It has the new one from its next turn on. */
	AWAIT(same_now(tid, &before));
	return trace_end(tid, &before);
}
