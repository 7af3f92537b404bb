// SPDX-License-Identifier: GPL-2.0
/*
 * Run states from the area shared with vbalance_host: registration, staleness,
 * falling back and coming back. Protocol: include/vbalance/abi.h.
 *
 * The area goes through none -> registering -> active -> dead -> none. All
 * steps but "active -> dead" are taken by the maintenance work item alone;
 * dead is declared by any CPU that notices (its own bit is clear although it
 * runs, or the host said it is gone). Readers are RCU-sched read sides: the
 * area is freed after a grace period, and after the host has confirmed that
 * it no longer writes.
 */
#include <linux/cc_platform.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/kmemleak.h>
#include <linux/kprobes.h>
#include <linux/kvm_para.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/panic_notifier.h>
#include <linux/reboot.h>
#include <linux/suspend.h>
#include <asm/smp.h>
#include <asm/tsc.h>

#include "vbg.h"
#include "vbg_area.h"
#include "vbg_trace.h"
#include "../common/fault.h"
#include "../common/probed.h"
#include "../compat/kdump.h"

struct vbg_area __rcu *vbg_active;
static struct vbg_area *vbg_area;	/* work item; active, or dead */
/* Work item; given up, and not let go of by the host: no other one meanwhile. */
static struct vbg_area *vbg_kept;

static unsigned long vbg_next_try;	/* jiffies */
static unsigned int vbg_retry_s = 1;
static int vbg_last_status = -VB_ENOSYS;
static bool vbg_leaving;		/* the kernel goes: no new area */

/* A host that answers -ENOSYS is asked again after 1, 2, 4, 8, 8, ... s. */
#define VBG_RETRY_MAX_S	8
/* How long the host may take to pin the area, or to let go of it. */
#define VBG_WAIT_MS	2000

static long vbg_call(u64 op, u64 a1, u64 a2, u64 a3)
{
	return kvm_hypercall4(VB_HYPERCALL, op, a1, a2, a3);
}

/* ---- readers ---- */

static const struct vb_vcpu_host *vbg_entry(const struct vbg_area *a, int cpu)
{
	int slot = READ_ONCE(a->slot[cpu]);

	return slot >= 0 ? &a->host[slot] : NULL;
}

bool vbg_page_active(void)
{
	return rcu_access_pointer(vbg_active);
}

/* Slot of a CPU in the area, -1: none. Context: preemption disabled. */
int vbg_page_slot(int cpu)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);

	return a ? READ_ONCE(a->slot[cpu]) : -1;
}

/* Context: preemption disabled. False: the area does not know. */
bool vbg_page_state(int cpu, u32 *state, u64 *episode)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);
	const struct vb_vcpu_host *e = a ? vbg_entry(a, cpu) : NULL;

	if (!e)
		return false;
	/* Pairs with the host's release: the episode is not older. */
	*state = smp_load_acquire(&e->state);
	*episode = READ_ONCE(e->changed_tsc);
	return *state < VB_NR_VCPU_STATES;
}

/*
 * The host's numbers may be anything, and x86's mul_u64_u32_div() traps when
 * the result does not fit: years are enough.
 */
static u64 vbg_cycles_to_ns(u64 cycles)
{
	return mul_u64_u32_div(min(cycles, 1ULL << 58), 1000000, tsc_khz);
}

/*
 * How long a CPU has been in its present state, ns. False: not known (no
 * area, or no change since registration).
 */
bool vbg_page_since_ns(int cpu, u64 *ns)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);
	const struct vb_vcpu_host *e = a ? vbg_entry(a, cpu) : NULL;
	u64 changed = e ? READ_ONCE(e->changed_tsc) : 0;
	u64 now = rdtsc_ordered();

	if (!changed || !tsc_khz)
		return false;
	*ns = now > changed ? vbg_cycles_to_ns(now - changed) : 0;
	return true;
}

