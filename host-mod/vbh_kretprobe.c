// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes that come and go with KVM, more than once; and whether probes
 * are called at all.
 */
#include "../common/fault.h"
#include "../common/probed.h"
#include "vbh.h"

/**
 * vbh_kretprobe_add() - probe a function's calls and returns from now on
 * @p: what and how; its own instances, which no other probe can use up
 * Context: process; callers serialise.
 * Return: 0 or a negative errno.
 */
int vbh_kretprobe_add(struct vbh_kretprobe *p)
{
	int err;

	/* Cleared: a probe cannot be registered again otherwise. */
	p->probe = (struct kretprobe) {
		.kp.symbol_name = p->symbol,
		.entry_handler = p->entry,
		.handler = p->handler,
		.data_size = p->data_size,
		.maxactive = max(64, 2 * (int)num_possible_cpus()),
	};
	err = register_kretprobe(&p->probe);
	p->on = !err;
	return err;
}

/* And no longer, if it is. Context: as vbh_kretprobe_add(). */
void vbh_kretprobe_del(struct vbh_kretprobe *p)
{
	if (p->on)
		unregister_kretprobe(&p->probe);
	p->on = false;
}

/* Context: process, sleeps. */
void vbh_probes_init(void)
{
	vb_probed_init();
}

void vbh_probes_exit(void)
{
	vb_probed_exit();
}

/**
 * vbh_probes_error() - are probes called?
 * @what: is wrong, or not known
 * Context: any, between vbh_probes_init() and vbh_probes_exit().
 * Return: 0 or a negative errno.
 */
int vbh_probes_error(const char **what)
{
	return vb_probed_error(what);
}
