// SPDX-License-Identifier: GPL-2.0
/*
 * Whom to boost (vbh_boost.c), and when it is done.
 *
 * Interruptability holder (CoINT, III.A and IV.A): a vCPU that has taken a
 * device's interrupt keeps all that come after it waiting until it has
 * finished. A guest with our module says so exactly
 * (vb_vcpu_guest.critical). Of others it is taken to be the target of an
 * interrupt that was injected less than holder_us ago, until it halts, or
 * until the rings that it is of allow interrupts again (vbh_rings.c). KVM
 * injects at once when the vCPU runs, and else when it has a CPU again. Nobody
 * else can serve what waits for that, as such a guest's interrupts cannot be
 * redirected: it is a holder from the beginning (boost_waiting), unless it is
 * only to hear that something has been sent.
 *
 * Fast path (vBalance, 3.3.1): an interrupt arrives for a VM none of whose
 * vCPUs is running. Then there is nobody to redirect it to, and its target
 * gets the CPU: one that is preempted, or one that is halted and will wake up
 * behind somebody else's vCPU. While one vCPU runs this is not needed; but that
 * one may go before it has served, as it will if it was about to
 * (vb_stay_is_short()). Never for an interrupt that only tells that something
 * has been sent, which a guest says of its interrupts (vb_redirect.transmit),
 * or its rings.
 */
#include <linux/kvm_host.h>

#include "vbh.h"
#include "vbh_param.h"

/* Its VM's area, if it has a slot there. Context: preemption disabled. */
static const struct vbh_reg *vbh_reg_of(const struct vbh_vcpu *v)
{
	const struct vbh_reg *reg = rcu_dereference_sched(v->vm->reg);

	return reg && v->slot < reg->layout.nr_slots ? reg : NULL;
}

/* 0: it does not say. Context: preemption disabled. */
static u32 vbh_hint(const struct vbh_vcpu *v)
{
	const struct vbh_reg *reg = vbh_reg_of(v);
	u32 hint = reg ? READ_ONCE(reg->guest[v->slot].critical) : 0;

	return hint & VB_CRITICAL_SAID ? hint : 0;
}

/**
 * vbh_says_itself() - does the guest say whether a vCPU is critical?
 * @v: vCPU
 * Context: any.
 * Return: it does.
 */
bool vbh_says_itself(const struct vbh_vcpu *v)
{
	u32 hint;

	preempt_disable_notrace();
	hint = vbh_hint(v);
	preempt_enable_notrace();
	return hint;
}

/* What it has been sent may still be in the works. */
static bool vbh_has_interrupt(const struct vbh_vcpu *v)
{
	return vb_holder_is_fresh(READ_ONCE(v->irq_tsc), rdtsc(),
				  (u64)READ_ONCE(vbh_holder_us) * tsc_khz /
				  1000);
}

static enum vbh_boost_count vbh_why(const struct vbh_vcpu *v, u32 hint)
{
	if (hint & (VB_CRITICAL_IRQ | VB_CRITICAL_MOVE))
		return VBH_B_HINT;
	if (hint & VB_CRITICAL_TASK)
		return VBH_B_TASK;
	if (!hint && vbh_has_interrupt(v) && !vbh_rings_allow(v) &&
	    READ_ONCE(v->answered) != READ_ONCE(v->irq_tsc))
		return VBH_B_HOLDER;
	return 0;
}

/**
 * vbh_is_critical() - does anything wait for this vCPU?
 * @v: vCPU
 * Context: any.
 * Return: VBH_B_HINT, VBH_B_TASK, VBH_B_HOLDER; 0: no.
 */
enum vbh_boost_count vbh_is_critical(const struct vbh_vcpu *v)
{
	enum vbh_boost_count why;

	preempt_disable_notrace();
	why = vbh_why(v, vbh_hint(v));
	preempt_enable_notrace();
	return why;
}

/**
 * vbh_holder_leave() - a vCPU is about to leave its CPU by itself
 * @v: vCPU; current is its thread
 * @state: VB_VCPU_* that it will have, not PREEMPTED
 *
 * What comes when that is seen belongs to what is next.
 *
 * Context: put hook, perhaps under the run-queue lock.
 */
void vbh_holder_leave(struct vbh_vcpu *v, u32 state)
{
	/* A move is made of exits to the VMM. */
	if (state != VB_VCPU_VMM || !(vbh_hint(v) & VB_CRITICAL_MOVE))
		vbh_boost_end(v, VBH_B_END_OFF);
	/* Who halts has done all there was. */
	if (state == VB_VCPU_HALTED)
		WRITE_ONCE(v->irq_tsc, 0);
}

