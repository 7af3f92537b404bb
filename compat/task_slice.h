/* SPDX-License-Identifier: GPL-2.0 */
/* The slice of a thread of the fair class. */
#ifndef _VB_COMPAT_TASK_SLICE_H
#define _VB_COMPAT_TASK_SLICE_H

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

/* To be compared with the running kernel (core/facts.h). */
#ifdef HAVE_custom_slice
#define VB_TASK_SLICE_FACTS(group)	\
	VB_MEMBER(group, task_struct, se.slice), \
	VB_MEMBER(group, task_struct, se.custom_slice),
#else
#define VB_TASK_SLICE_FACTS(group)
#endif

#endif /* _VB_COMPAT_TASK_SLICE_H */
