// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks on KVM: which function, by which mechanism, for which feature.
 *
 * kvm.ko is neither linked against nor kept loaded by us. When it is not
 * there, the hooks wait for it (module notifier); when it goes, they go.
 *
 *	kvm_arch_vcpu_load, kvm_arch_vcpu_put	run states
 *	kvm_arch_vcpu_destroy,
 *	kvm_arch_destroy_vm			lifetime
 *	kvm_irq_delivery_to_apic_fast,
 *	__kvm_irq_delivery_to_apic		redirection, boosts
 *	kvm_emulate_hypercall			registration; kretprobe
 *	vhost_net_ioctl, vhost_net_release	rings; see vbh_ring_table.c
 *	ioeventfd_write				rings; see vbh_kicks.c
 *	kvm_emulate_hypercall once more		boosts; see vbh_locks.c
 *
 * The first four belong together: without one of them no state is published.
 * They are ftrace_ops or kprobes (parameter hook), all by the same mechanism
 * (the fifth and sixth as well, whose absence is no reason to refuse): one that
 * can be switched off alone (debugfs kprobes/enabled) would leave
 * objects behind whose end is not seen.
 */
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "../common/fault.h"
#include "../compat/delivery.h"
#include "../compat/task_charge.h"
#include "vbh.h"
#include "vbh_param.h"

struct vbh_feature_state vbh_features[VBH_NR_FEATURES] = {
	[VBH_F_RUN_STATE] = { "run_state",
		"run states of vCPUs are observed and published", -ENXIO },
	[VBH_F_REGISTRATION] = { "registration",
		"guests can register a shared area", -ENXIO },
	[VBH_F_REDIRECT] = { "redirect",
		"interrupts of preempted vCPUs are redirected", -ENXIO },
	[VBH_F_BOOST] = { "boost",
		"vCPUs that interrupts wait for are boosted", -ENXIO },
	[VBH_F_REPAY] = { "boost_repay",
		"boosts are paid back out of the threads' own shares", -ENXIO },
	[VBH_F_RINGS] = { "rings",
		"rings tell when a vCPU is done with an interrupt", -ENXIO },
	[VBH_F_KICKS] = { "kicks",
		"who has told the device its answer is done soon", -ENXIO },
	[VBH_F_LOCKS] = { "locks",
		"who slept for a lock while critical is boosted", -ENXIO },
	[VBH_F_CHECK] = { "btf_check",
		"the kernel was found to be as this was built for", -ENXIO },
};

bool vbh_kvm_present;

void vbh_feature_set(enum vbh_feature f, int err, const char *detail)
{
	vbh_features[f].err = err;
	vbh_features[f].detail = detail;
}

/* ---- the four that belong together, and those on deliveries ---- */

/* By kprobes. */
#define VBH_KPROBE_FN(name, handler, type)				\
static int vbh_kprobe_##name(struct kprobe *p, struct pt_regs *regs)	\
{									\
	handler((type *)regs->di);					\
	return 0;							\
}

VBH_KPROBE_FN(vcpu_destroy, vbh_vcpu_destroyed, struct kvm_vcpu)
VBH_KPROBE_FN(vm_destroy, vbh_vm_destroyed, struct kvm)
VBH_KPROBE_FN(put, vbh_on_put, struct kvm_vcpu)
VBH_KPROBE_FN(load, vbh_on_load, struct kvm_vcpu)

static int vbh_kprobe_deliver(struct kprobe *p, struct pt_regs *regs)
{
	vbh_on_deliver((struct kvm *)regs->di, (const void *)regs->si,
		       (struct kvm_lapic_irq *)regs->dx);
	return 0;
}

static const struct {
	const char *symbol;
	kprobe_pre_handler_t kprobe;
} vbh_h[VBH_NR_H] = {
	[VBH_H_VCPU_DESTROY] = { "kvm_arch_vcpu_destroy",
				 vbh_kprobe_vcpu_destroy },
	[VBH_H_VM_DESTROY] = { "kvm_arch_destroy_vm", vbh_kprobe_vm_destroy },
	[VBH_H_PUT] = { "kvm_arch_vcpu_put", vbh_kprobe_put },
	[VBH_H_LOAD] = { "kvm_arch_vcpu_load", vbh_kprobe_load },
	[VBH_H_DELIVER] = { "kvm_irq_delivery_to_apic_fast",
			    vbh_kprobe_deliver },
	[VBH_H_DELIVER_SLOW] = { VB_DELIVERY_SLEEPING,
				 vbh_kprobe_deliver },
};

