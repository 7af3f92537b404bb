// SPDX-License-Identifier: GPL-2.0
// found: isolated CPUs are those that the kernel calls so
// missing: isolated CPUs are those of isolcpus= and nohz_full=
#include <linux/sched/isolation.h>

#ifndef VB_ONLY_HEADERS
bool vb_probe(int cpu);
bool vb_probe(int cpu)
{
	return cpu_is_isolated(cpu);
}
#endif