/* Time that the host kept this vCPU from running, ns. */
bool vbg_page_stolen_ns(int cpu, u64 *ns, u64 *clock)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);
	const struct vb_vcpu_host *e = a ? vbg_entry(a, cpu) : NULL;

	if (!e || !tsc_khz)
		return false;
	*ns = vbg_cycles_to_ns(READ_ONCE(e->preempted_tsc));
	*clock = a->cookie;
	return true;
}

void vbg_page_publish_load(int cpu, u64 load_ns, u64 service_ns)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);
	int slot = a ? READ_ONCE(a->slot[cpu]) : -1;

	if (slot < 0)
		return;
	WRITE_ONCE(a->guest[slot].irq_load_ns, load_ns);
	WRITE_ONCE(a->guest[slot].service_ns, min_t(u64, service_ns, U32_MAX));
}

/**
 * vbg_page_say_critical() - for the host: see vb_vcpu_guest.critical
 * @cpu: this CPU
 * @critical: VB_CRITICAL_* without SAID
 * Context: interrupts off.
 * Return: the host has lent us the CPU, and may have it back.
 */
bool vbg_page_say_critical(int cpu, u32 critical)
{
	struct vbg_area *a = rcu_dereference_sched(vbg_active);
	int slot = a ? READ_ONCE(a->slot[cpu]) : -1;

	if (slot < 0)
		return false;
	WRITE_ONCE(a->guest[slot].critical, VB_CRITICAL_SAID | critical);
	return !critical && READ_ONCE(a->host[slot].boosted);
}

/*
 * A boost is over. This vCPU will lose its CPU in here: hold no lock.
 * Context: any otherwise.
 */
void vbg_page_give_back(void)
{
	vbg_stat_inc(VBG_S_BOOSTS_ENDED);
	vbg_call(VB_OP_DONE, 0, 0, 0);
}

static void vbg_page_dead(const struct vbg_area *a, enum vbg_stat why)
{
	struct vbg_area *old = (struct vbg_area *)a;

	/*
	 * Its keys follow no move any more, and nobody looks at its bits: a host
	 * that is still there shall not divert.
	 */
	WRITE_ONCE(old->hdr->cookie, 0);
	/* One of several CPUs that notice at once. */
	if (cmpxchg((struct vbg_area * __force *)&vbg_active, old, NULL) != old)
		return;
	vbg_stat_inc(why);
	trace_vb_guest_fallback(raw_smp_processor_id(), why);
	vbg_maintain_soon();
}

/**
 * vbg_page_check_self() - is the area still alive?
 * @cpu: this CPU
 *
 * Who executes this runs, so the host must say so. If it does not, nobody
 * keeps the page up to date: live migration, host module gone, snapshot.
 * Context: hard interrupt.
 */
void vbg_page_check_self(int cpu)
{
	const struct vbg_area *a = rcu_dereference_sched(vbg_active);
	int slot;

	if (!a)
		return;
	if (READ_ONCE(a->hdr->host_status) != VB_HOST_ACTIVE) {
		vbg_page_dead(a, VBG_S_FALLBACK_GONE);
		return;
	}
	slot = READ_ONCE(a->slot[cpu]);
	/* A new area: the host shall not have to guess. */
	if (slot >= 0 && unlikely(!READ_ONCE(a->guest[slot].critical)))
		vbg_page_say_critical(cpu, this_cpu_read(vbg_cpus.critical));
	if (slot >= 0 &&
	    (READ_ONCE(a->host[slot].state) != VB_VCPU_RUNNING ||
	     !test_bit(slot, (unsigned long *)a->hdr->running)))
		vbg_page_dead(a, VBG_S_FALLBACK_SELF);
}

/* ---- work item ---- */

static bool vbg_slot_is_cpu(const struct vbg_area *a, u32 slot, int cpu)
{
	/* Pairs with the host's release: apic_id is there. */
	return smp_load_acquire(&a->host[slot].flags) & VB_VCPU_F_VALID &&
	       READ_ONCE(a->host[slot].apic_id) == cpu_physical_id(cpu);
}

