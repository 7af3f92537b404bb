// SPDX-License-Identifier: GPL-2.0
/*
 * For the lab, whose host is emulated: text of the kernel that is patched while
 * another CPU runs it. QEMU's notdirty_write() (accel/tcg/cputlb.c) throws away
 * the translations of what is about to be written, and then it is written, with
 * no lock from the one to the other: a CPU that comes there in between
 * translates what was, and keeps that for good. Mostly it is the breakpoint
 * under which the kernel patches, which it no longer knows then ("Oops: int3").
 * https://gitlab.com/qemu-project/qemu/-/work_items/4669
 *
 * So all is written twice: the second time throws away what was translated at
 * the first one. Not if that was the first translation of its page since the
 * first time, and is not done by the second: there are others in pages that are
 * in use.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

/* Counted under text_mutex. */
static ulong written;
module_param(written, ulong, 0444);
MODULE_PARM_DESC(written, "pieces of text so far that were written twice");

/*
 * The first time. Context: text_poke_memcpy(to, from, len) of
 * arch/x86/kernel/alternative.c: text_mutex held, interrupts off, the text
 * mapped at @to.
 */
static int text_written(struct kprobe *p, struct pt_regs *regs)
{
	memcpy((void *)regs->di, (void *)regs->si, regs->dx);
	WRITE_ONCE(written, written + 1);
	return 0;
}

static struct kprobe text_probe = {
	.symbol_name = "text_poke_memcpy",
	.pre_handler = text_written,
};

static int __init text_init(void)
{
	return register_kprobe(&text_probe);
}

static void __exit text_exit(void)
{
	unregister_kprobe(&text_probe);
}

module_init(text_init);
module_exit(text_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("For the lab: text that is patched while another CPU runs it");
