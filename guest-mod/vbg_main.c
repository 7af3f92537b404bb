// SPDX-License-Identifier: GPL-2.0
/*
 * vbalance_guest: keeps virtio interrupts off descheduled vCPUs.
 */
#include <linux/cpu.h>
#include <linux/irq_work.h>
#include <linux/kvm_para.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>

#include "vbg.h"
#include "../common/fault.h"
#include "../common/param.h"

#define CREATE_TRACE_POINTS
#include "vbg_trace.h"

static const char * const vbg_source_words[] = {
	[VBG_SOURCE_AUTO] = "auto",
	[VBG_SOURCE_PAGE] = "page",
	[VBG_SOURCE_STEAL] = "steal",
};

int vbg_source = VBG_SOURCE_AUTO;
VB_CHOICE_PARAM(source, vbg_source, vbg_source_words, 0444);
MODULE_PARM_DESC(source, "where run states come from: auto, page (vbalance_host), steal (KVM steal time) (default auto: page when there is one)");

static const char * const vbg_policy_words[] = {
	[VBG_POLICY_COST] = "cost",
	[VBG_POLICY_PAPER] = "paper",
};

int vbg_policy = VBG_POLICY_COST;
VB_CHOICE_PARAM(policy, vbg_policy, vbg_policy_words, 0644);
MODULE_PARM_DESC(policy, "cost: move when it saves more than it costs; paper: move at once, as Algorithm 1 says (default cost)");

static const char * const vbg_mapping_words[] = {
	[VBG_MAPPING_PER_IRQ] = "per-irq",
	[VBG_MAPPING_SINGLE] = "single",
};

int vbg_mapping = VBG_MAPPING_PER_IRQ;
VB_CHOICE_PARAM(mapping, vbg_mapping, vbg_mapping_words, 0644);
MODULE_PARM_DESC(mapping, "per-irq: each interrupt is decided for itself; single: all on one vCPU, as in the paper (default per-irq)");

static const char * const vbg_remap_words[] = {
	[VBG_REMAP_AUTO] = "auto",
	[VBG_REMAP_REDIRECT] = "redirect",
	[VBG_REMAP_BORROW] = "borrow",
	[VBG_REMAP_AFFINITY] = "affinity",
	[VBG_REMAP_NONE] = "none",
};

int vbg_remap = VBG_REMAP_AUTO;
VB_CHOICE_PARAM(remap, vbg_remap, vbg_remap_words, 0644);
MODULE_PARM_DESC(remap, "what is done: auto, redirect (with vbalance_host, else nothing), borrow, affinity, none (default auto: redirect when the host offers it, else borrow)");

unsigned int vbg_threshold = VB_THRESHOLD_DEFAULT;
VB_RANGE_PARAM(threshold, vbg_threshold, VB_THRESHOLD_MIN, VB_THRESHOLD_MAX,
	       0644);
MODULE_PARM_DESC(threshold, "imbalance ratio above which a running vCPU gives an interrupt away, percent, 100..10000 (default 150)");

unsigned int vbg_backoff_ms = 10000;
VB_RANGE_PARAM(backoff_ms, vbg_backoff_ms, 0, 3600000, 0644);
MODULE_PARM_DESC(backoff_ms, "how long an interrupt that somebody else moved is left alone, ms, 0..3600000 (default 10000)");

unsigned int vbg_borrow_us = 500;
VB_RANGE_PARAM(borrow_us, vbg_borrow_us, 0, 100000, 0644);
MODULE_PARM_DESC(borrow_us, "while an active queue's owner is away, another vCPU looks at it after this time at the earliest, us, 0..100000 (default 500; 0: at interrupts and ticks only)");

unsigned int vbg_borrow_cpu = 2;
VB_RANGE_PARAM(borrow_cpu, vbg_borrow_cpu, 0, 100, 0644);
MODULE_PARM_DESC(borrow_cpu, "share of a vCPU that the timer of borrow_us may take, percent, 0..100 (default 2)");

bool vbg_redirect_tx = true;
VB_BOOL_PARAM(redirect_tx, vbg_redirect_tx, 0644);
MODULE_PARM_DESC(redirect_tx, "0 or 1 (default 1): redirect the interrupts of transmit queues too; 0: they are served at the next interrupt or tick");