static int vbg_find_slot(const struct vbg_area *a, u32 nr, int cpu)
{
	u32 slot;

	/* Mostly they are numbered alike. */
	if (cpu < nr && vbg_slot_is_cpu(a, cpu, cpu))
		return cpu;
	for (slot = 0; slot < nr; slot++)
		if (vbg_slot_is_cpu(a, slot, cpu))
			return slot;
	return -1;
}

/* Which slot is which CPU: again and again, CPUs and vCPUs can be plugged. */
static void vbg_area_map_cpus(struct vbg_area *a)
{
	u32 nr = min(READ_ONCE(a->hdr->nr_vcpus), a->nr_slots);
	int cpu, slot;

	for_each_possible_cpu(cpu) {
		slot = a->slot[cpu];
		if (!cpu_present(cpu))
			slot = -1;
		else if (slot < 0 || !vbg_slot_is_cpu(a, slot, cpu))
			slot = vbg_find_slot(a, nr, cpu);
		WRITE_ONCE(a->slot[cpu], slot);
		cond_resched();
	}
}

static long vbg_wait_status(u64 cookie, long while_is, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	long ret;

	for (;;) {
		ret = vbg_call(VB_OP_STATUS, 0, 0, cookie);
		if (ret != while_is || time_after(jiffies, end))
			return ret;
		usleep_range(1000, 4000);
	}
}

/*
 * The cookie goes first: it stops new writes at once, whatever becomes of the
 * hypercall. Context: any. Return: what the host says.
 */
static long vbg_unregister(struct vbg_area *a)
{
	WRITE_ONCE(a->hdr->cookie, 0);
	smp_mb();	/* the host sees 0 before it sees the hypercall */
	return vbg_call(VB_OP_UNREGISTER, 0, 0, a->cookie);
}

static bool vbg_host_has_gone(const struct vbg_area *a)
{
	/* Pairs with the host's release: its writes are over. */
	return smp_load_acquire(&a->hdr->host_status) == VB_HOST_GONE;
}

/*
 * End host writes; those that are under way end before the host confirms. It
 * is believed if it knew this area, or has written so into it: after a
 * migration another one may answer. Return: what the host says last.
 */
static long vbg_area_release(struct vbg_area *a)
{
	bool known;
	long ret;

	ret = vb_fault("unheard") ? -VB_EAGAIN : vbg_unregister(a);
	known = !ret;
	if (!ret || ret == -VB_ENOENT)
		ret = vbg_wait_status(a->cookie, -VB_EAGAIN, VBG_WAIT_MS);
	if (vb_fault("let_go"))
		ret = -VB_EAGAIN;
	if (vbg_host_has_gone(a) || (known && ret == -VB_ENOENT))
		a->host_done = true;
	return ret;
}

/*
 * End host writes and free, now or when the host has let go. A host that does
 * not answer any more gets ample time. Context: no area is kept.
 */
static void vbg_area_drop(struct vbg_area *a)
{
	long ret = vbg_area_release(a);

	if (ret && ret != -VB_ENOENT)
		msleep(200);
	synchronize_rcu();
	if (ret == -VB_EAGAIN) {
		pr_warn("host does not let go of the shared area: %u pages are kept until it does\n",
			a->nr_pages);
		this_cpu_add(vbg_stats.v[VBG_S_KEPT], a->nr_pages);
		vbg_account_close(a, false);
		vbg_kept = a;
		return;
	}
	vbg_account_close(a, a->host_done);
	vbg_area_free(a);
}

/*
 * Nobody answers: its module is going, and the slow one that we wait for may
 * not be the first that it stops. Asked once a second.
 */
#define VBG_SILENT_MAX	10

