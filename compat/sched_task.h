/* SPDX-License-Identifier: GPL-2.0 */
/* What only some kernels know of a thread of the fair class. */
#ifndef _VB_COMPAT_SCHED_TASK_H
#define _VB_COMPAT_SCHED_TASK_H

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
#define VB_SCHED_TASK_FACTS(group)	\
	VB_CUSTOM_SLICE_FACTS(group) VB_THROTTLED_FACTS(group)

#endif /* _VB_COMPAT_SCHED_TASK_H */
