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
 * behind somebody else's vCPU. With one vCPU running this is never needed, nor
 * for an interrupt that only tells that something has been sent, which a guest
 * says of its interrupts (vb_redirect.transmit), or its rings.
 */
#include <linux/kvm_host.h>

#include "vbh.h"
#include "vbh_param.h"

/* 0: it does not say. Context: preemption disabled. */
static u32 vbh_hint(const struct vbh_vcpu *v)
{
	const struct vbh_reg *reg = rcu_dereference_sched(v->vm->reg);
	u32 hint;

	if (!reg || v->slot >= reg->layout.nr_slots)
		return 0;
	hint = READ_ONCE(reg->guest[v->slot].critical);
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
 * Context: preemption disabled.
 */
void vbh_holder_irq(struct kvm *kvm, const struct vbh_vm *vm,
		    const struct kvm_lapic_irq *irq, enum vbh_said said)
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
	state = READ_ONCE(v->word) & VBH_STATE_MASK;
	if (state != VB_VCPU_PREEMPTED &&
	    (state != VB_VCPU_HALTED || !(says || urgent)))
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
