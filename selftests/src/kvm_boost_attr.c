// SPDX-License-Identifier: GPL-2.0
/*
 * What boosts leave behind of a thread's scheduling attributes: exactly what
 * it was, or what somebody has set meanwhile; and that a thread to which
 * somebody gave another policy is left alone. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and two CPUs.
 *
 * What a change makes of a thread is found with a second one (the model) that
 * is never boosted, so that no kernel's rules are repeated here.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/resource.h>

#include "boosttest.h"

#define BOOSTS	300		/* for each kind of thread */
#define ROUNDS	5		/* for each kind of change */
#define SLACK	123456
#define BASE_SLICE	"/sys/kernel/debug/sched/base_slice_ns"
#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

static pid_t tid, model;

/* ---- changes ---- */

struct change {
	const char *name;
	enum { NICE, ATTR, PARAM, CPUS } kind;
	struct attr a;
};

/* May run in a signal handler. Returns 0 or an error number. */
static int apply(pid_t who, const struct change *c)
{
	struct sched_param param = { };
	cpu_set_t set;
	int ret = -1;

	switch (c->kind) {
	case NICE:
		ret = setpriority(PRIO_PROCESS, who, c->a.nice);
		break;
	case ATTR:
		ret = set_attr(who, c->a);
		break;
	case PARAM:
		/* The policy that it has. */
		ret = sched_setparam(who, &param);
		break;
	case CPUS:
		CPU_ZERO(&set);
		CPU_SET(here, &set);
		CPU_SET(there, &set);
		ret = sched_setaffinity(who, sizeof(set), &set);
		break;
	}
	return ret ? errno : 0;
}

/* By another process: it was there before the VM, and is told by a pipe. */
static int to_other[2], from_other[2];

struct order {
	pid_t tid;
	int here, there;
	struct change change;
};

static void other_process(void)
{
	struct order o;
	int err;

	if (pipe(to_other) || pipe(from_other))
		vm_must(-1, "pipe");
	if (vm_must(fork(), "fork"))
		return;
	close(to_other[1]);
	while (read(to_other[0], &o, sizeof(o)) == sizeof(o)) {
		here = o.here;
		there = o.there;
		err = apply(o.tid, &o.change);
		if (write(from_other[1], &err, sizeof(err)) != sizeof(err))
			break;
	}
	_exit(0);
}

static int by_process(const struct change *c)
{
	struct order o = { tid, here, there, *c };
	int err;

	if (write(to_other[1], &o, sizeof(o)) != sizeof(o) ||
	    read(from_other[0], &err, sizeof(err)) != sizeof(err))
		vm_must(-1, "the other process");
	return err;
}

static int by_thread(const struct change *c)
{
	return apply(tid, c);
}

/* May this thread do as it likes with others' policies? */
static void privileged(int on)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	vm_must(syscall(SYS_capget, &head, data), "capget");
	if (on)
		data[0].effective |= 1 << CAP_SYS_NICE;
	else
		data[0].effective &= ~(1 << CAP_SYS_NICE);
	vm_must(syscall(SYS_capset, &head, data), "capset");
}

static int apply_unprivileged(pid_t who, const struct change *c)
{
	int err;

	privileged(0);
	err = apply(who, c);
	privileged(1);
	return err;
}

static int by_unprivileged(const struct change *c)
{
	return apply_unprivileged(tid, c);
}

/* By itself, out of the guest by a signal. */
static const struct change * volatile own_change;
static volatile int own_error;

static void on_own_change(int sig)
{
	int saved = errno;

	(void)sig;
	own_error = apply(0, own_change);
	own_change = NULL;
	errno = saved;
}

static int by_itself(const struct change *c)
{
	own_change = c;
	pthread_kill(thread[0].thread, SIGUSR2);
	return AWAIT(!own_change) ? own_error : ETIMEDOUT;
}

/* ---- the two threads ---- */

static const struct attr fair = { .policy = SCHED_OTHER };
static sem_t model_go;

/*
 * It leaves SCHED_DEADLINE by itself, awake: that keeps the bandwidth of a
 * thread that is taken from it asleep (switched_from_dl()). Not what else it
 * is: with a low weight it would hardly have its turn.
 */
static void *model_fn(void *unused)
{
	vm_pin(there);
	model = gettid();
	for (;;) {
		while (sem_wait(&model_go))
			;
		vm_must(set_attr(0, fair), "sched_setattr");
	}
	return unused;
}

static void model_fair(void)
{
	if (attributes_of(model).a.policy != SCHED_DEADLINE) {
		vm_must(set_attr(model, fair), "sched_setattr");
		return;
	}
	/* From then on the hog leaves it little time: it is not waited for. */
	sem_post(&model_go);
	if (!AWAIT(attributes_of(model).a.policy == SCHED_OTHER))
		vm_must(-1, "the model stays SCHED_DEADLINE");
}

/* Both threads are this, with a slack of their own. */
static struct attributes both(struct attr a)
{
	pid_t t[2] = { tid, model };
	struct attributes x;
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	CPU_SET(there, &set);
	vm_must(set_attr(tid, fair), "sched_setattr");
	model_fair();
	for (i = 0; i < 2; i++) {
		set_slack(t[i], SLACK);
		vm_must(set_attr(t[i], a), "sched_setattr");
		vm_must(sched_setaffinity(t[i], sizeof(set), &set),
			"sched_setaffinity");
	}
	x = attributes_of(model);
	if (!same_now(tid, &x))
		printf("# the two threads differ\n");
	return x;
}

