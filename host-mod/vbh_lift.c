// SPDX-License-Identifier: GPL-2.0
/*
 * A thread becomes real-time for a while, and then exactly what it was.
 *
 * What the thread was is read, not asked of anybody, so a change that user
 * space makes meanwhile could be lost in three places: between reading and
 * raising, while it is raised, and while it is put back. Return probes on the
 * two functions through which every such change goes (__sched_setscheduler,
 * set_user_nice) note what was asked for a thread that is lifted, and it is
 * applied once more at the end: the user's change wins, and doing it twice is
 * harmless. Without the probes nothing is lifted.
 *
 * What a caller without CAP_SYS_NICE may do depends on what the thread is, and
 * must not depend on what we have made of it: who may not have real-time
 * threads could keep ours, and who may choose SCHED_BATCH could not clear our
 * reset-on-fork. So its system call is restarted until the boost is over (some
 * ms); and no thread is lifted while somebody is changing it, so that none is
 * judged before and changed after.
 *
 * Only the booster lifts (vbh_boost.c), one thread at a time or several.
 */
#include <linux/capability.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/sched/deadline.h>
#include <linux/sched/prio.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>
#include <uapi/linux/sched.h>

#include "../common/fault.h"
#include "../compat/task_charge.h"
#include "../compat/task_clamps.h"
#include "../compat/task_slice.h"
#include "../compat/task_throttled.h"
#include "vbh.h"

/* Below every other real-time thread: they are more important than we. */
#define VBH_LIFT_PRIO	1

/* Threads that are lifted; few at any time. Innermost lock. */
static LIST_HEAD(vbh_lifted);

/*
 * Calls that have not returned yet, of each of the two functions; under the
 * same lock. A list has the memory of one probe alone: when that goes, nobody
 * walks it any more.
 */
static struct list_head vbh_changing[] = {
	LIST_HEAD_INIT(vbh_changing[0]),
	LIST_HEAD_INIT(vbh_changing[1]),
};

static DEFINE_RAW_SPINLOCK(vbh_lift_lock);

/*
 * How many calls there may be for a thread to be lifted: far fewer than can be
 * noted. Those that have lost their CPU in there count, too.
 */
#define VBH_LIFT_MOST_CALLS	32
static unsigned int vbh_nr_changing;	/* under that lock */
/* Who calls those functions for us, and how often that was seen. */
static const struct task_struct *vbh_lifter;
static u32 vbh_lifter_calls;

static struct vbh_lift *vbh_lift_find(const struct task_struct *p)
{
	struct vbh_lift *l;

	lockdep_assert_held(&vbh_lift_lock);
	list_for_each_entry(l, &vbh_lifted, list)
		if (l->task == p)
			return l;
	return NULL;
}

/* ---- changes by others ---- */

struct vbh_change_call {
	struct list_head list;
	const struct task_struct *p;
	struct sched_attr attr;
	long nice;
	bool user;		/* with the checks of a system call */
	bool lifted;		/* as it began, and so until it ends */
	bool refused;		/* the scheduler's answer was not */
};

/* Nonzero: the return is not probed. */
static int vbh_change_begin(struct vbh_change_call *c, bool nice)
{
	struct vbh_lift *l;
	unsigned long flags;

	if (current == vbh_lifter) {
		vbh_lifter_calls++;
		return 1;
	}
	raw_spin_lock_irqsave(&vbh_lift_lock, flags);
	l = vbh_lift_find(c->p);
	c->lifted = l;
	c->refused = false;
	if (l)
		l->calls++;
	list_add(&c->list, &vbh_changing[nice]);
	vbh_nr_changing++;
	raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);
	return 0;
}

static void vbh_change_end(struct vbh_change_call *c, bool done, bool nice)
{
	struct vbh_lift *l;
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lift_lock, flags);
	list_del(&c->list);
	vbh_nr_changing--;
	l = c->lifted ? vbh_lift_find(c->p) : NULL;
	if (l) {
		l->calls--;
		l->refused |= c->refused;
	}
	if (l && done && nice) {
		l->has_nice = true;
		l->nice = c->nice;
	} else if (l && done) {
		/* With a nice value of its own. */
		l->has_attr = true;
		l->has_nice = false;
		l->attr = c->attr;
	}
	raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);
}

static int vbh_setscheduler_entry(struct kretprobe_instance *ri,
				  struct pt_regs *regs)
{
	struct vbh_change_call *c = (struct vbh_change_call *)ri->data;

