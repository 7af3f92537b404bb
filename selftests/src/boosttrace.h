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

static inline void trace_empty(void)
{
	fclose(trace_open("trace", "w"));
}

/* Of a switch it is @prev and @next that are filled in, else the others. */
struct boost_event {
	enum { BOOST_BEGINS, BOOST_ENDS, SWITCH } kind;
	long us;		/* when */
	unsigned int vcpu;
	char why[32];
	long ns;		/* CPU time, the fee for a boost with it */
	int prev, next;		/* threads */
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
	int pid;

	/* "comm-pid [cpu] flags seconds.microseconds: event: " */
	while (at && at > line && at[-1] != ' ')
		at--;
	if (!at || sscanf(at, "%ld.%6ld:", &s, &us) != 2)
		return 0;
	*e = (struct boost_event){ .us = s * 1000000 + us };
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
	p = strstr(at, ": sched_switch: ");
	e->kind = SWITCH;
	return p && trace_pid(p, " prev_pid=", &e->prev) &&
		trace_pid(p, " next_pid=", &e->next);
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

#endif /* _VB_BOOSTTRACE_H */
