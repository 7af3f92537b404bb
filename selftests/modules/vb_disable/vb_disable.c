// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: an interrupt is disabled (disable_irq()) while this is loaded. Says
 * whether it came meanwhile, and is to be sent again: Linux masks one that comes
 * while it is disabled, so what is kept and not masked somebody else has kept.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>

static unsigned int irq;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "which one");

/* Of kernel/irq/internals.h */
#define IRQS_PENDING	0x200

static int __init disable_init(void)
{
	if (!irq || !irq_get_irq_data(irq))
		return -ENOENT;
	disable_irq(irq);
	return 0;
}

static void __exit disable_exit(void)
{
	struct irq_data *d = irq_get_irq_data(irq);
	struct irq_desc *desc = irq_data_to_desc(d);
	bool kept, masked;

	raw_spin_lock_irq(&desc->lock);
	kept = desc->core_internal_state__do_not_mess_with_it & IRQS_PENDING;
	masked = irqd_irq_masked(d);
	raw_spin_unlock_irq(&desc->lock);
	pr_info("vb_disable: %s\n", !kept ? "nothing kept" :
		masked ? "kept by Linux" : "kept by another");
	enable_irq(irq);
}

module_init(disable_init);
module_exit(disable_exit);
MODULE_DESCRIPTION("Disables an interrupt, for tests");
MODULE_LICENSE("GPL");
