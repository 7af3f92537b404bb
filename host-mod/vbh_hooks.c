// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks on KVM: which function, by which mechanism, for which feature.
 *
 * kvm.ko is neither linked against nor kept loaded by us. When it is not
 * there, the hooks wait for it (module notifier); when it goes, they go.
 *
 *	kvm_arch_vcpu_load, kvm_arch_vcpu_put	run states; hot: ftrace_ops,
 *						or kprobes (parameter hook)
 *	kvm_arch_vcpu_destroy,
 *	kvm_arch_destroy_vm			lifetime; kprobes
 *	kvm_emulate_hypercall			registration; kretprobe
 *
 * The first four belong together: without one of them no state is published.
 */
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "../compat/ftrace_arg.h"
#include "vbh.h"
#include "vbh_param.h"

#define VBH_SYM_LOAD	"kvm_arch_vcpu_load"
#define VBH_SYM_PUT	"kvm_arch_vcpu_put"

struct vbh_feature_state vbh_features[VBH_NR_FEATURES] = {
	[VBH_F_RUN_STATE] = { "run_state",
		"run states of vCPUs are observed and published", -ENXIO },
	[VBH_F_REGISTRATION] = { "registration",
		"guests can register a shared area", -ENXIO },
};

bool vbh_kvm_present;

static void vbh_feature_set(enum vbh_feature f, int err, const char *detail)
{
	vbh_features[f].err = err;
	vbh_features[f].detail = detail;
}

/* ---- run states: ftrace ---- */

/*
 * Both functions are called with preemption disabled, the callbacks inherit
 * it. FTRACE_OPS_FL_PERMANENT: kernel.ftrace_enabled=0 must not silently
 * freeze the states that guests rely on; the sysctl answers -EBUSY while we
 * are loaded.
 */
static void notrace vbh_ftrace_load(unsigned long ip, unsigned long parent_ip,
				    struct ftrace_ops *op,
				    struct ftrace_regs *fregs)
{
	vbh_on_load((struct kvm_vcpu *)vb_ftrace_arg(fregs, 0));
}

static void notrace vbh_ftrace_put(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *op,
				   struct ftrace_regs *fregs)
{
	vbh_on_put((struct kvm_vcpu *)vb_ftrace_arg(fregs, 0));
}

static struct ftrace_ops vbh_ops_load;
static struct ftrace_ops vbh_ops_put;

static int vbh_ftrace_add(struct ftrace_ops *ops, ftrace_func_t func,
			  char *symbol)
{
	int err;

	/* ftrace_free_filter() leaves dangling hashes: never use ops again. */
	*ops = (struct ftrace_ops) {
		.func = func,
		.flags = FTRACE_OPS_FL_PERMANENT,
	};
	err = ftrace_set_filter(ops, symbol, strlen(symbol), 1);
	if (err)
		return err;
	err = register_ftrace_function(ops);
	if (err)
		ftrace_free_filter(ops);
	return err;
}

static void vbh_ftrace_del(struct ftrace_ops *ops)
{
	unregister_ftrace_function(ops);
	ftrace_free_filter(ops);
}

/* ---- everything else: kprobes ---- */

static int vbh_kp_load(struct kprobe *p, struct pt_regs *regs)
{
	vbh_on_load((struct kvm_vcpu *)regs->di);
	return 0;
}

static int vbh_kp_put(struct kprobe *p, struct pt_regs *regs)
{
	vbh_on_put((struct kvm_vcpu *)regs->di);
	return 0;
}

static int vbh_kp_vcpu_destroy(struct kprobe *p, struct pt_regs *regs)
{
	vbh_vcpu_destroyed((struct kvm_vcpu *)regs->di);
	return 0;
}

static int vbh_kp_vm_destroy(struct kprobe *p, struct pt_regs *regs)
{
	vbh_vm_destroyed((struct kvm *)regs->di);
	return 0;
}

