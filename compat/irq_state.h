/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State and statistics of an interrupt that kernel/irq keeps to itself.
 * All under desc->lock.
 */
#ifndef _VB_COMPAT_IRQ_STATE_H
#define _VB_COMPAT_IRQ_STATE_H

#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/kernel_stat.h>
#include <linux/sched.h>

#define vb_irq_state(desc)	\
	ACCESS_PRIVATE(&(desc)->irq_common_data, state_use_accessors)

/* As irqd_set(), irqd_clear() of kernel/irq/internals.h. */
static inline void vb_irq_set_inprogress(struct irq_desc *desc)
{
	vb_irq_state(desc) |= IRQD_IRQ_INPROGRESS;
}

static inline void vb_irq_clear_inprogress(struct irq_desc *desc)
{
	vb_irq_state(desc) &= ~IRQD_IRQ_INPROGRESS;
}

/* IRQS_PENDING of kernel/irq/internals.h */
#define VB_IRQS_PENDING	0x200

/*
 * As handle_edge_irq() does with one that comes while it is disabled: it is
 * sent again when it is enabled.
 */
static inline void vb_irq_keep(struct irq_desc *desc)
{
	desc->core_internal_state__do_not_mess_with_it |= VB_IRQS_PENDING;
}

/* As unmask_irq() of kernel/irq/chip.c. */
static inline void vb_irq_unmask(struct irq_desc *desc)
{
	if (!desc->irq_data.chip->irq_unmask)
		return;
	desc->irq_data.chip->irq_unmask(&desc->irq_data);
	vb_irq_state(desc) &= ~IRQD_IRQ_MASKED;
}

/* As kstat_incr_irqs_this_cpu(): what /proc/interrupts shows. */
static inline void vb_irq_count(struct irq_desc *desc)
{
#ifdef HAVE_irqstat			/* since 6.10 */
	__this_cpu_inc(desc->kstat_irqs->cnt);
#else
	__this_cpu_inc(*desc->kstat_irqs);
#endif
	__this_cpu_inc(kstat.irqs_sum);
	desc->tot_count++;
}

/*
 * As __handle_irq_event_percpu() tells lockdep of a handler that could also run
 * in a thread (irq_settings_can_thread()): it may take what are sleeping locks
 * on PREEMPT_RT, on which we do not run. Interrupts are off.
 * Return: for vb_lockdep_handler_end().
 */
static inline bool vb_lockdep_handler_begin(void)
{
#ifdef CONFIG_TRACE_IRQFLAGS
	bool threaded = current->hardirq_threaded;

	lockdep_hardirq_threaded();
	return threaded;
#else
	return false;
#endif
}

/* What is left of the interrupt that we are in is no such handler. */
static inline void vb_lockdep_handler_end(bool threaded)
{
#ifdef CONFIG_TRACE_IRQFLAGS
	current->hardirq_threaded = threaded;
#endif
}

#ifdef HAVE_irqstat
#define VB_IRQSTAT_FACTS(group)	VB_MEMBER(group, irqstat, cnt),
#else
#define VB_IRQSTAT_FACTS(group)
#endif
#ifdef CONFIG_TRACE_IRQFLAGS
#define VB_LOCKDEP_FACTS(group)	\
	VB_MEMBER(group, task_struct, hardirq_threaded),
#else
#define VB_LOCKDEP_FACTS(group)
#endif
/* To be compared with the running kernel (core/facts.h). */
#define VB_IRQ_STATE_FACTS(group)					\
	VB_ENUM(group, IRQS_PENDING, VB_IRQS_PENDING),			\
	VB_MEMBER(group, irq_desc,					\
		  core_internal_state__do_not_mess_with_it),		\
	VB_MEMBER(group, irq_desc, kstat_irqs),				\
	VB_MEMBER(group, irq_desc, tot_count),				\
	VB_MEMBER(group, kernel_stat, irqs_sum),			\
	VB_IRQSTAT_FACTS(group) VB_LOCKDEP_FACTS(group)

#endif /* _VB_COMPAT_IRQ_STATE_H */
