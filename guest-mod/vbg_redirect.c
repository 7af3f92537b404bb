// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery, the guest's part: telling the host where each
 * virtqueue's MSI goes, and serving what it has set pending.
 * Protocol: include/vbalance/abi.h, struct vb_redirect.
 *
 * Keys. A (destination, vector) that stands in a key must belong to that
 * interrupt alone for as long as it does. x86 gives a vector to another
 * interrupt only after it has configured this one elsewhere, or cleared it, and
 * traces both at that moment (vector_config, vector_clear in
 * arch/x86/kernel/apic/vector.c); the probes change the key there, whoever
 * moves the interrupt. While the MSI is being rewritten it matches no key and
 * is delivered as it is. All writers of a key hold desc->lock, or are the only
 * ones who know the interrupt. A CPU that is offline traces nothing, and it is
 * when it moves its interrupts away (fixup_irqs()): their keys go before.
 *
 * Pending bits are looked for in every interrupt and tick of every vCPU: its
 * own (the redirection vector, or whatever comes first), and those of vCPUs
 * that do not run. No interrupt is needed for a bit to be served but any one
 * on any vCPU.
 *
 * The redirection vector is X86_PLATFORM_IPI_VECTOR: the same on each vCPU,
 * always valid, acknowledged by the kernel whether we are there or not, and used
 * by nobody else in a virtual machine (SGI UV only). Its tracepoint is our
 * handler.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/jiffies.h>
#include <linux/msi.h>
#include <asm/irq_vectors.h>
#include <asm/msi.h>

#include "../compat/hrtimer.h"
#include "../common/fault.h"
#include "../core/redirect.h"
#include "vbg.h"
#include "vbg_area.h"
#include "vbg_policy.h"
#include "vbg_trace.h"

/* A running vCPU's bits that it does not serve are taken after this. */
#define VBG_LATE_NS	(10 * NSEC_PER_MSEC)

/* Interrupt of each key; changed under vbg_irqs_mutex, read under RCU. */
static struct vbg_irq __rcu *vbg_keyed[VB_MAX_KEYS];

static bool vbg_redirect_ready;		/* the tracepoints are on */

/* As if it were an interrupt: NAPI runs behind it. Context: process. */
static int vbg_sweep_irq(struct vbg_irq *i)
{
	int err;

	local_bh_disable();
	local_irq_disable();
	rcu_read_lock();
	err = vb_fault("sweep") ? -EBUSY : vbg_serve(i, VBG_SERVE_SWEEP);
	rcu_read_unlock();
	local_irq_enable();
	local_bh_enable();
	return err;
}

#define VBG_SWEEP_PATIENCE	(2 * HZ)	/* jiffies */

/*
 * Who is in the handler has lost its CPU with it, for longer than we wait: the
 * interrupt comes once more, and handle_edge_irq() has the handler called again
 * for it, by whoever is in it (see vbg_serve.c).
 */
static void vbg_sweep_by_interrupt(struct vbg_irq *i)
{
	struct irq_desc *desc;
	struct irq_data *d;
	unsigned long flags;

	/* Descriptors are freed behind a grace period (free_desc()). */
	rcu_read_lock();
	d = irq_get_irq_data(i->irq);
	if (!d)
		goto out;
	desc = irq_data_to_desc(d);
	raw_spin_lock_irqsave(&desc->lock, flags);
	if (desc->action && desc->action->dev_id == i->dev_id &&
	    irqd_is_started(d))
		vbg_retrigger(i, desc);
	raw_spin_unlock_irqrestore(&desc->lock, flags);
	vbg_stat_inc(VBG_S_SWEEPS_LATE);
out:
	rcu_read_unlock();
}

/*
 * @end: jiffies until which it is tried again. Context: process. Return: to be
 * tried again; false: its queue was looked at, or will be.
 */
