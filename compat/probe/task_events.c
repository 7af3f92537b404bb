// SPDX-License-Identifier: GPL-2.0
// found: the process behind an interrupt is seen by tracepoints of the scheduler
// missing: vbalance_guest: hints of processes are off
/* Only whether they are there: one that has changed must not compile. */
#include <linux/mm_types.h>	/* the next one wants it without NUMA balancing */
#include <trace/events/sched.h>

#ifndef VB_ONLY_HEADERS
const void *vb_probe(int n);
const void *vb_probe(int n)
{
	return n ? (void *)check_trace_callback_type_sched_wakeup :
		   (void *)check_trace_callback_type_sched_switch;
}
#endif
