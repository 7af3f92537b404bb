// SPDX-License-Identifier: GPL-2.0
// found: the kernel says which CPUs are isolated
// missing: CPUs of isolated partitions are taken for others
#include <linux/sched/isolation.h>

#ifndef VB_ONLY_HEADERS
bool vb_probe(int cpu);
bool vb_probe(int cpu)
{
	return cpu_is_isolated(cpu);
}
#endif