static bool vbg_sweep_again(struct vbg_irq *i, unsigned long end)
{
	if (vbg_sweep_irq(i) != -EBUSY)
		return false;
	if (time_before(jiffies, end))
		return true;
	vbg_sweep_by_interrupt(i);
	return false;
}

/* ---- keys ---- */

/**
 * vbg_redirect_adopt() - give an interrupt a key number
 * @i: new entry of the table, seen by nobody yet
 * Context: under vbg_irqs_mutex.
 */
void vbg_redirect_adopt(struct vbg_irq *i)
{
	int n;

	lockdep_assert_held(&vbg_irqs_mutex);
	i->key_nr = -1;
	i->fresh = true;
	if (!i->handler)
		return;
	for (n = 0; n < VB_MAX_KEYS; n++)
		if (!rcu_access_pointer(vbg_keyed[n]))
			break;
	if (n == VB_MAX_KEYS)
		return;
	i->key_nr = n;
	rcu_assign_pointer(vbg_keyed[n], i);
}

static void vbg_key_store(const struct vbg_irq *i, u64 key)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);

	if (!a || i->key_nr < 0)
		return;
	/* A hint, which needs no order. */
	assign_bit(i->key_nr, (unsigned long *)a->redirect->transmit,
		   key && i->transmit);
	WRITE_ONCE(a->redirect->key[i->key_nr], key);
}

/**
 * vbg_redirect_unkey() - take the key away
 * @i: entry that leaves the table: no probe stores a key that begins later
 * Context: under vbg_irqs_mutex.
 */
void vbg_redirect_unkey(const struct vbg_irq *i)
{
	preempt_disable();
	vbg_key_store(i, 0);
	preempt_enable();
}

/**
 * vbg_redirect_forget() - take the key number away again
 * @i: entry that leaves the table
 *
 * The probes must find it for a grace period more: a key that one of them
 * stores after this has to follow the next move (vbg_redirect_unkey()).
 * Context: under vbg_irqs_mutex. The host may still be about to set its bit:
 * see vbg_redirect_last_look(), which must follow before the number is given
 * to another interrupt.
 */
void vbg_redirect_forget(struct vbg_irq *i)
{
	lockdep_assert_held(&vbg_irqs_mutex);
	if (i->key_nr < 0)
		return;
	WRITE_ONCE(i->leaving, true);
	vbg_redirect_unkey(i);
	RCU_INIT_POINTER(vbg_keyed[i->key_nr], NULL);
}

static bool vbg_redirect_on(void)
{
	return READ_ONCE(vbg_redirect_ready) && vbg_mode() == VBG_MODE_REDIRECT;
}

/* Key of an interrupt that goes to @cpu by @vector, 0: none. */
static u64 vbg_key_of(const struct vbg_irq *i, const struct vbg_area *a,
		      int cpu, u32 vector, u32 dest)
{
	int slot;

	/* Nor one that goes: vbg_unkey_cpu(). */
	if (!a || cpu < 0 || cpu >= nr_cpu_ids || !cpu_active(cpu))
		return 0;
	slot = READ_ONCE(a->slot[cpu]);
	if (slot < 0 || !vbg_redirect_on() || !i->known || i->remapped ||
	    vbg_is_lazy(i) || READ_ONCE(i->leaving) ||
	    vector < FIRST_EXTERNAL_VECTOR ||
	    vector == MANAGED_IRQ_SHUTDOWN_VECTOR)
		return 0;
	return vb_key_make(vector, i->logical, dest, slot);
}

/*
 * Tracepoint vector_config. Context: vector_lock and, but for the first time,
 * desc->lock held, interrupts off.
 */
void vbg_redirect_config(void *data, unsigned int irq, unsigned int vector,
			 unsigned int cpu, unsigned int apicdest)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);
	struct vbg_irq *i = vbg_irq_find(irq);

	if (!i)
		return;
	WRITE_ONCE(i->where, cpu);
	vbg_key_store(i, vbg_key_of(i, a, cpu, vector, apicdest));
}

