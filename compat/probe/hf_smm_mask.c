// SPDX-License-Identifier: GPL-2.0
// found: a vCPU in system management mode keeps its area
// missing: no KVM, or one without system management mode
#if IS_ENABLED(CONFIG_KVM)
#include <linux/kvm_host.h>
#endif

#ifndef VB_ONLY_HEADERS
bool vb_probe(const struct kvm_vcpu *vcpu);
bool vb_probe(const struct kvm_vcpu *vcpu)
{
	return vcpu->arch.hflags & HF_SMM_MASK;
}
#endif
