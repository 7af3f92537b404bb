// SPDX-License-Identifier: GPL-2.0
/*
 * When is a guest done that does not say so? (CoINT, III.A and IV.)
 *
 * From an interrupt until its driver has nothing left to do a virtqueue does
 * not want another one, and its ring says so (core/rings.h). Where rings are:
 * vbh_ring_table.c. They are user addresses of the VM's process, read while its
 * own memory is loaded, as its threads would; what is not there is not waited
 * for. Whatever a process writes into its rings is only about its own vCPUs.
 *
 * Read in four places, the last three with the vCPU's thread as current:
 *
 * - where an interrupt is delivered, if that is in the VM's process or in
 *   vhost's worker, which works with the memory of that process: of which rings
 *   is it (vbh_rings_irq())? The vCPU is judged by these alone then.
 * - where it loses its CPU (vbh_rings_put()). Perhaps under the run-queue
 *   lock, but before the switch to another mm.
 * - when it tells a device what it has sent (vbh_kicks.c);
 * - while it is boosted as a holder, every now and then, in an hrtimer on the
 *   CPU where it runs. In hard interrupt context current and the mm that is
 *   loaded belong together (switches are made with interrupts off). The
 *   other way would be the worker of the boosts: it would have to hold the mm
 *   and to load it, and to take the CPU from somebody each time.
 *
 * Who goes meanwhile: a look runs with preemption or interrupts off. That is a
 * read side, also for what a closed device or an ended process leaves
 * (kfree_rcu()) and for the vCPU, which is freed a grace period after the hooks
 * have lost it. The timer is cancelled before that, when the last boost has
 * ended: then a tick finds none and does not start it again. The thread's mm is
 * its own while it runs, or no more when it ends (exit_mm()).
 *
 * pagefault_disable() makes of a page that is not present an error at once,
 * without any lock; perf and BPF read user memory in the same contexts.
 */
#include <linux/kvm_host.h>

#include "../compat/hrtimer.h"
#include "../core/rings.h"
#include "vbh.h"
#include "vbh_rings.h"

/* The first look in a boost, and the longest until the next, us. */
#define VBH_RINGS_FIRST_US	100
#define VBH_RINGS_US		200
/* And after the device was told: NAPI is about to end, or has. */
#define VBH_RINGS_KICK_US	10

static enum vb_rings vbh_ring_look(const struct vbh_ring *r, u64 features)
{
	u64 avail = READ_ONCE(r->avail), used = READ_ONCE(r->used);
	u16 flags = 0, used_event = 0, used_idx = 0;
	u32 num = READ_ONCE(r->num);

	if (!vb_ring_is_legible(features))
		return VB_RINGS_UNKNOWN;
	if (features & VB_RING_F_EVENT_IDX ?
	    vbh_peek(used_event, avail + VB_RING_USED_EVENT(num)) ||
	    vbh_peek(used_idx, used + VB_RING_USED_IDX) :
	    vbh_peek(flags, avail + VB_RING_AVAIL_FLAGS))
		return VB_RINGS_UNKNOWN;
	return vb_ring_state(features, num, flags, used_event, used_idx);
}

/* @which: a bit for each; 0: all. */
static enum vb_rings vbh_rings_read(const struct vbh_ring_mm *m, u32 which)
{
	enum vb_rings one, all = VB_RINGS_OPEN;
	bool any = false;
	int i;

	if (!m || READ_ONCE(m->incomplete))
		return VB_RINGS_UNKNOWN;
	for (i = 0; i < VBH_MM_RINGS && all != VB_RINGS_HELD; i++) {
		const struct vbh_ring_dev *dev = &m->dev[i / VBH_DEV_RINGS];
		const struct vbh_ring *r = &dev->ring[i % VBH_DEV_RINGS];

		if (!READ_ONCE(r->avail) || (which && !(which & BIT(i))))
			continue;
		any = true;
		one = vbh_ring_look(r, READ_ONCE(dev->features));
		all = vb_rings_join(all, one);
	}
	return any ? all : VB_RINGS_UNKNOWN;
}

/*
 * Of the VM's process, if that is the one whose memory is loaded; NULL: it is
 * not, or there are none. Whoever ends a VM loads its vCPUs for that.
 */
static struct vbh_ring_mm *vbh_rings_mine(const struct vbh_vcpu *v)
{
	if (!current->mm || current->mm != v->vm->mm)
		return NULL;
	return vbh_ring_mm_find(current->mm);
}

/*
 * What has been put into the transmit rings that belong to the receive rings of
 * its interrupt, so far. @m: of its process, whose memory can be read; NULL:
 * none. Context: preemption disabled.
 */
