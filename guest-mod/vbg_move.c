// SPDX-License-Identifier: GPL-2.0
/*
 * Moving an interrupt to another CPU, now.
 *
 * irq_set_affinity() without interrupt remapping only notes the wish; the
 * move happens in the next interrupt on the *old* CPU (CONFIG_GENERIC_PENDING_
 * IRQ), which is the one that is descheduled. So the chip's own operation is
 * called here, under desc->lock as the core does it (kernel/irq/manage.c,
 * irq_do_set_affinity), with the vector masked (kernel/irq/migration.c,
 * irq_move_masked_irq).
 *
 *  - msi_set_affinity() (arch/x86/kernel/apic/msi.c) warns when a vector that
 *    can be reserved is moved from another CPU than its own; clearing the
 *    "can reserve" bit for the time of the call makes it take the direct path,
 *    which is right for a masked vector. The bit is put back.
 *  - The affinity mask (smp_affinity, what the admin asked for) is not
 *    changed, only the effective CPU: undoing a move leaves no trace.
 *  - -EBUSY: the old vCPU has not run its vector clean-up since the last move.
 *  - An MSI that the old vCPU has latched already stays there; interrupting
 *    the new CPU once (irq_retrigger) makes it look at the queue. It also
 *    completes the move: the clean-up begins with the first interrupt on the
 *    new vector, and a queue without traffic has no other.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/jiffies.h>

#include "vbg.h"
#include "vbg_trace.h"
#include "../common/fault.h"

/*
 * Sliding mean of what a move costs: the time in which the vector is masked
 * and the mover can do nothing else. Starts where real hardware without
 * overcommitment is; the first moves correct it.
 */
#define VBG_COST_PRIOR_NS	500000ULL
#define VBG_COST_AGE_NS		(10 * NSEC_PER_SEC)

/* After -EBUSY: not before this. */
#define VBG_BUSY_NS		(500 * NSEC_PER_USEC)

static u64 vbg_cost_ns = VBG_COST_PRIOR_NS;
static u64 vbg_cost_measured;		/* vbg_clock() of the last measurement */
static atomic64_t vbg_cost_nr, vbg_cost_sum, vbg_cost_max;

u64 vbg_move_cost(void)
{
	return READ_ONCE(vbg_cost_ns);
}

/*
 * One bad move (a whole host rotation lost in the VMM) must not end all moves
 * for ever: without new measurements the estimate goes back half way to the
 * prior every ten seconds, so that one move tries again after a while.
 */
void vbg_move_age_cost(void)
{
	u64 now = vbg_clock();

	/* Signed: one may be measured meanwhile. */
	if ((s64)(now - READ_ONCE(vbg_cost_measured)) < (s64)VBG_COST_AGE_NS)
		return;
	WRITE_ONCE(vbg_cost_measured, now);
	WRITE_ONCE(vbg_cost_ns,
		   (READ_ONCE(vbg_cost_ns) + VBG_COST_PRIOR_NS) / 2);
}

static void vbg_cost_account(u64 ns)
{
	s64 max = atomic64_read(&vbg_cost_max);

	/* Racing CPUs lose a sample at worst. */
	WRITE_ONCE(vbg_cost_ns, (READ_ONCE(vbg_cost_ns) + ns) / 2);
	WRITE_ONCE(vbg_cost_measured, vbg_clock());
	atomic64_inc(&vbg_cost_nr);
	atomic64_add(ns, &vbg_cost_sum);
	while ((s64)ns > max && !atomic64_try_cmpxchg(&vbg_cost_max, &max, ns))
		;
}

void vbg_move_counts(u64 *nr, u64 *sum_ns, u64 *max_ns)
{
	*nr = atomic64_read(&vbg_cost_nr);
	*sum_ns = atomic64_read(&vbg_cost_sum);
	*max_ns = atomic64_read(&vbg_cost_max);
}

/**
 * vbg_irq_where() - CPU that an interrupt goes to
 * @i: interrupt
 * @pending: not to be moved now (NULL: do not care): a move by the core is
 *	noted but not done yet, or its handler runs (perhaps on a vCPU that lost
 *	its CPU in it: the new one could only wait for that, since 6.17 in a
 *	loop with interrupts off)
 * Context: RCU read side.
 * Return: CPU, or -1 when the interrupt is gone.
 */
