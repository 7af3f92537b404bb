// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: an interrupt is disabled (disable_irq()) for a second, or until this
 * is unloaded. Says whether it came meanwhile, and is to be sent again: Linux
 * masks one that comes while it is disabled, so what is kept and not masked
 * somebody else has kept.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/workqueue.h>

static unsigned int irq;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "which one");

/* Of kernel/irq/internals.h */
#define IRQS_PENDING	0x200

static void disable_end(struct work_struct *work)
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

static DECLARE_DELAYED_WORK(disable_later, disable_end);
static struct workqueue_struct *disable_wq;

static int __init disable_init(void)
{
	if (!irq || !irq_get_irq_data(irq))
		return -ENOENT;
	/* A process may be late by half a minute where all CPUs are busy. */
	disable_wq = alloc_workqueue("vb_disable", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!disable_wq)
		return -ENOMEM;
	disable_irq(irq);
	queue_delayed_work(disable_wq, &disable_later, HZ);
	return 0;
}

static void __exit disable_exit(void)
{
	if (cancel_delayed_work_sync(&disable_later))
		disable_end(NULL);
	destroy_workqueue(disable_wq);
}

module_init(disable_init);
module_exit(disable_exit);
MODULE_DESCRIPTION("Disables an interrupt, for tests");
MODULE_LICENSE("GPL");
