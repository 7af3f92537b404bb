// SPDX-License-Identifier: GPL-2.0
/*
 * For the lab, whose host is emulated: an exit of a guest that interrupts no
 * event says so.
 *
 * QEMU's emulation of SVM (target/i386/tcg/system, handle_even_inj() and
 * do_vmexit()) leaves the type of the last exception of the guest in
 * EXITINTINFO and clears its valid bit alone. KVM looks at the type only, since
 * 6.14 (svm_check_emulate_instruction()), and gives up a guest that touches a
 * device's memory after a page fault with no other exit in between ("KVM
 * internal error. Suberror: 3"). Processors leave nothing there.
 */
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/mm.h>
#include <linux/module.h>

#include <asm/svm.h>

/* The beginning of KVM's own, arch/x86/kvm/svm/svm.h. */
struct vcpu_svm {
	struct kvm_vcpu vcpu;
	struct vmcb *vmcb;
};

static ulong cleared;
module_param(cleared, ulong, 0444);
MODULE_PARM_DESC(cleared, "exits so far that left something of an event which was not interrupted");

/* Context: the vCPU's thread after an exit, preemption disabled. */
static int event_type_pre(struct kprobe *p, struct pt_regs *regs)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)regs->di;
	struct vmcb *vmcb = container_of(vcpu, struct vcpu_svm, vcpu)->vmcb;
	u32 info;

	if (WARN_ON_ONCE(!PAGE_ALIGNED(vmcb) || !virt_addr_valid(vmcb)))
		return 0;
	info = vmcb->control.exit_int_info;
	if (info && !(info & SVM_EXITINTINFO_VALID)) {
		vmcb->control.exit_int_info = 0;
		/* Two CPUs at once may count as one. */
		WRITE_ONCE(cleared, cleared + 1);
	}
	return 0;
}

static struct kprobe event_type_probe;

/* Return: 0, also while there is no kvm_amd; or an error. */
static int event_type_watch(void)
{
	int err;

	event_type_probe = (struct kprobe) {
		.symbol_name = "svm_check_emulate_instruction",
		.pre_handler = event_type_pre,
	};
	err = register_kprobe(&event_type_probe);
	if (err)
		event_type_probe.pre_handler = NULL;
	return err == -ENOENT ? 0 : err;
}

static void event_type_end(void)
{
	if (event_type_probe.pre_handler)
		unregister_kprobe(&event_type_probe);
	event_type_probe.pre_handler = NULL;
}

/* Tests unload KVM, and the probe does not come back with it by itself. */
static int event_type_module(struct notifier_block *nb, unsigned long state,
			     void *data)
{
	const struct module *mod = data;

	if (strcmp(mod->name, "kvm_amd"))
		return NOTIFY_DONE;
	if (state == MODULE_STATE_LIVE) {
		event_type_end();
		WARN_ON_ONCE(event_type_watch());
	}
	return NOTIFY_DONE;
}

static struct notifier_block event_type_nb = {
	.notifier_call = event_type_module,
};

static int __init event_type_init(void)
{
	int err = register_module_notifier(&event_type_nb);

	if (err)
		return err;
	err = event_type_watch();
	if (err)
		unregister_module_notifier(&event_type_nb);
	return err;
}

static void __exit event_type_exit(void)
{
	unregister_module_notifier(&event_type_nb);
	event_type_end();
}

module_init(event_type_init);
module_exit(event_type_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("For the lab: no type of an event without an event");
