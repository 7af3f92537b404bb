// SPDX-License-Identifier: GPL-2.0
/*
 * Run states: what the two hot hooks do.
 *
 * Follows arch/x86/kvm/x86.c (kvm_arch_vcpu_load, kvm_arch_vcpu_put) and
 * virt/kvm/kvm_main.c (kvm_sched_out sets vcpu->preempted before the put,
 * kvm_vcpu_block sets stat.generic.blocking around its schedule()).
 *
 * Each vbh_vcpu has one writer at a time: KVM loads and puts a vCPU on one
 * CPU at a time. The only other writers are vbh_publish_all() and
 * vbh_infer_state(), which know from the sequence in vbh_vcpu.word whether a
 * hook came in between.
 */
#include <linux/bitops.h>
#include <linux/kvm_host.h>
#include <linux/math64.h>

#include "../compat/smm.h"
#include "../core/redirect.h"
#include "vbh.h"
#include "vbh_trace.h"

const char * const vbh_state_names[VB_NR_VCPU_STATES] = {
	[VB_VCPU_OFF] = "off",
	[VB_VCPU_RUNNING] = "running",
	[VB_VCPU_PREEMPTED] = "preempted",
	[VB_VCPU_HALTED] = "halted",
	[VB_VCPU_VMM] = "vmm",
};

/*
 * Fractional bits of KVM's TSC ratio: kvm_caps.tsc_scaling_ratio_frac_bits. The
 * CPU that the lab emulates cannot scale: no test has another ratio.
 */
static u64 vbh_scale(const struct vbh_vcpu *v, u64 cycles)
{
	/* The kernel puts the answer there: no structure is read. */
	unsigned int frac = cpu_feature_enabled(X86_FEATURE_VMX) ? 48 : 32;

	if (likely(v->tsc_ratio == 1ULL << frac))
		return cycles;
	return mul_u64_u64_shr(cycles, v->tsc_ratio, frac);
}

/* What the work item needs for publishing and may not ask the vCPU for. */
void vbh_note_tsc(struct vbh_vcpu *v, const struct kvm_vcpu *vcpu)
{
	v->tsc_ratio = vcpu->arch.l1_tsc_scaling_ratio;
	v->tsc_offset = vcpu->arch.l1_tsc_offset;
}

/*
 * Do the pages still belong to who registered them? After a crash or a reset
 * another kernel may use them. The cookie stands in the header, where the
 * guest clears it to stop us, and in each entry, so that it is also checked
 * in the page that is about to be written.
 */
static bool vbh_owns(const struct vbh_reg *reg, const struct vb_vcpu_host *e)
{
	return READ_ONCE(reg->hdr->cookie) == reg->layout.cookie &&
	       READ_ONCE(e->cookie) == reg->layout.cookie;
}

/* Which vCPU a slot is; at registration, and when a vCPU is plugged in. */
static void vbh_publish_identity(const struct vbh_vcpu *v, struct vbh_reg *reg)
{
	struct vb_vcpu_host *e = &reg->table[v->slot];
	int tries = 0;
	u32 nr;

	WRITE_ONCE(e->apic_id, v->apic_id);
	/* The guest reads apic_id after it saw VALID. */
	smp_store_release(&e->flags, VB_VCPU_F_VALID);
	/*
	 * Where the guest stops looking. vCPUs race here; a guest that writes
	 * there all the time only harms itself.
	 */
	nr = READ_ONCE(reg->hdr->nr_vcpus);
	while (nr <= v->slot && tries++ < 16 &&
	       !try_cmpxchg(&reg->hdr->nr_vcpus, &nr, v->slot + 1))
		;
}

