// SPDX-License-Identifier: GPL-2.0
// found: a thread whose cgroup is throttled is not boosted
// missing: boosts can exceed the quota of a cgroup (cpu.max) by their share
/* Are threads throttled one by one? Since 6.18, with CONFIG_CFS_BANDWIDTH. */
#include <linux/sched.h>

#ifndef VB_ONLY_HEADERS
bool probe(const struct task_struct *p);
bool probe(const struct task_struct *p)
{
	return p->throttled;
}
#endif