/**
 * vbh_holder_put() - a vCPU has lost its CPU
 * @v: vCPU; current is its thread
 * Context: put hook, perhaps under the run-queue lock.
 */
void vbh_holder_put(struct vbh_vcpu *v)
{
	enum vbh_boost_count why;
	u32 hint = vbh_hint(v);

	if (!hint && vbh_has_interrupt(v))
		vbh_rings_put(v);
	why = vbh_why(v, hint);
	if (why)
		vbh_boost_want(v, current, why, false);
}

/**
 * vbh_holder_load() - a vCPU has got a CPU
 * @v: vCPU
 * @gone: when it lost or left the last one, host TSC
 * Context: load hook.
 */
void vbh_holder_load(struct vbh_vcpu *v, u64 gone)
{
	/* What is posted it may still not come to. */
	if (READ_ONCE(v->unposted))
		WRITE_ONCE(v->unposted, false);
	/* Another one that comes just now is not older than that. */
	if (vb_holder_waited(READ_ONCE(v->irq_tsc), gone))
		WRITE_ONCE(v->irq_tsc, v->changed_tsc);
}

/* Whom an interrupt is for; NULL: several, or not known. */
static struct vbh_vcpu *vbh_irq_target(struct kvm *kvm,
				       const struct kvm_lapic_irq *irq)
{
	u32 id = irq->dest_id;

	if (irq->dest_mode != APIC_DEST_PHYSICAL) {
		/* Flat, or a cluster of an x2APIC: a bit for each of 16. */
		u32 bits = id & 0xffff;

		if (!bits || bits & (bits - 1))
			return NULL;
		id = (id >> 16) * 16 + __ffs(bits);
	}
	return vbh_vcpu_find(kvm_get_vcpu_by_id(kvm, id));
}

static bool vbh_nobody_runs(const struct vbh_vm *vm)
{
	const struct vbh_vcpu *v;

	list_for_each_entry_rcu(v, &vm->vcpus, list,
				rcu_read_lock_sched_held())
		if ((READ_ONCE(v->word) & VBH_STATE_MASK) == VB_VCPU_RUNNING)
			return false;
	return true;
}

/*
 * As a bit (vbh_redirect.c), which any of its VM's vCPUs can still take, and not
 * only to tell that something has been sent.
 */
static bool vbh_is_posted(const struct vbh_vcpu *v)
{
	const struct vbh_reg *reg = vbh_reg_of(v);
	int n;

	if (!reg || !test_bit(v->slot, (const unsigned long *)
			      reg->redirect->pending_slots))
		return false;
	for (n = 0; n < VB_MAX_KEYS / 64; n++)
		if (READ_ONCE(reg->pending[v->slot].bits[n]) &
		    ~READ_ONCE(reg->redirect->transmit[n]))
			return true;
	return false;
}

/* One that has just lost its CPU looks the same for a moment. */
#define VBH_COMING_NS	10000

/*
 * It has a CPU, and has not come to its load hook. As in vbh_holder_irq() its
 * thread stays. Context: preemption disabled.
 */
static bool vbh_is_coming(const struct vbh_vcpu *v)
{
	const struct task_struct *task;

	/* Hooks that are going leave threads behind: as in vbh_boost_missed(). */
	if (!vbh_can(VBH_F_BOOST) ||
	    (READ_ONCE(v->word) & VBH_STATE_MASK) != VB_VCPU_PREEMPTED ||
	    vb_cycles_since(READ_ONCE(v->changed_tsc), rdtsc()) <
	    (u64)VBH_COMING_NS * tsc_khz / 1000000)
		return false;
	smp_rmb();	/* pairs with smp_wmb() in vbh_on_put() */
	task = READ_ONCE(v->task);
	return task && READ_ONCE(task->on_cpu);
}

/* It does, or will in a moment. Context: the worker's, preemption disabled. */
static bool vbh_sees_to(const struct vbh_vcpu *v)
{
	return (READ_ONCE(v->word) & VBH_STATE_MASK) == VB_VCPU_RUNNING ||
	       vbh_boost_goes_on(v) || vbh_is_coming(v);
}

/**
 * vbh_will_be_served() - does somebody see to what waits for a vCPU?
 * @v: vCPU
 * Context: the worker's.
 * Return: all that waits for it has been posted, and is not any more, or one of
 * its VM has a CPU by now.
 */
