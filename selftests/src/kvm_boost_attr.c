// SPDX-License-Identifier: GPL-2.0
/*
 * What boosts leave behind of a thread's scheduling attributes: exactly what
 * it was, or what somebody has set meanwhile; and that a thread to which
 * somebody gave another policy is left alone. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and two CPUs.
 *
 *	kvm_boost_attr		300 boosts of each kind of thread
 *	kvm_boost_attr short	100
 */
#define _GNU_SOURCE
#include "boostchange.h"

#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/* ---- the same afterwards ---- */

static long boosts = 300;

static void many(struct attr a, const char *name)
{
	struct attributes before = both(a);
	char text[128];
	long n = begun();

	guest[0].critical = CRITICAL;
	snprintf(text, sizeof(text), "%s: boosted often", name);
	report(AWAIT(begun() >= n + boosts), text);
	guest[0].critical = VB_CRITICAL_SAID;
	snprintf(text, sizeof(text), "%s: the same afterwards", name);
	report(becomes(tid, &before), text);
}

static int has_slices(void)
{
	struct attributes x = both((struct attr){ .runtime = 7000000 });

	return x.a.runtime == 7000000;
}

static int slice_is(pid_t t, long ns)
{
	return attributes_of(t).a.runtime == (__u64)ns;
}

/* No slice of its own: it follows the administrator's, as the hog's does. */
static void default_slice(void)
{
	const char *name = "the default slice is still the default";
	long base, other = 5600000;

	hog_start(HOG_FAIR);
	base = base_slice(other);
	if (base < 0)
		vm_must(-1, BASE_SLICE);
	if (AWAIT(slice_is(hog.tid, other)))
		report(AWAIT(slice_is(tid, other)), name);
	else
		skip(name, "no thread's slice follows");
	base_slice(base);
	hog_stop();
}

static void kinds(void)
{
	hog_start(HOG_PULSES);
	many((struct attr){ .nice = 5 }, "SCHED_OTHER, nice 5");
	many((struct attr){ .nice = -7 }, "SCHED_OTHER, nice -7");
	many((struct attr){ .policy = SCHED_BATCH }, "SCHED_BATCH");
	many((struct attr){ .flags = ATTR_RESET_ON_FORK },
	     "SCHED_OTHER, reset on fork");
	many((struct attr){ .policy = SCHED_BATCH, .nice = 3,
			    .flags = ATTR_RESET_ON_FORK },
	     "SCHED_BATCH, nice 3, reset on fork");
	if (has_slices()) {
		many((struct attr){ .runtime = 7000000 },
		     "SCHED_OTHER, a slice of 7 ms");
		many((struct attr){ .policy = SCHED_BATCH, .nice = 2,
				    .runtime = 300000 },
		     "SCHED_BATCH, nice 2, a slice of 0.3 ms");
		many((struct attr){ }, "SCHED_OTHER");
		hog_stop();
		default_slice();
	} else {
		skip("slices of their own", "needs a kernel from 6.12");
	}
	hog_stop();
}

/* ---- others' policies ---- */

static void left_alone(struct attr a, const char *name, int counted)
{
	struct attributes before = both(a);
	long n = begun(), other = count("other_policy");
	char text[96];
	int good;

	guest[0].critical = CRITICAL;
	good = counted ? AWAIT(count("other_policy") > other + PREEMPTIONS) :
			 more_preemptions(0);
	send(0);
	guest[0].critical = VB_CRITICAL_SAID;
	good &= begun() == n;
	snprintf(text, sizeof(text), "%s: not boosted", name);
	report(good, text);
	snprintf(text, sizeof(text), "%s: the same afterwards", name);
	report(becomes(tid, &before), text);
	both(was);
}

static long rt_runtime(long us)
{
	FILE *f = fopen(RT_RUNTIME, "r+");
	long old;

	if (!f || fscanf(f, "%ld", &old) != 1)
		vm_must(-1, RT_RUNTIME);
	rewind(f);
	if (fprintf(f, "%ld", us) < 0 || fclose(f))
		vm_must(-1, RT_RUNTIME);
	return old;
}

/* Pinned threads may be SCHED_DEADLINE only where nobody counts. */
static long deadlines_begin(void)
{
	long old = rt_runtime(-1);

	no_deadlines = deadline_bandwidth();
	return old;
}

static void deadlines_end(long old)
{
	deadlines_over();
	no_deadlines = -1;
	rt_runtime(old);
}

static const struct attr deadline = {
	.policy = SCHED_DEADLINE, .runtime = 2000000, .deadline = 10000000,
	.period = 10000000,
};

/* The limit comes during a boost: that is not extended any more. */
static void limited_meanwhile(struct rlimit old, struct rlimit few)
{
	int i, good = 1, extended = 0;
	long n;

	generous("5000");
	set_parameter("boost_row", "100");
	for (i = 0; i < 10 && good; i++) {
		n = count("extended");
		guest[0].critical = CRITICAL;
		good = AWAIT(count("extended") > n);
		guest[0].critical = VB_CRITICAL_SAID;
		extended += good && at_rest();

		guest[0].critical = CRITICAL;
		good = good && CATCH(host[0].boosted);
		vm_must(setrlimit(RLIMIT_RTTIME, &few), "RLIMIT_RTTIME");
		/* What had just been decided. */
		usleep(1000);
		n = count("extended");
		good = good && at_rest() && count("extended") == n;
		guest[0].critical = VB_CRITICAL_SAID;
		vm_must(setrlimit(RLIMIT_RTTIME, &old), "RLIMIT_RTTIME");
	}
	report(good && extended == 10,
	       "RLIMIT_RTTIME during a boost: not extended");
}

