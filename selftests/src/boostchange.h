/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Somebody changes a vCPU's thread while it is boosted: what that makes of the
 * thread is found with a second one (the model) that is never boosted, so that
 * no kernel's rules are repeated here.
 */
#ifndef _VB_BOOSTCHANGE_H
#define _VB_BOOSTCHANGE_H

#include <linux/capability.h>
#include <sys/resource.h>

#include "boosttest.h"

#define ROUNDS	5		/* for each kind of change */
#define SLACK	123456

static pid_t tid, model;

/* ---- changes ---- */

struct change {
	const char *name;
	enum { NICE, ATTR, PARAM, CPUS } kind;
	struct attr a;
};

/* May run in a signal handler. Returns 0 or an error number. */
static inline int apply(pid_t who, const struct change *c)
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

static inline void other_process(void)
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

static inline int by_process(const struct change *c)
{
	struct order o = { tid, here, there, *c };
	int err;

	if (write(to_other[1], &o, sizeof(o)) != sizeof(o) ||
	    read(from_other[0], &err, sizeof(err)) != sizeof(err))
		vm_must(-1, "the other process");
	return err;
}

static inline int by_thread(const struct change *c)
{
	return apply(tid, c);
}

/* May this thread do as it likes with others' policies? */
static inline void privileged(int on)
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

static inline int apply_unprivileged(pid_t who, const struct change *c)
{
	int err;

	privileged(0);
	err = apply(who, c);
	privileged(1);
	return err;
}

static inline int by_unprivileged(const struct change *c)
{
	return apply_unprivileged(tid, c);
}

/* By itself, out of the guest by a signal. */
static const struct change * volatile own_change;
static volatile int own_error;

static inline void on_own_change(int sig)
{
	int saved = errno;

	(void)sig;
	own_error = apply(0, own_change);
	own_change = NULL;
	errno = saved;
}

static inline int by_itself(const struct change *c)
{
	own_change = c;
	pthread_kill(thread[0].thread, SIGUSR2);
	return AWAIT(!own_change) ? own_error : ETIMEDOUT;
}

/* ---- the two threads ---- */

static const struct attr fair = { .policy = SCHED_OTHER };
/* As if nobody had ever clamped it. */
static const struct attr unclamped = {
	.flags = ATTR_KEEP_POLICY | ATTR_KEEP_PARAMS | ATTR_CLAMP_MIN |
		 ATTR_CLAMP_MAX,
	.util_min = -1, .util_max = -1,
};

static int has_clamps;		/* this kernel */
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

/* Of all SCHED_DEADLINE threads together, as the scheduler counts it. */
static inline long deadline_bandwidth(void)
{
	static const char name[] = "dl_bw->total_bw";
	static const char path[] = "/sys/kernel/debug/sched/debug";
	FILE *f = fopen(path, "r");
	char line[256], *found;
	long sum = -1;

	while (f && sum < 0 && fgets(line, sizeof(line), f)) {
		found = strstr(line, name);
		if (found)
			sscanf(found + strlen(name), " : %ld", &sum);
	}
	if (sum < 0)
		vm_must(-1, path);
	fclose(f);
	return sum;
}

/* What it is without threads of ours; -1: none has been SCHED_DEADLINE. */
static long no_deadlines = -1;

/*
 * Nobody is SCHED_DEADLINE any more, and the kernel has forgotten who was. A
 * thread that uses up its runtime while it leaves stays throttled, as its timer
 * finds it of another class (dl_task_timer()). If it is back before what it had
 * is forgotten (inactive_task_timer()), it is never run again, nor does it die
 * when it is killed. 6.1 and 6.12 do so without any module of ours.
 */
static inline void deadlines_over(void)
{
	if (no_deadlines >= 0 && !AWAIT(deadline_bandwidth() == no_deadlines))
		vm_must(-1, "the bandwidth of SCHED_DEADLINE threads");
}

static inline void model_fair(void)
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
static inline struct attributes both(struct attr a)
{
	pid_t t[2] = { tid, model };
	struct attributes x;
	cpu_set_t set;
	int i;

	CPU_ZERO(&set);
	CPU_SET(there, &set);
	vm_must(set_attr(tid, fair), "sched_setattr");
	model_fair();
	deadlines_over();
	for (i = 0; i < 2; i++) {
		set_slack(t[i], SLACK);
		if (has_clamps)
			vm_must(set_attr(t[i], unclamped), "sched_setattr");
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

/* ---- changes while it is boosted ---- */

/* The slack is looked at for itself. */
static int slack_lost;

static inline int is_fifo(void)
{
	return attributes_of(tid).a.policy == SCHED_FIFO;
}

enum when { WHEN_TOLD, WHEN_RAISED, WHENEVER };

/*
 * The boost is about to begin, has begun, or may be at any point. What the
 * model is after the change the thread has to be in the end.
 */
static inline void change(const struct change *c,
			  int (*by)(const struct change *), const char *who)
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

/* Before anything else: the other process is to have nothing of the VM. */
static inline int changes_set_up(void)
{
	struct sigaction sa = { .sa_handler = on_own_change };
	pthread_t model_thread;

	other_process();
	if (!set_up())
		return 0;
	sigaction(SIGUSR2, &sa, NULL);
	defaults();
	generous("50");
	set_parameter("holder_us", "0");
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	sem_init(&model_go, 0, 0);
	vm_pthread(&model_thread, model_fn, NULL);
	report(AWAIT(model), "the model is there");
	has_clamps = !set_attr(model, unclamped);
	tid = start(0);
	return 1;
}

static inline int changes_end(void)
{
	print_counts();
	report(at_rest(), "at rest");
	expect(begun(), ended(), "each boost has ended once");
	defaults();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}

#endif /* _VB_BOOSTCHANGE_H */
