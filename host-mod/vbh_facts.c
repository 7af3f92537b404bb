// SPDX-License-Identifier: GPL-2.0
/*
 * What is read of KVM's and the scheduler's structures, and what is taken from
 * the arguments of hooked functions: all that no linked symbol's version
 * covers. Compared with the running kernel's BTF before anything is hooked; a
 * feature whose facts differ stays off.
 */
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>

#include "../common/facts.h"
#include "../compat/ftrace_arg.h"
#include "../compat/page.h"
#include "../compat/task_charge.h"
#include "../compat/task_clamps.h"
#include "../compat/task_slice.h"
#include "../compat/task_throttled.h"
#include "vbh.h"
#include "vbh_canaries.h"

/* Some kernels have a kvm.ko although CONFIG_KVM=y: for vendors' modules. */
#define VBH_KVM_BUILT_IN	\
	(IS_BUILTIN(CONFIG_KVM) && !IS_MODULE(CONFIG_KVM_X86))

/* What the module itself does not work without; no feature of its own. */
#define VBH_F_LOAD	(VBH_F_SLEEPING + 1)

static const struct vb_fact vbh_facts_of_kernel[] = {
	VB_LINKED_FACTS(VBH_F_LOAD)
#ifdef CONFIG_DYNAMIC_FTRACE
	VB_SIZE(VBH_F_LOAD, ftrace_ops),
	VB_MEMBER(VBH_F_LOAD, ftrace_ops, func),
	VB_MEMBER(VBH_F_LOAD, ftrace_ops, flags),
	VB_FTRACE_ARG_FACTS(VBH_F_LOAD)
#endif
	VB_KPROBE_FACTS(VBH_F_LOAD)
	VB_MEMBER(VBH_F_LOAD, kprobe, flags),
	VB_SIZE(VBH_F_LOAD, kretprobe),
	VB_MEMBER(VBH_F_LOAD, kretprobe, kp),
	VB_MEMBER(VBH_F_LOAD, kretprobe, handler),
	VB_MEMBER(VBH_F_LOAD, kretprobe, entry_handler),
	VB_MEMBER(VBH_F_LOAD, kretprobe, maxactive),
	VB_MEMBER(VBH_F_LOAD, kretprobe, nmissed),
	VB_MEMBER(VBH_F_LOAD, kretprobe, data_size),
	VB_SIZE(VBH_F_LOAD, kretprobe_instance),
	/* Of the thread that boosts (set_current_state()), also without boosts. */
	VB_MEMBER(VBH_F_LOAD, task_struct, __state),
	VB_MEMBER(VBH_F_BOOST, task_struct, usage),
	VB_MEMBER(VBH_F_BOOST, task_struct, rcu),
	VB_MEMBER(VBH_F_BOOST, task_struct, thread_info.cpu),
	VB_MEMBER(VBH_F_BOOST, task_struct, thread_info.flags),
	VB_MEMBER(VBH_F_BOOST, task_struct, pid),
	VB_MEMBER(VBH_F_BOOST, task_struct, flags),
	VB_MEMBER(VBH_F_BOOST, task_struct, on_rq),
	VB_MEMBER(VBH_F_BOOST, task_struct, on_cpu),
	VB_MEMBER(VBH_F_BOOST, task_struct, policy),
	VB_MEMBER(VBH_F_BOOST, task_struct, prio),
	VB_MEMBER(VBH_F_BOOST, task_struct, static_prio),
	VB_MEMBER(VBH_F_BOOST, task_struct, rt_priority),
	VB_MEMBER(VBH_F_BOOST, task_struct, rt.timeout),
	VB_MEMBER(VBH_F_BOOST, task_struct, se.sum_exec_runtime),
	VB_TASK_SLICE_FACTS(VBH_F_BOOST)
	VB_TASK_THROTTLED_FACTS(VBH_F_BOOST)
	VB_TASK_CLAMPS_FACTS(VBH_F_BOOST)
	VB_MEMBER(VBH_F_BOOST, task_struct, pi_lock),
	/* Before sched_reset_on_fork, which has no place of its own. */
	VB_MEMBER(VBH_F_BOOST, task_struct, personality),
	VB_MEMBER(VBH_F_BOOST, task_struct, nr_cpus_allowed),
	VB_MEMBER(VBH_F_BOOST, task_struct, timer_slack_ns),
	VB_MEMBER(VBH_F_BOOST, task_struct, default_timer_slack_ns),
	VB_MEMBER(VBH_F_BOOST, task_struct, signal),
	VB_MEMBER(VBH_F_BOOST, signal_struct, rlim),
	VB_TASK_CHARGE_FACTS(VBH_F_REPAY)
	VB_HIDDEN_FUNC(VBH_F_BOOST, __sched_setscheduler,
		       "4(task_struct*,sched_attr*,1,"),
	VB_FUNC(VBH_F_BOOST, set_user_nice, "0(task_struct*,8)"),
	VB_SIZE(VBH_F_BOOST, sched_attr),
};

