/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All probes can be switched off at run time (debugfs: kprobes/enabled; sysctl
 * kernel.ftrace_enabled), and nobody is told. One on a function of ours tells.
 *
 * Included by one file of each module.
 */
#ifndef _VB_COMMON_PROBED_H
#define _VB_COMMON_PROBED_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kprobes.h>

#include "fault.h"

static noinline void vb_probed(void)
{
	barrier();	/* not for nothing, as the compiler would see it */
}

static atomic_t vb_probed_calls;

static int vb_note_probed(struct kprobe *p, struct pt_regs *regs)
{
	atomic_inc(&vb_probed_calls);
	return 0;
}

static struct kprobe vb_probed_kp;
static int vb_probed_err;

/* Context: process, sleeps. */
static void vb_probed_init(void)
{
	vb_probed_kp = (struct kprobe) {
		.addr = (kprobe_opcode_t *)vb_probed,
		.pre_handler = vb_note_probed,
	};
	vb_probed_err = vb_fault("probed") ?: register_kprobe(&vb_probed_kp);
}

static void vb_probed_exit(void)
{
	if (!vb_probed_err)
		unregister_kprobe(&vb_probed_kp);
}

/**
 * vb_probed_error() - are probes called?
 * @what: is wrong, or not known
 * Context: any, between vb_probed_init() and vb_probed_exit().
 * Return: 0; -EOPNOTSUPP: they are not; others: why nobody knows.
 */
static int vb_probed_error(const char **what)
{
	int calls = atomic_read(&vb_probed_calls);

	*what = "not known whether kprobes are switched off";
	if (vb_probed_err)
		return vb_probed_err;
	vb_probed();
	*what = "kprobes are switched off";
	return atomic_read(&vb_probed_calls) == calls ? -EOPNOTSUPP : 0;
}

#endif /* _VB_COMMON_PROBED_H */