	c->p = (const struct task_struct *)regs->di;
	/* The kernel's own copy. */
	c->attr = *(const struct sched_attr *)regs->si;
	c->user = (u8)regs->dx;
	return vbh_change_begin(c, false);
}

static bool vbh_may_all(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_NICE);
}

/*
 * Would the answer be another one, were the thread what it was? Without a
 * policy (clamps, parameters alone) the thread's own counts.
 */
static bool vbh_answer_is_wrong(const struct vbh_change_call *c, int ret)
{
	int policy = c->attr.sched_policy;

	if (!c->lifted || !c->user)
		return false;
	/* With KEEP_PARAMS it has taken our priority for the thread's own. */
	if (policy < 0 || (c->attr.sched_flags & SCHED_FLAG_KEEP_PARAMS))
		return true;
	/* A real-time thread's lower clamp may be above the upper one asked for. */
	if (ret == -EINVAL && (c->attr.sched_flags & SCHED_FLAG_UTIL_CLAMP))
		return true;
	return (ret == -EPERM || (!ret && (policy == SCHED_FIFO ||
					   policy == SCHED_RR))) &&
		!vbh_may_all();
}

/* Who has been told to ask again below, under vbh_lift_lock. */
static const struct task_struct *vbh_asked_again[8];

/*
 * sched_setattr() reads what is to be kept before our probe, and without a lock
 * (get_params()): of a boost that has ended since, our priority; as a thread is
 * lifted or put back, SCHED_FIFO without a priority, and that is refused (or
 * else does no harm). Either may as well be what the caller gave, or what the
 * thread has by itself: nobody is told twice.
 */
static bool vbh_is_to_ask_again(const struct vbh_change_call *c, int ret)
{
	u32 priority = c->attr.sched_priority;
	bool again = !c->lifted && (priority == VBH_LIFT_PRIO ||
				    (!priority && ret));
	static unsigned int next;
	unsigned long flags;
	int n;

	if (!c->user || !(c->attr.sched_flags & SCHED_FLAG_KEEP_PARAMS) ||
	    (current->flags & PF_KTHREAD))
		return false;
	raw_spin_lock_irqsave(&vbh_lift_lock, flags);
	for (n = 0; n < ARRAY_SIZE(vbh_asked_again); n++) {
		if (vbh_asked_again[n] != current)
			continue;
		vbh_asked_again[n] = NULL;
		again = false;
	}
	if (again)
		vbh_asked_again[next++ % ARRAY_SIZE(vbh_asked_again)] = current;
	raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);
	return again;
}

/* Or with a deadline: rt_task() does not say so from Linux 6.12 on. */
static bool vbh_is_realtime(struct task_struct *p)
{
	return rt_task(p) || dl_task(p);
}

/*
 * The boost ends by a timer and a real-time thread: who spins must not keep
 * them from it. (Whom we have lifted does not: they are above it.)
 */
static bool vbh_may_restart(const struct vbh_change_call *c)
{
	return !(current->flags & PF_KTHREAD) &&
		(current == c->p || !vbh_is_realtime(current));
}

static int vbh_setscheduler_return(struct kretprobe_instance *ri,
				   struct pt_regs *regs)
{
	struct vbh_change_call *c = (struct vbh_change_call *)ri->data;
	int ret = regs_return_value(regs);
	bool wrong = vbh_answer_is_wrong(c, ret);
	bool again = vbh_is_to_ask_again(c, ret);

	if (again || wrong) {
		c->refused = !ret;
		/* Once is no spinning. */
		if (again || vbh_may_restart(c)) {
			set_tsk_thread_flag(current, TIF_SIGPENDING);
			ret = -ERESTARTNOINTR;
		} else if (wrong && !ret && (int)c->attr.sched_policy >= 0 &&
			   c->attr.sched_priority >
			   task_rlimit(c->p, RLIMIT_RTPRIO) && !vbh_may_all()) {
			ret = -EPERM;
		}
		regs_set_return_value(regs, ret);
	}
	vbh_change_end(c, !ret && (int)c->attr.sched_policy >= 0, false);
	return 0;
}

static int vbh_nice_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct vbh_change_call *c = (struct vbh_change_call *)ri->data;

	c->p = (const struct task_struct *)regs->di;
	c->nice = (long)regs->si;
	return vbh_change_begin(c, true);
}

static int vbh_nice_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct vbh_change_call *c = (struct vbh_change_call *)ri->data;

	vbh_change_end(c, c->nice >= MIN_NICE && c->nice <= MAX_NICE, true);
	return 0;
}

