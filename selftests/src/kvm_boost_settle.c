// SPDX-License-Identifier: GPL-2.0
/*
 * Somebody changes a thread while it is boosted: may he, the scheduler asks,
 * and does it only after the boost (vb_delay, in modules/, sees to that). The
 * answer, and what becomes of the thread, are those that it would have been
 * without a boost. Prints KTAP. Needs /dev/kvm, vbalance_host, vb_delay, root
 * and two CPUs.
 */
#define _GNU_SOURCE
#include "boostchange.h"

#define DELAY		"/sys/module/vb_delay/parameters/"
#define OUTLIVED	10
#define TRIES		300

static long number_in(const char *path)
{
	FILE *f = fopen(path, "r");
	long n;

	if (!f || fscanf(f, "%ld", &n) != 1)
		vm_must(-1, path);
	fclose(f);
	return n;
}

static long outlived(void)
{
	return number_in(DELAY "outlived");
}

static void set_delay(const char *path, int value)
{
	FILE *f = fopen(path, "w");

	if (!f || fprintf(f, "%d", value) < 0 || fclose(f))
		vm_must(-1, path);
}

static void hold_up(pid_t caller)
{
	set_delay(DELAY "caller", caller);
}

static const struct change changes[] = {
	{ "SCHED_FIFO 1, reset on fork", ATTR,
	  { .policy = SCHED_FIFO, .priority = 1,
	    .flags = ATTR_RESET_ON_FORK } },
	{ "SCHED_FIFO 1", ATTR, { .policy = SCHED_FIFO, .priority = 1 } },
	{ "SCHED_BATCH, nice 6", ATTR, { .policy = SCHED_BATCH, .nice = 6 } },
	{ "nice 3, reset on fork", ATTR,
	  { .nice = 3, .flags = ATTR_RESET_ON_FORK } },
	{ "sched_setparam", PARAM, { } },
	{ "the policy is kept, priority 1", ATTR,
	  { .priority = 1, .flags = ATTR_KEEP_POLICY } },
	{ "parameters are kept, SCHED_FIFO 1, reset on fork", ATTR,
	  { .policy = SCHED_FIFO, .priority = 1,
	    .flags = ATTR_KEEP_PARAMS | ATTR_RESET_ON_FORK } },
	{ "all is kept", ATTR,
	  { .flags = ATTR_KEEP_POLICY | ATTR_KEEP_PARAMS } },
};

static void late(const struct change *c, int (*by)(const struct change *),
		 const char *who)
{
	int (*apply_to)(pid_t who, const struct change *c) =
		by == by_unprivileged ? apply_unprivileged : apply;
	int i, good = 1, err = 0, want_err = 0;
	struct attributes want;
	char text[128];
	long n = outlived();

	/* Some are refused before they come so far, or nearly all. */
	for (i = 0; i < TRIES && good; i++) {
		if (i >= OUTLIVED &&
		    (outlived() == n || outlived() >= n + OUTLIVED))
			break;
		both(was);
		want_err = apply_to(model, c);
		want = attributes_of(model);
		want.slack = -1;
		guest[0].critical = CRITICAL;
		good = CATCH(is_fifo());
		hold_up(gettid());
		err = by(c);
		hold_up(0);
		guest[0].critical = VB_CRITICAL_SAID;
		good = good && err == want_err && becomes(tid, &want);
	}
	if (!good)
		printf("# round %d, error %d, expected %d\n", i, err, want_err);
	printf("# %s, %s: %d rounds, %ld times after a boost\n", c->name, who,
	       i, outlived() - n);
	snprintf(text, sizeof(text), "%s, %s, after the boost: holds", c->name,
		 who);
	report(good, text);
	both(was);
}

/* No boost begins while a change is under way: it would be taken for its own. */
static void under_way(const struct change *c)
{
	long n = count("other_policy");
	struct attributes want;
	int i, good = 1;

	set_delay(DELAY "hold_ms", 20);
	for (i = 0; i < TRIES && good && count("other_policy") == n; i++) {
		both(was);
		apply(model, c);
		want = attributes_of(model);
		want.slack = -1;
		guest[0].critical = CRITICAL;
		hold_up(gettid());
		good = !apply(tid, c);
		hold_up(0);
		guest[0].critical = VB_CRITICAL_SAID;
		good = good && becomes(tid, &want);
	}
	set_delay(DELAY "hold_ms", 0);
	printf("# %s: %d rounds\n", c->name, i);
	report(good, "a change that was there before: holds");
	report(count("other_policy") > n,
	       "a change that was there before: not boosted meanwhile");
	both(was);
}

static int apply_torn(int calls, pid_t who, const struct change *c)
{
	int err;

	set_delay(DELAY "torn_calls", calls);
	set_delay(DELAY "torn", gettid());
	err = apply(who, c);
	set_delay(DELAY "torn", 0);
	if (number_in(DELAY "torn_calls")) {
		printf("# what is kept was not made another one\n");
		err = -1;
	}
	return err;
}

/*
 * The kernel reads what is to be kept without a lock, and finds a real-time
 * thread that has no priority any more. That is read again, once.
 */
static void half_changed(const struct change *c, struct attr caller,
			 const char *who)
{
	int i, good = 1, err = 0, want_err = 0;
	struct attributes want;
	char text[128];
	long n;

	for (i = 0; i < ROUNDS && good; i++) {
		both(was);
		want_err = apply(model, c);
		want = attributes_of(model);
		want.slack = -1;
		n = begun();
		guest[0].critical = CRITICAL;
		good = AWAIT(begun() > n);
		guest[0].critical = VB_CRITICAL_SAID;
		good = good && at_rest();
		vm_must(set_attr(0, caller), "sched_setattr");
		err = apply_torn(1, tid, c);
		good = good && err == want_err && becomes(tid, &want) &&
			apply_torn(2, tid, c) != want_err;
		vm_must(set_attr(0, fair), "sched_setattr");
	}
	if (!good)
		printf("# round %d, error %d, expected %d\n", i, err, want_err);
	snprintf(text, sizeof(text), "%s, read as the boost ends, %s: holds",
		 c->name, who);
	report(good, text);
	both(was);
}

static const struct change half = {
	"parameters are kept, SCHED_FIFO 5", ATTR,
	{ .policy = SCHED_FIFO, .priority = 5, .flags = ATTR_KEEP_PARAMS }
};

static const struct attr real_time = { .policy = SCHED_FIFO, .priority = 5 };

int main(void)
{
	cpu_set_t anywhere;
	pid_t boosts;
	size_t i;
	long n;

	if (access(DELAY "outlived", R_OK)) {
		printf("1..0 # SKIP vb_delay is not loaded\n");
		return 4;
	}
	if (!changes_set_up())
		return 4;
	/* Who is held up keeps his CPU from everybody. */
	boosts = worker_pin(there, &anywhere);
	report(boosts, "the worker is there");
	generous("3000");
	hog_start(HOG_FAIR);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		late(&changes[i], by_thread, "by another thread");
		n = outlived();
		late(&changes[i], by_unprivileged, "unprivileged");
		if (!i)
			report(outlived() >= n + OUTLIVED,
			       "what he may do in a boost comes after it");
	}
	under_way(&changes[3]);
	half_changed(&half, fair, "by another thread");
	half_changed(&half, real_time, "by SCHED_FIFO");
	hog_stop();
	if (boosts)
		sched_setaffinity(boosts, sizeof(anywhere), &anywhere);
	return changes_end();
}
