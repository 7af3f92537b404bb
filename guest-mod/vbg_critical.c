// SPDX-License-Identifier: GPL-2.0
/*
 * Saying to the host when this vCPU must not lose its CPU: CoINT's
 * interruptability holder, said exactly by who knows it.
 *
 * Critical is a vCPU from a queue's interrupt until no soft interrupt that it
 * raised is left: as long as NAPI is scheduled here, no other vCPU can serve
 * the queue. And while it changes an affinity, for which it leaves the guest
 * some times with the vector masked.
 *
 * Nobody but the vCPU itself writes its word: with interrupts off.
 */
#include <linux/bits.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>

#include "vbg.h"

#define VBG_IO_SOFTIRQS						\
	(BIT(NET_TX_SOFTIRQ) | BIT(NET_RX_SOFTIRQ) |		\
	 BIT(BLOCK_SOFTIRQ) | BIT(IRQ_POLL_SOFTIRQ))

/**
 * vbg_critical_begin() - others begin to wait for this vCPU
 * @c: this CPU
 * @cpu: its number
 * @what: VB_CRITICAL_IRQ, VB_CRITICAL_MOVE
 * Context: interrupts off.
 */
void vbg_critical_begin(struct vbg_cpu *c, int cpu, u32 what)
{
	c->critical |= what;
	vbg_page_say_critical(cpu, c->critical);
}

/* Return: a CPU that was lent has to be given back. */
static bool vbg_critical_clear(struct vbg_cpu *c, int cpu, u32 what)
{
	if (!(c->critical & what))
		return false;
	c->critical &= ~what;
	return vbg_page_say_critical(cpu, c->critical);
}

static void vbg_critical_late(struct irq_work *work)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);

	if (vbg_page_say_critical(smp_processor_id(), c->critical))
		vbg_page_give_back();
}

static DEFINE_PER_CPU(struct irq_work, vbg_critical_work);

/*
 * The same with a lock held, as in the scheduler's hooks: others would wait
 * for it a whole turn. The CPU is given back as soon as interrupts are on.
 */
void vbg_critical_end_later(struct vbg_cpu *c, int cpu, u32 what)
{
	if (vbg_critical_clear(c, cpu, what))
		irq_work_queue(this_cpu_ptr(&vbg_critical_work));
}

/*
 * The same, no longer. The vCPU may lose its CPU here: no locks. Nor in a hard
 * interrupt: where its handler is called it is marked as in progress, here and
 * in irq_handler_exit, and nobody could serve it for a whole turn.
 */
void vbg_critical_end(struct vbg_cpu *c, int cpu, u32 what)
{
	if (in_hardirq())
		vbg_critical_end_later(c, cpu, what);
	else if (vbg_critical_clear(c, cpu, what))
		vbg_page_give_back();
}

/*
 * Before the probes. Kernels up to 6.12 at least do not relocate a module's
 * per-CPU data: there can be no pointers in its initial value.
 */
void vbg_critical_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(vbg_critical_work, cpu) =
			IRQ_WORK_INIT_HARD(vbg_critical_late);
}

/* The probes are off. Context: process. */
void vbg_critical_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(per_cpu_ptr(&vbg_critical_work, cpu));
}

static void vbg_critical_check(struct vbg_cpu *c, int cpu)
{
	c->io_softirqs |= local_softirq_pending() & VBG_IO_SOFTIRQS;
	if (!c->io_softirqs)
		vbg_critical_end(c, cpu, VB_CRITICAL_IRQ);
}

/* A hard interrupt ends. Context: in it. */
void vbg_critical_hard_exit(struct vbg_cpu *c, int cpu)
{
	if (c->critical & VB_CRITICAL_IRQ)
		vbg_critical_check(c, cpu);
}

/*
 * A soft interrupt ends. The core takes all that are pending at once: those
 * that are still to come are in io_softirqs only, which is empty where the
 * vCPU is not critical. Context: in it, interrupts off.
 */
void vbg_critical_soft_exit(struct vbg_cpu *c, int cpu, unsigned int vec)
{
	if (!(c->critical & VB_CRITICAL_IRQ))
		return;
	c->io_softirqs &= ~BIT(vec);
	vbg_critical_check(c, cpu);
}
