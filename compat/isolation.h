/* SPDX-License-Identifier: GPL-2.0 */
/* CPUs that somebody keeps for something else. */
#ifndef _VB_COMPAT_ISOLATION_H
#define _VB_COMPAT_ISOLATION_H

#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>

/**
 * vb_cpu_is_isolated() - do threads only get there that were told to?
 * @cpu: which
 *
 * By isolcpus= or nohz_full=, or, where the kernel says so (6.12 and newer; 6.1
 * does not), as part of an isolated partition of cpusets.
 * Context: any.
 * Return: it is so now.
 */
static inline bool vb_cpu_is_isolated(int cpu)
{
	bool is;

	/* Since 7.0 a partition that comes or goes brings another mask. */
	rcu_read_lock();
#ifdef HAVE_cpu_is_isolated	/* since 6.4, and in 6.1's updates */
	is = cpu_is_isolated(cpu);
#else
	is = !housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN);
#endif
	/* Since 7.0 the other question does not ask for this. */
	is |= !housekeeping_test_cpu(cpu, HK_TYPE_TICK);
	rcu_read_unlock();
	return is;
}

#endif /* _VB_COMPAT_ISOLATION_H */
