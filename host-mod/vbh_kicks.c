// SPDX-License-Identifier: GPL-2.0
/*
 * When a vCPU tells a device that there is something in its ring: a write that
 * KVM hands to an eventfd, vhost's (virt/kvm/eventfd.c). From that VM exit on one
 * that has answered is looked at closely (CoINT, III.B: instant transitory
 * scheduling). Without it the timer of vbh_rings.c sees that some 100 to 200 us
 * later, in which vhost waits for the vCPU if both share a CPU.
 *
 * At the return, when the device has been told: not before.
 */
#include <linux/kvm_host.h>

#include "vbh.h"

#define VBH_KICK	"ioeventfd_write"

struct vbh_kick {
	const struct kvm_vcpu *vcpu;
};

/* Nonzero: of no interest, the return of this call is not probed. */
static int vbh_kick_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct kvm_vcpu *vcpu = (const struct kvm_vcpu *)regs->di;
	struct vbh_kick *k = (struct vbh_kick *)ri->data;
	const struct vbh_vcpu *v = vbh_vcpu_find(vcpu);

	if (likely(!v || !vbh_is_boosted_holder(v)))
		return 1;
	k->vcpu = vcpu;
	return 0;
}

/*
 * Found again: between the two no RCU read side keeps what was found then. The
 * vCPU is this thread's, in KVM_RUN. Context: preemption disabled.
 */
static int vbh_kick_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct vbh_kick *k = (const struct vbh_kick *)ri->data;
	struct vbh_vcpu *v = vbh_vcpu_find(k->vcpu);

	/* Otherwise it was not this eventfd's address. */
	if (v && !regs_return_value(regs))
		vbh_rings_kicked(v);
	return 0;
}

struct vbh_kretprobe vbh_kick_probe = {
	.symbol = VBH_KICK,
	.how = "kretprobe on " VBH_KICK,
	.entry = vbh_kick_entry,
	.handler = vbh_kick_return,
	.data_size = sizeof(struct vbh_kick),
};
