// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: an MSI for a vCPU that has lost its CPU becomes the
 * redirection vector of one that runs.
 *
 * Every MSI of an irqfd or of KVM_SIGNAL_MSI passes
 * kvm_irq_delivery_to_apic_fast() (arch/x86/kvm/lapic.c) with src == NULL and
 * its struct kvm_lapic_irq on the caller's stack, where it is edited in place.
 * Only what the guest has listed is touched: interrupts between vCPUs have a
 * src, and those of the IOAPIC or of other devices match no key, as a vector
 * of a vCPU belongs to one interrupt.
 *
 * Nothing is lost whatever happens here: the bit is set before the interrupt
 * is edited, and a bit whose vCPU loses its CPU is taken by the guest's others
 * (include/vbalance/abi.h, struct vb_redirect).
 */
#include <linux/bitops.h>
#include <linux/kvm_host.h>

#include "../core/redirect.h"
#include "vbh.h"
#include "vbh_param.h"
#include "vbh_trace.h"

/* As a destination it can mean all of them (KVM_CAP_X2APIC_API). */
#define VBH_APIC_BROADCAST	0xff

/* What an MSI must be to be redirected, apart from being listed. */
static bool vbh_is_plain_msi(const struct kvm_lapic_irq *irq)
{
	return irq->delivery_mode == APIC_DM_FIXED && !irq->trig_mode;
}

/* Not an NMI, nor what starts a CPU. */
static bool vbh_is_interrupt(const struct kvm_lapic_irq *irq)
{
	return (irq->delivery_mode == APIC_DM_FIXED ||
		irq->delivery_mode == APIC_DM_LOWEST) && !irq->shorthand;
}

static u64 vbh_msi_key(const struct kvm_lapic_irq *irq)
{
	return vb_key_make(irq->vector, irq->dest_mode != APIC_DEST_PHYSICAL,
			   irq->dest_id, 0);
}

static u32 vbh_vector_of(const struct vbh_reg *reg, const struct vbh_vcpu *v)
{
	u32 vector = READ_ONCE(reg->guest[v->slot].redirect_vector);

	/* Below 16 are no vectors that an APIC would take. */
	return vector >= 16 && vector < 256 ? vector : 0;
}

/* Will it have lost its CPU before it is done with an interrupt? */
static bool vbh_leaves_soon(const struct vbh_vcpu *v,
			    const struct vbh_reg *reg, u64 now)
{
	u64 service = (u64)READ_ONCE(reg->guest[v->slot].service_ns) *
		      tsc_khz / 1000000;

	return READ_ONCE(vbh_redirect_leaving) &&
	       vb_stay_is_short(READ_ONCE(v->stay_mean),
				vb_cycles_since(READ_ONCE(v->stay_since), now),
				service);
}

/* Waits for a CPU, has been away in the VMM for long, or will lose its CPU. */
static bool vbh_needs_rescue(const struct vbh_vcpu *v,
			     const struct vbh_reg *reg, u64 now)
{
	switch (READ_ONCE(v->word) & VBH_STATE_MASK) {
	case VB_VCPU_RUNNING:
		return vbh_leaves_soon(v, reg, now);
	case VB_VCPU_PREEMPTED:
		return true;
	case VB_VCPU_VMM:
		return vb_cycles_since(READ_ONCE(v->changed_tsc), now) >
			(u64)READ_ONCE(vbh_vmm_us) * tsc_khz / 1000;
	default:
		return false;
	}
}

static bool vbh_is_candidate(const struct vbh_vcpu *v,
			     const struct vbh_reg *reg, u64 now)
{
	return (READ_ONCE(v->word) & VBH_STATE_MASK) == VB_VCPU_RUNNING &&
	       v->apic_id != VBH_APIC_BROADCAST &&
	       v->slot < reg->layout.nr_slots && vbh_vector_of(reg, v) &&
	       !vbh_leaves_soon(v, reg, now);
}

static u64 vbh_load_of(const struct vbh_reg *reg, const struct vbh_vcpu *v)
{
	return min(READ_ONCE(reg->guest[v->slot].irq_load_ns), VB_LOAD_MAX);
}

/*
 * Algorithm 1 with the holder offline, see vb_redirect_limit(). Two passes:
 * the states may change in between, then the second finds somebody else, or
 * nobody. Context: RCU read side.
 */
static struct vbh_vcpu *vbh_choose(const struct vbh_vm *vm,
				   const struct vbh_reg *reg, u64 now)
{
	struct vbh_vcpu *v, *best = NULL;
	u64 min = ~0ULL, limit, age, best_age = 0;

	list_for_each_entry_rcu(v, &vm->vcpus, list,
				rcu_read_lock_sched_held())
		if (vbh_is_candidate(v, reg, now))
			min = min(min, vbh_load_of(reg, v));
	limit = vb_redirect_limit(min, READ_ONCE(vbh_threshold));
	list_for_each_entry_rcu(v, &vm->vcpus, list,
				rcu_read_lock_sched_held()) {
		if (!vbh_is_candidate(v, reg, now) || vbh_load_of(reg, v) > limit)
			continue;
		age = vb_cycles_since(READ_ONCE(v->stay_since), now);
		if (!best || age < best_age) {
			best = v;
			best_age = age;
		}
	}
	return best;
}