static const struct attr was = { .policy = SCHED_OTHER, .nice = 5 };

/* ---- the same afterwards ---- */

static void many(struct attr a, const char *name)
{
	struct attributes before = both(a);
	char text[128];
	long n = begun();

	guest[0].critical = CRITICAL;
	snprintf(text, sizeof(text), "%s: boosted some hundred times", name);
	report(AWAIT(begun() >= n + BOOSTS), text);
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
	FILE *f = fopen(BASE_SLICE, "r+");
	long base;
	int good;

	if (!f || fscanf(f, "%ld", &base) != 1)
		vm_must(-1, BASE_SLICE);
	setvbuf(f, NULL, _IONBF, 0);
	hog_start(HOG_FAIR);
	rewind(f);
	fprintf(f, "%ld", 2 * base);
	good = AWAIT(slice_is(hog.tid, 2 * base));
	if (good)
		report(AWAIT(slice_is(tid, 2 * base)), name);
	else
		skip(name, "no thread's slice follows");
	rewind(f);
	fprintf(f, "%ld", base);
	fclose(f);
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

/* Pinned threads may be of this policy only where nobody counts. */
static long rt_runtime(long us)
{
	int tries = 300;
	long old;
	FILE *f;

	for (;;) {
		f = fopen(RT_RUNTIME, "r+");
		if (!f || fscanf(f, "%ld", &old) != 1)
			vm_must(-1, RT_RUNTIME);
		rewind(f);
		fprintf(f, "%ld", us);
		if (!fclose(f))
			return old;
		/* A thread gives its bandwidth back some time after its end. */
		if (errno != EBUSY || !--tries)
			vm_must(-1, RT_RUNTIME);
		usleep(100000);
	}
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
	old = rt_runtime(-1);
	left_alone(deadline, "SCHED_DEADLINE", 0);
	rt_runtime(old);
	limited();
	hog_stop();
}

/* ---- changes while it is boosted ---- */

/* The slack is looked at for itself. */
static int slack_lost;

static int is_fifo(void)
{
	return attributes_of(tid).a.policy == SCHED_FIFO;
}

enum when { WHEN_TOLD, WHEN_RAISED, WHENEVER };

/*
 * The boost is about to begin, has begun, or may be at any point. What the
 * model is after the change the thread has to be in the end.
 */
static void change(const struct change *c, int (*by)(const struct change *),
		   const char *who)
{
	static const char * const when_name[] = {
		"as the boost begins", "during the boost", "at any time",
	};
	int (*apply_to)(pid_t who, const struct change *c) =
		by == by_unprivileged ? apply_unprivileged : apply;
	struct attributes want;
	int when, i, good, err = 0, want_err = 0;
	char text[128];
	long slack;

	for (when = WHEN_TOLD; when <= WHENEVER; when++) {
		for (i = 0, good = 1; i < ROUNDS && good; i++) {
			both(was);
			want_err = apply_to(model, c);
			want = attributes_of(model);
			slack = want.slack;
			want.slack = -1;
			guest[0].critical = CRITICAL;
			good = CATCH(when == WHEN_RAISED ? is_fifo() :
				     (int)host[0].boosted);
			if (when == WHENEVER)
				usleep(100 * i);
			err = by(c);
			guest[0].critical = VB_CRITICAL_SAID;
			good = good && err == want_err &&
				becomes(tid, &want);
			want = attributes_of(tid);
			if (want.slack != slack)
				printf("# %s, %s, %s, round %d: slack %ld, expected %ld\n",
				       c->name, who, when_name[when], i,
				       want.slack, slack);
			slack_lost += want.slack != slack;
		}
		if (!good)
			printf("# round %d, error %d, expected %d\n", i, err,
			       want_err);
		snprintf(text, sizeof(text), "%s, %s, %s: holds", c->name, who,
			 when_name[when]);
		report(good, text);
	}
	both(was);
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
	old = rt_runtime(-1);
	answered(spinner, "SCHED_DEADLINE");
	rt_runtime(old);
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
	old = rt_runtime(-1);
	change(&to_deadline, by_thread, "by another thread");
	rt_runtime(old);
	hog_stop();
	report(count("user_changed") > 0, "some came during a boost");
	expect(slack_lost, 0, "the timer slack is as it should be after each");
}

int main(void)
{
	pthread_t model_thread;
	struct sigaction sa = { .sa_handler = on_own_change };

	other_process();
	if (!set_up())
		return 4;
	sigaction(SIGUSR2, &sa, NULL);
	defaults();
	generous("50");
	set_parameter("holder_us", "0");
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	sem_init(&model_go, 0, 0);
	pthread_create(&model_thread, NULL, model_fn, NULL);
	report(AWAIT(model), "the model is there");
	tid = start(0);
	kinds();
	others();
	changes();
	real_time_callers();
	print_counts();
	report(at_rest(), "at rest");
	expect(begun(), ended(), "each boost has ended once");
	defaults();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
