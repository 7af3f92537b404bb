/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How often a vCPU's timer looks at the queues of vCPUs that are away.
 *
 * Pure logic, no kernel calls. Times in nanoseconds.
 */
#ifndef _VB_CORE_BORROW_H
#define _VB_CORE_BORROW_H

#include "vbtypes.h"

/* A tick (HZ=250) looks as well: a longer period would add nothing. */
#define VB_BORROW_MAX_NS	4000000ULL

struct vb_borrow {
	u64 cost;	/* sliding mean of what one timer interrupt costs */
	u64 period;	/* present one, before the budget */
};

/**
 * vb_borrow_cost() - account one timer interrupt
 * @b: this vCPU's
 * @ns: time in it
 *
 * What the hypervisor adds (the exit that programs the timer, the injection)
 * is not seen from inside and is taken to be as much again.
 */
static inline void vb_borrow_cost(struct vb_borrow *b, u64 ns)
{
	u64 sample = 2 * (ns < VB_BORROW_MAX_NS ? ns : VB_BORROW_MAX_NS);
	u64 cost = b->cost ? b->cost - b->cost / 8 + sample / 8 : sample;

	WRITE_ONCE(b->cost, cost);
}

/**
 * vb_borrow_next() - when the timer should fire next
 * @b: this vCPU's
 * @base: shortest period; 0: no timer
 * @percent: share of the vCPU that the timer may take, 0..100; 0: no timer
 * @found: something was served since the last time
 *
 * Return: time from now, or 0 for never.
 */
static inline u64 vb_borrow_next(struct vb_borrow *b, u64 base, u32 percent,
				 bool found)
{
	u64 budget;

	if (!base || !percent)
		return 0;
	if (found || b->period < base)
		b->period = base;
	else if (b->period < VB_BORROW_MAX_NS)
		b->period *= 2;
	budget = b->cost * 100 / percent;
	return b->period > budget ? b->period : budget;
}

/*
 * Queues that had nothing lately: so many at a time, for all of a big guest's
 * (two for each vCPU and network device) would keep a hard interrupt.
 */
#define VB_BORROW_TURN	64

/**
 * vb_borrow_in_turn() - is a quiet queue looked at this time?
 * @n: its place in the table, below @nr
 * @from: whose turn it is, below @nr
 * @nr: queues in the table
 *
 * Return: it is.
 */
static inline bool vb_borrow_in_turn(u32 n, u32 from, u32 nr)
{
	return (n >= from ? n - from : n + nr - from) < VB_BORROW_TURN;
}

/* Whose turn comes after that; the table may be another one by then. */
static inline u32 vb_borrow_next_turn(u32 from, u32 nr)
{
	return nr > VB_BORROW_TURN ? (from + VB_BORROW_TURN) % nr : 0;
}

#endif /* _VB_CORE_BORROW_H */
