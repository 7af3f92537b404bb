// SPDX-License-Identifier: GPL-2.0
#include <linux/hrtimer.h>

void vb_probe(struct hrtimer *t,
	      enum hrtimer_restart (*fn)(struct hrtimer *t));
void vb_probe(struct hrtimer *t,
	      enum hrtimer_restart (*fn)(struct hrtimer *t))
{
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}