static bool vbg_kept_is_over(struct vbg_area *a)
{
	long ret = vb_fault("let_go") ? -VB_EAGAIN :
		   vbg_call(VB_OP_STATUS, 0, 0, a->cookie);

	switch (ret) {
	case -VB_EAGAIN:
		return false;
	case 0:
		/* It had been set up before we were heard. */
		vbg_unregister(a);
		return false;
	case -VB_ENOSYS:
		return vbg_host_has_gone(a) || ++a->silent >= VBG_SILENT_MAX;
	default:
		return true;
	}
}

/* Return: no area is kept (any more). Context: as for the work item. */
static bool vbg_kept_none(void)
{
	struct vbg_area *a = vbg_kept;

	if (!a)
		return true;
	if (!vbg_kept_is_over(a))
		return false;
	pr_info("host has let go of the shared area, or is gone\n");
	this_cpu_sub(vbg_stats.v[VBG_S_KEPT], a->nr_pages);
	vbg_kept = NULL;
	vbg_area_free(a);
	/* The bits that it set until then nobody has looked at. */
	vbg_redirect_sweep();
	return true;
}

/* Why there is no page, in words, of vbg_page_status(). Context: any. */
const char *vbg_page_missing(int status)
{
	switch (status) {
	case 0:
		return "the last one is not kept up to date any more";
	case -VB_ENOSYS:
		return "the host has no vbalance_host";
	case -VB_EPROTO:
		return "the host has another ABI version";
	case -VB_EOPNOTSUPP:
		return "guest memory is encrypted";
	case -VB_EAGAIN:
		return "the host is not done with the last request";
	default:
		return "the host did not register us";
	}
}