/* Tracepoint vector_clear. Context: as above. */
void vbg_redirect_clear(void *data, unsigned int irq, unsigned int vector,
			unsigned int cpu, unsigned int prev_vector,
			unsigned int prev_cpu)
{
	struct vbg_irq *i = vbg_irq_find(irq);

	if (!i)
		return;
	/* The next one with this number need not be the same interrupt. */
	WRITE_ONCE(i->known, false);
	vbg_key_store(i, 0);
}

/*
 * Does an interrupt remapping unit stand between the device and the local
 * APICs? Then the message says nothing about the destination.
 */
static bool vbg_is_remapped(struct irq_data *d)
{
	struct irq_data *parent = d->parent_data;

	return !parent || parent->parent_data ||
	       !parent->chip || strcmp(parent->chip->name, "APIC");
}

/* Where it goes, and the key of that. Context: its descriptor is locked. */
static u64 vbg_key_read(struct vbg_irq *i, const struct vbg_area *a,
			struct irq_data *d)
{
	struct msi_msg msg;

	WRITE_ONCE(i->where, vbg_irq_where(i, NULL));
	/* Its message may be of another size. */
	if (vbg_facts_differ(VBG_F_REDIRECT) || !irq_data_get_msi_desc(d))
		return 0;
	i->remapped = vbg_is_remapped(d);
	get_cached_msi_msg(i->irq, &msg);
	i->logical = vb_msi_is_logical(msg.address_lo);
	i->known = true;
	return vbg_key_of(i, a, i->where, msg.arch_data.vector,
			  vb_msi_dest(msg.address_lo, msg.address_hi));
}

/* @a: the area, or NULL: only what we need ourselves. */
static void vbg_key_refresh(struct vbg_irq *i, const struct vbg_area *a)
{
	struct irq_data *d = irq_get_irq_data(i->irq);
	struct irq_desc *desc;
	unsigned long flags;
	u64 key = 0;

	/* Freed since the scan, and its key with it (vbg_redirect_clear()). */
	if (!d)
		return;
	desc = irq_data_to_desc(d);
	raw_spin_lock_irqsave(&desc->lock, flags);
	i->known = false;
	/* One that the probes do not find (no memory) would not follow. */
	if (desc->action && desc->action->dev_id == i->dev_id &&
	    irqd_is_activated(d) && vbg_irq_find(i->irq) == i)
		key = vbg_key_read(i, a, d);
	vbg_key_store(i, key);
	raw_spin_unlock_irqrestore(&desc->lock, flags);
}

/* May the host give interrupts to this CPU? */
static bool vbg_redirect_cpu_ok(int cpu)
{
	return cpu_active(cpu) && !vbg_policy_isolated(cpu) &&
	       vbg_redirect_on();
}

static void vbg_vector_store(struct vbg_area *a, int cpu, u32 vector)
{
	int slot = READ_ONCE(a->slot[cpu]);

	if (slot >= 0)
		WRITE_ONCE(a->guest[slot].redirect_vector, vector);
}

/* Context: CPUs do not come or go, or nothing is redirected any more. */
static void vbg_redirect_publish(const struct vbg_table *t)
{
	struct vbg_area *a;
	int n, cpu, nr_keys = 0;

	rcu_read_lock_sched();
	a = rcu_dereference_sched(vbg_active);
	for_each_possible_cpu(cpu)
		if (a)
			vbg_vector_store(a, cpu, vbg_redirect_cpu_ok(cpu) ?
					 X86_PLATFORM_IPI_VECTOR : 0);
	for (n = 0; a && n < VB_MAX_KEYS; n++)
		if (!rcu_access_pointer(vbg_keyed[n]) &&
		    READ_ONCE(a->redirect->key[n]))
			WRITE_ONCE(a->redirect->key[n], 0);
	for (n = 0; t && n < t->nr; n++) {
		nr_keys = max(nr_keys, t->irqs[n]->key_nr + 1);
		if (!vb_fault("refresh"))
			vbg_key_refresh(t->irqs[n], a);
	}
	if (a)
		WRITE_ONCE(a->redirect->nr_keys, nr_keys);
	rcu_read_unlock_sched();
}

