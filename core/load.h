/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decaying sums: interrupt load of a vCPU or of an interrupt, arrival rates,
 * lost time. A sum is halved at every multiple of 2^shift ns of the common
 * clock, so sums of different owners that are read at the same time have
 * decayed alike and their ratios (what Algorithm 1 compares) are not
 * disturbed. Written by one CPU, read by any: a torn pair of words is off by
 * one halving at most, and only until the next update.
 *
 * Pure logic, no kernel calls.
 */
#ifndef _VB_CORE_LOAD_H
#define _VB_CORE_LOAD_H

#include "vbtypes.h"

/*
 * Half-lives as powers of two of a nanosecond: 134 ms spans several host
 * rotations and follows the load (Algorithm 1); 4.3 s spans some hundred of
 * them, for what is meant to last.
 */
#define VB_DECAY_SHORT	27
#define VB_DECAY_LONG	32

struct vb_decay {
	u64 sum;	/* at @epoch */
	u64 epoch;	/* clock >> shift */
};

/**
 * vb_decay_read() - value at a time
 * @d: the sum
 * @shift: half-life, always the same for one sum
 * @now_ns: common clock; if it went back, nothing decays
 *
 * Return: what is left of the sum.
 */
static inline u64 vb_decay_read(const struct vb_decay *d, unsigned int shift,
				u64 now_ns)
{
	u64 sum = READ_ONCE(d->sum);
	u64 epoch = READ_ONCE(d->epoch);
	u64 now = now_ns >> shift;
	u64 age = now > epoch ? now - epoch : 0;

	return age < 64 ? sum >> age : 0;
}

/* Add @amount at time @now_ns, saturating; single writer. */
static inline void vb_decay_add(struct vb_decay *d, unsigned int shift,
				u64 now_ns, u64 amount)
{
	u64 sum = vb_decay_read(d, shift, now_ns);
	u64 now = now_ns >> shift;

	WRITE_ONCE(d->sum, sum + amount < sum ? ~0ULL : sum + amount);
	if (now > d->epoch)
		WRITE_ONCE(d->epoch, now);
}

/*
 * Length of the window that a decaying sum covers at @now_ns, in ns: a
 * constant stream of 1 per ns would have this sum. Between one and two
 * half-lives of full weight: 2^shift (all earlier halves) + the part of the
 * current epoch.
 */
static inline u64 vb_decay_window_ns(unsigned int shift, u64 now_ns)
{
	u64 half = 1ULL << shift;

	return half + (now_ns & (half - 1));
}

#endif /* _VB_CORE_LOAD_H */