/* Whose real-time CPU time is limited: what we give would count, and kill. */
static void limited(void)
{
	struct rlimit old, few = { 1000000, RLIM_INFINITY };	/* us */

	getrlimit(RLIMIT_RTTIME, &old);
	few.rlim_max = old.rlim_max;
	vm_must(setrlimit(RLIMIT_RTTIME, &few), "RLIMIT_RTTIME");
	left_alone(was, "RLIMIT_RTTIME", 1);
	vm_must(setrlimit(RLIMIT_RTTIME, &old), "RLIMIT_RTTIME");
	many(was, "without RLIMIT_RTTIME");
	limited_meanwhile(old, few);
	generous("50");
	set_parameter("boost_row", "4");
}

static void others(void)
{
	long old;

	hog_start(HOG_PULSES);
	left_alone((struct attr){ .policy = SCHED_FIFO, .priority = 1 },
		   "SCHED_FIFO 1", 1);
	left_alone((struct attr){ .policy = SCHED_FIFO, .priority = 1,
				  .flags = ATTR_RESET_ON_FORK },
		   "SCHED_FIFO 1, reset on fork", 1);
	left_alone((struct attr){ .policy = SCHED_RR, .priority = 10 },
		   "SCHED_RR", 1);
	left_alone((struct attr){ .policy = SCHED_IDLE }, "SCHED_IDLE", 1);
	old = deadlines_begin();
	left_alone(deadline, "SCHED_DEADLINE", 0);
	deadlines_end(old);
	limited();
	hog_stop();
}

/*
 * A real-time thread is never kept waiting: during the boost it gets what the
 * kernel says to that (a priority of 0 is none of SCHED_FIFO's), as others
 * never do.
 */
static void answered(struct attr a, const char *name)
{
	static const struct change param = { "", PARAM, { } };
	struct attributes before = both(was);
	char text[96];
	int i, err = 0;

	for (i = 0; i < 100 && err != EINVAL; i++) {
		guest[0].critical = CRITICAL;
		CATCH(is_fifo());
		vm_must(set_attr(0, a), "sched_setattr");
		err = by_thread(&param);
		vm_must(set_attr(0, fair), "sched_setattr");
		guest[0].critical = VB_CRITICAL_SAID;
		deadlines_over();
	}
	snprintf(text, sizeof(text), "%s asks: not kept waiting", name);
	expect(err, EINVAL, text);
	snprintf(text, sizeof(text), "%s asks: the thread is as it was", name);
	report(becomes(tid, &before), text);
}

static void real_time_callers(void)
{
	static const struct attr spinner = {
		.policy = SCHED_DEADLINE, .runtime = 9000000,
		.deadline = 10000000, .period = 10000000,
	};
	long old;

	generous("20000");
	hog_start(HOG_PULSES);
	answered((struct attr){ .policy = SCHED_FIFO, .priority = 5 },
		 "SCHED_FIFO");
	old = deadlines_begin();
	answered(spinner, "SCHED_DEADLINE");
	deadlines_end(old);
	hog_stop();
}

static const struct change all_changes[] = {
	{ "nice", NICE, { .nice = 7 } },
	{ "SCHED_OTHER, nice 3", ATTR, { .nice = 3 } },
	{ "SCHED_BATCH", ATTR, { .policy = SCHED_BATCH, .nice = -2 } },
	{ "a slice", ATTR, { .nice = 5, .runtime = 5000000 } },
	{ "reset on fork", ATTR, { .nice = 5, .flags = ATTR_RESET_ON_FORK } },
	{ "SCHED_IDLE", ATTR, { .policy = SCHED_IDLE } },
	{ "SCHED_FIFO 5", ATTR, { .policy = SCHED_FIFO, .priority = 5 } },
	{ "SCHED_FIFO 1", ATTR, { .policy = SCHED_FIFO, .priority = 1 } },
	{ "SCHED_FIFO 1, reset on fork", ATTR,
	  { .policy = SCHED_FIFO, .priority = 1,
	    .flags = ATTR_RESET_ON_FORK } },
	{ "SCHED_RR 1", ATTR, { .policy = SCHED_RR, .priority = 1 } },
	{ "SCHED_BATCH, nice 6", ATTR, { .policy = SCHED_BATCH, .nice = 6 } },
	{ "sched_setparam", PARAM, { } },
	{ "affinity", CPUS, { } },
};

static void changes(void)
{
	const struct change to_deadline = { "SCHED_DEADLINE", ATTR, deadline };
	size_t i;
	long old;

	generous("3000");
	hog_start(HOG_PULSES);
	for (i = 0; i < sizeof(all_changes) / sizeof(all_changes[0]); i++) {
		change(&all_changes[i], by_thread, "by another thread");
		change(&all_changes[i], by_process, "by another process");
		change(&all_changes[i], by_itself, "by itself");
		change(&all_changes[i], by_unprivileged, "unprivileged");
	}
	old = deadlines_begin();
	change(&to_deadline, by_thread, "by another thread");
	deadlines_end(old);
	hog_stop();
	report(count("user_changed") > 0, "some came during a boost");
	expect(slack_lost, 0, "the timer slack is as it should be after each");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "short"))
		boosts = 100;
	if (!changes_set_up())
		return 4;
	kinds();
	others();
	changes();
	real_time_callers();
	return changes_end();
}
