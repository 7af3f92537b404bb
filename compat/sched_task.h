/* SPDX-License-Identifier: GPL-2.0 */
/* What only some kernels know of a thread of the fair class. */
#ifndef _VB_COMPAT_SCHED_TASK_H
#define _VB_COMPAT_SCHED_TASK_H

#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>

/* The slice that it asked for (sched_attr.sched_runtime); 0: the default. */
static inline u64 vb_task_slice(const struct task_struct *p)
{
#ifdef HAVE_custom_slice		/* since 6.12 */
	return p->se.custom_slice ? p->se.slice : 0;
#else
	return 0;
#endif
}

/* Its cgroup has used up its quota (cpu.max); else seen too late: no. */
static inline bool vb_task_is_throttled(const struct task_struct *p)
{
#ifdef HAVE_task_throttled		/* since 6.18 */
	return p->throttled;
#else
	return false;
#endif
}

/*
 * How much of a CPU it is taken to use at least and at most, as was asked
 * (SCHED_FLAG_UTIL_CLAMP).
 */
struct vb_task_clamps {
#ifdef CONFIG_UCLAMP_TASK
	struct uclamp_se req[UCLAMP_CNT];
#endif
};

static inline struct vb_task_clamps vb_task_clamps(const struct task_struct *p)
{
	struct vb_task_clamps c = { };

#ifdef CONFIG_UCLAMP_TASK
	memcpy(c.req, p->uclamp_req, sizeof(c.req));
#endif
	return c;
}

/**
 * vb_task_unclamp() - undo what another class has done to a thread's clamps
 * @p: thread; the caller holds pi_lock
 * @was: what they were before it got that class
 *
 * A real-time thread has another lower clamp than others unless somebody has
 * set one. With the class that goes too, but not in a change that sets a clamp
 * itself (kernel/sched: uclamp_reset()). Counts when it is queued next.
 */
static inline void vb_task_unclamp(struct task_struct *p,
				   const struct vb_task_clamps *was)
{
#ifdef CONFIG_UCLAMP_TASK
	int i;

	for (i = 0; i < UCLAMP_CNT; i++)
		if (!p->uclamp_req[i].user_defined &&
		    !was->req[i].user_defined)
			p->uclamp_req[i] = was->req[i];
#endif
}

/* What lag means no header says: so in none that nobody has looked at. */
#if defined(HAVE_sched_vlag) && defined(HAVE_tried) && !defined(HAVE_sched_h_load)
#define VB_HAS_TASK_CHARGE	true

/* The head of struct cfs_rq (kernel/sched/sched.h): what is queued there. */
struct vb_cfs_rq {
	struct load_weight load;
};

/**
 * vb_task_charge() - let it come back to the fair class as if it had run
 * @p: thread of another class, runnable; the caller holds pi_lock
 * @ns: for how long
 *
 * While a thread is not queued in the fair class, what it is owed there is kept
 * in its lag, in ns by weight (kernel/sched/fair.c: place_entity(),
 * calc_delta_fair()), counted from the average of all that are queued. That,
 * its own run would have moved by its share of their weights. Nobody is owed
 * or owes more than update_entity_lag() allows.
 *
 * Return: what was charged, ns; 0: there is nobody in its queue to gain by it.
 */
static inline u64 vb_task_charge(struct task_struct *p, u64 ns)
{
	const struct vb_cfs_rq *q = (const void *)READ_ONCE(p->se.cfs_rq);
	u64 weight = p->se.load.weight, others = READ_ONCE(q->load.weight);
	u64 most = max_t(u64, 2 * p->se.slice, TICK_NSEC);
	s64 lag, least;

	if (!weight || !others)
		return 0;
	ns = min(ns, most);
	lag = div64_u64(div64_u64(ns * others, others + weight) <<
			2 * SCHED_FIXEDPOINT_SHIFT, weight);
	least = -(s64)div64_u64(most << 2 * SCHED_FIXEDPOINT_SHIFT, weight);
	lag = p->se.vlag - lag;
	p->se.vlag = max(lag, min_t(s64, p->se.vlag, least));
	return ns;
}

#define VB_TASK_CHARGE_FACTS(group)	\
	VB_MEMBER(group, task_struct, se.vlag), \
	VB_MEMBER(group, task_struct, se.slice), \
	VB_MEMBER(group, task_struct, se.load.weight), \
	VB_MEMBER(group, task_struct, se.cfs_rq), \
	VB_MEMBER_AS(group, cfs_rq, load.weight, vb_cfs_rq),
#else
#define VB_HAS_TASK_CHARGE	false

static inline u64 vb_task_charge(struct task_struct *p, u64 ns)
{
	return 0;
}

#define VB_TASK_CHARGE_FACTS(group)
#endif

/* What of them to compare with the running kernel (core/facts.h). */
#ifdef HAVE_custom_slice
#define VB_CUSTOM_SLICE_FACTS(group)	\
	VB_MEMBER(group, task_struct, se.slice), \
	VB_MEMBER(group, task_struct, se.custom_slice),
#else
#define VB_CUSTOM_SLICE_FACTS(group)
#endif
#ifdef HAVE_task_throttled
#define VB_THROTTLED_FACTS(group)	VB_MEMBER(group, task_struct, throttled),
#else
#define VB_THROTTLED_FACTS(group)
#endif
#ifdef CONFIG_UCLAMP_TASK
/* Behind value, bucket_id and active (include/linux/sched.h). */
#define VB_CLAMPS_FACTS(group)				\
	VB_MEMBER(group, task_struct, uclamp_req),	\
	VB_SIZE(group, uclamp_se),			\
	VB_BIT(group, uclamp_se, user_defined,		\
	       bits_per(SCHED_CAPACITY_SCALE) +		\
	       bits_per(CONFIG_UCLAMP_BUCKETS_COUNT) + 1),
#else
#define VB_CLAMPS_FACTS(group)
#endif
#define VB_SCHED_TASK_FACTS(group)	\
	VB_CUSTOM_SLICE_FACTS(group) VB_THROTTLED_FACTS(group) \
	VB_CLAMPS_FACTS(group) \
	VB_MEMBER(group, task_struct, pi_lock),

#endif /* _VB_COMPAT_SCHED_TASK_H */