int vbg_irq_where(struct vbg_irq *i, bool *pending)
{
	struct irq_data *d = irq_get_irq_data(i->irq);
	unsigned int cpu;

	if (!d)
		return -1;
	if (pending)
		*pending = irqd_is_setaffinity_pending(d) ||
			   irqd_irq_inprogress(d);
	cpu = cpumask_first(irq_data_get_effective_affinity_mask(d));
	return cpu < nr_cpu_ids ? cpu : -1;
}

/* Still the interrupt that we adopted, and fit for a move? */
static int vbg_move_check(const struct vbg_irq *i, struct irq_desc *desc)
{
	struct irq_data *d = &desc->irq_data;

	lockdep_assert_held(&desc->lock);
	if (!desc->action || desc->action->dev_id != i->dev_id)
		return -ENOENT;
	if (irqd_affinity_is_managed(d) || !irqd_can_balance(d) || !d->chip ||
	    !d->chip->irq_set_affinity)
		return -EPERM;
	/* Somebody changed the mask since we looked: first take note of it. */
	if (!cpumask_equal(irq_data_get_affinity_mask(d), i->mask))
		return -ESTALE;
	if (!irqd_is_activated(d) || !irqd_is_started(d) ||
	    irqd_irq_disabled(d) || irqd_irq_masked(d) ||
	    irqd_is_setaffinity_pending(d) || irqd_irq_inprogress(d))
		return -EAGAIN;
	return 0;
}

static int vbg_move_locked(struct irq_desc *desc, int target)
{
	struct irq_data *d = &desc->irq_data;
	struct irq_chip *chip = d->chip;
	bool reserve = irqd_can_reserve(d);
	int ret;

	lockdep_assert_held(&desc->lock);

	if (reserve)
		irqd_clr_can_reserve(d);
	if (chip->irq_mask)
		chip->irq_mask(d);
	ret = vb_fault("move") ?:
	      chip->irq_set_affinity(d, cpumask_of(target), false);
	if (chip->irq_unmask)
		chip->irq_unmask(d);
	if (reserve)
		irqd_set_can_reserve(d);
	return ret < 0 ? ret : 0;
}

/**
 * vbg_retrigger() - interrupt the CPU that has the interrupt
 * @i: interrupt
 * @desc: its descriptor, locked
 */
void vbg_retrigger(struct vbg_irq *i, struct irq_desc *desc)
{
	struct irq_data *d = &desc->irq_data;

	lockdep_assert_held(&desc->lock);
	/* MSIs of x86 always can (apic_retrigger_irq()). */
	if (!d->chip->irq_retrigger || d->chip->irq_retrigger(d) <= 0)
		return;
	i->count[VBG_C_INJECTED]++;
	WRITE_ONCE(i->injected_since, i->injected_since + 1);
}

/**
 * vbg_move() - move an interrupt
 * @i: interrupt; the caller holds its busy bit
 * @target: online CPU
 * @cost_ns: how long it took (also when it failed)
 *
 * Context: any with preemption disabled, RCU read side; CPU hotplug cannot
 * complete meanwhile. Leaves the guest several times (MMIO) and can lose the
 * CPU there.
 * Return: 0; -EBUSY (try again when the old vCPU has run); -EAGAIN
 * (descriptor locked or interrupt disabled); -ESTALE (somebody changed the
 * mask); others: cannot be moved.
 */
