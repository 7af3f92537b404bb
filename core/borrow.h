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
 * struct vb_borrow_turn - quiet queues that one look takes
 * @left: so many more, VB_BORROW_TURN at first
 * @next: where in the table the next look begins; at first, where this one does
 */
struct vb_borrow_turn {
	u32 left, next;
};

/**
 * vb_borrow_in_turn() - is this quiet queue looked at this time?
 * @t: of this look, which goes through the table from @t->next and around
 * @n: the queue's place in the table, below @nr
 * @nr: queues in the table
 *
 * Return: it is.
 */
static inline bool vb_borrow_in_turn(struct vb_borrow_turn *t, u32 n, u32 nr)
{
	if (!t->left)
		return false;
	if (!--t->left)
		t->next = n + 1 < nr ? n + 1 : 0;
	return true;
}

#endif /* _VB_CORE_BORROW_H */
