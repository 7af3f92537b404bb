// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of a boosted thread that leave a part of it as it is: its policy,
 * its parameters, all but how its use of a CPU is clamped. The kernel takes
 * what they leave from what the boost has made of the thread. Prints KTAP.
 * Needs /dev/kvm, vbalance_host, root and two CPUs.
 */
#define _GNU_SOURCE
#include "boostchange.h"

#define KEEP_ALL	(ATTR_KEEP_POLICY | ATTR_KEEP_PARAMS)

static const struct change kept[] = {
	{ "the policy is kept, nice 8", ATTR,
	  { .nice = 8, .flags = ATTR_KEEP_POLICY } },
	{ "the policy is kept, priority 1", ATTR,
	  { .priority = 1, .flags = ATTR_KEEP_POLICY } },
	{ "parameters are kept, SCHED_BATCH", ATTR,
	  { .policy = SCHED_BATCH, .flags = ATTR_KEEP_PARAMS } },
	{ "parameters are kept, reset on fork", ATTR,
	  { .flags = ATTR_KEEP_PARAMS | ATTR_RESET_ON_FORK } },
	{ "parameters are kept, SCHED_FIFO 5", ATTR,
	  { .policy = SCHED_FIFO, .priority = 5, .flags = ATTR_KEEP_PARAMS } },
	{ "parameters are kept, SCHED_FIFO 5, reset on fork", ATTR,
	  { .policy = SCHED_FIFO, .priority = 5,
	    .flags = ATTR_KEEP_PARAMS | ATTR_RESET_ON_FORK } },
	{ "parameters are kept, SCHED_FIFO without a priority", ATTR,
	  { .policy = SCHED_FIFO, .flags = ATTR_KEEP_PARAMS } },
	{ "all is kept", ATTR, { .nice = 9, .flags = KEEP_ALL } },
	{ "all is kept, reset on fork", ATTR,
	  { .flags = KEEP_ALL | ATTR_RESET_ON_FORK } },
};

/* A real-time thread's lower clamp is another one than what others have. */
static const struct change clamps[] = {
	{ "a lower clamp", ATTR,
	  { .util_min = 200, .flags = KEEP_ALL | ATTR_CLAMP_MIN } },
	{ "an upper clamp", ATTR,
	  { .util_max = 500, .flags = KEEP_ALL | ATTR_CLAMP_MAX } },
	{ "both clamps", ATTR,
	  { .util_min = 100, .util_max = 300,
	    .flags = KEEP_ALL | ATTR_CLAMP_MIN | ATTR_CLAMP_MAX } },
	{ "no clamps", ATTR,
	  { .util_min = -1, .util_max = -1,
	    .flags = KEEP_ALL | ATTR_CLAMP_MIN | ATTR_CLAMP_MAX } },
	{ "SCHED_OTHER, nice 3, a lower clamp", ATTR,
	  { .nice = 3, .util_min = 200, .flags = ATTR_CLAMP_MIN } },
	{ "SCHED_OTHER, nice 3, an upper clamp", ATTR,
	  { .nice = 3, .util_max = 500, .flags = ATTR_CLAMP_MAX } },
	{ "SCHED_BATCH, an upper clamp of all there is", ATTR,
	  { .policy = SCHED_BATCH, .util_max = 1024,
	    .flags = ATTR_CLAMP_MAX } },
	{ "SCHED_FIFO 5, an upper clamp", ATTR,
	  { .policy = SCHED_FIFO, .priority = 5, .util_max = 500,
	    .flags = ATTR_CLAMP_MAX } },
	{ "SCHED_FIFO 5, no clamps", ATTR,
	  { .policy = SCHED_FIFO, .priority = 5, .util_min = -1,
	    .util_max = -1, .flags = ATTR_CLAMP_MIN | ATTR_CLAMP_MAX } },
};

#define NR_OF(a)	(sizeof(a) / sizeof((a)[0]))

static void changes(const struct change *c, size_t n)
{
	generous("3000");
	hog_start(HOG_PULSES);
	for (; n--; c++) {
		change(c, by_thread, "by another thread");
		change(c, by_itself, "by itself");
		change(c, by_unprivileged, "unprivileged");
	}
	hog_stop();
}

/* With clamps of its own: the same afterwards. */
static void clamped(void)
{
	struct attr a = {
		.util_min = 150, .util_max = 600,
		.flags = KEEP_ALL | ATTR_CLAMP_MIN | ATTR_CLAMP_MAX,
	};
	struct attributes before;
	long n = begun();

	both(was);
	vm_must(set_attr(tid, a), "sched_setattr");
	before = attributes_of(tid);
	generous("50");
	hog_start(HOG_PULSES);
	guest[0].critical = CRITICAL;
	report(AWAIT(begun() >= n + 100), "clamps of its own: boosted");
	guest[0].critical = VB_CRITICAL_SAID;
	report(becomes(tid, &before), "clamps of its own: the same afterwards");
	hog_stop();
	both(was);
}

