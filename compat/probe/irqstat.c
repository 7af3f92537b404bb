// SPDX-License-Identifier: GPL-2.0
#include <linux/irq.h>
#include <linux/irqdesc.h>

unsigned int vb_probe(struct irq_desc *desc);
unsigned int vb_probe(struct irq_desc *desc)
{
	return per_cpu(desc->kstat_irqs->cnt, 0);
}
