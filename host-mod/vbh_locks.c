// SPDX-License-Identifier: GPL-2.0
/*
 * Holders that slept for a lock of their guest.
 *
 * Who waits for a spin lock of a paravirtualised kernel long enough goes to
 * sleep (kvm_wait() in arch/x86/kernel/kvm.c), critical as it may be: the only
 * way in which a vCPU halts that has something to do. It is a vCPU without CPU
 * that has the lock, mostly. When that one unlocks it wakes the next one up, by
 * a hypercall (KVM_HC_KICK_CPU), in which KVM gives the CPU away as well
 * (kvm_sched_yield() in arch/x86/kvm/x86.c): to the one that was woken up, or to
 * whom the fair class prefers. So what is asked for is asked as the waker loses
 * its CPU in there, or at the end.
 *
 * A probe of its own on the function that registrations come by, too: a guest
 * whose vCPUs all stay in such calls takes no instance from those.
 */
#include <linux/kvm_host.h>
#include <linux/kvm_para.h>

#include "vbh.h"
#include "vbh_param.h"

struct vbh_waker {
	const struct kvm_vcpu *vcpu;
};

/* Nonzero: of no interest, the return of this call is not probed. */
static int vbh_waker_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct kvm_vcpu *vcpu = (const struct kvm_vcpu *)regs->di;
	struct vbh_waker *w = (struct vbh_waker *)ri->data;
	struct vbh_vcpu *v, *asleep;

	if (likely(vcpu->arch.regs[VCPU_REGS_RAX] != KVM_HC_KICK_CPU))
		return 1;
	/* A guest's own guest talks to the guest. */
	if (vcpu->arch.hflags & HF_GUEST_MASK ||
	    !READ_ONCE(vbh_boost_param) || !vbh_can(VBH_F_BOOST))
		return 1;
	v = vbh_vcpu_find(vcpu);
	asleep = vbh_holder_asleep(vcpu->kvm, vcpu->arch.regs[VCPU_REGS_RCX]);
	if (!v || !asleep)
		return 1;
	/* For the put hook of this thread, too. */
	v->wakes_up = asleep;
	w->vcpu = vcpu;
	return 0;
}

/* Found again: between the two no RCU read side keeps what was found then. */
static int vbh_waker_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct vbh_waker *w = (const struct vbh_waker *)ri->data;
	struct vbh_vcpu *v = vbh_vcpu_find(w->vcpu);

	if (!v || !v->wakes_up)
		return 0;
	/* Else KVM did nothing: the call came from user mode, or is another's. */
	if (!w->vcpu->arch.regs[VCPU_REGS_RAX])
		vbh_holder_woken(v->wakes_up);
	v->wakes_up = NULL;
	return 0;
}

struct vbh_kretprobe vbh_waker_probe = {
	.symbol = VBH_HYPERCALL,
	.how = "kretprobe on " VBH_HYPERCALL,
	.entry = vbh_waker_entry,
	.handler = vbh_waker_return,
	.data_size = sizeof(struct vbh_waker),
};