enum {
	VBH_KP_VCPU_DESTROY,
	VBH_KP_VM_DESTROY,
	VBH_KP_LOAD,		/* only with hook=kprobe */
	VBH_KP_PUT,
	VBH_NR_KP,
};

static const struct {
	const char *symbol;
	kprobe_pre_handler_t handler;
} vbh_kp_def[VBH_NR_KP] = {
	[VBH_KP_VCPU_DESTROY] = { "kvm_arch_vcpu_destroy",
				  vbh_kp_vcpu_destroy },
	[VBH_KP_VM_DESTROY] = { "kvm_arch_destroy_vm", vbh_kp_vm_destroy },
	[VBH_KP_LOAD] = { VBH_SYM_LOAD, vbh_kp_load },
	[VBH_KP_PUT] = { VBH_SYM_PUT, vbh_kp_put },
};

static struct kprobe vbh_kp[VBH_NR_KP];
static bool vbh_kp_on[VBH_NR_KP];

static int vbh_kprobe_add(int i)
{
	int err;

	/* A kprobe cannot be registered twice without being cleared. */
	vbh_kp[i] = (struct kprobe) {
		.symbol_name = vbh_kp_def[i].symbol,
		.pre_handler = vbh_kp_def[i].handler,
	};
	err = register_kprobe(&vbh_kp[i]);
	vbh_kp_on[i] = !err;
	return err;
}

