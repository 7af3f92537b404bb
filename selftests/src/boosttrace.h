/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What has been recorded of boosts of our own VM, and of the scheduler's
 * switches: a program is given the folder of tracefs where this goes on.
 */
#ifndef _VB_BOOSTTRACE_H
#define _VB_BOOSTTRACE_H

#include "boosttest.h"

static const char *trace;

static inline FILE *trace_open(const char *file, const char *mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", trace, file);
	f = fopen(path, mode);
	if (!f)
		vm_must(-1, path);
	return f;
}

static inline void trace_recording(const char *on)
{
	FILE *f = trace_open("tracing_on", "w");

	if (fputs(on, f) < 0 || fclose(f))
		vm_must(-1, "tracing_on");
}

/* From now on, into an empty buffer. */
static inline void trace_empty(void)
{
	fclose(trace_open("trace", "w"));
	trace_recording("1");
}

/*
 * What was recorded, no more comes to it until trace_empty(): in a buffer that is
 * full a reader loses what is written meanwhile, and all that was there before.
 */
static inline FILE *trace_read(void)
{
	trace_recording("0");
	return trace_open("trace", "r");
}

/* Only these of an event, "sched_switch" say, are recorded. */
static inline void trace_filter(const char *event, const char *fmt, pid_t tid)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "events/sched/%s/filter", event);
	f = trace_open(path, "w");
	if (fprintf(f, fmt, tid, tid) < 0 || fclose(f))
		vm_must(-1, path);
}

/*
 * Among the events, before what comes from it. Not while the trace is emptied
 * or read (EBADF).
 */
static inline void trace_mark(int n)
{
	static int fd = -1;
	char path[256];

	snprintf(path, sizeof(path), "%s/trace_marker", trace);
	if (fd < 0)
		fd = vm_must(open(path, O_WRONLY | O_CLOEXEC), path);
	if (dprintf(fd, "vb_mark %d", n) < 0 && errno != EBADF)
		vm_must(-1, path);
}

/*
 * Of a switch it is @prev and @next and their priorities that are filled in, of
 * a wake-up @next, of a mark @ns, its number, else the others.
 */
struct boost_event {
	enum { BOOST_BEGINS, BOOST_ENDS, SWITCH, WAKEUP, MARK } kind;
	long us;		/* when */
	int cpu;		/* where */
	unsigned int vcpu;
	char why[32];
	long ns;		/* CPU time, the fee for a boost with it */
	int prev, next;		/* threads */
	int next_prio;		/* real-time: below 100 */
};

static inline int trace_pid(const char *line, const char *field, int *pid)
{
	const char *p = strstr(line, field);

	return p && sscanf(p + strlen(field), "%d", pid) == 1;
}

static inline int trace_parse(const char *line, struct boost_event *e)
{
	const char *p, *at = strstr(line, ": ");
	long s, us;
	int pid, cpu;

	/* "comm-pid [cpu] flags seconds.microseconds: event: " */
	while (at && at > line && at[-1] != ' ')
		at--;
	if (!at || sscanf(at, "%ld.%6ld:", &s, &us) != 2)
		return 0;
	/* A name may have brackets, too. */
	for (p = at; p > line && *p != '['; p--)
		;
	if (sscanf(p, "[%d]", &cpu) != 1)
		return 0;
	*e = (struct boost_event){ .us = s * 1000000 + us, .cpu = cpu };
	p = strstr(at, ": vb_host_boost: ");
	if (p) {
		e->kind = BOOST_BEGINS;
		return sscanf(p, ": vb_host_boost: vm=%d vcpu=%u why=%31s",
			      &pid, &e->vcpu, e->why) == 3 && pid == getpid();
	}
	p = strstr(at, ": vb_host_boost_end: ");
	if (p) {
		e->kind = BOOST_ENDS;
		return sscanf(p,
			      ": vb_host_boost_end: vm=%d vcpu=%u why=%31s ran_ns=%ld",
			      &pid, &e->vcpu, e->why, &e->ns) == 4 &&
			pid == getpid();
	}
	p = strstr(at, ": tracing_mark_write: ");
	if (p) {
		e->kind = MARK;
		return sscanf(p, ": tracing_mark_write: vb_mark %ld", &e->ns) ==
			1;
	}
	p = strstr(at, ": sched_wakeup: ");
	if (p) {
		e->kind = WAKEUP;
		return trace_pid(p, " pid=", &e->next);
	}
	p = strstr(at, ": sched_switch: ");
	e->kind = SWITCH;
	return p && trace_pid(p, " prev_pid=", &e->prev) &&
		trace_pid(p, " next_pid=", &e->next) &&
		trace_pid(p, " next_prio=", &e->next_prio);
}

/* The next one since the trace was emptied, in the order of time. */
static inline int trace_next(FILE *f, struct boost_event *e)
{
	char line[512];

	while (fgets(line, sizeof(line), f))
		if (trace_parse(line, e))
			return 1;
	return 0;
}

/* A CPU notes at each how far its thread has come, ns. */
static inline long tick_ns(void)
{
	struct timespec t;

	vm_must(clock_getres(CLOCK_MONOTONIC_COARSE, &t), "clock_getres");
	return t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/* -1: there are fewer than @least. */
static inline long median(long *values, int n, int least)
{
	if (n < least)
		return -1;
	qsort(values, n, sizeof(values[0]), by_value);
	return values[n / 2];
}

/* As set_up_guest(). Return: the status with which the program has to end; 0. */
static inline int trace_set_up(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "%s DIR\n", argv[0]);
		return 2;
	}
	trace = argv[1];
	return set_up_guest() ? 0 : 4;
}

/* Nothing is left; @tid is vCPU 0's. Return: the status of the program. */
static inline int trace_end(pid_t tid, const struct attributes *before)
{
	int i;

	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	report(becomes(tid, before), "the thread is as it was");
	for (i = 0; i < NR; i++)
		if (thread[i].tid)
			report(!vm_join(&thread[i]), "the vCPU ends well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}

#endif /* _VB_BOOSTTRACE_H */
