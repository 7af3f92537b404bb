/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Are there pending bits that nobody takes?
 *
 * Judged beside the looks that take them, and from the bits alone: a look that
 * misses them would miss this too. Pure logic, no kernel calls. Times in
 * nanoseconds.
 */
#ifndef _VB_CORE_STUCK_H
#define _VB_CORE_STUCK_H

#include <vbalance/abi.h>
#include "vbtypes.h"

/* A bit must not be older, as long as some vCPU runs. */
#define VB_STUCK_NS		100000000ULL
/* Between two looks at all slots. */
#define VB_STUCK_LOOK_NS	25000000ULL
/* Who looks later than that had no CPU, nor had anybody else of the VM. */
#define VB_STUCK_GAP_NS		(2 * VB_STUCK_LOOK_NS)

struct vb_stuck {
	u64 bits[VB_MAX_KEYS / 64];	/* pending all the time */
	u64 ran;			/* for how long, with a CPU */
	u64 at;				/* last look */
	u32 takes;
	bool any;
};

/**
 * vb_stuck_look() - how many bits of a slot are older than they may be?
 * @s: of this slot; at first 0
 * @p: its pending bits
 * @takes: changes whenever somebody has taken bits of this slot
 * @now: time, of a clock that all vCPUs have, more or less
 *
 * A bit that was taken and set again is a new one. What is put back because
 * its handler runs elsewhere was taken: nobody else could serve it. While
 * older ones are left those that came later are not looked at.
 *
 * Context: one caller at a time.
 * Return: bits that have become too old; they are counted again after as long
 * again.
 */
static inline unsigned int vb_stuck_look(struct vb_stuck *s,
					 const struct vb_pending *p, u32 takes,
					 u64 now)
{
	u64 gap = now > s->at ? now - s->at : 0, left = 0, bits;
	unsigned int w, n = 0;

	for (w = 0; s->any && takes == s->takes && w < VB_MAX_KEYS / 64; w++) {
		s->bits[w] &= READ_ONCE(p->bits[w]);
		left |= s->bits[w];
	}
	s->ran = left ? s->ran + (gap < VB_STUCK_GAP_NS ? gap :
				  VB_STUCK_GAP_NS) : 0;
	for (w = 0; !left && w < VB_MAX_KEYS / 64; w++)
		s->bits[w] = READ_ONCE(p->bits[w]);
	s->any = left;
	for (w = 0; w < VB_MAX_KEYS / 64; w++)
		s->any |= s->bits[w] != 0;
	s->takes = takes;
	s->at = now;
	if (s->ran <= VB_STUCK_NS)
		return 0;
	for (w = 0; w < VB_MAX_KEYS / 64; w++)
		for (bits = s->bits[w]; bits; bits &= bits - 1)
			n++;
	s->ran = 0;
	return n;
}

#endif /* _VB_CORE_STUCK_H */
