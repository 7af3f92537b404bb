// SPDX-License-Identifier: GPL-2.0
/*
 * vbalance_host: tells KVM guests which of their vCPUs are running.
 */
#include <linux/module.h>

#include "../core/algorithm1.h"
#include "vbh.h"
#include "vbh_param.h"
#include "../common/fault.h"
#include "../common/param.h"
#include "../common/release.h"

#define CREATE_TRACE_POINTS
#include "vbh_trace.h"

static const char * const vbh_hook_choices[] = {
	[VBH_HOOK_AUTO] = "auto",
	[VBH_HOOK_FTRACE] = "ftrace",
	[VBH_HOOK_KPROBE] = "kprobe",
};

int vbh_hook = VBH_HOOK_AUTO;
VB_CHOICE_PARAM(hook, vbh_hook, vbh_hook_choices, 0444);
MODULE_PARM_DESC(hook, "how the run loop is hooked: auto, ftrace, kprobe (default auto: ftrace, else kprobe, but not where ftrace is switched off)");

bool vbh_redirect_param = true;
VB_BOOL_PARAM(redirect, vbh_redirect_param, 0444);
MODULE_PARM_DESC(redirect, "0 or 1 (default 1): offer guests to redirect interrupts of preempted vCPUs");

bool vbh_redirect_leaving = true;
VB_BOOL_PARAM(redirect_leaving, vbh_redirect_leaving, 0644);
MODULE_PARM_DESC(redirect_leaving, "0 or 1 (default 1): a vCPU that runs, but will have lost its CPU before it has served an interrupt, counts as one that does not run");

unsigned int vbh_vmm_us = 1000;
VB_RANGE_PARAM(vmm_us, vbh_vmm_us, 0, 1000000, 0644);
MODULE_PARM_DESC(vmm_us, "how long a vCPU must have been in the VMM before its interrupts are redirected, us, 0..1000000 (default 1000)");

unsigned int vbh_threshold = VB_THRESHOLD_DEFAULT;
VB_RANGE_PARAM(threshold, vbh_threshold, VB_THRESHOLD_MIN, VB_THRESHOLD_MAX,
	       0644);
MODULE_PARM_DESC(threshold, "interrupt loads within this ratio of the least one are equally good for a redirection, percent, 100..10000 (default 150)");

bool vbh_boost_param = true;
VB_BOOL_PARAM(boost, vbh_boost_param, 0644);
MODULE_PARM_DESC(boost, "0 or 1 (default 1): give a vCPU its CPU back when it lost it while the VM's interrupts wait for it");

unsigned int vbh_boost_us = 2000;
VB_RANGE_PARAM(boost_us, vbh_boost_us, 50, 20000, 0644);
MODULE_PARM_DESC(boost_us, "longest boost, us, 50..20000 (default 2000)");

unsigned int vbh_boost_share = 5;
VB_RANGE_PARAM(boost_share, vbh_boost_share, 0, 50, 0644);
MODULE_PARM_DESC(boost_share, "what boosts of a VM may take, percent of one CPU, 0..50 (default 5)");

unsigned int vbh_boost_vcpu_share = 4;
VB_RANGE_PARAM(boost_vcpu_share, vbh_boost_vcpu_share, 0, 50, 0644);
MODULE_PARM_DESC(boost_vcpu_share, "what boosts of each vCPU may take, percent of one CPU, 0..50 (default 4)");

unsigned int vbh_boost_cpu_share = 10;
VB_RANGE_PARAM(boost_cpu_share, vbh_boost_cpu_share, 0, 50, 0644);
MODULE_PARM_DESC(boost_cpu_share, "what boosts of all VMs may take of any one CPU, percent, 0..50 (default 10)");

bool vbh_boost_repay = true;
VB_BOOL_PARAM(boost_repay, vbh_boost_repay, 0644);
MODULE_PARM_DESC(boost_repay, "0 or 1 (default 1): take boosts off the thread's own share of the CPU");

unsigned int vbh_boost_row = 4;
VB_RANGE_PARAM(boost_row, vbh_boost_row, 1, 100, 0644);
MODULE_PARM_DESC(boost_row, "how many boosts in a row a vCPU that does not get done may have, the first one included, 1..100 (default 4)");

unsigned int vbh_holder_us = 3000;
VB_RANGE_PARAM(holder_us, vbh_holder_us, 0, 100000, 0644);
MODULE_PARM_DESC(holder_us, "how long a device interrupt may keep a vCPU busy of a guest that does not say (no vbalance_guest), us, 0..100000 (default 3000); 0: such guests are boosted neither as holders nor for what waits");

bool vbh_boost_waiting = true;
VB_BOOL_PARAM(boost_waiting, vbh_boost_waiting, 0644);
MODULE_PARM_DESC(boost_waiting, "0 or 1 (default 1): of a guest that does not say (no vbalance_guest) boost the vCPU that a device interrupt waits for, too");

bool vbh_observe;
VB_BOOL_PARAM(observe, vbh_observe, 0444);
MODULE_PARM_DESC(observe, "0 or 1 (default 0): watch and count, but offer nothing to guests");

VB_FAULT_PARAM;

static int __init vbh_init(void)
{
	const char *what;
	int err;

	/*
	 * We read struct kvm_vcpu, but link to no symbol of kvm.ko whose CRC
	 * would cover it.
	 */
	err = vb_check_release();
	if (err)
		return err;
	err = vbh_vm_init();
	if (err)
		return err;
	err = vbh_facts_check_kernel() ?: vbh_boost_init();
	if (err)
		goto err_vm;
	vbh_probes_init();
	vbh_debugfs_init();
	err = vbh_hooks_init();
	if (err)
		goto err_debugfs;
	err = vbh_probes_error(&what);
	if (err)
		pr_warn("probes: off (%s: error %d)\n", what, err);
	pr_info("version %s, ABI %d%s\n", VB_VERSION, VB_ABI_VERSION,
		vbh_observe ? ", observing only" : "");
	return 0;

err_debugfs:
	/* kvm.ko may have come and gone meanwhile: VMs may have been seen. */
	vbh_vm_drop_all();
	vbh_debugfs_exit();
	vbh_probes_exit();
	vbh_boost_exit();
err_vm:
	vbh_vm_exit();
	return err;
}

static void __exit vbh_exit(void)
{
	vbh_hooks_exit();
	vbh_boost_exit();
	vbh_vm_exit();
	vbh_debugfs_exit();
	vbh_probes_exit();
}

module_init(vbh_init);
module_exit(vbh_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("vBalance for KVM");
MODULE_DESCRIPTION("Redirects interrupts of preempted vCPUs of KVM guests, and boosts who holds them");
MODULE_VERSION(VB_VERSION);
MODULE_INFO(abi_version, __stringify(VB_ABI_VERSION));
MODULE_SOFTDEP("pre: kvm");