bool vbg_observe;
VB_BOOL_PARAM(observe, vbg_observe, 0644);
MODULE_PARM_DESC(observe, "0 or 1 (default 0): decide, count and trace moves, but move, redirect and borrow nothing");

VB_FAULT_PARAM;

/* What this kernel allows; known when the probes are on. */
static bool vbg_can_redirect, vbg_can_serve;

/* Context: any. */
enum vbg_mode vbg_mode(void)
{
	enum vbg_mode borrow = vbg_can_serve ? VBG_MODE_BORROW : VBG_MODE_NONE;
	bool redirect = vbg_can_redirect && vbg_redirect_offered();

	if (READ_ONCE(vbg_observe))
		return VBG_MODE_NONE;
	switch (READ_ONCE(vbg_remap)) {
	case VBG_REMAP_REDIRECT:
		return redirect ? VBG_MODE_REDIRECT : VBG_MODE_NONE;
	case VBG_REMAP_AUTO:
		return redirect ? VBG_MODE_REDIRECT : borrow;
	case VBG_REMAP_BORROW:
		return borrow;
	case VBG_REMAP_AFFINITY:
		return VBG_MODE_AFFINITY;
	default:
		return VBG_MODE_NONE;
	}
}

/**
 * vbg_not_asked() - what keeps a mode off that the kernel and the host allow
 * @mode: not vbg_mode()
 * @buf: for the answer, @size bytes of it
 * @size: 16 at least
 *
 * Parameters may change meanwhile: for people.
 * Context: any.
 * Return: @buf, or a constant.
 */
const char *vbg_not_asked(enum vbg_mode mode, char *buf, size_t size)
{
	if (READ_ONCE(vbg_observe))
		return "observe=1";
	if (mode == VBG_MODE_BORROW && vbg_mode() == VBG_MODE_REDIRECT)
		return "redirect is on";
	scnprintf(buf, size, "remap=%s", vbg_remap_words[READ_ONCE(vbg_remap)]);
	return buf;
}

/* ---- maintenance: one work item, once a second or when something came up */

static void vbg_maintain(struct work_struct *work);
static DECLARE_DELAYED_WORK(vbg_work, vbg_maintain);

/*
 * A work item never runs twice at once only as long as all queue it in the same
 * workqueue (process_one_work() and __queue_work() in kernel/workqueue.c). The
 * system's is not one: what schedule_delayed_work() takes is system_wq up to
 * 6.16, and system_percpu_wq since, as in stable kernels (6.12.117 of Debian).
 */
static struct workqueue_struct *vbg_wq;

static void vbg_irq_work_fn(struct irq_work *w)
{
	mod_delayed_work(vbg_wq, &vbg_work, 0);
}

static DEFINE_IRQ_WORK(vbg_irq_work, vbg_irq_work_fn);
static bool vbg_running;

/* Context: any. */
void vbg_maintain_soon(void)
{
	if (READ_ONCE(vbg_running))
		irq_work_queue(&vbg_irq_work);
}

/*
 * Block I/O may wait for what is done here, and memory for block I/O: an area
 * that has gone leaves interrupts that the sweep serves.
 */
static void vbg_maintain(struct work_struct *work)
{
	unsigned int noio;
	bool done;

	/* Kicked by who had passed the check in vbg_maintain_soon() before. */
	if (!READ_ONCE(vbg_running))
		return;
	noio = memalloc_noio_save();
	vbg_page_work();
	vbg_irqs_rescan();
	mutex_lock(&vbg_irqs_mutex);
	vbg_decide_slow();
	done = vbg_redirect_refresh();
	mutex_unlock(&vbg_irqs_mutex);
	memalloc_noio_restore(noio);
	if (READ_ONCE(vbg_running))
		queue_delayed_work(vbg_wq, &vbg_work, done ? HZ : HZ / 20);
}

/* Context: process, sleeps. */
void vbg_maintain_start(void)
{
	WRITE_ONCE(vbg_running, true);
	/* First round now: when insmod returns, the state is what it will be. */
	queue_delayed_work(vbg_wq, &vbg_work, 0);
	flush_delayed_work(&vbg_work);
}

/* Context: process. No maintenance after this but what a notifier kicks off. */
void vbg_maintain_stop(void)
{
	WRITE_ONCE(vbg_running, false);
	irq_work_sync(&vbg_irq_work);
	cancel_delayed_work_sync(&vbg_work);
}

