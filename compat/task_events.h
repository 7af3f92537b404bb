/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of threads that are woken, and that sleep again. */
#ifndef _VB_COMPAT_TASK_EVENTS_H
#define _VB_COMPAT_TASK_EVENTS_H

#ifdef HAVE_task_events
#include <linux/mm_types.h>	/* the next one wants it without NUMA balancing */
#include <trace/events/sched.h>

/* What the headers did not have, or NULL. */
#define VB_TASK_EVENTS_MISSING	NULL

/* Does not compile when a prototype has changed. */
#define vb_task_events_canary(on_wakeup, on_switch)			\
do {									\
	check_trace_callback_type_sched_wakeup(on_wakeup);		\
	check_trace_callback_type_sched_switch(on_switch);		\
} while (0)

/* To be compared with the running kernel (core/facts.h). */
#define VB_TASK_EVENT_FACTS(group)					\
	VB_TRACE(group, sched_wakeup, "0(*,task_struct*"),		\
	VB_TRACE(group, sched_switch, "0(*,1,task_struct*,task_struct*,4"),
#else
#define VB_TASK_EVENTS_MISSING	\
	"headers without sched_wakeup or sched_switch"
#define VB_TASK_EVENT_FACTS(group)

static inline void vb_task_events_canary(void *on_wakeup, void *on_switch)
{
}
#endif

#endif /* _VB_COMPAT_TASK_EVENTS_H */
