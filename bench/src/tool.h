/* SPDX-License-Identifier: GPL-2.0 */
/* Arguments, clock and errors of the bench's programs. */
#ifndef _VB_BENCH_TOOL_H
#define _VB_BENCH_TOOL_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSEC		1000000000LL

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(1);
}

static inline long number(const char *text, long low, long high,
			  const char *what)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < low || v > high) {
		fprintf(stderr, "%s: %s must be %ld to %ld, not %s\n",
			program_invocation_short_name, what, low, high, text);
		exit(1);
	}
	return v;
}

static inline int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

#endif /* _VB_BENCH_TOOL_H */
