/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module of a kernel that lacks options which change nothing that modules
 * and the kernel share: it can be loaded into one that has them. With
 * VB_BARE=y and CONFIG_DYNAMIC_FTRACE= on make's command line this comes before
 * all else. Only for tests.
 */
#ifndef _VB_COMMON_BARE_H
#define _VB_COMMON_BARE_H

#undef CONFIG_DYNAMIC_FTRACE
#undef CONFIG_VHOST_NET
#undef CONFIG_VHOST_NET_MODULE
#undef CONFIG_KVM_GUEST
/* What CONFIG_KVM_SMM has in kernel headers, see compat/smm.h. */
#undef HAVE_hf_smm_mask

#endif /* _VB_COMMON_BARE_H */