bool vbh_will_be_served(const struct vbh_vcpu *v)
{
	const struct vbh_vcpu *other;
	bool served;

	if (READ_ONCE(v->unposted))
		return false;
	preempt_disable_notrace();
	served = !vbh_is_posted(v);
	list_for_each_entry_rcu(other, &v->vm->vcpus, list,
				rcu_read_lock_sched_held()) {
		if (served)
			break;
		served = vbh_sees_to(other);
	}
	preempt_enable_notrace();
	return served;
}

/*
 * Until it is served, somebody may have to see to it: vbh_holder_last(). One
 * that has a CPU takes what is injected, but may lose the CPU before it looks
 * what is posted.
 */
static void vbh_note_waits(struct vbh_vcpu *v, bool posted)
{
	u32 state = READ_ONCE(v->word) & VBH_STATE_MASK;
	struct vbh_vcpu *w;

	if (state != VB_VCPU_PREEMPTED && (state != VB_VCPU_RUNNING || !posted))
		return;
	if (!posted)
		WRITE_ONCE(v->unposted, true);
	/* Who forgets @v now looks once more: vbh_holder_last(). */
	smp_mb();
	w = READ_ONCE(v->vm->waits);
	if (w != v) {
		/* Rather the one whose interrupt nobody else can serve. */
		if (posted && w && READ_ONCE(w->unposted))
			return;
		WRITE_ONCE(v->vm->waits, v);
		/* Who goes now sees it, or is seen to have gone. */
		smp_mb();
	}
	/* It has come meanwhile, and has not seen it. */
	if (!posted &&
	    (READ_ONCE(v->word) & VBH_STATE_MASK) != VB_VCPU_PREEMPTED)
		WRITE_ONCE(v->unposted, false);
}

/*
 * VMs with more vCPUs are not looked through for one that runs while a run
 * queue is locked.
 */
#define VBH_LAST_VCPUS	64

/**
 * vbh_holder_last() - a vCPU has lost its CPU, or sleeps
 * @v: vCPU
 *
 * The fast path, for an interrupt that came while this one ran and was not
 * served, or was refused: asked for again each time that the last one goes.
 * (In a VM without an area nothing orders the state that was written before
 * the read here: who was noted at that very moment waits for the next one.)
 *
 * Context: put hook, perhaps under the run-queue lock.
 */
void vbh_holder_last(struct vbh_vcpu *v)
{
	struct vbh_vcpu *w = READ_ONCE(v->vm->waits);
	struct task_struct *task;

	if (likely(!w) || v->vm->nr_vcpus > VBH_LAST_VCPUS)
		return;
	if (!READ_ONCE(w->unposted) && !vbh_is_posted(w)) {
		cmpxchg(&v->vm->waits, w, NULL);
		/* Noted once more in between? */
		if (likely(!READ_ONCE(w->unposted) && !vbh_is_posted(w)))
			return;
		cmpxchg(&v->vm->waits, NULL, w);
	}
	/* Itself a holder, and back in a moment. */
	if (READ_ONCE(v->boost.state) != VBH_BOOST_IDLE &&
	    !READ_ONCE(v->boost.over))
		return;
	if ((READ_ONCE(w->word) & VBH_STATE_MASK) != VB_VCPU_PREEMPTED ||
	    !vbh_nobody_runs(v->vm))
		return;
	smp_rmb();	/* pairs with smp_wmb() in vbh_on_put() */
	task = READ_ONCE(w->task);
	if (task)
		vbh_boost_want(w, task, VBH_B_FAST_PATH, false);
}

/*
 * An interrupt wakes up a vCPU that is halted. On a CPU where another vCPU runs
 * the fair class may let it wait for the rest of that one's slice (RUN_TO_PARITY),
 * or not: then boosts are asked for more and more seldom. Context: preemption
 * disabled.
 */
static bool vbh_wakes_late(struct vbh_vcpu *v)
{
	u32 n = READ_ONCE(v->wakes) + 1;

	WRITE_ONCE(v->wakes, n);
	return vb_wake_ask(n, READ_ONCE(v->quick));
}

/**
 * vbh_holder_irq() - a device's interrupt is being delivered
 * @kvm: VM
 * @vm: ours
 * @irq: as it will be delivered
 * @said: what the guest says of it
 * @posted: any vCPU of its VM can serve it, too (vbh_redirect.c)
 * Context: preemption disabled.
 */
