/* SPDX-License-Identifier: GPL-2.0 */
/* Is a vCPU in system management mode? */
#ifndef _VB_COMPAT_SMM_H
#define _VB_COMPAT_SMM_H

#include <linux/kvm_host.h>

#ifdef HAVE_hf_smm_mask	/* not where KVM was configured without it */
#define vb_vcpu_in_smm(vcpu)	(!!((vcpu)->arch.hflags & HF_SMM_MASK))
#elif IS_ENABLED(CONFIG_KVM_SMM) && !defined(_VB_COMMON_BARE_H)
#error KVM has system management mode, and HF_SMM_MASK does not tell of it
#else
#define vb_vcpu_in_smm(vcpu)	false
#endif

#endif /* _VB_COMPAT_SMM_H */
