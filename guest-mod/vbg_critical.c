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

/* The same, no longer. */
void vbg_critical_end(struct vbg_cpu *c, int cpu, u32 what)
{
	if (!(c->critical & what))
		return;
	c->critical &= ~what;
	vbg_page_say_critical(cpu, c->critical);
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
 * that are still to come are in io_softirqs only. Context: interrupts off.
 */
void vbg_critical_soft_exit(struct vbg_cpu *c, int cpu, unsigned int vec)
{
	c->io_softirqs &= ~BIT(vec);
	if (c->critical & VB_CRITICAL_IRQ)
		vbg_critical_check(c, cpu);
}