static u32 vbh_rings_sent(const struct vbh_vcpu *v, const struct vbh_ring_mm *m)
{
	u32 which = (READ_ONCE(v->irq_rings) & VBH_RINGS_RECEIVE) << 1, sent = 0;
	int i;

	if (!m || !which)
		return 0;
	for (i = 0; i < VBH_MM_RINGS; i++) {
		const struct vbh_ring *r =
			&m->dev[i / VBH_DEV_RINGS].ring[i % VBH_DEV_RINGS];
		u64 avail = READ_ONCE(r->avail);
		u16 idx;

		if (avail && which & BIT(i) &&
		    !vbh_peek(idx, avail + VB_RING_AVAIL_IDX))
			sent += idx;
	}
	return sent;
}

static u64 vbh_rings_cycles(u64 us)
{
	return us * tsc_khz / MSEC_PER_SEC;
}

/* Open as they are, is it still at work? @timer: nobody looks later than that. */
static bool vbh_rings_finishing(struct vbh_vcpu *v,
				const struct vbh_ring_mm *m, bool timer)
{
	u32 sent = vbh_rings_sent(v, m), mine = READ_ONCE(v->irq_rings);
	u64 irq = READ_ONCE(v->irq_tsc);
	const struct vb_serve_look look = {
		.irq = irq,
		.told = v->kicked_for == irq && v->kicked_sent == sent,
		.answered = READ_ONCE(v->answered),
		.now = rdtsc(),
		.moment = vbh_rings_cycles(VBH_RINGS_FIRST_US),
		.sent = sent != READ_ONCE(v->irq_sent),
		.prompt = timer,
	};

	/* Behind what has been sent comes nothing. */
	if (mine && !(mine & VBH_RINGS_RECEIVE))
		return false;
	return vb_serve_goes_on(&v->serve, &look);
}

/* Context: preemption disabled; current is the vCPU's thread. */
static enum vb_rings vbh_rings_look(struct vbh_vcpu *v, bool timer)
{
	const struct vbh_ring_mm *m = vbh_rings_mine(v);
	enum vb_rings rings = vbh_rings_read(m, READ_ONCE(v->irq_rings));

	if (rings == VB_RINGS_HELD)
		vb_serve_held(&v->serve);
	else if (rings == VB_RINGS_OPEN && vbh_rings_finishing(v, m, timer))
		rings = VB_RINGS_HELD;
	/*
	 * An interrupt that is delivered between the reading and this is lost
	 * to vbh_rings_irq(): no holder until the next look. What is boosted
	 * for an interrupt that waits does not go by this.
	 */
	WRITE_ONCE(v->rings, rings);
	return rings;
}

/**
 * vbh_rings_allow() - do the rings that a vCPU serves allow interrupts?
 * @v: vCPU; if it is not known which these are, all of the VM
 *
 * As of the last look, unless an interrupt was delivered to the vCPU since.
 * Context: any.
 * Return: they do; false when it is not known.
 */
bool vbh_rings_allow(const struct vbh_vcpu *v)
{
	return READ_ONCE(v->rings) == VB_RINGS_OPEN;
}

/*
 * The signal that a device has just given, or is about to; 0: none, or it
 * cannot be seen. Without event index it never can: the driver sets the flag
 * when it has got the interrupt.
 */
static u32 vbh_ring_signal(const struct vbh_ring *r, u64 features)
{
	u64 avail = READ_ONCE(r->avail), used = READ_ONCE(r->used);
	u16 used_event, used_idx;
	u32 num = READ_ONCE(r->num);

	if (!avail || !num || !(features & VB_RING_F_EVENT_IDX) ||
	    !vb_ring_is_legible(features) ||
	    vbh_peek(used_event, avail + VB_RING_USED_EVENT(num)) ||
	    vbh_peek(used_idx, used + VB_RING_USED_IDX))
		return 0;
	return vb_ring_signal(used_idx, used_event);
}

/*
 * Of which rings is an interrupt that is being delivered? Of those, @among
 * these, that have signalled since this was last asked. Two devices at the same
 * moment may be taken for each other, also a disk for a ring that is just about
 * to signal: then a vCPU goes by a wrong ring, or a ring too many, for that once.
 *
 * Context: preemption disabled. Return: a bit for each, 0: it is not known.
 */
