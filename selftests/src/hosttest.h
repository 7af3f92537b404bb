/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP and the counters of vbalance_host, for the tests that run VMs of their
 * own (minivm.h).
 */
#ifndef _VB_HOSTTEST_H
#define _VB_HOSTTEST_H

#include <dirent.h>

#include "minivm.h"

#define HOST	"/sys/kernel/debug/vbalance/host"
#define STATS	HOST "/stats"
#define PARAMETERS	"/sys/module/vbalance_host/parameters/"

static int tests, failures;

static inline void report(int good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, name);
	fflush(stdout);
	failures += !good;
}

static inline void expect(long got, long want, const char *name)
{
	if (got != want)
		printf("# %s: got %ld, expected %ld\n", name, got, want);
	report(got == want, name);
}

static inline void skip(const char *name, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tests, name, why);
}

/* Ends the program with status 4 unless there is something to test. */
static inline void begin(void)
{
	printf("KTAP version 1\n");
	fflush(stdout);
	if (access("/dev/kvm", R_OK | W_OK)) {
		printf("1..0 # SKIP no /dev/kvm\n");
		exit(4);
	}
	if (access(STATS, R_OK)) {
		printf("1..0 # SKIP vbalance_host is not loaded\n");
		exit(4);
	}
}

static inline int end(void)
{
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}

/* Time limits are so many times longer on a slow machine. */
static inline int slowness(void)
{
	const char *slow = getenv("SLOW");

	return slow ? atoi(slow) : 1;
}

/* True as soon as @cond is; false after 10 s: machines are slow. */
#define AWAIT(cond)							\
	({								\
		int await_n = 5000 * slowness(), await_good;		\
									\
		while (!(await_good = !!(cond)) && await_n--)		\
			usleep(2000);					\
		await_good;						\
	})

/* A "name value" line of a debugfs file; -1: there is none. */
static inline long value_of(const char *path, const char *name)
{
	char word[64];
	long value;
	FILE *f = fopen(path, "r");

	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", word, &value) >= 1) {
		if (!strcmp(word, name)) {
			fclose(f);
			return value;
		}
	}
	fclose(f);
	return -1;
}

static inline long stat_of(const char *name)
{
	return value_of(STATS, name);
}

/* A file of one of our VMs, in its folder (named like KVM's: pid-fd). */
static inline const char *vm_file(const struct minivm *m, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), HOST "/%d-%d/%s", getpid(), m->vm, name);
	return path;
}

static inline long vm_value(const struct minivm *m, const char *name)
{
	return value_of(vm_file(m, "registration"), name);
}

/* State of a vCPU; returns column preempted_n, or -1: it is not there. */
static inline long vm_state(const struct minivm *m, int slot, char state[16])
{
	long n, found = -1;
	char line[512], s[16];
	FILE *f = fopen(vm_file(m, "vcpus"), "r");
	int i;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%d %*u %15s %*u %*u %*u %ld", &i, s, &n) ==
		    3 && i == slot) {
			found = n;
			strcpy(state, s);
		}
	if (f)
		fclose(f);
	return found;
}

static inline long vm_preempted(const struct minivm *m, int slot)
{
	char state[16];

	return vm_state(m, slot, state);
}

/* @by: "" for anything, "(ftrace)" for instance. */
static inline int feature_is_on_by(const char *name, const char *by)
{
	FILE *f = fopen(HOST "/features", "r");
	char line[256], feature[32], on[8];
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		found |= sscanf(line, "%31s %7s", feature, on) == 2 &&
			!strcmp(feature, name) && !strcmp(on, "on") &&
			strstr(line, by);
	if (f)
		fclose(f);
	return found;
}

static inline int feature_is_on(const char *name)
{
	return feature_is_on_by(name, "");
}

static inline void set_parameter(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f))
		vm_must(-1, path);
}

static inline long pages_held(void)
{
	return stat_of("pages_pinned") - stat_of("pages_unpinned");
}

/* VmPin of a process, kB. */
static inline long pinned_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static inline int all_unpinned(void)
{
	return AWAIT(!pages_held());
}

static inline int vm_folders(void)
{
	DIR *d = opendir(HOST);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	if (d)
		closedir(d);
	return n;
}

#endif /* _VB_HOSTTEST_H */
