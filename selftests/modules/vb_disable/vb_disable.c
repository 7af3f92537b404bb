// SPDX-License-Identifier: GPL-2.0
/* For tests: an interrupt is disabled (disable_irq()) while this is loaded. */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/module.h>

static unsigned int irq;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "which one");

static int __init disable_init(void)
{
	if (!irq || !irq_get_irq_data(irq))
		return -ENOENT;
	disable_irq(irq);
	return 0;
}

static void __exit disable_exit(void)
{
	enable_irq(irq);
}

module_init(disable_init);
module_exit(disable_exit);
MODULE_DESCRIPTION("Disables an interrupt, for tests");
MODULE_LICENSE("GPL");
