/* SPDX-License-Identifier: GPL-2.0 */
/* hrtimer_setup(), and what it was before. */
#ifndef _VB_COMPAT_HRTIMER_H
#define _VB_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>

#ifdef HAVE_hrtimer_setup		/* since 6.13 */
#define vb_hrtimer_setup	hrtimer_setup
#define VB_HRTIMER_FACTS(group)
#else
static inline void vb_hrtimer_setup(struct hrtimer *timer,
				    enum hrtimer_restart (*fn)(struct hrtimer *),
				    clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}

/* To be compared with the running kernel (core/facts.h). */
#define VB_HRTIMER_FACTS(group)	VB_MEMBER(group, hrtimer, function),
#endif

#endif /* _VB_COMPAT_HRTIMER_H */