static struct kprobe vbh_kp[VBH_NR_H];
static int vbh_ops_on, vbh_kp_on;	/* how many of them */

/* In reverse: lifetime goes last. */
static void vbh_ftrace_del_all(void)
{
	while (vbh_ops_on)
		vbh_ftrace_del(--vbh_ops_on);
}

/* All hooks up to @nr; on failure those that are on stay. */
static int vbh_ftrace_add_to(int nr, const char **missing)
{
	int err;

	while (vbh_ops_on < nr) {
		*missing = vbh_h[vbh_ops_on].symbol;
		err = vbh_ftrace_add(vbh_ops_on, *missing);
		if (err)
			return err;
		vbh_ops_on++;
	}
	return 0;
}

static void vbh_kprobes_del_all(void)
{
	while (vbh_kp_on)
		unregister_kprobe(&vbh_kp[--vbh_kp_on]);
}

static int vbh_kprobes_add_to(int nr, const char **missing)
{
	int err;

	while (vbh_kp_on < nr) {
		*missing = vbh_h[vbh_kp_on].symbol;
		/* A kprobe cannot be registered again without being cleared. */
		vbh_kp[vbh_kp_on] = (struct kprobe) {
			.symbol_name = vbh_h[vbh_kp_on].symbol,
			.pre_handler = vbh_h[vbh_kp_on].kprobe,
		};
		err = register_kprobe(&vbh_kp[vbh_kp_on]);
		if (err)
			return err;
		vbh_kp_on++;
	}
	return 0;
}

/* ---- registration: return probe ---- */

struct vbh_call {
	struct kvm_vcpu *vcpu;
	u64 op, a1, a2, a3;
};

static u64 *vbh_gpr(struct kvm_vcpu *vcpu, int reg)
{
	return (u64 *)&vcpu->arch.regs[reg];
}

/* Nonzero: not ours, the return of this call is not probed. */
static int vbh_call_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct vbh_call *c = (struct vbh_call *)ri->data;
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)regs->di;

	if (likely(*vbh_gpr(vcpu, VCPU_REGS_RAX) != VB_HYPERCALL))
		return 1;
	/* A guest's own guest talks to the guest, not to us. */
	if (vcpu->arch.hflags & HF_GUEST_MASK)
		return 1;
	c->vcpu = vcpu;
	c->op = *vbh_gpr(vcpu, VCPU_REGS_RBX);
	c->a1 = *vbh_gpr(vcpu, VCPU_REGS_RCX);
	c->a2 = *vbh_gpr(vcpu, VCPU_REGS_RDX);
	c->a3 = *vbh_gpr(vcpu, VCPU_REGS_RSI);
	return 0;
}

/*
 * KVM has decided: -KVM_ENOSYS in all 64 bits means that a 64-bit kernel
 * called and nobody answered. -KVM_EPERM is for callers in user mode; other
 * results (Xen, Hyper-V, 32-bit) are not ours to touch.
 */
static int vbh_call_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct vbh_call *c = (struct vbh_call *)ri->data;
	u64 *rax = vbh_gpr(c->vcpu, VCPU_REGS_RAX);

	if (*rax == (u64)-KVM_EPERM)
		vbh_count_refusal(-VB_EPERM);
	else if (*rax == (u64)-KVM_ENOSYS)
		*rax = vbh_hypercall(c->vcpu, c->op, c->a1, c->a2, c->a3);
	return 0;
}

static struct vbh_kretprobe vbh_call_probe = {
	.symbol = VBH_HYPERCALL,
	.how = "kretprobe on " VBH_HYPERCALL,
	.entry = vbh_call_entry,
	.handler = vbh_call_return,
	.data_size = sizeof(struct vbh_call),
};

/* ---- all of them ---- */

