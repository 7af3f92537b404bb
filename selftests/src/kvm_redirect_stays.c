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

static void priority(pthread_t t, int n)
{
	struct sched_param p = { .sched_priority = n };

	errno = pthread_setschedparam(t, SCHED_FIFO, &p);
	if (errno)
		vm_must(-1, "pthread_setschedparam");
}

static void *pulses(void *unused)
{
	struct timespec now, end;

	(void)unused;
	vm_pin(there);
	priority(pthread_self(), 60);
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED)) {
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_nsec += AWAY_MS * 1000000;
		do
			clock_gettime(CLOCK_MONOTONIC, &now);
		while ((now.tv_sec - end.tv_sec) * 1000000000LL +
		       now.tv_nsec < end.tv_nsec);
		__atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
		usleep(STAY_MS * 1000);
	}
	return NULL;
}

static void turns_pass(int n)
{
	int until = __atomic_load_n(&turns, __ATOMIC_SEQ_CST) + n;

	while (__atomic_load_n(&turns, __ATOMIC_SEQ_CST) < until)
		usleep(1000);
}

/* What the host says of a vCPU's stay, in percent of the mean; -1: in none. */
static long in_stay(int vcpu)
{
	char path[128], line[512], name[16];
	long on, mean, percent = -1;
	FILE *f;
	int s;

	snprintf(path, sizeof(path), HOST "/%d-%d/vcpus", getpid(), m.vm);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d %*u %15s %*u %*u %*u %*u %*u %*u %*u %*u %*u %ld %ld",
			   &s, name, &on, &mean) == 4 && s == vcpu && mean &&
		    state_number(name) == RUNNING)
			percent = on * 100 / mean;
	if (f)
		fclose(f);
	return percent;
}

struct moment {
	long from, to;		/* percent of a mean stay */
};

static const struct moment early = { 0, 45 };
static const struct moment middle = { 50, 85 };
static const struct moment late = { 55, 190 };
static const struct moment longer = { 210, 1000000 };

static int is_at(int vcpu, const struct moment *t)
{
	long percent = in_stay(vcpu);

	return percent >= t->from && percent <= t->to;
}

/* vCPU @runs has the CPU in its turns, @owner never if it is another one. */
static void resume_with(int owner, int runs)
{
	if (owner != runs) {
		resume(owner);
		AWAIT(state_is(owner, RUNNING));
	}
	priority(thread[runs].thread, 40);
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
	if (when == &longer) {
		__atomic_store_n(&hog_stop, 1, __ATOMIC_RELAXED);
		pthread_join(hog_thread, NULL);
		hogs = 0;
	}
	for (i = 0; i < 10000 && !is_at(runs, when); i++)
		if (when == &longer)
			usleep(1000);
	before = look();
	good = before.state[runs] == RUNNING &&
		(owner == runs || before.state[owner] == PREEMPTED) &&
		is_at(runs, when) && send_signal(msi_to(owner)) >= 0 &&
		is_at(runs, when);
	after = look();
	good &= !memcmp(&before, &after, sizeof(before));
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
}

int main(void)
{
	if (!set_up(0))
		return 4;
	threads_start();
	irqfd_new();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	owners();
	candidates();
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregistered");
	report(!threads_join(), "all vCPUs end well");
	vm_destroy(&m);
	return end();
}
