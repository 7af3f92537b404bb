// SPDX-License-Identifier: GPL-2.0
// found: what each CPU uses all the time is in one structure
// missing: what each CPU uses all the time has names of its own
#include <linux/stddef.h>
#include <asm/current.h>

#ifndef VB_ONLY_HEADERS
int vb_probe(void);
int vb_probe(void)
{
	return offsetof(struct pcpu_hot, current_task) +
		offsetof(struct pcpu_hot, preempt_count) +
		offsetof(struct pcpu_hot, cpu_number) +
		offsetof(struct pcpu_hot, softirq_pending);
}
#endif
