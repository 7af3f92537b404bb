/* SPDX-License-Identifier: GPL-2.0 */
/* Utilization clamps of a thread. */
#ifndef _VB_COMPAT_TASK_CLAMPS_H
#define _VB_COMPAT_TASK_CLAMPS_H

#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/string.h>

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

/* To be compared with the running kernel (core/facts.h). */
#ifdef CONFIG_UCLAMP_TASK
/* Behind value, bucket_id and active (include/linux/sched.h). */
#define VB_TASK_CLAMPS_FACTS(group)			\
	VB_MEMBER(group, task_struct, uclamp_req),	\
	VB_SIZE(group, uclamp_se),			\
	VB_BIT(group, uclamp_se, user_defined,		\
	       bits_per(SCHED_CAPACITY_SCALE) +		\
	       bits_per(CONFIG_UCLAMP_BUCKETS_COUNT) + 1),
#else
#define VB_TASK_CLAMPS_FACTS(group)
#endif

#endif /* _VB_COMPAT_TASK_CLAMPS_H */
