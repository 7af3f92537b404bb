// SPDX-License-Identifier: GPL-2.0
/*
 * For the lab, whose host is emulated: events that KVM injects into a guest, as
 * processors do it. Two faults of QEMU's emulation of SVM
 * (target/i386/tcg/system/svm_helper.c, seg_helper.c):
 *
 * - helper_vmrun() leaves the vector of an interrupt that it has injected in
 *   exception_index. If QEMU asks the CPU out of its loop before the guest's next
 *   exit, for whatever reason, that vector is delivered once more, whether the
 *   guest allows interrupts or not: an interrupt in the first instructions of an
 *   interrupt. A virtual interrupt (V_IRQ) goes another way, which leaves nothing
 *   there. So KVM's interrupts become such, and what of them has not been
 *   delivered at the exit is put where KVM looks for it. Where that happens with
 *   one entry after the other it is injected as KVM wants it: it has seen to it
 *   that these exit at once, which a virtual interrupt would always come behind.
 * - do_vmexit() leaves the type of the guest's last exception in EXITINTINFO and
 *   clears its valid bit alone. KVM looks at the type only, since 6.14
 *   (svm_check_emulate_instruction()), and gives up a guest that touches a
 *   device's memory after a page fault with no other exit in between ("KVM
 *   internal error. Suberror: 3").
 *
 * And a guest that ends by a triple fault is reported, with what it was doing: it
 * leaves no message, and KVM nothing of its state.
 *
 * Guests of the lab have no SVM of their own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include <asm/svm.h>

/* Entries in a row without delivery. By chance that is one or two of a hundred. */
#define EVENTS_AGAIN	3

#define EVENTS_IRQ_CTL	(V_IRQ_MASK | V_INTR_PRIO_MASK | V_IGN_TPR_MASK)

/* The beginning of KVM's own, arch/x86/kvm/svm/svm.h. */
struct vcpu_svm {
	struct kvm_vcpu vcpu;
	struct vmcb *vmcb;
};

/* What a guest was entered with, from there to its exit. */
struct events_entry {
	struct vmcb *vmcb;	/* NULL: nothing of it was changed */
	u32 int_ctl, int_vector, vector;
	u8 tries;
	u32 exit_int_info;	/* of the last exit, before it was changed */
};

static DEFINE_PER_CPU(struct events_entry, events_entry);

/* Counted without a lock: two CPUs at once may count as one. */
static ulong cleared, injected, again;
module_param(cleared, ulong, 0444);
MODULE_PARM_DESC(cleared, "exits so far that left something of an event which was not interrupted");
module_param(injected, ulong, 0444);
MODULE_PARM_DESC(injected, "interrupts so far that were injected as virtual ones");
module_param(again, ulong, 0444);
MODULE_PARM_DESC(again, "those of them that an exit came before");

static void events_count(ulong *counter)
{
	WRITE_ONCE(*counter, READ_ONCE(*counter) + 1);
}

/* NULL: this is not KVM as we know it. */
static struct vmcb *events_vmcb(const struct pt_regs *regs)
{
	struct kvm_vcpu *vcpu = (struct kvm_vcpu *)regs->di;
	struct vmcb *vmcb = container_of(vcpu, struct vcpu_svm, vcpu)->vmcb;

	if (WARN_ON_ONCE(!PAGE_ALIGNED(vmcb) || !virt_addr_valid(vmcb)))
		return NULL;
	return vmcb;
}

/*
 * Software's own in a VMCB: entries so far that have not delivered this one. At
 * the end, as Hyper-V's have the beginning.
 */
static u8 *events_tries(struct vmcb *vmcb)
{
	struct vmcb_control_area *c = &vmcb->control;

	return &c->reserved_sw[sizeof(c->reserved_sw) - 1];
}

/*
 * Could the guest take an interrupt now, and is there nothing else to take? With
 * TF it may be KVM that goes on by single steps until it has injected.
 */
static bool events_may_be_virtual(const struct vmcb *vmcb)
{
	const struct vmcb_control_area *c = &vmcb->control;

	return (c->event_inj & (SVM_EVTINJ_VALID | SVM_EVTINJ_TYPE_MASK)) ==
		       (SVM_EVTINJ_VALID | SVM_EVTINJ_TYPE_INTR) &&
	       !(c->int_ctl & V_IRQ_MASK) &&
	       !(c->int_state & SVM_INTERRUPT_SHADOW_MASK) &&
	       (vmcb->save.rflags & (X86_EFLAGS_IF | X86_EFLAGS_TF)) ==
		       X86_EFLAGS_IF;
}

/* Context: the vCPU's thread before an entry, interrupts off. */
static int events_enter(struct kprobe *p, struct pt_regs *regs)
{
	struct events_entry *e = this_cpu_ptr(&events_entry);
	struct vmcb *vmcb = events_vmcb(regs);
	struct vmcb_control_area *c;
	u8 tries;

	e->vmcb = NULL;
	if (!vmcb)
		return 0;
	tries = *events_tries(vmcb);
	*events_tries(vmcb) = 0;
	if (tries == EVENTS_AGAIN || !events_may_be_virtual(vmcb))
		return 0;
	c = &vmcb->control;
	e->vmcb = vmcb;
	e->tries = tries;
	e->int_ctl = c->int_ctl;
	e->int_vector = c->int_vector;
	e->vector = c->event_inj & SVM_EVTINJ_VEC_MASK;
	c->event_inj = 0;
	c->int_vector = e->vector;
	c->int_ctl = e->int_ctl | V_IRQ_MASK | V_INTR_PRIO_MASK |
		     V_IGN_TPR_MASK;
	events_count(&injected);
	return 0;
}

