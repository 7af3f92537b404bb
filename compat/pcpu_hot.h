/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From 6.2 to 6.14 what a CPU uses all the time is in one structure: inline
 * functions read it (current, smp_processor_id(), preempt_count(),
 * local_softirq_pending()). Before and since, each is a variable of its own,
 * which is linked to by its name. To be compared with the running kernel
 * (core/facts.h).
 */
#ifndef _VB_COMPAT_PCPU_HOT_H
#define _VB_COMPAT_PCPU_HOT_H

#include <asm/current.h>

#ifdef HAVE_pcpu_hot
#define VB_PCPU_HOT_FACTS(group)			\
	VB_MEMBER(group, pcpu_hot, current_task),	\
	VB_MEMBER(group, pcpu_hot, preempt_count),	\
	VB_MEMBER(group, pcpu_hot, cpu_number),
#define VB_PENDING_FACTS(group)				\
	VB_MEMBER(group, pcpu_hot, softirq_pending),
#else
#define VB_PCPU_HOT_FACTS(group)
#define VB_PENDING_FACTS(group)
#endif

#endif /* _VB_COMPAT_PCPU_HOT_H */