static int vbg_try_register(void)
{
	struct vbg_area *a;
	int tries = 0;
	long ret;

	ret = vbg_call(VB_OP_PROBE, 0, 0, 0);
	if (ret < 0)
		return ret;
	if (ret != VB_ABI_VERSION) {
		if (vbg_last_status != -VB_EPROTO)
			pr_warn("the host has version %ld of the ABI, this is %d: run states from %s\n",
				ret, VB_ABI_VERSION, vbg_state_source());
		return -VB_EPROTO;
	}
	/* What the host writes would be unreadable in encrypted memory. */
	if (vb_fault("encrypted") || cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return -VB_EOPNOTSUPP;
	a = vbg_area_alloc();
	if (!a)
		return -VB_ENOMEM;
	vbg_account_open(a);
	vbg_area = a;	/* for the notifiers: the host may write from here on */
	do {
		vbg_area_touch(a);
		ret = vbg_call(VB_OP_REGISTER, page_to_phys(a->pages[0]),
			       VB_ABI_VERSION, a->cookie);
		if (ret == -VB_EAGAIN)
			usleep_range(1000, 4000);
	} while (ret == -VB_EAGAIN && ++tries < 50);
	if (!ret)
		ret = vbg_wait_status(a->cookie, -VB_EAGAIN, VBG_WAIT_MS);
	trace_vb_guest_register(a->cookie, a->nr_pages, ret);
	if (ret) {
		vbg_stat_inc(VBG_S_REGISTER_FAILED);
		vbg_area = NULL;
		vbg_area_drop(a);
		return ret;
	}
	vbg_area_map_cpus(a);
	rcu_assign_pointer(vbg_active, a);
	vbg_stat_inc(VBG_S_REGISTRATIONS);
	pr_info("run states from the host's vbalance (%u slots, %u pages)\n",
		a->nr_slots, a->nr_pages);
	return 0;
}

/**
 * vbg_page_work() - keep-alive, clean-up, registration
 *
 * Also asks the host once a second whether it still knows us: a snapshot or
 * migration could leave a page behind in which this vCPU's bit is set.
 * Context: the maintenance work item; sleeps.
 */
void vbg_page_work(void)
{
	struct vbg_area *a;
	int status;
	long ret;

	if (vbg_source == VBG_SOURCE_STEAL || READ_ONCE(vbg_leaving))
		return;
	if (vbg_page_active()) {
		ret = vbg_call(VB_OP_STATUS, 0, 0, vbg_area->cookie);
		if (ret)
			vbg_page_dead(vbg_area, VBG_S_FALLBACK_STATUS);
		else
			vbg_area_map_cpus(vbg_area);
	}
	if (vbg_page_active())
		return;
	if (vbg_area) {
		a = vbg_area;
		pr_info("host's vbalance is gone: run states from %s\n",
			vbg_state_source());
		vbg_redirect_sweep();
		/* From here on a panic finds nothing to say good-bye to. */
		WRITE_ONCE(vbg_area, NULL);
		vbg_area_drop(a);
		vbg_redirect_sweep();
		vbg_retry_s = 1;
		vbg_next_try = jiffies + HZ;
	}
	if (!vbg_kept_none()) {
		WRITE_ONCE(vbg_last_status, -VB_EAGAIN);
		return;
	}
	if (time_before(jiffies, vbg_next_try))
		return;
	status = vbg_try_register();
	/* No host module is nothing to warn of, versions have been told. */
	if (status && status != vbg_last_status && status != -VB_ENOSYS &&
	    status != -VB_EPROTO)
		pr_warn("no page (%s: error %d): run states from %s\n",
			vbg_page_missing(status), status, vbg_state_source());
	WRITE_ONCE(vbg_last_status, status);
	if (status) {
		vbg_next_try = jiffies + vbg_retry_s * HZ;
		vbg_retry_s = min(vbg_retry_s * 2, VBG_RETRY_MAX_S);
	} else {
		vbg_retry_s = 1;
	}
}

/*
 * Last answer to a registration: 0, or a negative VB_E*. Context: any. It may
 * change at any time: ask once.
 */
int vbg_page_status(void)
{
	return READ_ONCE(vbg_last_status);
}

/* ---- the kernel goes ---- */

static void vbg_page_goodbye(void)
{
	struct vbg_area *a = READ_ONCE(vbg_area);

	WRITE_ONCE(vbg_leaving, true);
	if (a)
		vbg_unregister(a);
}

/* Context: process; no work item after the first line. */
static void vbg_page_leave(void)
{
	vbg_maintain_stop();
	/* As in vbg_page_dead(). */
	if (vbg_area)
		WRITE_ONCE(vbg_area->hdr->cookie, 0);
	RCU_INIT_POINTER(vbg_active, NULL);
	WRITE_ONCE(vbg_leaving, true);
	if (vbg_kept)
		vbg_area_release(vbg_kept);
	if (!vbg_area)
		return;
	vbg_area_release(vbg_area);
	vbg_redirect_sweep();
}

/* Reboot and kexec. */
static int vbg_reboot(struct notifier_block *nb, unsigned long event, void *d)
{
	vbg_page_leave();
	return NOTIFY_DONE;
}

static struct notifier_block vbg_reboot_nb = { .notifier_call = vbg_reboot };

/*
 * Hibernation. The image must not contain an area that the host no longer
 * knows, and the kernel that restores an image must not leave the host
 * writing to memory that the image then uses.
 */
static int vbg_pm(struct notifier_block *nb, unsigned long event, void *d)
{
	switch (event) {
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		vbg_clock_sleeps();
		vbg_page_leave();
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		vbg_clock_wakes();
		/* The work item drops the old area first. */
		WRITE_ONCE(vbg_leaving, false);
		vbg_maintain_start();
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block vbg_pm_nb = { .notifier_call = vbg_pm };

/* Context: any, other CPUs are stopped. */
static int vbg_panic(struct notifier_block *nb, unsigned long event, void *d)
{
	vbg_page_goodbye();
	return NOTIFY_DONE;
}

static struct notifier_block vbg_panic_nb = { .notifier_call = vbg_panic };

/*
 * A crash kernel starts before the notifiers are called. It must not meet our
 * keys: the host would redirect its interrupts, and nobody would serve them.
 */
static int vbg_crash(struct kprobe *p, struct pt_regs *regs)
{
	vbg_page_goodbye();
	return 0;
}

static struct kprobe vbg_crash_kp;
static int vbg_crash_err;

static bool vbg_no_kdump(void)
{
	return vbg_crash_err && !VB_HAS_KDUMP;
}

/**
 * vbg_crash_error() - does the host let go before a crash kernel starts?
 * @what: what is probed for it, or what is wrong with, or not known of, all
 *	probes
 * Context: any, after vbg_page_init().
 * Return: 0 (or no crash kernel can start), or why not.
 */
int vbg_crash_error(const char **what)
{
	int err = vbg_crash_err;

	if (vbg_no_kdump()) {
		*what = "this kernel has no kdump";
		return 0;
	}
	if (!err)
		err = vb_probed_error(what);
	if (!err || vbg_crash_err)
		*what = VB_KDUMP_FN;
	return err;
}

static void vbg_crash_init(void)
{
	const char *what;
	int err;

	vbg_crash_kp = (struct kprobe) {
		.symbol_name = VB_KDUMP_FN,
		.pre_handler = vbg_crash,
	};
	vbg_crash_err = IS_ENABLED(CONFIG_KEXEC_CORE) ?
			register_kprobe(&vbg_crash_kp) : -ENOENT;
	if (vbg_no_kdump())
		return;
	if (vbg_crash_err) {
		pr_warn("no probe on %s (error %d): unload before a kdump\n",
			VB_KDUMP_FN, vbg_crash_err);
		return;
	}
	vb_probed_init();
	err = vbg_crash_error(&what);
	if (err)
		pr_warn("%s (error %d): unload before a kdump\n", what, err);
}

static void vbg_crash_exit(void)
{
	if (vbg_crash_err)
		return;
	vb_probed_exit();
	unregister_kprobe(&vbg_crash_kp);
}

int vbg_page_init(void)
{
	int err;

	vbg_next_try = jiffies;
	err = vb_fault("load") ?: register_reboot_notifier(&vbg_reboot_nb);
	if (err)
		return err;
	err = vb_fault("load") ?:
	      atomic_notifier_chain_register(&panic_notifier_list,
					     &vbg_panic_nb);
	if (err)
		goto err_reboot;
	vbg_crash_init();
	return 0;

err_reboot:
	unregister_reboot_notifier(&vbg_reboot_nb);
	return err;
}

/* From here on hibernation can stop and start the maintenance. */
int vbg_page_pm_init(void)
{
	return vb_fault("load") ?: register_pm_notifier(&vbg_pm_nb);
}

/* Before the maintenance is stopped for good. */
void vbg_page_pm_exit(void)
{
	unregister_pm_notifier(&vbg_pm_nb);
}

/*
 * After the maintenance work item, before the tracepoints are off and the
 * interrupts forgotten: nothing that the host has redirected is lost.
 */
void vbg_page_exit(void)
{
	struct vbg_area *a = vbg_area;

	vbg_redirect_stop();
	RCU_INIT_POINTER(vbg_active, NULL);
	/* One that is dead may have kept its keys: see vbg_page_work(). */
	if (a)
		WRITE_ONCE(a->hdr->cookie, 0);
	atomic_notifier_chain_unregister(&panic_notifier_list, &vbg_panic_nb);
	unregister_reboot_notifier(&vbg_reboot_nb);
	/* A probe that has seen it still is waited for in the drop. */
	WRITE_ONCE(vbg_area, NULL);
	if (a) {
		vbg_area_drop(a);
		vbg_redirect_sweep();
	}
	if (!vbg_kept_none()) {
		pr_warn("host does not let go of the shared area: leaking %u pages\n",
			vbg_kept->nr_pages);
		kmemleak_not_leak(vbg_kept);
	}
	/*
	 * Last: it may wait for a CPU that goes, and that for I/O which waits
	 * for the sweep.
	 */
	vbg_crash_exit();
}