/**
 * vbg_redirect_refresh() - bring the host's tables up to date
 *
 * The keys follow each move by themselves; this is for what else changes: a
 * new area, CPUs, interrupts, the parameter.
 * Context: the maintenance work item, under vbg_irqs_mutex; sleeps.
 * Return: false: to be called again soon, as a handler was running, or as CPUs
 * come or go. That is not waited for: one that goes may itself wait for I/O
 * (blk_mq_hctx_notify_offline()) that only the sweep of an area that has gone
 * serves, by this work item.
 */
bool vbg_redirect_refresh(void)
{
	const struct vbg_table *t = rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex));
	bool done = true;
	int n;

	if (!cpus_read_trylock())
		return false;
	vbg_redirect_publish(t);
	cpus_read_unlock();
	/*
	 * Who had the number before may have left a key behind for a moment:
	 * what was redirected by that is looked for. A handler that runs may
	 * have looked before that came.
	 */
	for (n = 0; t && n < t->nr; n++) {
		if (!t->irqs[n]->fresh)
			continue;
		t->irqs[n]->fresh = vbg_sweep_irq(t->irqs[n]) == -EBUSY;
		done &= !t->irqs[n]->fresh;
	}
	return done;
}

/* ---- pending bits ---- */

/*
 * Looks again for what was left: an idle vCPU has no tick. All that it does is
 * to interrupt: the look comes with that (local_timer_entry), and starts it
 * again if it has to leave something again.
 */
static DEFINE_PER_CPU(struct hrtimer, vbg_retry_timer);
/* Started since the last look of this CPU began. */
static DEFINE_PER_CPU(bool, vbg_retry_new);

/* A handler that runs elsewhere; a vCPU that seems to leave. */
#define VBG_RETRY_BUSY_NS	(250 * NSEC_PER_USEC)
#define VBG_RETRY_LEAVING_NS	NSEC_PER_MSEC

