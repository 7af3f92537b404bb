// SPDX-License-Identifier: GPL-2.0
// found: timers are set up by it
// missing: timers are set up by hrtimer_init()
#include <linux/hrtimer.h>

#ifndef VB_ONLY_HEADERS
void vb_probe(struct hrtimer *t,
	      enum hrtimer_restart (*fn)(struct hrtimer *t));
void vb_probe(struct hrtimer *t,
	      enum hrtimer_restart (*fn)(struct hrtimer *t))
{
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}
#endif
