// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts of pending bits: each that the host has set was taken once. Exact
 * when an area has ended, and across areas, so that a host module that comes
 * and goes takes no part of the count with it.
 */
#include <linux/bitmap.h>

#include "vbg.h"
#include "vbg_area.h"

/* Of areas that have ended. Written by the only one who drops areas. */
static u64 vbg_past_diverted, vbg_past_posted;

static u64 vbg_bits_taken(void)
{
	static const enum vbg_stat how[] = {
		VBG_S_SERVED, VBG_S_STOLEN, VBG_S_OVERTAKEN, VBG_S_MERGED,
		VBG_S_DROPPED, VBG_S_LEFT,
	};
	u64 sum = 0;
	int cpu, k;

	for_each_possible_cpu(cpu)
		for (k = 0; k < ARRAY_SIZE(how); k++)
			sum += READ_ONCE(per_cpu(vbg_stats, cpu).v[how[k]]);
	return sum;
}

/* A new area, in which nothing is set. Context: process, no area is active. */
void vbg_account_open(struct vbg_area *a)
{
	a->taken_before = vbg_bits_taken();
}

/**
 * vbg_account_close() - an area has ended
 * @a: area in which nobody here takes bits any more; nor does the host set any,
 *	if @sure
 * @sure: the host has confirmed that: not so when the machine has moved away
 *	from it, as then the last that it wrote may be missing. Only then is it
 *	judged (the counts VBG_S_SETTLED, VBG_S_MISSING)
 *
 * The bits that are left are served by the sweep that follows.
 * Context: process.
 */
void vbg_account_close(const struct vbg_area *a, bool sure)
{
	u64 diverted = READ_ONCE(a->redirect->nr_diverted);
	u64 posted = READ_ONCE(a->redirect->nr_posted);
	u64 taken, left = 0;
	u32 slot;

	for (slot = 0; slot < a->nr_slots; slot++)
		left += bitmap_weight((unsigned long *)a->pending[slot].bits,
				      VB_MAX_KEYS);
	this_cpu_add(vbg_stats.v[VBG_S_LEFT], left);
	WRITE_ONCE(vbg_past_diverted, vbg_past_diverted + diverted);
	WRITE_ONCE(vbg_past_posted, vbg_past_posted + posted);
	if (!sure)
		return;
	this_cpu_inc(vbg_stats.v[VBG_S_SETTLED]);
	taken = vbg_bits_taken() - a->taken_before;
	/* One too many is harmless, one too few an interrupt that is lost. */
	if (taken >= diverted + posted)
		return;
	this_cpu_add(vbg_stats.v[VBG_S_MISSING], diverted + posted - taken);
	pr_warn("the host says that it has set %llu pending bits, %llu were taken\n",
		diverted + posted, taken);
}

/* The host's own counts of the bits that it has set. */
void vbg_account_host(u64 *diverted, u64 *posted)
{
	const struct vbg_area *a;

	rcu_read_lock_sched();
	a = rcu_dereference_sched(vbg_active);
	*diverted = READ_ONCE(vbg_past_diverted);
	*posted = READ_ONCE(vbg_past_posted);
	if (a) {
		*diverted += READ_ONCE(a->redirect->nr_diverted);
		*posted += READ_ONCE(a->redirect->nr_posted);
	}
	rcu_read_unlock_sched();
}