static void vbh_publish_state(const struct vbh_vcpu *v, struct vbh_reg *reg,
			      u32 state)
{
	struct vb_vcpu_host *e = &reg->table[v->slot];

	WRITE_ONCE(e->changed_tsc, vbh_scale(v, v->changed_tsc) + v->tsc_offset);
	WRITE_ONCE(e->nr_preempted, v->count[VB_VCPU_PREEMPTED]);
	WRITE_ONCE(e->preempted_tsc,
		   vbh_scale(v, v->cycles[VB_VCPU_PREEMPTED]));
	/* Who sees the state sees a time that is not older. */
	smp_store_release(&e->state, state);
	if (state == VB_VCPU_RUNNING)
		set_bit(v->slot, (unsigned long *)reg->hdr->running);
	else
		clear_bit(v->slot, (unsigned long *)reg->hdr->running);
}

static void vbh_publish(struct vbh_vcpu *v, struct vbh_reg *reg, u32 state)
{
	struct vb_vcpu_host *e;

	if (unlikely(v->slot >= reg->layout.nr_slots)) {
		atomic64_inc(&v->vm->count[VBH_VM_SLOT_BEYOND_AREA]);
		return;
	}
	e = &reg->table[v->slot];
	if (unlikely(!vbh_owns(reg, e))) {
		atomic64_inc(&v->vm->count[VBH_VM_STALE_COOKIE]);
		return;
	}
	if (unlikely(!READ_ONCE(e->flags)))
		vbh_publish_identity(v, reg);
	vbh_publish_state(v, reg, state);
	vbh_stat_inc(VBH_S_PUBLISHED);
}

/*
 * The boot vCPU in real mode: the VMM has reset the machine (KVM_SET_SREGS,
 * KVM_SET_SREGS2) or it shut itself down, and this is the load before its first
 * instruction. The memory may soon belong to a fresh kernel. No kernel that
 * registered an area runs in real mode, but for system management mode; while
 * its own guest runs, cr0 is that guest's.
 */
static bool vbh_was_reset(const struct kvm_vcpu *vcpu)
{
	return vcpu->vcpu_id == vcpu->kvm->arch.bsp_vcpu_id &&
	       !(vcpu->arch.cr0 & X86_CR0_PE) &&
	       !(vcpu->arch.hflags & HF_GUEST_MASK) && !vb_vcpu_in_smm(vcpu);
}

/* How often current has lost or left its CPU. */
static unsigned long vbh_switches(void)
{
	return current->nvcsw + current->nivcsw;
}

/*
 * Stays on a CPU, in the guest, the host's kernel or the VMM. One ends when the
 * CPU is lost for more than a moment, which is known when it is back; sleep
 * begins a new one.
 */
static void vbh_note_stay(struct vbh_vcpu *v, u32 from, u64 since, u64 now)
{
	u64 stay;

	/* Not seen there: what the thread did in user space. */
	if (from == VB_VCPU_VMM && v->stay_since && v->task == current &&
	    (v->switches == vbh_switches() ||
	     now - since < VB_ABSENCE_MIN_NS * tsc_khz / 1000000))
		return;
	if (from == VB_VCPU_PREEMPTED) {
		if (now - since < VB_ABSENCE_MIN_NS * tsc_khz / 1000000)
			return;
		stay = since - v->stay_since;
		if (v->stay_since)
			WRITE_ONCE(v->stay_mean, v->stay_mean ?
				   v->stay_mean - v->stay_mean / 8 + stay / 8 :
				   stay);
	}
	WRITE_ONCE(v->stay_since, now);
}

static __always_inline void vbh_change(struct vbh_vcpu *v,
				       const struct kvm_vcpu *vcpu, u32 state)
{
	u32 word = v->word;
	u64 now = rdtsc(), since = v->changed_tsc;
	struct vbh_reg *reg;

	/* The TSC may begin anew when the host has been suspended. */
	v->cycles[word & VBH_STATE_MASK] += vb_cycles_since(since, now);
	v->count[state]++;
	v->changed_tsc = now;
	vbh_note_tsc(v, vcpu);
	if (state == VB_VCPU_RUNNING)
		vbh_note_stay(v, word & VBH_STATE_MASK, since, now);
	/*
	 * The sequence goes up before the area is written: whoever publishes
	 * for us (vbh_publish_all) and finds the sequence unchanged after its
	 * own writes knows that ours come later.
	 */
	WRITE_ONCE(v->word, ((word & ~VBH_STATE_MASK) + VBH_SEQ_ONE) | state);
	smp_wmb();	/* pairs with smp_mb() in vbh_publish_all() */
	trace_vb_host_state(v->vm->pid, v->apic_id, word & VBH_STATE_MASK,
			    state);
	reg = rcu_dereference_sched(v->vm->reg);
	if (reg)
		vbh_publish(v, reg, state);
}

