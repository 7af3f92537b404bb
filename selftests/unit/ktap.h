/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP for user-space tests: a program is a table of tests, each test is one
 * line of the plan and makes any number of checks. Exit codes as kselftest.
 */
#ifndef _VB_UNIT_KTAP_H
#define _VB_UNIT_KTAP_H

#include <stdbool.h>
#include <stdio.h>

#define KTAP_PASS	0
#define KTAP_FAIL	1
#define KTAP_SKIP	4

/* Failed checks shown for one test; the rest is only counted. */
#define KTAP_SHOWN	5

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct ktap_test {
	const char *name;
	void (*run)(void);
};

static struct {
	unsigned long checks, bad;
	const char *skip;
} ktap_now;

/**
 * CHECK() - one check of the running test
 * @cond: what has to be true
 * @...: printf format and arguments that say what the case was
 *
 * Return: @cond.
 */
#define CHECK(cond, ...) ({						\
	bool __ok = (cond);						\
									\
	ktap_now.checks++;						\
	if (!__ok && ktap_now.bad++ < KTAP_SHOWN) {			\
		printf("# %s:%d: %s: ", __FILE__, __LINE__, #cond);	\
		printf(__VA_ARGS__);					\
		printf("\n");						\
	}								\
	__ok;								\
})

/* Two integers of at most 64 bits, unsigned. */
#define CHECK_EQ(got, want, ...) ({					\
	unsigned long long __got = (got), __want = (want);		\
	bool __eq = __got == __want;					\
									\
	ktap_now.checks++;						\
	if (!__eq && ktap_now.bad++ < KTAP_SHOWN) {			\
		printf("# %s:%d: %s is %#llx, not %#llx: ", __FILE__,	\
		       __LINE__, #got, __got, __want);			\
		printf(__VA_ARGS__);					\
		printf("\n");						\
	}								\
	__eq;								\
})

/* The running test cannot be made here; the caller returns after it. */
static inline void ktap_skip(const char *reason)
{
	ktap_now.skip = reason;
}

/**
 * ktap_main() - run all tests of a program
 * @group: put before each name, so that names are unique in the whole suite
 * @tests: the tests
 * @nr: how many
 *
 * A test without a single check fails: it has shown nothing.
 *
 * Return: exit code of the program.
 */
static inline int ktap_main(const char *group, const struct ktap_test *tests,
			    unsigned int nr)
{
	unsigned int i, failed = 0, skipped = 0;

	/* What was printed before a crash has to reach the reader. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		ktap_now.checks = 0;
		ktap_now.bad = 0;
		ktap_now.skip = NULL;
		tests[i].run();
		if (ktap_now.skip && !ktap_now.bad) {
			printf("ok %u - %s: %s # SKIP %s\n", i + 1, group,
			       tests[i].name, ktap_now.skip);
			skipped++;
			continue;
		}
		if (ktap_now.bad)
			printf("# %lu of %lu checks failed\n", ktap_now.bad,
			       ktap_now.checks);
		else if (!ktap_now.checks)
			printf("# nothing was checked\n");
		if (ktap_now.bad || !ktap_now.checks) {
			printf("not ok %u - %s: %s\n", i + 1, group,
			       tests[i].name);
			failed++;
		} else {
			printf("ok %u - %s: %s\n", i + 1, group,
			       tests[i].name);
		}
	}
	if (failed)
		return KTAP_FAIL;
	return nr && skipped == nr ? KTAP_SKIP : KTAP_PASS;
}

#endif /* _VB_UNIT_KTAP_H */
