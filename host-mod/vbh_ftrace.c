// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks on KVM by ftrace, the cheaper of the two mechanisms. Not built for
 * a kernel without CONFIG_DYNAMIC_FTRACE: there they are kprobes.
 */
#include <linux/delay.h>
#include <linux/ftrace.h>

#include "../common/fault.h"
#include "../compat/ftrace_arg.h"
#include "vbh.h"

/* Preemption is disabled in KVM where it matters (load, put). */
#define VBH_FTRACE_FN(name, handler, type)				\
static void notrace vbh_ftrace_##name(unsigned long ip,			\
				      unsigned long parent_ip,		\
				      struct ftrace_ops *op,		\
				      struct ftrace_regs *fregs)	\
{									\
	handler((type *)vb_ftrace_arg(fregs, 0));			\
}

VBH_FTRACE_FN(vcpu_destroy, vbh_vcpu_destroyed, struct kvm_vcpu)
VBH_FTRACE_FN(vm_destroy, vbh_vm_destroyed, struct kvm)
VBH_FTRACE_FN(put, vbh_on_put, struct kvm_vcpu)
VBH_FTRACE_FN(load, vbh_on_load, struct kvm_vcpu)

static void notrace vbh_ftrace_deliver(unsigned long ip,
				       unsigned long parent_ip,
				       struct ftrace_ops *op,
				       struct ftrace_regs *fregs)
{
	vbh_on_deliver((struct kvm *)vb_ftrace_arg(fregs, 0),
		       (const void *)vb_ftrace_arg(fregs, 1),
		       (struct kvm_lapic_irq *)vb_ftrace_arg(fregs, 2));
}

static const ftrace_func_t vbh_ftrace_fn[VBH_NR_H] = {
	[VBH_H_VCPU_DESTROY] = vbh_ftrace_vcpu_destroy,
	[VBH_H_VM_DESTROY] = vbh_ftrace_vm_destroy,
	[VBH_H_PUT] = vbh_ftrace_put,
	[VBH_H_LOAD] = vbh_ftrace_load,
	[VBH_H_DELIVER] = vbh_ftrace_deliver,
	[VBH_H_DELIVER_SLOW] = vbh_ftrace_deliver,
};

static struct ftrace_ops vbh_ops[VBH_NR_H];

/**
 * vbh_ftrace_add() - set one hook
 * @h: which
 * @symbol: on what
 * Context: process; callers serialise.
 * Return: 0 or a negative errno.
 */
int vbh_ftrace_add(enum vbh_hooked h, const char *symbol)
{
	unsigned long at;
	int err;

	err = vbh_probe_address(vb_hooked(symbol), &at);
	if (err)
		return err;
	/*
	 * ftrace_free_filter() leaves dangling hashes: never use ops again.
	 * PERMANENT: kernel.ftrace_enabled=0 must not silently freeze the
	 * states that guests rely on; the sysctl answers -EBUSY while we are
	 * loaded.
	 */
	vbh_ops[h] = (struct ftrace_ops) {
		.func = vbh_ftrace_fn[h],
		.flags = FTRACE_OPS_FL_PERMANENT,
	};
	/*
	 * Not ftrace_set_filter(): for want of memory it says that all is well
	 * and leaves the filter empty, which means every function of the kernel
	 * (ftrace_set_hash(): what ftrace_match_records() returns is no bool).
	 */
	err = ftrace_set_filter_ip(&vbh_ops[h], at, 0, 1);
	if (err)
		return err;
	err = register_ftrace_function(&vbh_ops[h]);
	if (err)
		ftrace_free_filter(&vbh_ops[h]);
	return err;
}

/*
 * Removes one that was set. For want of memory it stays for a while, and for
 * good where ftrace has found code that is not what it had made of it
 * (ftrace_bug()). Rather wait than free what will be called.
 * Context: as above; sleeps until nobody runs it.
 */
void vbh_ftrace_del(enum vbh_hooked h)
{
	int err;

	for (;;) {
		err = vb_fault("unhook") ?:
		      unregister_ftrace_function(&vbh_ops[h]);
		if (!err)
			break;
		pr_err_ratelimited("a hook cannot be removed yet: error %d\n",
				   err);
		msleep(1000);
	}
	ftrace_free_filter(&vbh_ops[h]);
}
