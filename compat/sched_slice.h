/* SPDX-License-Identifier: GPL-2.0 */
/* The slice that a thread asked for (sched_attr.sched_runtime); 0: the default. */
#ifndef _VB_COMPAT_SCHED_SLICE_H
#define _VB_COMPAT_SCHED_SLICE_H

#include <linux/sched.h>

static inline u64 vb_task_slice(const struct task_struct *p)
{
#ifdef HAVE_custom_slice		/* since 6.12 */
	return p->se.custom_slice ? p->se.slice : 0;
#else
	return 0;
#endif
}

#endif /* _VB_COMPAT_SCHED_SLICE_H */
