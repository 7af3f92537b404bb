// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: vCPUs that run and will lose their CPU before they
 * have served an interrupt. Prints KTAP. Needs /dev/kvm, vbalance_host, root
 * and two CPUs.
 *
 * Somebody else takes the vCPUs' CPU for a while every STAY_MS: their stays are
 * much alike, and the host learns how long they are. When in a stay an MSI was
 * sent is read from the host's table, just before and just after; attempts at
 * another time than was meant are repeated.
 */
#define _GNU_SOURCE
#include "redirecttest.h"

#define STAY_MS		40
#define AWAY_MS		8
#define MANY		40	/* stays, for a mean of the last dozen */

static int turns;

static void *pulses(void *unused)
{
	__u64 begin;

	(void)unused;
	vm_pin(there);
	real_time(pthread_self(), HIGH);
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED)) {
		begin = now_ns();
		while (now_ns() - begin < AWAY_MS * 1000000)
			;
		__atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
		usleep(STAY_MS * 1000);
	}
	return NULL;
}

static void turns_pass(int n)
{
	int until = __atomic_load_n(&turns, __ATOMIC_SEQ_CST) + n;

	if (!AWAIT(__atomic_load_n(&turns, __ATOMIC_SEQ_CST) >= until)) {
		printf("# the vCPUs' CPU is not taken in turns\n");
		exit(1);
	}
}

struct moment {
	long from, to;		/* percent of a mean stay */
};

static const struct moment early = { 0, 45 };
static const struct moment middle = { 50, 85 };
static const struct moment late = { 55, 190 };
static const struct moment longer = { 210, 1000000 };

/* One look for all: on a slow machine a stay is not much longer. */
static int is_at(int vcpu, const struct moment *t, struct view *v)
{
	long percent[NR];

	*v = look_closely(percent);
	return percent[vcpu] >= t->from && percent[vcpu] <= t->to;
}

/* vCPU @runs has the CPU in its turns, @owner never if it is another one. */
static void resume_with(int owner, int runs)
{
	if (owner != runs) {
		resume(owner);
		AWAIT(state_is(owner, RUNNING));
	}
	real_time(thread[runs].thread, LOW);
	resume(runs);
	hog_start(pulses);
}

/* Returns 0: it was at another moment, or the states were others. */
static int send_at(int owner, int runs, const struct moment *when,
		   struct outcome *o)
{
	struct view before, after;
	int i, good;

	clean();
	resume_with(owner, runs);
	turns_pass(3);
	if (when == &longer)
		hog_end();
	for (i = 0; i < 10000 && !is_at(runs, when, &before); i++)
		if (when == &longer)
			usleep(1000);
	good = i < 10000 && before.state[runs] == RUNNING &&
		(owner == runs || before.state[owner] == PREEMPTED) &&
		send_signal(msi_to(owner)) >= 0 &&
		is_at(runs, when, &after) &&
		!memcmp(&before, &after, sizeof(before));
	park();
	if (good)
		outcome(o);
	return good;
}

static void expect_at(const char *name, int owner, int runs,
		      const struct moment *when, struct want w)
{
	struct outcome o;
	int i;

	for (i = 0; i < TRIES; i++) {
		if (!send_at(owner, runs, when, &o))
			continue;
		if (!right(&o, &w, N))
			print_outcome(&o);
		report(right(&o, &w, N), name);
		return;
	}
	printf("# %s: no attempt at the right moment\n", name);
	report(0, name);
}

static void learn(int runs)
{
	resume_with(runs, runs);
	turns_pass(MANY);
	park();
}

#define LEFT_ALONE	WANT(AS_IT_WAS(0))
/* Its own vector, so that it looks should it stay. */
#define KEPT_WAITING	WANT({ 0, 0xa0, 0, 0, 0, 1 })

static void owners(void)
{
	defaults();
	learn(0);
	expect_at("nothing known about serving: left alone", 0, 0, &late,
		  LEFT_ALONE);
	guest[0].service_ns = 1000;
	expect_at("short service, half through a stay: left alone", 0, 0,
		  &middle, LEFT_ALONE);
	/* Longer than half a stay counts as half of one. */
	guest[0].service_ns = ~0U;
	expect_at("long service, early in a stay: left alone", 0, 0, &early,
		  LEFT_ALONE);
	expect_at("long service, late in a stay: posted", 0, 0, &late,
		  KEPT_WAITING);
	set_parameter("redirect_leaving", "0");
	expect_at("redirect_leaving=0, late in a stay: left alone", 0, 0, &late,
		  LEFT_ALONE);
	set_parameter("redirect_leaving", "1");
	/* Nobody takes its CPU any more: it is of another kind. */
	expect_at("long service, stays for longer than ever: left alone", 0, 0,
		  &longer, LEFT_ALONE);
}

static void candidates(void)
{
	defaults();
	learn(1);
	expect_at("another one, nothing known about serving: diverted", 0, 1,
		  &late, WANT(DIVERTED(1)));
	guest[1].service_ns = ~0U;
	expect_at("another one, early in its stay: diverted", 0, 1, &early,
		  WANT(DIVERTED(1)));
	expect_at("another one, late in its stay: posted", 0, 1, &late,
		  WANT(POSTED(0)));
	set_parameter("redirect_leaving", "0");
	expect_at("redirect_leaving=0, another one, late in its stay: diverted",
		  0, 1, &late, WANT(DIVERTED(1)));
	set_parameter("redirect_leaving", "1");
}

static void all(void)
{
	owners();
	candidates();
}

int main(void)
{
	return with_vm(0, all);
}