static void vbh_kprobes_del(void)
{
	struct kprobe *on[VBH_NR_KP];
	int i, n = 0;

	for (i = 0; i < VBH_NR_KP; i++) {
		if (!vbh_kp_on[i])
			continue;
		on[n++] = &vbh_kp[i];
		vbh_kp_on[i] = false;
	}
	if (n)
		unregister_kprobes(on, n);	/* waits for the handlers */
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

static struct kretprobe vbh_kretprobe;
static bool vbh_kretprobe_on;

static int vbh_kretprobe_add(void)
{
	int err;

	vbh_kretprobe = (struct kretprobe) {
		.kp.symbol_name = "kvm_emulate_hypercall",
		.entry_handler = vbh_call_entry,
		.handler = vbh_call_return,
		.data_size = sizeof(struct vbh_call),
		.maxactive = max(64, 2 * (int)num_possible_cpus()),
	};
	err = register_kretprobe(&vbh_kretprobe);
	vbh_kretprobe_on = !err;
	return err;
}

static void vbh_kretprobe_del(void)
{
	if (vbh_kretprobe_on)
		unregister_kretprobe(&vbh_kretprobe);
	vbh_kretprobe_on = false;
}

/* ---- all of them ---- */

static bool vbh_ftrace_on;

static int vbh_run_state_ftrace(void)
{
	int err;

	err = vbh_ftrace_add(&vbh_ops_put, vbh_ftrace_put, VBH_SYM_PUT);
	if (err)
		return err;
	err = vbh_ftrace_add(&vbh_ops_load, vbh_ftrace_load, VBH_SYM_LOAD);
	if (err) {
		vbh_ftrace_del(&vbh_ops_put);
		return err;
	}
	vbh_ftrace_on = true;
	return 0;
}

static int vbh_run_state_add(void)
{
	const char *missing;
	int err;

	/* Lifetime first: an object must never be made that cannot go. */
	missing = vbh_kp_def[VBH_KP_VCPU_DESTROY].symbol;
	err = vbh_kprobe_add(VBH_KP_VCPU_DESTROY);
	if (err)
		goto err_missing;
	missing = vbh_kp_def[VBH_KP_VM_DESTROY].symbol;
	err = vbh_kprobe_add(VBH_KP_VM_DESTROY);
	if (err)
		goto err_missing;

	if (vbh_hook != VBH_HOOK_KPROBE) {
		err = vbh_run_state_ftrace();
		if (!err) {
			vbh_feature_set(VBH_F_RUN_STATE, 0, "ftrace");
			return 0;
		}
		missing = "ftrace on " VBH_SYM_LOAD "/put";
		if (vbh_hook == VBH_HOOK_FTRACE)
			goto err_missing;
	}
	missing = VBH_SYM_PUT;
	err = vbh_kprobe_add(VBH_KP_PUT);
	if (err)
		goto err_missing;
	missing = VBH_SYM_LOAD;
	err = vbh_kprobe_add(VBH_KP_LOAD);
	if (err)
		goto err_missing;
	vbh_feature_set(VBH_F_RUN_STATE, 0, "kprobe");
	return 0;

err_missing:
	vbh_kprobes_del();
	vbh_feature_set(VBH_F_RUN_STATE, err, missing);
	return err;
}

static void vbh_hooks_off(const char *why)
{
	int f;

	/* No new registrations, then no state, then the objects. */
	vbh_kretprobe_del();
	if (vbh_ftrace_on) {
		vbh_ftrace_del(&vbh_ops_load);
		vbh_ftrace_del(&vbh_ops_put);
		vbh_ftrace_on = false;
	}
	vbh_kprobes_del();
	for (f = 0; f < VBH_NR_FEATURES; f++)
		vbh_feature_set(f, -ENXIO, why);
	vbh_vm_drop_all();
}

static int vbh_hooks_on(void)
{
	int err, f;

	err = vbh_run_state_add();
	if (err)
		goto err_off;
	if (vbh_observe) {
		vbh_feature_set(VBH_F_REGISTRATION, -EPERM, "observe=1");
	} else {
		err = vbh_kretprobe_add();
		vbh_feature_set(VBH_F_REGISTRATION, err,
				"kretprobe on kvm_emulate_hypercall");
	}
	for (f = 0; f < VBH_NR_FEATURES; f++)
		if (vbh_features[f].err)
			pr_warn("%s: off (%s: error %d)\n",
				vbh_features[f].name, vbh_features[f].detail,
				vbh_features[f].err);
	return 0;

err_off:
	vbh_kprobes_del();
	pr_err("no hook on KVM: %s: error %d\n",
	       vbh_features[VBH_F_RUN_STATE].detail, err);
	return err;
}

/*
 * kvm.ko comes and goes. Hooks are set in COMING (its functions are known to
 * ftrace and kprobes by then, its init function has not run) and removed in
 * GOING (no VM is left, its exit function has run).
 */
static DEFINE_MUTEX(vbh_hooks_mutex);

static int vbh_module_event(struct notifier_block *nb, unsigned long event,
			    void *data)
{
	struct module *mod = data;

	if (strcmp(mod->name, "kvm"))
		return NOTIFY_DONE;
	mutex_lock(&vbh_hooks_mutex);
	if (event == MODULE_STATE_COMING && !vbh_kvm_present) {
		vbh_kvm_present = !vbh_hooks_on();
	} else if (event == MODULE_STATE_GOING && vbh_kvm_present) {
		vbh_hooks_off("kvm is not loaded");
		vbh_kvm_present = false;
	}
	mutex_unlock(&vbh_hooks_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block vbh_module_nb = {
	.notifier_call = vbh_module_event,
};

/* Is KVM there? A symbol that every kernel with KVM has answers it. */
static bool vbh_probe_kvm(void)
{
	struct kprobe kp = { .symbol_name = VBH_SYM_PUT };

	if (register_kprobe(&kp))
		return false;
	unregister_kprobe(&kp);
	return true;
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
 * Context: may sleep. Return: 0 or why KVM is there but cannot be hooked.
 */
int vbh_hooks_init(void)
{
	int f, err;

	for (f = 0; f < VBH_NR_FEATURES; f++)
		vbh_feature_set(f, -ENXIO, "kvm is not loaded");
	err = register_module_notifier(&vbh_module_nb);
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
