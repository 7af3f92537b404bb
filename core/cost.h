/* SPDX-License-Identifier: GPL-2.0 */
/*
 * policy=cost: is moving an interrupt by irq_set_affinity worth its price?
 *
 * One retarget of an MSI-X entry on KVM leaves the guest several times and
 * waits in the VMM for synchronize_srcu; the mover can lose its CPU there
 * while the vector is masked (measured: 6.5 to 32 ms a move when all vCPUs
 * share one CPU). So a move has to earn its cost, in one of two ways:
 *
 * Rescue: the holder lost its CPU and interrupts would wait for it. What
 * counts is the part of the target's remaining stay on its CPU that is left
 * when the move is done, and in which the holder would still be away:
 *
 *	useful = min(remaining stay of target, remaining absence of holder)
 *								   - cost
 *	saved  = P(an interrupt arrives in useful) * mean wait it would have had
 *
 * (at most one: while NAPI or the block queue waits for its vCPU, further
 * interrupts are not raised.) Without "useful" a chain of moves only chases
 * the running vCPU: each arrives when its target is about to leave.
 *
 * Steering: one vCPU is away more than another for a long time. The mean
 * wait of an interrupt that arrives at a random time at a vCPU with absences
 * D_i in a window T is sum(D_i^2) / 2T. Over a horizon the move saves
 *
 *	saved = arrivals in the horizon * (wait(holder) - wait(target))
 *
 * All times in nanoseconds. Pure logic, no kernel calls.
 */
#ifndef _VB_CORE_COST_H
#define _VB_CORE_COST_H

#include "vbtypes.h"

enum vb_cost_verdict {
	VB_COST_STAY_EPISODE,	/* one move in this absence already tried */
	VB_COST_STAY_USELESS,	/* cost eats the time that the move would win */
	VB_COST_STAY_SAVING,	/* saves less than it costs */
	VB_COST_STAY_SIMILAR,	/* steering: target is hardly better */
	VB_COST_MOVE_RESCUE,
	VB_COST_MOVE_STEER,
};

/* Interrupts per 2^30 ns; rates are small integers otherwise. */
#define VB_RATE_SHIFT	30

struct vb_cost_rescue {
	u64 move_cost;		/* measured cost of a move */
	u64 rate;		/* arrivals per 2^VB_RATE_SHIFT ns */
	u64 target_on_mean;	/* mean stay of the target on a CPU; 0: never
				 * lost it in the window
				 */
	u64 target_on_for;	/* how long it has been there */
	u64 holder_off_mean;	/* mean absence of the holder */
	u64 holder_off_for;	/* how long it has been away */
	bool tried;		/* in this absence of the holder */
};

struct vb_cost_steer {
	u64 move_cost;
	u64 rate;
	u64 horizon;		/* how long the difference is believed to last */
	u64 holder_wait;	/* mean wait of an interrupt at the holder */
	u64 target_wait;	/* and at the target */
	u32 threshold;		/* percent: holder must be worse by this ratio */
};

struct vb_cost_result {
	enum vb_cost_verdict verdict;
	u64 saved;		/* expected wait saved, ns */
};

/* What is left of a time with this mean after @elapsed: an eighth at least. */
static inline u64 vb_cost_remaining(u64 mean, u64 elapsed)
{
	u64 floor = mean / 8;

	return elapsed < mean && mean - elapsed > floor ? mean - elapsed :
							  floor;
}

/* Times are capped at 2^38 ns (4.5 minutes): products below fit 64 bits. */
static inline u64 vb_cost_cap(u64 ns)
{
	return ns < (1ULL << 38) ? ns : (1ULL << 38);
}

/* Expected arrivals in @ns at @rate, with 10 fractional bits. */
static inline u64 vb_cost_arrivals_q10(u64 rate, u64 ns)
{
	u64 lim_rate = rate < (1ULL << 24) ? rate : (1ULL << 24);

	return (lim_rate * vb_cost_cap(ns)) >> (VB_RATE_SHIFT - 10);
}

/**
 * vb_cost_rescue() - holder is away: move to a running vCPU now?
 * @c: see struct
 *
 * Context: any.
 * Return: verdict and expected wait saved.
 */
static inline struct vb_cost_result
vb_cost_rescue(const struct vb_cost_rescue *c)
{
	struct vb_cost_result r = { VB_COST_STAY_EPISODE, 0 };
	u64 stay, away, useful, p;

	if (c->tried)
		return r;
	away = vb_cost_cap(vb_cost_remaining(c->holder_off_mean,
					     c->holder_off_for));
	stay = c->target_on_mean ?
	       vb_cost_remaining(c->target_on_mean, c->target_on_for) : away;
	useful = stay < away ? stay : away;
	if (useful <= c->move_cost) {
		r.verdict = VB_COST_STAY_USELESS;
		return r;
	}
	useful -= c->move_cost;
	p = vb_cost_arrivals_q10(c->rate, useful);
	if (p > 1024)
		p = 1024;
	/* An arrival in the middle of @useful would have waited for the rest. */
	r.saved = ((away - c->move_cost - useful / 2) * p) >> 10;
	r.verdict = r.saved > c->move_cost ? VB_COST_MOVE_RESCUE :
					     VB_COST_STAY_SAVING;
	return r;
}

/**
 * vb_cost_steer() - is the target a better home for this interrupt?
 * @c: see struct
 *
 * Context: any.
 * Return: verdict and expected wait saved over the horizon.
 */
static inline struct vb_cost_result
vb_cost_steer(const struct vb_cost_steer *c)
{
	struct vb_cost_result r = { VB_COST_STAY_SIMILAR, 0 };
	u64 holder = vb_cost_cap(c->holder_wait);
	u64 target = vb_cost_cap(c->target_wait);
	u64 arrivals, gain;

	/* The ratio rule of the paper (1.5), here on waits instead of loads. */
	if (holder <= target || holder * 100 <= target * c->threshold)
		return r;
	gain = holder - target;
	arrivals = vb_cost_arrivals_q10(c->rate, c->horizon);
	if (arrivals > (1ULL << 24))
		arrivals = 1ULL << 24;
	r.saved = (arrivals * gain) >> 10;
	r.verdict = r.saved > c->move_cost ? VB_COST_MOVE_STEER :
					     VB_COST_STAY_SAVING;
	return r;
}

#endif /* _VB_CORE_COST_H */