static int vbh_run_state_add(void)
{
	const char *missing, *no_ftrace = NULL, *how = "ftrace";
	int err = -ENODEV, ftrace_err;

	missing = vbh_facts_differ(VBH_F_RUN_STATE);
	if (missing) {
		err = vbh_facts_error();
		vbh_feature_set(VBH_F_RUN_STATE, err, missing);
		return err;
	}
	if (vbh_hook != VBH_HOOK_KPROBE) {
		err = vbh_ftrace_add_to(VBH_NR_NEEDED, &missing);
		if (err)
			vbh_ftrace_del_all();
		/* Switched off: kprobes on ftrace would never fire either. */
		if (err == -EBUSY)
			missing = "ftrace is switched off (sysctl kernel.ftrace_enabled)";
		else if (err && !IS_ENABLED(CONFIG_DYNAMIC_FTRACE))
			missing = "CONFIG_DYNAMIC_FTRACE";
	}
	if (vbh_hook == VBH_HOOK_AUTO && err && err != -EBUSY) {
		no_ftrace = missing;
		ftrace_err = err;
	}
	if (vbh_hook == VBH_HOOK_KPROBE || no_ftrace) {
		how = no_ftrace ? "kprobe, not ftrace" : "kprobe";
		err = vbh_kprobes_add_to(VBH_NR_NEEDED, &missing);
		if (err)
			vbh_kprobes_del_all();
		else if (no_ftrace)
			pr_warn("run_state: not ftrace (%s: error %d)\n",
				no_ftrace, ftrace_err);
	}
	vbh_feature_set(VBH_F_RUN_STATE, err, err ? missing : how);
	return err;
}

static void vbh_boost_on(const char *how)
{
	const char *missing;
	int err = vbh_lift_error(&missing);

	vbh_feature_set(VBH_F_BOOST, err, err ? missing : how);
	missing = vbh_facts_differ(VBH_F_REPAY);
	if (!VB_HAS_TASK_CHARGE)
		vbh_feature_set(VBH_F_REPAY, -EOPNOTSUPP,
				"not with this kernel's scheduler");
	else if (!missing && err)
		vbh_feature_set(VBH_F_REPAY, -ENXIO, "boost is off");
	else
		vbh_feature_set(VBH_F_REPAY, missing ? -ENOEXEC : 0,
				missing ?: "within a cgroup");
}

/* A feature that is one return probe. */
static void vbh_return_of(struct vbh_kretprobe *p, enum vbh_feature f)
{
	const char *missing = vbh_facts_differ(f);

	vbh_feature_set(f, missing ? -ENOEXEC : vbh_kretprobe_add(p),
			missing ?: p->how);
}

static int vbh_probe_once(const char *symbol, u32 flags, unsigned long *at)
{
	/* Not on the stack: without memory the kernel cannot disarm it. */
	static struct kprobe kp;
	int err;

	kp = (struct kprobe){ .symbol_name = symbol, .flags = flags };
	err = register_kprobe(&kp);
	if (err)
		return err;
	*at = (unsigned long)kp.addr;
	unregister_kprobe(&kp);
	return 0;
}

/**
 * vbh_probe_error() - can a function be probed?
 * @symbol: its name
 * Context: process, callers serialise.
 * Return: 0; -ENOENT: there is none; others: why not.
 */
int vbh_probe_error(const char *symbol)
{
	unsigned long at;

	return vbh_probe_once(symbol, 0, &at);
}

/**
 * vbh_probe_address() - where is a function?
 * @symbol: its name
 * @at: its address, or that of its call of ftrace
 * Context: process, callers serialise.
 * Return: as vbh_probe_error(), but nothing is patched.
 */
int vbh_probe_address(const char *symbol, unsigned long *at)
{
	return vbh_probe_once(symbol, KPROBE_FLAG_DISABLED, at);
}

static bool vbh_is_one_delivery(void)
{
	unsigned long at;

	return vb_delivery_is_one(vbh_probe_address(VB_DELIVERY_SLEEPING, &at),
				  vbh_probe_address(VB_DELIVERY_ONE, &at));
}

