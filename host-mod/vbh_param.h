/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _VBH_PARAM_H
#define _VBH_PARAM_H

#include <linux/types.h>

enum vbh_hook_kind {
	VBH_HOOK_AUTO,		/* ftrace, kprobe where that does not work */
	VBH_HOOK_FTRACE,
	VBH_HOOK_KPROBE,
};

extern int vbh_hook;
extern bool vbh_redirect_param;
extern bool vbh_redirect_leaving;
extern unsigned int vbh_vmm_us;
extern unsigned int vbh_threshold;	/* percent */
extern bool vbh_boost_param;
extern unsigned int vbh_boost_us;
extern unsigned int vbh_boost_share;	/* percent of one CPU, of a VM */
extern unsigned int vbh_boost_vcpu_share;	/* the same, of a vCPU */
extern unsigned int vbh_boost_cpu_share;	/* of all VMs, on one CPU */
extern unsigned int vbh_boost_row;
extern bool vbh_boost_repay;
extern unsigned int vbh_holder_us;
extern bool vbh_boost_waiting;

#endif /* _VBH_PARAM_H */