/* An entry with what events_enter() has made of it is over. */
static void events_left(const struct events_entry *e)
{
	struct vmcb_control_area *c = &e->vmcb->control;
	bool pending = c->int_ctl & V_IRQ_MASK;

	c->int_ctl = (c->int_ctl & ~EVENTS_IRQ_CTL) |
		     (e->int_ctl & EVENTS_IRQ_CTL);
	c->int_vector = e->int_vector;
	if (!pending)
		return;
	/* QEMU takes it for an exception when it was about to deliver it. */
	WARN_ON_ONCE(c->exit_int_info & SVM_EXITINTINFO_VALID &&
		     (c->exit_int_info & SVM_EXITINTINFO_VEC_MASK) !=
		     e->vector);
	c->exit_int_info = SVM_EXITINTINFO_VALID | SVM_EXITINTINFO_TYPE_INTR |
			   e->vector;
	c->exit_int_info_err = 0;
	*events_tries(e->vmcb) = e->tries + 1;
	events_count(&again);
}

/*
 * Also where KVM takes an event back that it was about to inject: then there was
 * no entry. Context: the vCPU's thread, preemption disabled; on the CPU of the
 * entry.
 */
static int events_complete(struct kprobe *p, struct pt_regs *regs)
{
	struct events_entry *e = this_cpu_ptr(&events_entry);
	struct vmcb *vmcb = events_vmcb(regs);
	struct vmcb_control_area *c;

	if (!vmcb)
		return 0;
	c = &vmcb->control;
	e->exit_int_info = c->exit_int_info;
	/*
	 * Tests switch all probes off and on. Then this may be a later exit, with
	 * what KVM has put there: its own virtual interrupts have no vector.
	 */
	if (e->vmcb == vmcb && c->int_vector == e->vector)
		events_left(e);
	e->vmcb = NULL;
	if (c->exit_int_info && !(c->exit_int_info & SVM_EXITINTINFO_VALID)) {
		c->exit_int_info = 0;
		events_count(&cleared);
	}
	return 0;
}

/*
 * Context: the vCPU's thread after such an exit, before KVM clears the VMCB. Not
 * always on the CPU of that exit: then exit_int_info is another one's.
 */
static int events_triple_fault(struct kprobe *p, struct pt_regs *regs)
{
	const struct vmcb *vmcb = events_vmcb(regs);
	const struct vmcb_save_area *s;

	if (!vmcb)
		return 0;
	s = &vmcb->save;
	pr_warn("triple fault of a guest: rip %llx, rsp %llx, rflags %llx, cpl %u, cr0 %llx, cr2 %llx, cr3 %llx, cr4 %llx, efer %llx, cs %x, ss %x, idt %llx, gdt %llx, tr %llx, gs %llx, exit_int_info %x\n",
		s->rip, s->rsp, s->rflags, s->cpl, s->cr0, s->cr2, s->cr3,
		s->cr4, s->efer, s->cs.selector, s->ss.selector, s->idtr.base,
		s->gdtr.base, s->tr.base, s->gs.base,
		this_cpu_read(events_entry.exit_int_info));
	return 0;
}

static struct kprobe events_complete_probe, events_enter_probe,
		     events_triple_fault_probe;

static int events_probe(struct kprobe *p, const char *symbol,
			kprobe_pre_handler_t handler)
{
	int err;

	*p = (struct kprobe) {
		.symbol_name = symbol,
		.pre_handler = handler,
	};
	err = register_kprobe(p);
	if (err)
		p->pre_handler = NULL;
	return err;
}

static void events_unprobe(struct kprobe *p)
{
	if (p->pre_handler)
		unregister_kprobe(p);
	p->pre_handler = NULL;
}

static void events_end(void)
{
	events_unprobe(&events_triple_fault_probe);
	events_unprobe(&events_enter_probe);
	/* A guest that was entered before that has to come out of it. */
	kick_all_cpus_sync();
	events_unprobe(&events_complete_probe);
}

/* Return: 0 or an error; -ENOENT: there is no kvm_amd, or not these functions. */
static int events_watch(void)
{
	int err;

	err = events_probe(&events_complete_probe, "svm_complete_interrupts",
			   events_complete);
	if (err)
		return err;
	err = events_probe(&events_enter_probe, "svm_vcpu_run", events_enter);
	if (err) {
		events_end();
		return err;
	}
	/* The guests do without. */
	err = events_probe(&events_triple_fault_probe, "shutdown_interception",
			   events_triple_fault);
	WARN_ONCE(err, "triple faults are not reported: error %d\n", err);
	return 0;
}

/* Tests unload KVM, and the probes do not come back with it by themselves. */
static int events_module(struct notifier_block *nb, unsigned long state,
			 void *data)
{
	const struct module *mod = data;

	if (strcmp(mod->name, "kvm_amd"))
		return NOTIFY_DONE;
	if (state == MODULE_STATE_LIVE) {
		events_end();
		WARN_ON_ONCE(events_watch());
	}
	return NOTIFY_DONE;
}

static struct notifier_block events_nb = {
	.notifier_call = events_module,
};

static int __init events_init(void)
{
	int err = register_module_notifier(&events_nb);

	if (err)
		return err;
	err = events_watch();
	/* It may come. */
	if (err == -ENOENT)
		err = 0;
	if (err)
		unregister_module_notifier(&events_nb);
	return err;
}

static void __exit events_exit(void)
{
	unregister_module_notifier(&events_nb);
	events_end();
}

module_init(events_init);
module_exit(events_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("For the lab: events of guests as processors inject them");