static struct kretprobe vbh_changes[] = {
	{
		.kp.symbol_name = "__sched_setscheduler",
		.entry_handler = vbh_setscheduler_entry,
		.handler = vbh_setscheduler_return,
		.data_size = sizeof(struct vbh_change_call),
		.maxactive = 256,
	}, {
		.kp.symbol_name = "set_user_nice",
		.entry_handler = vbh_nice_entry,
		.handler = vbh_nice_return,
		.data_size = sizeof(struct vbh_change_call),
		.maxactive = 64,
	},
};

static int vbh_changes_err[ARRAY_SIZE(vbh_changes)];

/* ---- lifting ---- */

/**
 * vbh_lift_is_limited() - is a thread's real-time CPU time limited?
 * @p: thread
 *
 * Ours would count, and the limit kills.
 * Context: any.
 * Return: it is.
 */
bool vbh_lift_is_limited(const struct task_struct *p)
{
	return task_rlimit(p, RLIMIT_RTTIME) != RLIM_INFINITY;
}

/**
 * vbh_lift_may() - is this a thread that may be lifted?
 * @p: thread
 *
 * Not one that somebody gave a policy of its own, and none whose real-time
 * CPU time is limited.
 * Context: any.
 * Return: it is.
 */
bool vbh_lift_may(struct task_struct *p)
{
	unsigned int policy = READ_ONCE(p->policy);

	return (policy == SCHED_NORMAL || policy == SCHED_BATCH) &&
	       !vbh_is_realtime(p) && !vb_task_is_throttled(p) &&
	       !vbh_lift_is_limited(p);
}

/*
 * All probes can be switched off at run time (debugfs: kprobes/enabled; for some,
 * sysctl kernel.ftrace_enabled). A call that changes nothing tells.
 */
static bool vbh_lift_is_watched(void)
{
	u32 calls = vbh_lifter_calls;

	set_user_nice(current, task_nice(current));
	return vbh_lifter_calls != calls;
}

/* Calls that were too many at once to be noted, of either function. */
static int vbh_lift_missed(void)
{
	return READ_ONCE(vbh_changes[0].nmissed) +
	       READ_ONCE(vbh_changes[1].nmissed);
}

static bool vbh_is_changing(const struct task_struct *p)
{
	struct vbh_change_call *c;
	int n;

	lockdep_assert_held(&vbh_lift_lock);
	for (n = 0; n < ARRAY_SIZE(vbh_changing); n++)
		list_for_each_entry(c, &vbh_changing[n], list)
			if (c->p == p)
				return true;
	return false;
}

/* Return: nobody is changing it; then what others do from here on is noted. */
static bool vbh_lift_list(struct vbh_lift *l)
{
	unsigned long flags;
	bool good;

	raw_spin_lock_irqsave(&vbh_lift_lock, flags);
	l->calls = 0;
	l->has_attr = false;
	l->has_nice = false;
	l->had_attr = false;
	l->refused = false;
	l->missed = vbh_lift_missed();
	good = vbh_nr_changing < VBH_LIFT_MOST_CALLS &&
	       !vbh_is_changing(l->task);
	if (good)
		list_add(&l->list, &vbh_lifted);
	raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);
	return good;
}

static void vbh_lift_unlist(struct vbh_lift *l)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lift_lock, flags);
	list_del(&l->list);
	raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);
}

/**
 * vbh_lift() - make a thread real-time
 * @l: not in use
 * @p: thread; the caller holds a reference until vbh_unlift()
 * Context: the booster.
 * Return: 0, or a negative errno: it is as it was; -EOPNOTSUPP: nobody would see
 *	what others change.
 */
int vbh_lift(struct vbh_lift *l, struct task_struct *p)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = VBH_LIFT_PRIO,
		/* Nobody inherits it; and by this we know it again. */
		.sched_flags = SCHED_FLAG_RESET_ON_FORK,
	};
	int err;

	l->task = p;
	if (!vbh_lift_is_watched())
		return -EOPNOTSUPP;
	if (!vbh_lift_list(l))
		return -EBUSY;
	l->policy = READ_ONCE(p->policy);
	l->reset_on_fork = p->sched_reset_on_fork;
	l->slice = vb_task_slice(p);
	l->slack = p->timer_slack_ns;
	l->rt_timeout = p->rt.timeout;
	l->clamps = vb_task_clamps(p);
	err = !vbh_lift_may(p) ? -EPERM :
	      vb_fault("lift") ?: sched_setattr_nocheck(p, &attr);
	if (err)
		vbh_lift_unlist(l);
	l->slack_lifted = p->timer_slack_ns;
	return err;
}