static DEFINE_PER_CPU(bool, vbh_has_vcpu);

/**
 * vbh_cpu_has_vcpu() - does a vCPU run there, of whatever VM?
 * @cpu: CPU of the host
 * Context: any.
 * Return: it does, or did just now.
 */
bool vbh_cpu_has_vcpu(int cpu)
{
	return READ_ONCE(per_cpu(vbh_has_vcpu, cpu));
}

/*
 * Entry of kvm_arch_vcpu_load(). Context: preemption disabled; from
 * finish_task_switch() or from an ioctl, never under the run-queue lock.
 */
void vbh_on_load(struct kvm_vcpu *vcpu)
{
	struct vbh_vcpu *v = vbh_vcpu_find(vcpu);
	u64 gone;

	vbh_stat_inc(VBH_S_LOADS);
	if (unlikely(!v)) {
		v = vbh_vcpu_discover(vcpu);
		if (!v)
			return;
	}
	/* A stale object at a reused address: its destruction was not seen. */
	if (unlikely(v->vm->kvm != vcpu->kvm))
		return;
	/*
	 * A cookie is there from the request on: nothing is mapped yet then.
	 * One that lost its CPU inside KVM_RUN was not reset: KVM may be just
	 * leaving a nested guest or system management mode, with their cr0.
	 * What another ioctl has done is seen when the next one comes.
	 */
	if (unlikely(READ_ONCE(v->vm->cookie) && vbh_was_reset(vcpu)) &&
	    !v->within)
		vbh_vm_reset(vcpu->kvm);
	gone = v->changed_tsc;
	this_cpu_write(vbh_has_vcpu, true);
	vbh_change(v, vcpu, VB_VCPU_RUNNING);
	vbh_holder_load(v, gone);
	/* Not at the put: who sleeps inside KVM has been counted by then. */
	v->switches = vbh_switches();
	vbh_rings_load(v);
}

static bool vbh_waits_for_sipi(const struct kvm_vcpu *vcpu)
{
	u32 mp_state = READ_ONCE(vcpu->arch.mp_state);

	return mp_state == KVM_MP_STATE_UNINITIALIZED ||
	       mp_state == KVM_MP_STATE_INIT_RECEIVED;
}

/* What a vCPU without CPU does: read from KVM's own notes, racy by nature. */
static u32 vbh_put_state(const struct kvm_vcpu *vcpu)
{
	if (READ_ONCE(vcpu->preempted))
		return VB_VCPU_PREEMPTED;
	if (READ_ONCE(vcpu->stat.generic.blocking))
		return vbh_waits_for_sipi(vcpu) ? VB_VCPU_OFF : VB_VCPU_HALTED;
	return VB_VCPU_VMM;
}

/*
 * Entry of kvm_arch_vcpu_put(). Context: preemption disabled, perhaps under
 * the run-queue lock with interrupts off: no locks but a VM's bucket_lock, in
 * which nothing nests; nobody is woken up but by irq_work.
 */
