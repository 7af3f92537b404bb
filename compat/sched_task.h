/* SPDX-License-Identifier: GPL-2.0 */
/* What only some kernels know of a thread of the fair class. */
#ifndef _VB_COMPAT_SCHED_TASK_H
#define _VB_COMPAT_SCHED_TASK_H

#include <linux/math64.h>
#include <linux/sched.h>

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

/* The head of struct cfs_rq (kernel/sched/sched.h): what is queued there. */
struct vb_cfs_rq {
	struct load_weight load;
};

#ifdef HAVE_sched_vlag
/*
 * Lag is counted from the average of all that are queued, which its own run
 * would have moved by its share of their weights.
 */
static inline u64 vb_task_charged(const struct task_struct *p, u64 ns)
{
	const struct vb_cfs_rq *q = (const void *)p->se.cfs_rq;
	u64 others = READ_ONCE(q->load.weight);

	return div64_u64(ns * others, others + p->se.load.weight);
}
#endif

/**
 * vb_task_charge() - let it come back to the fair class as if it had run
 * @p: thread of another class (which is what its caller holds pi_lock for)
 * @ns: for how long, up to ten seconds
 *
 * While a thread is not queued in the fair class, what it was owed there is
 * kept in the lag, before 6.6 in the virtual run time: both are relative then,
 * in ns divided by the weight (kernel/sched/fair.c: place_entity(),
 * detach_task_cfs_rq(), calc_delta_fair()).
 */
static inline void vb_task_charge(struct task_struct *p, u64 ns)
{
	unsigned long weight = p->se.load.weight;

	if (!weight)
		return;
#ifdef HAVE_sched_vlag
	ns = vb_task_charged(p, ns);
#endif
	ns = div64_ul(ns << 2 * SCHED_FIXEDPOINT_SHIFT, weight);
#ifdef HAVE_sched_vlag
	p->se.vlag -= (s64)ns;
#else
	p->se.vruntime += ns;
#endif
}

/* What of them to compare with the running kernel (core/facts.h). */
#ifdef HAVE_custom_slice
#define VB_CUSTOM_SLICE_FACTS(group)	VB_MEMBER(group, task_struct, se.slice),
#else
#define VB_CUSTOM_SLICE_FACTS(group)
#endif
#ifdef HAVE_task_throttled
#define VB_THROTTLED_FACTS(group)	VB_MEMBER(group, task_struct, throttled),
#else
#define VB_THROTTLED_FACTS(group)
#endif
#ifdef HAVE_sched_vlag
#define VB_VLAG_FACTS(group)	\
	VB_MEMBER(group, task_struct, se.vlag), \
	VB_MEMBER(group, task_struct, se.cfs_rq), \
	VB_MEMBER_AS(group, cfs_rq, load.weight, vb_cfs_rq),
#else
#define VB_VLAG_FACTS(group)	VB_MEMBER(group, task_struct, se.vruntime),
#endif
#define VB_SCHED_TASK_FACTS(group)	\
	VB_CUSTOM_SLICE_FACTS(group) VB_THROTTLED_FACTS(group) \
	VB_VLAG_FACTS(group) VB_MEMBER(group, task_struct, se.load.weight), \
	VB_MEMBER(group, task_struct, pi_lock),

#endif /* _VB_COMPAT_SCHED_TASK_H */