/* ---- CPU hotplug ---- */

static enum cpuhp_state vbg_cpuhp;

static int vbg_cpu_online(unsigned int cpu)
{
	vbg_steal_attach_cpu(NULL);
	vbg_borrow_cpu_on(cpu);
	vbg_maintain_soon();
	return 0;
}

static int vbg_cpu_offline(unsigned int cpu)
{
	vbg_redirect_cpu_off(cpu);
	vbg_borrow_cpu_off(cpu);
	vbg_maintain_soon();
	return 0;
}

/* Return: there is all that it needs. */
static bool __init vbg_feature_said(enum vbg_feature f, const char *what)
{
	const char *missing;
	bool has = vbg_load_has(f, &missing);

	if (!has)
		pr_warn("%s: off (%s)\n", what, missing);
	return has;
}

static int __init vbg_init(void)
{
	int err;

	if (!IS_ENABLED(CONFIG_KVM_GUEST)) {
		pr_err("this kernel has no CONFIG_KVM_GUEST: it does not know that it is a guest\n");
		return -EOPNOTSUPP;
	}
	if (!kvm_para_available()) {
		pr_err("not a KVM guest: nothing to do here\n");
		return -ENODEV;
	}
	err = vbg_facts_check();
	if (err)
		return err;
	/* One worker: areas are set up and dropped one after the other. */
	vbg_wq = alloc_ordered_workqueue("vbalance_guest", WQ_MEM_RECLAIM);
	if (!vbg_wq)
		return -ENOMEM;
	vbg_redirect_init();
	vbg_borrow_init();
	err = vb_fault("load") ?:
	      cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "vbalance/guest:online",
				vbg_cpu_online, vbg_cpu_offline);
	if (err < 0)
		goto err_wq;
	vbg_cpuhp = err;
	err = vbg_page_init();
	if (err)
		goto err_cpuhp;
	err = vbg_irqs_init();
	if (err)
		goto err_page;
	err = vbg_load_init();
	if (err)
		goto err_irqs;
	vbg_can_serve = vbg_feature_said(VBG_F_SERVE, "redirection, borrowing");
	vbg_can_redirect = vbg_feature_said(VBG_F_REDIRECT, "redirection");
	vbg_feature_said(VBG_F_TASK, "hints of processes");
	if (!vbg_can_serve && vbg_remap == VBG_REMAP_AUTO)
		pr_warn("remap=auto moves no interrupts then, remap=affinity does\n");
	if (vbg_can_redirect)
		vbg_redirect_start();
	vbg_maintain_start();
	err = vbg_page_pm_init();
	if (err)
		goto err_maintain;
	vbg_debugfs_init();
	pr_info("version %s, ABI %d: run states from %s, policy %s%s\n",
		VB_VERSION, VB_ABI_VERSION, vbg_state_source(),
		vbg_policy_words[vbg_policy],
		vbg_observe ? ", observing only" : "");
	return 0;

err_maintain:
	vbg_maintain_stop();
	vbg_page_exit();
	vbg_load_exit();
	vbg_irqs_exit();
	goto err_cpuhp;
err_irqs:
	vbg_irqs_exit();
err_page:
	vbg_page_exit();
err_cpuhp:
	cpuhp_remove_state(vbg_cpuhp);
	vbg_maintain_stop();
	vbg_borrow_exit();
	vbg_redirect_exit();
err_wq:
	destroy_workqueue(vbg_wq);
	return err;
}

/*
 * The area goes while everything still works: until the host has let go it may
 * set bits, and the interrupts that they stand for are served here.
 */
static void __exit vbg_exit(void)
{
	vbg_debugfs_exit();
	vbg_page_pm_exit();
	vbg_maintain_stop();
	vbg_page_exit();
	vbg_load_exit();
	vbg_irqs_exit();
	cpuhp_remove_state(vbg_cpuhp);
	vbg_borrow_exit();
	vbg_redirect_exit();
	/* A notifier may have passed the check of vbg_running before. */
	vbg_maintain_stop();
	destroy_workqueue(vbg_wq);
}

module_init(vbg_init);
module_exit(vbg_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("vBalance for KVM");
MODULE_DESCRIPTION("Keeps virtio interrupts off descheduled vCPUs");
MODULE_VERSION(VB_VERSION);
MODULE_INFO(abi_version, __stringify(VB_ABI_VERSION));