void vbh_holder_irq(struct kvm *kvm, const struct vbh_vm *vm,
		    const struct kvm_lapic_irq *irq, enum vbh_said said,
		    bool posted)
{
	bool says, urgent, transmit = said == VBH_SAID_TRANSMIT;
	enum vbh_boost_count why;
	struct task_struct *task;
	struct vbh_vcpu *v;
	u32 state;

	if (!READ_ONCE(vbh_boost_param))
		return;
	v = vbh_irq_target(kvm, irq);
	if (!v)
		return;
	says = vbh_hint(v);
	if (!says || said == VBH_SAID_NOTHING)
		transmit |= !vbh_rings_irq(v, vbh_has_interrupt(v));
	/* Of a guest that does not say: nobody else can serve it. */
	urgent = !says && !transmit && READ_ONCE(vbh_holder_us) &&
		READ_ONCE(vbh_boost_waiting);
	WRITE_ONCE(v->irq_tsc, rdtsc());
	/*
	 * One that is asked for as it comes is not asked for again: what tokens
	 * there are gain more for the next one, which has not waited yet.
	 */
	if (!transmit && !urgent)
		vbh_note_waits(v, posted);
	state = READ_ONCE(v->word) & VBH_STATE_MASK;
	if (state != VB_VCPU_PREEMPTED &&
	    (state != VB_VCPU_HALTED || !(says || urgent)))
		return;
	/* The facts about threads may be others. */
	if (!vbh_can(VBH_F_BOOST))
		return;
	/*
	 * Seen without a CPU inside KVM_RUN on this RCU read side: its thread
	 * has to get one before it can end, and is not freed before the end of
	 * the read side.
	 */
	smp_rmb();	/* pairs with smp_wmb() in vbh_on_put() */
	task = READ_ONCE(v->task);
	if (!task || (state == VB_VCPU_HALTED &&
		      !vbh_cpu_has_vcpu(task_cpu(task))))
		return;
	if (vbh_nobody_runs(vm))
		why = VBH_B_FAST_PATH;
	else if (urgent)
		why = VBH_B_WAITING;
	else
		return;
	if (transmit)
		atomic64_inc(&v->vm->boosts[VBH_B_TRANSMIT]);
	else if (state != VB_VCPU_HALTED || vbh_wakes_late(v))
		vbh_boost_want(v, task, why, state == VB_VCPU_HALTED);
}

/**
 * vbh_holder_asleep() - does a holder wait for a lock of its guest?
 * @kvm: VM
 * @apic_id: vCPU
 * Context: preemption disabled.
 * Return: the vCPU, if it halted while critical, and still sleeps; or NULL.
 */
struct vbh_vcpu *vbh_holder_asleep(struct kvm *kvm, u32 apic_id)
{
	struct vbh_vcpu *v = vbh_vcpu_find(kvm_get_vcpu_by_id(kvm, apic_id));

	return v && (READ_ONCE(v->word) & VBH_STATE_MASK) == VB_VCPU_HALTED &&
	       vbh_hint(v) & VB_CRITICAL_ANY ? v : NULL;
}

/**
 * vbh_holder_woken() - it may have been woken up (vbh_locks.c)
 * @v: as vbh_holder_asleep() returned it, or any other time
 *
 * What waits for it would wait for the slice of somebody else's vCPU.
 *
 * Context: preemption disabled, perhaps under the run-queue lock; the caller's
 * thread is that of another vCPU of its VM.
 * Return: it is awake.
 */
bool vbh_holder_woken(struct vbh_vcpu *v)
{
	enum vbh_boost_count why = vbh_why(v, vbh_hint(v));
	struct task_struct *task;
	int cpu;

	/* As in vbh_is_coming(). */
	if (!vbh_can(VBH_F_BOOST) ||
	    (READ_ONCE(v->word) & VBH_STATE_MASK) != VB_VCPU_HALTED)
		return true;
	smp_rmb();	/* pairs with smp_wmb() in vbh_on_put() */
	task = READ_ONCE(v->task);
	/* WAKING: the CPU that it was woken up on is about to queue it. */
	if (!task || (!READ_ONCE(task->on_rq) &&
		      READ_ONCE(task->__state) != TASK_WAKING))
		return false;
	cpu = task_cpu(task);
	/* Here was the caller's, at least. */
	if (why && (cpu == raw_smp_processor_id() || vbh_cpu_has_vcpu(cpu)))
		vbh_boost_want(v, task, why, true);
	return true;
}
