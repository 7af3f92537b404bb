/* SPDX-License-Identifier: GPL-2.0 */
/* Is a vCPU in system management mode? (Only where KVM emulates it.) */
#ifndef _VB_COMPAT_SMM_H
#define _VB_COMPAT_SMM_H

#include <linux/kvm_host.h>

#ifdef HF_SMM_MASK
#define vb_vcpu_in_smm(vcpu)	(!!((vcpu)->arch.hflags & HF_SMM_MASK))
#else
#define vb_vcpu_in_smm(vcpu)	false
#endif

#endif /* _VB_COMPAT_SMM_H */
