// SPDX-License-Identifier: GPL-2.0
/*
 * The clock by which loads decay, and after which looks are due.
 *
 * It is the scheduler's, which is cheap. But KVM's clock begins anew with each
 * VM, and an image that was hibernated finds itself in another one: for as long
 * as the first had been up nothing would be due (kvm_restore_sched_clock_state()
 * registers the clock's page again, no more).
 */
#include <linux/stop_machine.h>

#include "vbg.h"

u64 vbg_clock_offset;
static u64 vbg_clock_seen;

/*
 * No interrupt or soft interrupt is under way: none is measured that began by
 * the old clock and ends by the new one.
 */
static int vbg_clock_set(void *unused)
{
	WRITE_ONCE(vbg_clock_offset,
		   vbg_clock_offset + vbg_clock_seen - vbg_clock());
	return 0;
}

/* The guest is about to hibernate. Context: process. */
void vbg_clock_sleeps(void)
{
	vbg_clock_seen = vbg_clock();
}

/* It goes on. Context: process, sleeps. */
void vbg_clock_wakes(void)
{
	if (vbg_clock() < vbg_clock_seen)
		stop_machine(vbg_clock_set, NULL, NULL);
}
