/* SPDX-License-Identifier: GPL-2.0 */
/* A thread's lag in the fair class, where it is ours to change. */
#ifndef _VB_COMPAT_TASK_CHARGE_H
#define _VB_COMPAT_TASK_CHARGE_H

#include <linux/math64.h>
#include <linux/sched.h>

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

#endif /* _VB_COMPAT_TASK_CHARGE_H */
