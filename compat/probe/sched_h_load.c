// SPDX-License-Identifier: GPL-2.0
// found: boosts are not paid back: their budget alone limits them
// missing: each cgroup's threads have a queue of their own
/*
 * Do threads of all cgroups compete in one queue? Since 7.3. Lag is in weights
 * of that queue then, which we do not know.
 */
#include <linux/sched.h>

#ifndef VB_ONLY_HEADERS
unsigned long probe(const struct task_struct *p);
unsigned long probe(const struct task_struct *p)
{
	return p->se.h_load.weight;
}
#endif