void vbh_on_put(struct kvm_vcpu *vcpu)
{
	struct vbh_vcpu *v = vbh_vcpu_find(vcpu);
	u32 state;

	vbh_stat_inc(VBH_S_PUTS);
	if (unlikely(!v || v->vm->kvm != vcpu->kvm)) {
		vbh_stat_inc(VBH_S_UNKNOWN_VCPU);
		return;
	}
	this_cpu_write(vbh_has_vcpu, false);
	state = vbh_put_state(vcpu);
	/* vcpu_put(), at the end of an ioctl, is called by one that runs. */
	v->within = state == VB_VCPU_PREEMPTED ||
		    READ_ONCE(current->__state) != TASK_RUNNING;
	WRITE_ONCE(v->task, current);
	smp_wmb();	/* who sees that sees whom: vbh_holder_irq() */
	if (state != VB_VCPU_PREEMPTED)
		vbh_holder_leave(v, state);
	vbh_change(v, vcpu, state);
	if (state == VB_VCPU_PREEMPTED)
		vbh_holder_put(v);
	if (unlikely(v->wakes_up) && vbh_holder_woken(v->wakes_up))
		v->wakes_up = NULL;
	if (state != VB_VCPU_VMM)
		vbh_holder_last(v);
}

/**
 * vbh_infer_state() - first state of a vCPU that was found, not loaded
 * @v: object, already in the tables (so hooks see it)
 * @vcpu: its vCPU, alive
 *
 * @is_caller: it is the one that makes the hypercall
 *
 * A vCPU that has been on its CPU since before our module came passes no
 * hook for as long as it stays there. Its state is inferred from what KVM
 * knows, and dropped when a hook was faster (compare and exchange on the
 * word with the sequence). One that is just handling an exit could be in the
 * VMM or not: it stays unknown (and its slot invalid) until its next hook.
 * Context: preemption disabled.
 */
void vbh_infer_state(struct vbh_vcpu *v, const struct kvm_vcpu *vcpu,
		     bool is_caller)
{
	u32 word = READ_ONCE(v->word);
	u32 state;

	if (word >= VBH_SEQ_ONE)
		return;
	state = vbh_put_state(vcpu);
	if (is_caller || READ_ONCE(vcpu->mode) != OUTSIDE_GUEST_MODE)
		state = VB_VCPU_RUNNING;
	else if (state == VB_VCPU_VMM)
		return;
	cmpxchg(&v->word, word, VBH_SEQ_ONE | state);
}

/**
 * vbh_publish_all() - write the states known so far into a new area
 * @vm: its VM; @reg is already its active area and a grace period has passed,
 *	so every hook from now on publishes by itself
 * @reg: the area; stays while the caller, the only one who releases, runs
 *
 * A hook may run at any point meanwhile. The area ends up with the hook's
 * state: either the hook's sequence is seen by the check after our writes,
 * and we write again, or its stores come after ours.
 * Context: may sleep (but does not).
 */
void vbh_publish_all(struct vbh_vm *vm, struct vbh_reg *reg)
{
	unsigned long flags;
	struct vbh_vcpu *v;
	u32 word;

	rcu_read_lock_sched();
	list_for_each_entry_rcu(v, &vm->vcpus, list,
				rcu_read_lock_sched_held()) {
		if (v->slot >= reg->layout.nr_slots)
			continue;
		do {
			word = READ_ONCE(v->word);
			if (word < VBH_SEQ_ONE)
				break;
			/*
			 * Reset or unregistered meanwhile: not ours to write.
			 * (Preemption is disabled from the check to the
			 * write: a guest waits a while before it uses the
			 * pages again, but not for ever.)
			 */
			if (rcu_access_pointer(vm->reg) != reg ||
			    !vbh_owns(reg, &reg->table[v->slot]))
				break;
			vbh_publish_identity(v, reg);
			/* With its past: later changes only add to it. */
			vbh_publish_state(v, reg, word & VBH_STATE_MASK);
			smp_mb();	/* pairs with smp_wmb() in vbh_change() */
		} while (READ_ONCE(v->word) != word);
	}
	/* Locked: VB_HOST_GONE, of a reset, is the last word. */
	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (rcu_access_pointer(vm->reg) == reg &&
	    READ_ONCE(reg->hdr->cookie) == reg->layout.cookie)
		/* The states above are there before the guest believes them. */
		smp_store_release(&reg->hdr->host_status, VB_HOST_ACTIVE);
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	rcu_read_unlock_sched();
}
