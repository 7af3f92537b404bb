/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a thread waits for its cgroup's next period. */
#ifndef _VB_COMPAT_TASK_THROTTLED_H
#define _VB_COMPAT_TASK_THROTTLED_H

#include <linux/sched.h>

/* Its cgroup has used up its quota (cpu.max); else seen too late: no. */
static inline bool vb_task_is_throttled(const struct task_struct *p)
{
#ifdef HAVE_task_throttled		/* since 6.18 */
	return p->throttled;
#else
	return false;
#endif
}

/* To be compared with the running kernel (core/facts.h). */
#ifdef HAVE_task_throttled
#define VB_TASK_THROTTLED_FACTS(group)	\
	VB_MEMBER(group, task_struct, throttled),
#else
#define VB_TASK_THROTTLED_FACTS(group)
#endif

#endif /* _VB_COMPAT_TASK_THROTTLED_H */