int vbg_move(struct vbg_irq *i, int target, u64 *cost_ns)
{
	struct irq_data *d = irq_get_irq_data(i->irq);
	struct irq_desc *desc;
	unsigned long flags;
	u64 start;
	int err, from = i->cpu, cpu = smp_processor_id();
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);

	*cost_ns = 0;
	if (!d)
		return -ENOENT;
	if (!cpu_online(target))
		return -EINVAL;
	desc = irq_data_to_desc(d);
	if (!raw_spin_trylock_irqsave(&desc->lock, flags)) {
		i->count[VBG_C_CONTENDED]++;
		return -EAGAIN;
	}
	start = vbg_clock();
	err = vbg_move_check(i, desc);
	if (!err) {
		vbg_critical_begin(c, cpu, VB_CRITICAL_MOVE);
		err = vbg_move_locked(desc, target);
		if (!err)
			vbg_retrigger(i, desc);
	}
	*cost_ns = vbg_busy_ns(start, vbg_clock(), 0, 0);
	raw_spin_unlock(&desc->lock);
	/* Others would wait for the lock of one that gives its CPU back. */
	vbg_critical_end(c, cpu, VB_CRITICAL_MOVE);
	local_irq_restore(flags);

	switch (err) {
	case 0:
		i->count[VBG_C_MOVES]++;
		i->before_cpu = from;
		i->busy_cpu = -1;
		i->cpu = vbg_irq_where(i, NULL);
		vbg_cost_account(*cost_ns);
		break;
	case -EBUSY:
		/* Only masked and unmasked: says nothing about a move. */
		i->count[VBG_C_EBUSY]++;
		i->busy_cpu = i->before_cpu;
		if (i->busy_cpu >= 0)
			i->busy_episode = vbg_cpu_episode(i->busy_cpu);
		i->busy_until = vbg_clock() + VBG_BUSY_NS;
		break;
	case -EAGAIN:
	case -ESTALE:
		/* Disabled, or changed by somebody else meanwhile. */
		i->count[VBG_C_CONTENDED]++;
		break;
	default:
		i->count[VBG_C_FAILED]++;
	}
	WRITE_ONCE(i->last_cost, *cost_ns);
	trace_vb_guest_move(i->irq, from, target, *cost_ns, err);
	return err;
}

/**
 * vbg_move_fix_unhandled() - our injections are no sign of a broken device
 * @i: interrupt
 *
 * An injected interrupt mostly finds nothing to do, and note_interrupt()
 * switches an interrupt off when 99.9 % of 100000 were for nothing. Give back
 * those that were ours.
 * Context: process.
 */
void vbg_move_fix_unhandled(struct vbg_irq *i)
{
	struct irq_desc *desc;
	struct irq_data *d;
	unsigned long flags;
	u32 ours;

	if (!READ_ONCE(i->injected_since))
		return;
	rcu_read_lock();
	d = irq_get_irq_data(i->irq);
	if (d) {
		desc = irq_data_to_desc(d);
		raw_spin_lock_irqsave(&desc->lock, flags);
		ours = i->injected_since;
		WRITE_ONCE(i->injected_since, 0);
		desc->irqs_unhandled -= min(desc->irqs_unhandled, ours);
		raw_spin_unlock_irqrestore(&desc->lock, flags);
	}
	rcu_read_unlock();
}

static int vbg_restore_one(struct vbg_irq *i)
{
	int err = 0;
	u64 cost;

	cpus_read_lock();
	preempt_disable();
	rcu_read_lock();
	/* Foreign moves stay; so does what never moved. */
	if (!i->fixed && i->cpu != i->home && cpu_online(i->home) &&
	    vbg_irq_where(i, NULL) == i->cpu)
		err = vbg_move(i, i->home, &cost);
	rcu_read_unlock();
	preempt_enable();
	cpus_read_unlock();
	return err;
}

static bool vbg_restore_again(int err)
{
	return err == -EBUSY || err == -EAGAIN;
}

/**
 * vbg_move_restore() - put interrupts back to where they were adopted
 * @t: all of them; nobody decides any more
 *
 * -EBUSY ends when the old vCPU has run its clean-up, which under
 * overcommitment takes some host rotations: in rounds over all of them, for
 * five seconds together.
 * Context: process, sleeps.
 */
void vbg_move_restore(const struct vbg_table *t)
{
	unsigned long end = jiffies + 5 * HZ;
	bool again;
	int n, err;

	do {
		again = false;
		for (n = 0; n < t->nr; n++)
			again |= vbg_restore_again(vbg_restore_one(t->irqs[n]));
		if (again)
			msleep(20);
	} while (again && time_before(jiffies, end));

	for (n = 0; n < t->nr; n++) {
		err = vbg_restore_one(t->irqs[n]);
		vbg_move_fix_unhandled(t->irqs[n]);
		if (err && err != -ENOENT && err != -ESTALE)
			pr_warn("irq %u stays on CPU %d: error %d\n",
				t->irqs[n]->irq, t->irqs[n]->cpu, err);
	}
}