static u32 vbh_rings_signalled(struct vbh_ring_mm *m, u32 among)
{
	u32 which = 0, signal;
	int i;

	if (!m || READ_ONCE(m->incomplete))
		return 0;
	for (i = 0; i < VBH_MM_RINGS; i++) {
		struct vbh_ring_dev *dev = &m->dev[i / VBH_DEV_RINGS];
		struct vbh_ring *r = &dev->ring[i % VBH_DEV_RINGS];

		if (!(among & BIT(i)) || !READ_ONCE(r->avail))
			continue;
		signal = vbh_ring_signal(r, READ_ONCE(dev->features));
		if (vb_signal_is_new(signal, READ_ONCE(r->told))) {
			WRITE_ONCE(r->told, signal);
			which |= BIT(i);
		}
	}
	return which;
}

/**
 * vbh_is_boosted_holder() - does a vCPU have the CPU for as long as it serves?
 * @v: vCPU; who got the CPU for an interrupt becomes a holder with that
 * Context: any.
 * Return: it does.
 */
bool vbh_is_boosted_holder(const struct vbh_vcpu *v)
{
	enum vbh_boost_count why = READ_ONCE(v->boost.why);

	return READ_ONCE(v->boost.state) != VBH_BOOST_IDLE &&
	       (why == VBH_B_HOLDER ||
		(vbh_is_for_irq(why) && !vbh_says_itself(v)));
}

/*
 * A device has sent what was in transmit rings, @which: who is boosted for a
 * receive ring that belongs to one of them, has emptied it and has sent something
 * since, has answered. Context: preemption disabled.
 */
static void vbh_rings_answered(const struct vbh_vm *vm,
			       const struct vbh_ring_mm *m, u32 which)
{
	u32 mine, receive = (which >> 1) & VBH_RINGS_RECEIVE;
	struct vbh_vcpu *v;
	u64 irq;

	list_for_each_entry_rcu(v, &vm->vcpus, list,
				rcu_read_lock_sched_held()) {
		/* One that comes behind this is not answered. */
		irq = READ_ONCE(v->irq_tsc);
		mine = READ_ONCE(v->irq_rings);
		if (!(mine & receive) || !vbh_is_boosted_holder(v) ||
		    vbh_rings_sent(v, m) == READ_ONCE(v->irq_sent) ||
		    vbh_rings_read(m, mine) != VB_RINGS_OPEN)
			continue;
		WRITE_ONCE(v->answered, irq);
		vbh_boost_end(v, VBH_B_END_DONE);
	}
}

/**
 * vbh_rings_irq() - an interrupt for a vCPU: there is something to do again
 * @v: vCPU
 * @fresh: what it has been sent before may still be in the works
 *
 * Who delivers it is vhost's worker, which has the VM's mm, or somebody else.
 *
 * Context: preemption disabled, perhaps with interrupts off.
 * Return: it may be more than that something has been transmitted.
 */
bool vbh_rings_irq(struct vbh_vcpu *v, bool fresh)
{
	struct vbh_ring_mm *m = vbh_rings_mine(v);
	u32 seen = READ_ONCE(v->irq_seen), which, before;

	/* Mostly those that were this vCPU's before: others need not be read. */
	which = vbh_rings_signalled(m, seen) ?: vbh_rings_signalled(m, ~seen);
	if (which & ~seen)
		WRITE_ONCE(v->irq_seen, seen | which);
	if (which & ~VBH_RINGS_RECEIVE && atomic_read(&v->vm->nr_boosts))
		vbh_rings_answered(v->vm, m, which);
	/*
	 * Two at once may lose a bit, and a look just now judges the interrupt
	 * before by these: then it is done a little too early, or too late.
	 */
	before = READ_ONCE(v->irq_rings);
	if (fresh && READ_ONCE(v->rings) != VB_RINGS_OPEN)
		WRITE_ONCE(v->irq_rings, before && which ? before | which : 0);
	else
		WRITE_ONCE(v->irq_rings, which);
	WRITE_ONCE(v->irq_sent, vbh_rings_sent(v, m));
	if (READ_ONCE(v->rings) == VB_RINGS_OPEN)
		WRITE_ONCE(v->rings, VB_RINGS_HELD);
	return !which || which & VBH_RINGS_RECEIVE;
}

/**
 * vbh_rings_put() - a vCPU that got an interrupt loses its CPU
 * @v: vCPU; current is its thread
 * Context: put hook, perhaps under the run-queue lock.
 */
void vbh_rings_put(struct vbh_vcpu *v)
{
	if (vbh_rings_look(v, false) != VB_RINGS_OPEN)
		return;
	atomic64_inc(&v->vm->boosts[VBH_B_NO_HOLDER]);
	if (vbh_is_boosted_holder(v))
		vbh_boost_end(v, VBH_B_END_DONE);
}