static bool vbh_looks_lifted(const struct task_struct *p)
{
	return READ_ONCE(p->policy) == SCHED_FIFO &&
	       READ_ONCE(p->rt_priority) == VBH_LIFT_PRIO;
}

/* Has nobody else changed it since, as far as can be seen? */
static bool vbh_lift_is_ours(const struct task_struct *p)
{
	return vbh_looks_lifted(p) && p->sched_reset_on_fork;
}

/* Return: it is what it was. */
static bool vbh_lift_put_back(const struct vbh_lift *l)
{
	struct task_struct *p = l->task;
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = l->policy,
		.sched_nice = task_nice(p),
		.sched_flags = l->reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0,
		.sched_runtime = l->slice,
	};

	if (!(vb_fault("put_back") ?: sched_setattr_nocheck(p, &attr)))
		return true;
	/* Never leave it as it is. */
	attr = (struct sched_attr){
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = task_nice(p),
	};
	WARN_ON_ONCE(sched_setattr_nocheck(p, &attr));
	pr_warn_ratelimited("thread %d cannot be put back to policy %u: SCHED_NORMAL from now on\n",
			    task_pid_nr(p), l->policy);
	return false;
}

/*
 * What it got was an advance on its share, which threads of the same cgroup
 * get back; but who sleeps is owed more than it has. Under pi_lock nobody
 * changes a thread's class.
 */
static u64 vbh_lift_repay(struct task_struct *p, u64 ns)
{
	unsigned long flags;
	u64 repaid = 0;

	if (WARN_ON_ONCE(vbh_facts_differ(VBH_F_REPAY)))
		return 0;
	raw_spin_lock_irqsave(&p->pi_lock, flags);
	if (rt_task(p) && vbh_lift_is_ours(p) && READ_ONCE(p->on_rq))
		repaid = vb_task_charge(p, ns);
	raw_spin_unlock_irqrestore(&p->pi_lock, flags);
	return repaid;
}

/*
 * What the scheduler does beside: only if it did. Under pi_lock, or somebody
 * else's change to a policy that has no slack could come in between.
 */
static void vbh_lift_tidy(const struct vbh_lift *l)
{
	struct task_struct *p = l->task;
	unsigned long flags;

	raw_spin_lock_irqsave(&p->pi_lock, flags);
	/* RLIMIT_RTTIME counts ticks up to the next sleep: ours are none. */
	p->rt.timeout = l->rt_timeout;
	/* Since 6.12: real-time threads have no slack, then the default. */
	if (l->slack_lifted != l->slack)
		cmpxchg(&p->timer_slack_ns, p->default_timer_slack_ns,
			l->slack);
	raw_spin_unlock_irqrestore(&p->pi_lock, flags);
}

/**
 * vbh_unlift() - make a thread what it was
 * @l: in use
 * @repay: CPU time to be taken off what the scheduler owes it, ns; what was is
 *	in @l->repaid. 0: how it is owed is not looked at
 *
 * Where the scheduler refuses to, it becomes SCHED_NORMAL (@l->left_normal).
 * vbh_lift_settle() has to follow.
 * Context: the booster.
 */
void vbh_unlift(struct vbh_lift *l, u64 repay)
{
	struct task_struct *p = l->task;

	l->repaid = 0;
	l->left_normal = false;
	l->changed = !vbh_lift_is_ours(p);
	if (!l->changed) {
		if (repay)
			l->repaid = vbh_lift_repay(p, repay);
		l->left_normal = !vbh_lift_put_back(l);
	}
	vbh_lift_tidy(l);
	/* Who was not seen meanwhile counts as one that was too many. */
	if (!vbh_lift_is_watched())
		l->missed--;
}

/*
 * The scheduler asks what a caller may do before it takes its lock: who was
 * allowed to because the thread was lifted may have made it real-time after it
 * was put back, and would then be allowed to because it is. Who keeps its
 * parameters, also ours, changes but the flag by which it is known again.
 * Return: it was put back again.
 */
static bool vbh_lift_take_back(struct vbh_lift *l)
{
	const struct task_struct *p = l->task;

	if (!vbh_looks_lifted(p) &&
	    (READ_ONCE(p->policy) != l->policy ||
	     p->sched_reset_on_fork == l->reset_on_fork))
		return false;
	l->left_normal |= !vbh_lift_put_back(l);
	vbh_lift_tidy(l);
	return true;
}