static void vbg_look_again(u64 ns)
{
	__this_cpu_write(vbg_retry_new, true);
	hrtimer_start(this_cpu_ptr(&vbg_retry_timer), ns_to_ktime(ns),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/*
 * A tick's look that has started it may last longer than it does, or lose its
 * CPU: then it expires in that same interrupt, and another one is needed.
 */
static enum hrtimer_restart vbg_retry_fn(struct hrtimer *timer)
{
	if (!__this_cpu_read(vbg_retry_new))
		return HRTIMER_NORESTART;
	hrtimer_forward(timer, ktime_get(), ns_to_ktime(VBG_RETRY_BUSY_NS));
	return HRTIMER_RESTART;
}

/* Again later, by us: the bit, then the slot's. */
static void vbg_put_back(struct vbg_area *a, int slot, int n)
{
	if (test_and_set_bit(n, (unsigned long *)a->pending[slot].bits))
		vbg_stat_inc(VBG_S_MERGED);
	set_bit(slot, (unsigned long *)a->redirect->pending_slots);
	vbg_stat_inc(VBG_S_PUT_BACK);
}

static void vbg_take_bit(struct vbg_area *a, int n, int me,
			 enum vbg_serve_kind kind)
{
	struct vbg_irq *i = rcu_dereference_sched(vbg_keyed[n]);
	int err = -ENOENT;

	if (i)
		err = vb_fault("busy") ? -EBUSY : vbg_serve(i, kind);
	if (err == -EBUSY) {
		vbg_put_back(a, me, n);
		vbg_look_again(VBG_RETRY_BUSY_NS);
		vb_fault_delay("busy", 2 * VBG_RETRY_BUSY_NS);
	} else if (err) {
		vbg_stat_inc(VBG_S_DROPPED);
	} else {
		vbg_stat_inc(kind == VBG_SERVE_OWN ? VBG_S_SERVED :
						     VBG_S_STOLEN);
	}
}

/* Some of a slot's bits are taken; several may do so at once. */
static void vbg_taken(struct vbg_area *a, int slot)
{
	WRITE_ONCE(a->wait[slot].takes, READ_ONCE(a->wait[slot].takes) + 1);
}

/*
 * Serve what is pending in a slot, from here, slot @me (or any, if we have
 * none). Context: as vbg_serve().
 */
static void vbg_take_slot(struct vbg_area *a, int slot, int me,
			  enum vbg_serve_kind kind)
{
	unsigned long bits, *word;
	unsigned int w, b;

	clear_bit(slot, (unsigned long *)a->redirect->pending_slots);
	/* Pairs with the host: a bit set after our exchange sets that again. */
	smp_mb__after_atomic();
	WRITE_ONCE(a->wait[slot].seen, 0);
	vbg_taken(a, slot);
	for (w = 0; w < VB_MAX_KEYS / 64; w++) {
		word = (unsigned long *)&a->pending[slot].bits[w];
		bits = READ_ONCE(*word) ? xchg(word, 0) : 0;
		for_each_set_bit(b, &bits, 64)
			vbg_take_bit(a, w * 64 + b, me, kind);
	}
}

/*
 * Is it for this CPU to take the bits of a slot? Not if whoever comes after it
 * has more time, or if they belong to another one that runs; but then they
 * must not wait for ever.
 */
static bool vbg_may_take(struct vbg_area *a, const struct vbg_cpu *c, int slot,
			 bool own, u64 now)
{
	bool mine = own || (READ_ONCE(a->host[slot].state) != VB_VCPU_RUNNING &&
			    !vbg_policy_isolated(smp_processor_id()));
	u64 seen = READ_ONCE(a->wait[slot].seen);

	if (mine && !vbg_leaves_soon(c, now))
		return true;
	/* It may stay after all, or sleep: then nobody comes after us. */
	if (mine)
		vbg_look_again(VBG_RETRY_LEAVING_NS);
	if (!seen || now < seen) {
		seen = now;
		WRITE_ONCE(a->wait[slot].seen, now);
	}
	if (now - seen < VBG_LATE_NS)
		return false;
	vbg_stat_inc(VBG_S_LATE);
	return true;
}

/**
 * vbg_redirect_look() - serve what the host has set pending
 * @c: what we know of this CPU
 * @cpu: this CPU
 * @now: vbg_clock()
 * Context: hard interrupt.
 */
void vbg_redirect_look(struct vbg_cpu *c, int cpu, u64 now)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);
	unsigned int w, b, slot;
	unsigned long bits;
	int me;

	__this_cpu_write(vbg_retry_new, false);
	if (!a)
		return;
	me = READ_ONCE(a->slot[cpu]);
	if (me < 0)
		return;
	for (w = 0; w * 64 < a->nr_slots; w++) {
		bits = READ_ONCE(a->redirect->pending_slots[w]);
		if (likely(!bits))
			continue;
		for_each_set_bit(b, &bits, 64) {
			slot = w * 64 + b;
			if (slot >= a->nr_slots)
				break;
			if (vbg_may_take(a, c, slot, slot == me, now))
				vbg_take_slot(a, slot, me, slot == me ?
					      VBG_SERVE_OWN : VBG_SERVE_STEAL);
		}
	}
	if (unlikely(now >= READ_ONCE(a->stuck_next)))
		vbg_stuck_look(a, cpu, now);
}

/**
 * vbg_redirect_overtaken() - the interrupt itself has come
 * @i: interrupt whose handler is about to run on this CPU
 * @cpu: this CPU
 *
 * What the host posted here meanwhile needs no pass of its own: its work was
 * in the ring before, and the handler looks there after this.
 * Context: hard interrupt.
 */