/* By the mechanism that the needed ones use. */
static void vbh_deliver_add(void)
{
	const char *missing, *slow, *how = "ftrace";
	int err = -ENOEXEC, err_slow;

	slow = vbh_facts_differ(VBH_F_SLEEPING);
	err_slow = slow ? -ENOEXEC : 0;
	missing = vbh_facts_differ(VBH_F_REDIRECT);
	if (missing) {
		/* Not hooked. */
	} else if (vbh_ops_on) {
		err = vbh_ftrace_add_to(VBH_H_DELIVER + 1, &missing);
		if (!err && !slow)
			err_slow = vbh_ftrace_add_to(VBH_NR_H, &slow);
	} else {
		how = "kprobe";
		err = vbh_kprobes_add_to(VBH_H_DELIVER + 1, &missing);
		if (!err && !slow)
			err_slow = vbh_kprobes_add_to(VBH_NR_H, &slow);
	}
	/* That there is none is no error of ftrace's own. */
	if (!err && slow && err_slow && !vbh_is_one_delivery()) {
		how = vbh_ops_on ? "ftrace, but not what may sleep" :
				   "kprobe, but not what may sleep";
		pr_warn("redirect: not what may sleep (%s: error %d)\n", slow,
			err_slow);
	}
	if (vbh_redirect_param)
		vbh_feature_set(VBH_F_REDIRECT, err, err ? missing : how);
	else
		vbh_feature_set(VBH_F_REDIRECT, -EPERM, "redirect=0");
	/* Without the hook: no fast path, and only guests that say it. */
	vbh_boost_on(err ? "hints of guests only" :
		     "hints of guests, interrupts");
}

static const char * const vbh_no_vhost = IS_ENABLED(CONFIG_VHOST_NET) ?
	"vhost_net is not loaded" : "this kernel has no vhost_net";

/* vhost_net.ko comes and goes; without it there is nothing to be known. */
static void vbh_rings_try(void)
{
	const char *missing;
	int err = -ENOEXEC;

	vbh_facts_check_vhost();
	missing = vbh_facts_differ(VBH_F_RINGS);
	if (!missing)
		err = vbh_rings_add(&missing);
	vbh_feature_set(VBH_F_RINGS, err,
			!err ? "vhost-net's, set up from now on" :
			err == -ENOENT && !vbh_rings_there() ?
			vbh_no_vhost : missing);
}

/* Nothing that the log has to warn of. */
static bool vbh_is_just_absent(int f)
{
	return (f == VBH_F_RINGS && vbh_features[f].detail == vbh_no_vhost &&
		IS_ENABLED(CONFIG_VHOST_NET)) ||
	       f == VBH_F_CHECK;
}

static void vbh_hooks_off(const char *why)
{
	int f;

	/* A late boost must not be followed by one for whom nobody sees go. */
	vbh_feature_set(VBH_F_BOOST, -ENXIO, why);
	/* No new registrations, then no state, then the objects. */
	vbh_kretprobe_del(&vbh_call_probe);
	vbh_kretprobe_del(&vbh_waker_probe);
	vbh_kretprobe_del(&vbh_kick_probe);
	vbh_ftrace_del_all();
	vbh_kprobes_del_all();
	vbh_rings_del();
	for (f = 0; f < VBH_NR_FEATURES; f++)
		vbh_feature_set(f, -ENXIO, why);
	vbh_vm_drop_all();
}

/* In the log, if it is off. */
static void vbh_feature_say(enum vbh_feature f)
{
	const struct vbh_feature_state *s = &vbh_features[f];

	if (s->err && !vbh_is_just_absent(f))
		pr_warn("%s: off (%s: error %d)\n", s->name, s->detail, s->err);
}