static void vbh_lift_repeat(struct vbh_lift *l, const struct sched_attr *attr)
{
	unsigned long flags;

	if (attr->sched_flags & SCHED_FLAG_UTIL_CLAMP) {
		raw_spin_lock_irqsave(&l->task->pi_lock, flags);
		vb_task_unclamp(l->task, &l->clamps);
		raw_spin_unlock_irqrestore(&l->task->pi_lock, flags);
	}
	sched_setattr_nocheck(l->task, attr);
}

/* One for what others have changed, one that finds nothing more. */
#define VBH_SETTLE_PASSES	2

/**
 * vbh_lift_settle() - what others have changed meanwhile counts
 * @l: after vbh_unlift()
 *
 * A change by somebody else that is still under way is not waited for: who
 * makes it may have lost its CPU, and other threads are to be put back. Nor are
 * such waited for that come one after the other.
 * Context: the booster.
 * Return: @l is not in use any more; false: to be called again.
 */
bool vbh_lift_settle(struct vbh_lift *l)
{
	bool has_attr, has_nice, refused;
	struct sched_attr attr;
	unsigned long flags;
	unsigned int calls;
	bool settled;
	int missed, n;
	long nice;

	for (n = 0; n < VBH_SETTLE_PASSES; n++) {
		raw_spin_lock_irqsave(&vbh_lift_lock, flags);
		calls = vb_fault("settle") ? 1 : l->calls;
		has_attr = l->has_attr;
		has_nice = l->has_nice;
		/* One that was not noted may have been such. */
		missed = vbh_lift_missed();
		refused = l->refused || missed != l->missed;
		l->missed = missed;
		attr = l->attr;
		nice = l->nice;
		l->has_attr = false;
		l->has_nice = false;
		l->refused = false;
		settled = !calls && !has_attr && !has_nice && !refused;
		if (settled)
			list_del(&l->list);
		raw_spin_unlock_irqrestore(&vbh_lift_lock, flags);

		if (settled)
			return true;
		if (!has_attr && !has_nice && !refused)
			break;

		/* What somebody else was allowed to before that counts. */
		if (refused && vbh_lift_take_back(l))
			has_attr |= l->had_attr;
		if (has_attr)
			vbh_lift_repeat(l, &attr);
		if (has_nice)
			set_user_nice(l->task, nice);
		l->had_attr |= has_attr;
		l->changed |= has_attr;
	}
	return false;
}

/**
 * vbh_lift_init() - before the first vbh_lift()
 * @lifter: who will call it
 * Context: process. vbh_lift_error() says what came of it.
 */
void vbh_lift_init(const struct task_struct *lifter)
{
	int n;

	vbh_lifter = lifter;
	for (n = 0; n < ARRAY_SIZE(vbh_changes); n++)
		vbh_changes_err[n] = vbh_observe ? -EPERM :
			vbh_facts_differ(VBH_F_BOOST) ? -ENOEXEC :
			register_kretprobe(&vbh_changes[n]);
}

static void vbh_lift_unprobe(int err)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(vbh_changes); n++) {
		if (!vbh_changes_err[n])
			unregister_kretprobe(&vbh_changes[n]);
		vbh_changes_err[n] = err;
	}
}

/**
 * vbh_lift_check() - probe no more what is found to differ only now
 *
 * vbh_lift_init() may have been before there was a /sys. Where that could not be
 * read just now they stay: what they are for is off, and may come back when
 * kvm.ko does. What is not probed stays so until the module is loaded again.
 * Context: process, sleeps; after vbh_facts_check_kvm(), nothing is lifted.
 */
void vbh_lift_check(void)
{
	int err = vbh_facts_kernel_error();

	if (vbh_facts_differ(VBH_F_BOOST) && (!err || err == -ENOENT))
		vbh_lift_unprobe(-ENOEXEC);
}

/**
 * vbh_lift_error() - why may nothing be lifted?
 * @why: what differs, or is not probed
 *
 * Unseen, who may not have real-time threads could keep one of ours.
 * Context: any; after vbh_lift_check().
 * Return: 0: it may; or a negative errno.
 */
int vbh_lift_error(const char **why)
{
	int n;

	*why = vbh_facts_differ(VBH_F_BOOST);
	if (*why)
		return -ENOEXEC;
	for (n = 0; n < ARRAY_SIZE(vbh_changes); n++) {
		*why = vbh_changes[n].kp.symbol_name;
		if (vbh_changes_err[n])
			return vbh_changes_err[n];
	}
	return 0;
}

/* Nothing is lifted any more. */
void vbh_lift_exit(void)
{
	vbh_lift_unprobe(-ENODEV);
}