void vbg_redirect_overtaken(const struct vbg_irq *i, int cpu)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);
	int slot = a ? READ_ONCE(a->slot[cpu]) : -1;
	unsigned long *word;

	if (slot < 0 || i->key_nr < 0)
		return;
	word = (unsigned long *)a->pending[slot].bits;
	if (!test_bit(i->key_nr, word) || !test_and_clear_bit(i->key_nr, word))
		return;
	vbg_taken(a, slot);
	vbg_stat_inc(VBG_S_OVERTAKEN);
}

/* ---- a CPU goes ---- */

/* Return: nothing is pending here any more. */
static bool vbg_empty_cpu(int cpu)
{
	struct vbg_area *a;
	bool empty = true;
	int slot;

	local_bh_disable();
	local_irq_disable();
	a = rcu_dereference_sched(vbg_active);
	slot = a ? READ_ONCE(a->slot[cpu]) : -1;
	if (slot >= 0) {
		vbg_vector_store(a, cpu, 0);
		smp_mb();	/* the host sets the bit and reads that again */
		vbg_take_slot(a, slot, slot, VBG_SERVE_OWN);
		empty = bitmap_empty((unsigned long *)a->pending[slot].bits,
				     VB_MAX_KEYS);
	}
	local_irq_enable();
	local_bh_enable();
	return empty;
}

/*
 * No key of that CPU is left, nor comes anew: it has not been active for a grace
 * period (sched_cpu_deactivate()), and no refresh runs while CPUs go. Those that
 * find another CPU get a key with the next refresh.
 */
static void vbg_unkey_cpu(int cpu)
{
	const struct vbg_table *t;
	int n;

	rcu_read_lock_sched();
	t = rcu_dereference_sched(vbg_table);
	for (n = 0; t && n < t->nr; n++)
		if (READ_ONCE(t->irqs[n]->where) == cpu)
			vbg_key_refresh(t->irqs[n], NULL);
	rcu_read_unlock_sched();
}

/**
 * vbg_redirect_cpu_off() - this CPU goes offline and gets none any more
 * @cpu: this CPU
 *
 * Not before its bits are served: afterwards nothing makes anybody look. (If
 * that takes longer than a handler ever should, the next look of any CPU does.)
 * Context: process, sleeps.
 */
void vbg_redirect_cpu_off(int cpu)
{
	unsigned long end = jiffies + 2 * HZ;

	vbg_unkey_cpu(cpu);
	while ((!vbg_empty_cpu(cpu) || vb_fault("offline")) &&
	       time_before(jiffies, end))
		usleep_range(200, 500);
	vb_fault_wait("cpu_off");
	hrtimer_cancel(&per_cpu(vbg_retry_timer, cpu));
}

/* ---- the end ---- */

/**
 * vbg_redirect_last_look() - an interrupt leaves the table
 * @i: its key has been taken away (vbg_redirect_forget(), and a grace period
 *	later vbg_redirect_unkey()), and no probe finds it any more
 *
 * What the host had set for it before is served; its queue may live on for a
 * while (a driver that is being unbound waits for its requests).
 * Context: process, sleeps.
 */
void vbg_redirect_last_look(struct vbg_irq *i)
{
	unsigned long end = jiffies + VBG_SWEEP_PATIENCE;

	while (vbg_sweep_again(i, end))
		usleep_range(200, 500);
}

static bool vbg_sweep_once(const struct vbg_table *t, unsigned long end)
{
	bool again = false;
	int n;

	for (n = 0; t && n < t->nr; n++)
		if (t->irqs[n]->key_nr >= 0)
			again |= vbg_sweep_again(t->irqs[n], end);
	return again;
}

/**
 * vbg_redirect_sweep() - look at every queue once
 *
 * For when the pending bits are gone, or may be: the area is dropped, the
 * machine has moved to another host. What is in progress is looked at again.
 * Context: process, sleeps; not under vbg_irqs_mutex.
 */