static void vbh_rings_start(struct vbh_vcpu *v)
{
	u64 irq = READ_ONCE(v->irq_tsc), from = irq, next, ns;
	unsigned int least = VBH_RINGS_FIRST_US;

	/* A TSC that Linux could not calibrate. */
	if (!tsc_khz)
		return;
	if (irq && v->kicked_for == irq) {
		from = v->kicked;
		least = VBH_RINGS_KICK_US;
	}
	next = vb_serve_next(&v->serve, irq, from, rdtsc());
	ns = clamp_t(u64, div_u64(next * USEC_PER_SEC, tsc_khz),
		     least * NSEC_PER_USEC, VBH_RINGS_US * NSEC_PER_USEC);
	hrtimer_start(&v->rings_timer, ns_to_ktime(ns),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/**
 * vbh_rings_load() - a vCPU has got a CPU
 * @v: vCPU; current is its thread
 * Context: load hook.
 */
void vbh_rings_load(struct vbh_vcpu *v)
{
	/*
	 * As seen when it lost its CPU, or there is nothing to be read. What
	 * came since counts, too: such boosts are for that.
	 */
	if (vbh_is_boosted_holder(v) &&
	    (READ_ONCE(v->rings) == VB_RINGS_HELD ||
	     vbh_is_for_irq(READ_ONCE(v->boost.why))))
		vbh_rings_start(v);
}

/* Of a boosted holder. Context: interrupts off; current is its thread. */
static void vbh_rings_step(struct vbh_vcpu *v)
{
	switch (vbh_rings_look(v, true)) {
	case VB_RINGS_OPEN:
		vbh_boost_end(v, VBH_B_END_DONE);
		break;
	case VB_RINGS_HELD:
		vbh_rings_start(v);
		break;
	case VB_RINGS_UNKNOWN:
		break;
	}
}

static enum hrtimer_restart vbh_rings_tick(struct hrtimer *timer)
{
	struct vbh_vcpu *v = container_of(timer, struct vbh_vcpu, rings_timer);

	/* If it has left this CPU, its next load begins anew. */
	if (current == READ_ONCE(v->task) && vbh_is_boosted_holder(v))
		vbh_rings_step(v);
	/* Not RESTART: a load elsewhere may start it at any time. */
	return HRTIMER_NORESTART;
}

/**
 * vbh_rings_kicked() - a vCPU has told some device that there is something
 * @v: vCPU; current is its thread
 *
 * If it has sent something since its interrupt that is taken to be about that,
 * also where it is another device.
 *
 * Context: preemption disabled.
 */
void vbh_rings_kicked(struct vbh_vcpu *v)
{
	u64 irq = READ_ONCE(v->irq_tsc);
	unsigned long flags;
	u32 sent;

	smp_rmb();	/* an interrupt writes irq_tsc after the rest */
	sent = vbh_rings_sent(v, vbh_rings_mine(v));
	if (!irq || !vbh_is_boosted_holder(v) || sent == READ_ONCE(v->irq_sent))
		return;
	atomic64_inc(&v->vm->boosts[VBH_B_KICKS]);
	/* The timer does the same. */
	local_irq_save(flags);
	v->kicked = rdtsc();
	v->kicked_for = irq;
	v->kicked_sent = sent;
	vbh_rings_step(v);
	local_irq_restore(flags);
}

/* Before the hooks find @v. Context: any. */
void vbh_rings_vcpu_init(struct vbh_vcpu *v)
{
	vb_hrtimer_setup(&v->rings_timer, vbh_rings_tick, CLOCK_MONOTONIC,
			 HRTIMER_MODE_REL_PINNED_HARD);
}

/* When no hook finds @v any more. Context: process. */
void vbh_rings_vcpu_exit(struct vbh_vcpu *v)
{
	hrtimer_cancel(&v->rings_timer);
}

/**
 * vbh_rings_known() - how many rings a VM has that can be read
 * @vm: the VM
 * Context: any.
 * Return: their number.
 */
unsigned int vbh_rings_known(const struct vbh_vm *vm)
{
	const struct vbh_ring_mm *m;
	unsigned int n = 0;
	int i;

	preempt_disable();
	m = vbh_ring_mm_find(vm->mm);
	for (i = 0; m && i < VBH_MM_RINGS; i++) {
		const struct vbh_ring_dev *dev = &m->dev[i / VBH_DEV_RINGS];

		n += READ_ONCE(dev->ring[i % VBH_DEV_RINGS].avail) &&
		     vb_ring_is_legible(READ_ONCE(dev->features));
	}
	preempt_enable();
	return n;
}