static int vbh_hooks_on(void)
{
	int err, f;

	vbh_facts_check_kvm();
	vbh_lift_check();
	err = vbh_run_state_add();
	if (err) {
		for (f = VBH_F_RUN_STATE + 1; f < VBH_F_CHECK; f++)
			vbh_feature_set(f, -ENXIO, "run_state is off");
		pr_err("no hook on KVM: %s: error %d\n",
		       vbh_features[VBH_F_RUN_STATE].detail, err);
		return err;
	}
	if (vbh_observe) {
		vbh_feature_set(VBH_F_REGISTRATION, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_REDIRECT, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_BOOST, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_REPAY, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_RINGS, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_KICKS, -EPERM, "observe=1");
		vbh_feature_set(VBH_F_LOCKS, -EPERM, "observe=1");
	} else {
		/* Before the first guest asks what there is. */
		vbh_deliver_add();
		vbh_rings_try();
		vbh_return_of(&vbh_kick_probe, VBH_F_KICKS);
		vbh_return_of(&vbh_waker_probe, VBH_F_LOCKS);
		vbh_return_of(&vbh_call_probe, VBH_F_REGISTRATION);
	}
	for (f = 0; f < VBH_NR_FEATURES; f++)
		vbh_feature_say(f);
	return 0;
}

/*
 * kvm.ko comes and goes. Hooks are set in COMING (its functions are known to
 * ftrace and kprobes by then, its init function has not run) and removed in
 * GOING (no VM is left, its exit function has run). vhost_net.ko as well.
 */
static DEFINE_MUTEX(vbh_hooks_mutex);

static void vbh_kvm_event(unsigned long event)
{
	if (event == MODULE_STATE_COMING && !vbh_kvm_present) {
		vbh_kvm_present = !vbh_hooks_on();
	} else if (event == MODULE_STATE_GOING && vbh_kvm_present) {
		vbh_hooks_off("kvm is not loaded");
		vbh_kvm_present = false;
	}
}

static void vbh_vhost_event(unsigned long event)
{
	if (!vbh_kvm_present || vbh_observe)
		return;
	if (event == MODULE_STATE_COMING) {
		vbh_rings_try();
		vbh_feature_say(VBH_F_RINGS);
	} else if (event == MODULE_STATE_GOING) {
		vbh_rings_del();
		vbh_feature_set(VBH_F_RINGS, -ENOENT, vbh_no_vhost);
	}
}

static int vbh_module_event(struct notifier_block *nb, unsigned long event,
			    void *data)
{
	struct module *mod = data;
	bool kvm = !strcmp(mod->name, "kvm");

	if (!kvm && strcmp(mod->name, "vhost_net"))
		return NOTIFY_DONE;
	mutex_lock(&vbh_hooks_mutex);
	if (kvm)
		vbh_kvm_event(event);
	else
		vbh_vhost_event(event);
	mutex_unlock(&vbh_hooks_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block vbh_module_nb = {
	.notifier_call = vbh_module_event,
};

/* Is KVM there? It is if one of the functions is that are needed. */
static bool vbh_probe_kvm(void)
{
	int i;

	for (i = 0; i < VBH_NR_NEEDED; i++)
		if (!vbh_probe_error(vbh_h[i].symbol))
			return true;
	return false;
}

/* The notifier is off: nobody else changes the hooks. */
static void vbh_hooks_remove(void)
{
	if (vbh_kvm_present)
		vbh_hooks_off("unloading");
	vbh_kvm_present = false;
}

/**
 * vbh_hooks_init() - set the hooks, now or when kvm.ko comes
 * Context: may sleep.
 * Return: 0 or why KVM is there but cannot be hooked.
 */
int vbh_hooks_init(void)
{
	int f, err;

	for (f = 0; f < VBH_NR_FEATURES; f++)
		vbh_feature_set(f, -ENXIO, "kvm is not loaded");
	err = vb_fault("load") ?: register_module_notifier(&vbh_module_nb);
	if (err)
		return err;
	/* The notifier may have been faster than we: under its lock. */
	mutex_lock(&vbh_hooks_mutex);
	if (!vbh_kvm_present) {
		if (vbh_probe_kvm()) {
			err = vbh_hooks_on();
			vbh_kvm_present = !err;
		} else {
			pr_info("kvm is not loaded: waiting for it\n");
		}
	}
	mutex_unlock(&vbh_hooks_mutex);
	if (!err)
		return 0;
	unregister_module_notifier(&vbh_module_nb);
	/* kvm.ko may have come in between. */
	vbh_hooks_remove();
	return err;
}

void vbh_hooks_exit(void)
{
	unregister_module_notifier(&vbh_module_nb);
	vbh_hooks_remove();
}
