/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Was the machine taken away meanwhile? The CPU of an emulator or of a guest can
 * stand still for 100 ms: timers are late then, and who was on that CPU has had
 * the time, as the scheduler sees it, which forgives what exceeds some turns when
 * a thread goes to another class and back. No fault of boosts; so on either CPU a
 * thread before all others is to wake up every so often, and says how late it was.
 */
#ifndef _VB_STEADY_H
#define _VB_STEADY_H

#include "boosttest.h"

#define STEADY_NS	5000000		/* from one look to the next */
#define STEADY_LATE_NS	1000000
/* Less the scheduler makes up for: two slices, or a tick. */
#define STEADY_LONG_NS	10000000

struct looks {
	long all, late;
	long ns;		/* of long ones on the vCPUs' CPU */
};

static struct steady {
	int cpu;
	pthread_t thread;
	volatile struct looks looks;
} steady[2];

static volatile int steady_stop_all;
/* Told of each late look. */
static void (*steady_tells)(void);

static void *steady_fn(void *arg)
{
	struct sched_param p = { .sched_priority = 98 };
	struct steady *s = arg;
	__u64 next = now_ns(), late;
	struct timespec t;

	vm_pin(s->cpu);
	vm_must(sched_setscheduler(0, SCHED_FIFO, &p), "sched_setscheduler");
	while (!steady_stop_all) {
		next += STEADY_NS;
		t.tv_sec = next / 1000000000;
		t.tv_nsec = next % 1000000000;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
			;
		late = now_ns() - next;
		s->looks.all++;
		if (late < STEADY_LATE_NS)
			continue;
		s->looks.late++;
		if (late > STEADY_LONG_NS)
			s->looks.ns += late;
		if (steady_tells)
			steady_tells();
		next += late;
	}
	return NULL;
}

/* Both CPUs, ours and the vCPUs', are watched from now on. */
static inline void steady_start(void)
{
	int i;

	steady_stop_all = 0;
	for (i = 0; i < 2; i++) {
		steady[i].cpu = i ? there : here;
		vm_pthread(&steady[i].thread, steady_fn, &steady[i]);
	}
}

static inline void steady_stop(void)
{
	int i;

	steady_stop_all = 1;
	for (i = 0; i < 2; i++)
		pthread_join(steady[i].thread, NULL);
}

/* So far. */
static inline struct looks looks_now(void)
{
	return (struct looks){
		.all = steady[0].looks.all + steady[1].looks.all,
		.late = steady[0].looks.late + steady[1].looks.late,
		.ns = steady[1].looks.ns,
	};
}

static inline struct looks looks_since(struct looks was)
{
	struct looks is = looks_now();

	is.all -= was.all;
	is.late -= was.late;
	is.ns -= was.ns;
	return is;
}

/* Medians of short times can be judged. */
static inline int was_steady(const struct looks *l)
{
	return l->late * 10 < l->all;
}

/* @good; if not, and @is_steady is false, that is not said, but why. */
static inline void report_if(int is_steady, int good, const struct looks *l,
			     const char *name)
{
	char why[128];

	snprintf(why, sizeof(why),
		 "the machine stood still: %ld of %ld looks were late, by %ld ms in long ones",
		 l->late, l->all, l->ns / 1000000);
	if (good || is_steady)
		report(good, name);
	else
		skip(name, why);
}

/*
 * Somebody's part of the CPU time of all, @all ns, is no less than @due of 1000;
 * what is missing may be what the machine was away.
 */
static inline void keeps_part(long part, long due, long all,
			      const struct looks *l, const char *name)
{
	report_if(part + l->ns * 1000 / all < due, part >= due, l, name);
}

#endif /* _VB_STEADY_H */
