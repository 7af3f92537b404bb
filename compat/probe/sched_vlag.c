// SPDX-License-Identifier: GPL-2.0
// found: a thread keeps its lag: boosts can be paid back from it
// missing: boosts are not paid back: their budget alone limits them
/*
 * Does a thread keep its lag where it leaves the fair class? Since 6.6; with
 * CONFIG_FAIR_GROUP_SCHED, which says where it is queued. It is another one
 * from 7.3 on (sched_h_load), and we write it.
 */
#include <linux/sched.h>

#ifndef VB_ONLY_HEADERS
s64 probe(const struct task_struct *p);
s64 probe(const struct task_struct *p)
{
	return p->se.cfs_rq ? p->se.vlag : 0;
}
#endif
