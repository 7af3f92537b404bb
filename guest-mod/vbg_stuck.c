// SPDX-License-Identifier: GPL-2.0
/*
 * Looks for pending bits that all others have overlooked. There must be none:
 * they are counted (debugfs: stuck), and then served.
 */
#include <linux/bitops.h>
#include <linux/spinlock.h>

#include "../core/stuck.h"
#include "vbg.h"
#include "vbg_area.h"
#include "vbg_policy.h"

static void vbg_stuck_look_all(struct vbg_area *a, u64 now)
{
	unsigned int n, slot;

	for (slot = 0; slot < a->nr_slots; slot++) {
		n = vb_stuck_look(&a->wait[slot].stuck, &a->pending[slot],
				  READ_ONCE(a->wait[slot].takes), now);
		if (likely(!n))
			continue;
		this_cpu_add(vbg_stats.v[VBG_S_STUCK], n);
		set_bit(slot, (unsigned long *)a->redirect->pending_slots);
	}
}

/**
 * vbg_stuck_look() - are there pending bits that nobody takes?
 * @a: the area
 * @cpu: this CPU
 * @now: vbg_clock()
 *
 * After the look that takes them, and only when stuck_next has come.
 * Context: hard interrupt.
 */
void vbg_stuck_look(struct vbg_area *a, int cpu, u64 now)
{
	/* An isolated CPU takes nobody's bits but its own. */
	if (vbg_policy_isolated(cpu))
		return;
	/* Its holder may have lost its CPU: never wait for it. */
	if (!raw_spin_trylock(&a->stuck_lock))
		return;
	WRITE_ONCE(a->stuck_next, now + VB_STUCK_LOOK_NS);
	vbg_stuck_look_all(a, now);
	raw_spin_unlock(&a->stuck_lock);
}