static const struct vb_fact vbh_facts_of_kvm[] = {
	VB_FUNC(VBH_F_RUN_STATE, kvm_arch_vcpu_load, "0(kvm_vcpu*,"),
	VB_FUNC(VBH_F_RUN_STATE, kvm_arch_vcpu_put, "0(kvm_vcpu*)"),
	VB_FUNC(VBH_F_RUN_STATE, kvm_arch_vcpu_destroy, "0(kvm_vcpu*)"),
	VB_FUNC(VBH_F_RUN_STATE, kvm_arch_destroy_vm, "0(kvm*)"),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, kvm),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, vcpu_id),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, vcpu_idx),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, mode),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, preempted),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, stat.generic.blocking),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, arch.cr0),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, arch.hflags),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, arch.mp_state),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, arch.l1_tsc_offset),
	VB_MEMBER(VBH_F_RUN_STATE, kvm_vcpu, arch.l1_tsc_scaling_ratio),
	VB_MEMBER(VBH_F_RUN_STATE, task_struct, nvcsw),
	VB_MEMBER(VBH_F_RUN_STATE, task_struct, nivcsw),
	VB_MEMBER(VBH_F_RUN_STATE, task_struct, mm),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, mm),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, userspace_pid),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, users_count),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, online_vcpus),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, vcpu_array),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, debugfs_dentry),
	VB_MEMBER(VBH_F_RUN_STATE, kvm, arch.bsp_vcpu_id),

	VB_HIDDEN_FUNC(VBH_F_REGISTRATION, kvm_emulate_hypercall,
		       "4(kvm_vcpu*)"),
	VB_MEMBER(VBH_F_REGISTRATION, mm_struct, mm_users),
	VB_MEMBER(VBH_F_REGISTRATION, mm_struct, mm_count),
	VB_MEMBER(VBH_F_REGISTRATION, mm_struct, mmap_lock),
	VB_MEMBER(VBH_F_REGISTRATION, mm_struct, pinned_vm),
	VB_PAGE_FACTS(VBH_F_REGISTRATION)
	VB_MEMBER(VBH_F_REGISTRATION, kvm_vcpu, arch.regs),
	/* Of these two only lockdep asks, for kvm_memslots(). */
	VB_MEMBER(VBH_F_REGISTRATION, kvm, slots_lock),
	VB_MEMBER(VBH_F_REGISTRATION, kvm, srcu),
	VB_MEMBER(VBH_F_REGISTRATION, kvm, memslots),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memslots, last_used_slot),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memslots, gfn_tree),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memslots, node_idx),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, gfn_node),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, base_gfn),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, npages),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, userspace_addr),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, flags),
	VB_MEMBER(VBH_F_REGISTRATION, kvm_memory_slot, id),

	VB_HIDDEN_FUNC(VBH_F_REDIRECT, kvm_irq_delivery_to_apic_fast,
		       "1(kvm*,kvm_lapic*,kvm_lapic_irq*,"),
	VB_HIDDEN_FUNC_IF_ANY(VBH_F_SLEEPING, __kvm_irq_delivery_to_apic,
			      "4(kvm*,kvm_lapic*,kvm_lapic_irq*,"),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, vector),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, delivery_mode),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, dest_mode),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, trig_mode),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, shorthand),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, dest_id),
	VB_MEMBER(VBH_F_REDIRECT, kvm_lapic_irq, msi_redir_hint),

	VB_HIDDEN_FUNC(VBH_F_KICKS, ioeventfd_write,
		       "4(kvm_vcpu*,kvm_io_device*,"),

	VB_HIDDEN_FUNC(VBH_F_LOCKS, kvm_emulate_hypercall, "4(kvm_vcpu*)"),
	VB_MEMBER(VBH_F_LOCKS, kvm_vcpu, arch.regs),
};