/* Return: the bit was not set before. */
static bool vbh_set_pending(struct vbh_reg *reg, u32 slot, int n)
{
	bool new = !test_and_set_bit(n, (unsigned long *)
				     reg->pending[slot].bits);

	/* After the bit: who finds this one clear later finds that one. */
	set_bit(slot, (unsigned long *)reg->redirect->pending_slots);
	return new;
}

static void vbh_count_pending(struct vbh_vm *vm, u64 *shared,
			      enum vbh_vm_count count)
{
	atomic64_inc(&vm->count[count]);
	/* For the guest's tables; the host believes its own. */
	atomic64_inc((atomic64_t *)shared);
}

/*
 * Set the bit; has what led here changed meanwhile? Then the guest may have
 * stopped looking at that bit before it was set (the interrupt or the vCPU
 * goes), and the MSI is delivered as it is. If nothing has changed the bit was
 * set before the guest changed it, and the guest looks after its change.
 * The bit stays in either case: serving once too often is harmless.
 * Return: nothing has changed.
 */
static bool vbh_pend(struct vbh_vm *vm, struct vbh_reg *reg,
		     const struct vbh_vcpu *v, int n, u64 key, u32 vector,
		     bool posted)
{
	if (!vbh_set_pending(reg, v->slot, n))
		atomic64_inc(&vm->count[VBH_VM_COALESCED]);
	else if (posted)
		vbh_count_pending(vm, &reg->redirect->nr_posted, VBH_VM_POSTED);
	else
		vbh_count_pending(vm, &reg->redirect->nr_diverted,
				  VBH_VM_DIVERTED);
	/* The atomic operations above order these reads after the bit. */
	if (!vector || (READ_ONCE(reg->redirect->key[n]) == key &&
			vbh_vector_of(reg, v) == vector))
		return true;
	atomic64_inc(&vm->count[VBH_VM_RETRACTED]);
	return false;
}

/*
 * @n, @key: what the guest has listed it as. Return: it waits as a bit of the
 * vCPU that @irq is for now.
 */
static bool vbh_redirect(struct kvm *kvm, struct vbh_vm *vm,
			 struct vbh_reg *reg, struct kvm_lapic_irq *irq, int n,
			 u64 key)
{
	struct vbh_vcpu *owner, *target;
	u64 now = rdtsc();
	u32 vector = 0;
	bool pended;

	vbh_stat_inc(VBH_S_MSI_MATCHED);
	/* Slots are KVM's vcpu_idx. */
	owner = vbh_vcpu_find(kvm_get_vcpu(kvm, vb_key_slot(key)));
	if (!owner || owner->slot >= reg->layout.nr_slots ||
	    !vbh_needs_rescue(owner, reg, now) ||
	    READ_ONCE(reg->hdr->cookie) != reg->layout.cookie)
		return false;
	target = vbh_choose(vm, reg, now);
	/*
	 * Nobody: the bit waits with the owner. One that runs must not take
	 * the MSI itself, in the little time that it has left; the vector
	 * makes it look, should it stay after all.
	 */
	if (target || ((READ_ONCE(owner->word) & VBH_STATE_MASK) ==
		       VB_VCPU_RUNNING &&
		       owner->apic_id != VBH_APIC_BROADCAST))
		vector = vbh_vector_of(reg, target ?: owner);
	pended = vbh_pend(vm, reg, target ?: owner, n, key, vector, !target);
	if (!pended)
		vector = 0;
	trace_vb_host_redirect(vm->pid, n, irq->vector, owner->apic_id,
			       (target ?: owner)->apic_id, vector);
	if (!vector)
		return pended;
	irq->vector = vector;
	irq->dest_id = (target ?: owner)->apic_id;
	irq->dest_mode = APIC_DEST_PHYSICAL;
	irq->msi_redir_hint = false;
	return true;
}

/**
 * vbh_on_deliver() - an interrupt is about to be delivered
 * @kvm: VM
 * @src: sender, NULL for devices
 * @irq: on the caller's stack, may be edited
 *
 * Context: any, mostly with interrupts off (an eventfd is signalled); in
 * KVM_SIGNAL_MSI preemptible, and inside kvm->irq_srcu.
 */
void vbh_on_deliver(struct kvm *kvm, const void *src,
		    struct kvm_lapic_irq *irq)
{
	enum vbh_said said = VBH_SAID_NOTHING;
	struct vbh_reg *reg;
	bool posted = false;
	struct vbh_vm *vm;
	u64 key;
	int n;

	if (src || !vbh_is_interrupt(irq))
		return;
	preempt_disable_notrace();
	vm = vbh_vm_find(kvm);
	reg = vm ? rcu_dereference_sched(vm->reg) : NULL;
	if (reg && vbh_redirect_param && vbh_is_plain_msi(irq)) {
		n = vb_key_find(reg->redirect, vbh_msi_key(irq), &key,
				vm->key_hints);
		if (n >= 0) {
			said = test_bit(n, (unsigned long *)
					reg->redirect->transmit) ?
				VBH_SAID_TRANSMIT : VBH_SAID_OTHER;
			posted = vbh_redirect(kvm, vm, reg, irq, n, key);
		}
	}
	if (vm)
		vbh_holder_irq(kvm, vm, irq, said, posted);
	preempt_enable_notrace();
}