static const struct attr caller = { .policy = SCHED_FIFO, .priority = 5 };

/*
 * Nobody keeps a real-time caller waiting: it is answered as the boost is on,
 * but the thread does not stay what that has made of it.
 */
static void real_time_caller(void)
{
	struct attributes before, want;
	int i, good, err;
	size_t n;

	generous("20000");
	hog_start(HOG_PULSES);
	for (n = 0; n < NR_OF(kept); n++) {
		const struct change *c = &kept[n];
		char text[96];

		for (i = 0, good = 1; i < ROUNDS && good; i++) {
			before = both(was);
			apply(model, c);
			want = attributes_of(model);
			guest[0].critical = CRITICAL;
			good = CATCH(is_fifo());
			vm_must(set_attr(0, caller), "sched_setattr");
			err = by_thread(c);
			vm_must(set_attr(0, fair), "sched_setattr");
			guest[0].critical = VB_CRITICAL_SAID;
			/* Refused: nothing of it. */
			if (err)
				want = before;
			want.slack = -1;
			good = good && becomes(tid, &want);
		}
		snprintf(text, sizeof(text), "%s, by SCHED_FIFO: holds",
			 c->name);
		report(good, text);
	}
	hog_stop();
}

/*
 * Nor is one without privileges: what a boosted thread may have, real-time as
 * it is, others need RLIMIT_RTPRIO for. (With the flag, which a boosted thread
 * has, and nobody may clear without privileges.)
 */
static void real_time_unprivileged(void)
{
	static const struct change asked = {
		"", ATTR, { .policy = SCHED_FIFO, .priority = 1,
			    .flags = ATTR_RESET_ON_FORK },
	};
	struct attributes want;
	struct rlimit had, limit;
	char text[96];
	int i, good;

	vm_must(getrlimit(RLIMIT_RTPRIO, &had), "RLIMIT_RTPRIO");
	generous("20000");
	hog_start(HOG_PULSES);
	for (limit.rlim_cur = 0; limit.rlim_cur < 2; limit.rlim_cur++) {
		limit.rlim_max = had.rlim_max > 2 ? had.rlim_max : 2;
		vm_must(setrlimit(RLIMIT_RTPRIO, &limit), "RLIMIT_RTPRIO");
		for (i = 0, good = 1; i < ROUNDS && good; i++) {
			both(was);
			good = apply_unprivileged(model, &asked) ==
				(limit.rlim_cur ? 0 : EPERM);
			want = attributes_of(model);
			want.slack = -1;
			guest[0].critical = CRITICAL;
			good &= CATCH(is_fifo());
			vm_must(set_attr(0, caller), "sched_setattr");
			good &= by_unprivileged(&asked) ==
				(limit.rlim_cur ? 0 : EPERM);
			vm_must(set_attr(0, fair), "sched_setattr");
			guest[0].critical = VB_CRITICAL_SAID;
			good = good && becomes(tid, &want);
		}
		snprintf(text, sizeof(text),
			 "SCHED_FIFO 1, by SCHED_FIFO without privileges, RLIMIT_RTPRIO %d: %s",
			 (int)limit.rlim_cur,
			 limit.rlim_cur ? "holds" : "refused");
		report(good, text);
	}
	hog_stop();
	both(was);
	vm_must(setrlimit(RLIMIT_RTPRIO, &had), "RLIMIT_RTPRIO");
}

/* It is the process's, not the thread's: nothing may come in between. */
static void autogroup(void)
{
	const char *name = "autogroup, during the boost: holds";
	char path[64], line[64] = "";
	int i, nice = 0, good = 1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/autogroup", tid);
	f = fopen(path, "r+");
	if (!f || !fgets(line, sizeof(line), f)) {
		skip(name, "no autogroup");
		return;
	}
	setvbuf(f, NULL, _IONBF, 0);
	both(was);
	generous("3000");
	hog_start(HOG_PULSES);
	for (i = 1; i <= ROUNDS && good; i++) {
		guest[0].critical = CRITICAL;
		good = CATCH(is_fifo());
		rewind(f);
		good = good && fprintf(f, "%d", i) > 0;
		guest[0].critical = VB_CRITICAL_SAID;
		good = good && at_rest();
		rewind(f);
		good = good && fscanf(f, "/autogroup-%*d nice %d", &nice) == 1 &&
			nice == i;
	}
	rewind(f);
	fprintf(f, "0");
	fclose(f);
	hog_stop();
	report(good, name);
}

int main(void)
{
	/* An autogroup of its own. */
	setsid();
	if (!changes_set_up())
		return 4;
	changes(kept, NR_OF(kept));
	real_time_caller();
	real_time_unprivileged();
	if (has_clamps) {
		clamped();
		changes(clamps, NR_OF(clamps));
	} else {
		skip("clamps", "needs CONFIG_UCLAMP_TASK");
	}
	autogroup();
	expect(slack_lost, 0, "the timer slack is as it should be after each");
	return changes_end();
}