/* No structure of vhost's is read: only what user space gives it. */
static const struct vb_fact vbh_facts_of_vhost[] = {
	VB_HIDDEN_FUNC(VBH_F_RINGS, vhost_net_ioctl, "8(file*,4,8)"),
	VB_HIDDEN_FUNC(VBH_F_RINGS, vhost_net_release, "4(inode*,file*)"),
	/* By pagefault_disable(). */
	VB_MEMBER(VBH_F_RINGS, task_struct, pagefault_disabled),
};

static const char *vbh_differs[VBH_F_LOAD + 1];
static char vbh_facts_detail[64];
static int vbh_facts_kernel, vbh_facts_kvm;	/* how many, or why none */

/**
 * vbh_facts_differ() - is a feature built for another kernel?
 * @f: feature
 * Return: what differs, or NULL. Context: any, after the check.
 */
const char *vbh_facts_differ(enum vbh_feature f)
{
	return vbh_differs[f];
}

/**
 * vbh_facts_error() - with what error to do without what differs
 * Context: after vbh_facts_check_kvm().
 * Return: a negative errno.
 */
int vbh_facts_error(void)
{
	/* The kernel may have been asked once more, with another answer. */
	return vb_facts_refusal(vbh_differs[VBH_F_LOAD] ? vbh_facts_kernel :
						       vbh_facts_kvm);
}

/**
 * vbh_facts_kernel_error() - could the kernel itself be compared?
 * Context: process, after vbh_facts_check_kernel().
 * Return: 0, or a negative errno as of vb_facts_check().
 */
int vbh_facts_kernel_error(void)
{
	return min(vbh_facts_kernel, 0);
}

static void vbh_facts_say(void)
{
	const char *what = vbh_facts_kernel < 0 ? "the kernel" : "kvm";
	int err = vbh_facts_kernel_error() ?: min(vbh_facts_kvm, 0);

	if (err && err != -ENOENT && err != -ENODATA) {
		snprintf(vbh_facts_detail, sizeof(vbh_facts_detail),
			 "BTF of %s cannot be read", what);
	} else if (err) {
		pr_info("no BTF of %s to compare with (error %d): only the release is checked\n",
			what, err);
		snprintf(vbh_facts_detail, sizeof(vbh_facts_detail),
			 "no BTF of %s, only the release is checked", what);
	} else {
		snprintf(vbh_facts_detail, sizeof(vbh_facts_detail),
			 "%d facts about kernel and kvm",
			 vbh_facts_kernel + vbh_facts_kvm);
	}
	vbh_feature_set(VBH_F_CHECK, err, vbh_facts_detail);
}

/**
 * vbh_facts_check_kernel() - before anything else
 * Context: process, sleeps.
 * Return: 0; -ENOEXEC: built for another kernel, or for one that says what it is
 *	in another way; -ENOMEM.
 */
int vbh_facts_check_kernel(void)
{
	vbh_facts_kernel = vb_facts_check(NULL, vbh_facts_of_kernel,
					  ARRAY_SIZE(vbh_facts_of_kernel),
					  vbh_differs);
	return vbh_differs[VBH_F_LOAD] ? vb_facts_refusal(vbh_facts_kernel) : 0;
}

/* Before KVM is hooked, each time it comes. Context: process, sleeps. */
void vbh_facts_check_kvm(void)
{
	/* There was no /sys. */
	if (vbh_facts_kernel < 0)
		vbh_facts_check_kernel();
	vbh_facts_kvm = vb_facts_check(VBH_KVM_BUILT_IN ? NULL : "kvm",
				       vbh_facts_of_kvm,
				       ARRAY_SIZE(vbh_facts_of_kvm),
				       vbh_differs);
	/* Seen only now: nothing is hooked. */
	if (vbh_differs[VBH_F_LOAD])
		vbh_differs[VBH_F_RUN_STATE] = vbh_differs[VBH_F_LOAD];
	vbh_facts_say();
}

/* Before vhost-net is hooked, each time it comes. Context: process, sleeps. */
void vbh_facts_check_vhost(void)
{
	vb_facts_check(IS_BUILTIN(CONFIG_VHOST_NET) ? NULL : "vhost_net",
		       vbh_facts_of_vhost, ARRAY_SIZE(vbh_facts_of_vhost),
		       vbh_differs);
}
