// SPDX-License-Identifier: GPL-2.0
// found: statistics of interrupts are a struct
// missing: statistics of interrupts are a plain counter
#include <linux/irq.h>
#include <linux/irqdesc.h>

#ifndef VB_ONLY_HEADERS
unsigned int vb_probe(struct irq_desc *desc);
unsigned int vb_probe(struct irq_desc *desc)
{
	return per_cpu(desc->kstat_irqs->cnt, 0);
}
#endif
