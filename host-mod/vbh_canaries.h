/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that are hooked, as their probes take their arguments. Where the
 * kernel's headers declare one otherwise the build ends here; where they do not
 * declare it (any more, as kvm_emulate_hypercall() in 7.x) BTF alone compares
 * it, at load. Nothing calls them.
 */
#ifndef _VBH_CANARIES_H
#define _VBH_CANARIES_H

#include <linux/kvm_host.h>
#include <linux/sched.h>

void kvm_arch_vcpu_load(struct kvm_vcpu *vcpu, int cpu);
void kvm_arch_vcpu_put(struct kvm_vcpu *vcpu);
void kvm_arch_vcpu_destroy(struct kvm_vcpu *vcpu);
void kvm_arch_destroy_vm(struct kvm *kvm);
int kvm_emulate_hypercall(struct kvm_vcpu *vcpu);
void set_user_nice(struct task_struct *p, long nice);

#endif /* _VBH_CANARIES_H */