void vbg_redirect_sweep(void)
{
	unsigned long end = jiffies + VBG_SWEEP_PATIENCE;
	bool again;

	mutex_lock(&vbg_irqs_mutex);
	do {
		again = vbg_sweep_once(rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex)), end);
		if (again)
			msleep(1);
	} while (again);
	mutex_unlock(&vbg_irqs_mutex);
	this_cpu_inc(vbg_stats.v[VBG_S_SWEEPS]);
}

/* The probes are there: keys may be published. */
void vbg_redirect_start(void)
{
	WRITE_ONCE(vbg_redirect_ready, true);
}

/**
 * vbg_redirect_stop() - nothing is to be redirected any more
 *
 * Takes all keys away at once; who drops the area then waits for the host and
 * sweeps. Context: process.
 */
void vbg_redirect_stop(void)
{
	mutex_lock(&vbg_irqs_mutex);
	WRITE_ONCE(vbg_redirect_ready, false);
	vbg_redirect_publish(rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex)));
	mutex_unlock(&vbg_irqs_mutex);
}

bool vbg_redirect_offered(void)
{
	const struct vbg_area *a;
	bool offered;

	rcu_read_lock_sched();
	a = rcu_dereference_sched(vbg_active);
	offered = a && READ_ONCE(a->hdr->host_features) & VB_HF_REDIRECT;
	rcu_read_unlock_sched();
	return offered;
}

/*
 * Does the host know an interrupt? Between two keys, after its CPU has changed,
 * it does not for up to a second. Context: RCU-sched read side.
 */
bool vbg_redirect_has_key(const struct vbg_irq *i)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);

	return a && i->key_nr >= 0 &&
	       READ_ONCE(a->redirect->key[i->key_nr]) & VB_KEY_VALID;
}

/* How an interrupt is redirected, or why not. */
const char *vbg_redirect_state(const struct vbg_irq *i)
{
	if (vbg_facts_differ(VBG_F_SERVE) || vbg_facts_differ(VBG_F_REDIRECT))
		return "off";
	if (!i->handler)
		return "threaded";
	if (i->remapped)
		return "remapped";
	if (i->key_nr < 0)
		return "no_key";
	if (!vbg_redirect_on())
		return "off";
	if (vbg_is_lazy(i))
		return "transmit";
	return i->logical ? "key_logical" : "key";
}

/**
 * vbg_redirect_key_cpu() - whom the host takes an interrupt to be for
 * @i: interrupt
 * Context: any.
 * Return: CPU of the key in the shared area; -1: there is none.
 */
int vbg_redirect_key_cpu(const struct vbg_irq *i)
{
	const struct vbg_area *a;
	int cpu, found = -1;
	u64 key = 0;

	rcu_read_lock_sched();
	a = rcu_dereference_sched(vbg_active);
	if (a && i->key_nr >= 0)
		key = READ_ONCE(a->redirect->key[i->key_nr]);
	for_each_possible_cpu(cpu)
		if (key & VB_KEY_VALID &&
		    READ_ONCE(a->slot[cpu]) == (int)vb_key_slot(key))
			found = cpu;
	rcu_read_unlock_sched();
	return found;
}

/**
 * vbg_redirect_transmit() - what the host is told that an interrupt is for
 * @i: interrupt
 * Context: any.
 * Return: it only tells that something has been sent (vb_redirect.transmit).
 */
bool vbg_redirect_transmit(const struct vbg_irq *i)
{
	const struct vbg_area *a;
	bool transmit;

	rcu_read_lock_sched();
	a = rcu_dereference_sched(vbg_active);
	transmit = a && i->key_nr >= 0 &&
		test_bit(i->key_nr, (unsigned long *)a->redirect->transmit);
	rcu_read_unlock_sched();
	return transmit;
}

void vbg_redirect_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vb_hrtimer_setup(&per_cpu(vbg_retry_timer, cpu), vbg_retry_fn,
				 CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}

/* The probes are off: nobody starts one any more. Context: process. */
void vbg_redirect_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		hrtimer_cancel(&per_cpu(vbg_retry_timer, cpu));
}
