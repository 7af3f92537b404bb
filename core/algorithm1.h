/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Algorithm 1 of "vBalance: Using Interrupt Load Balance to Improve I/O
 * Performance for SMP Virtual Machines" (Cheng, Wang, SoCC 2012, section
 * 3.3.2): which vCPU should hold an interrupt.
 *
 *	offline holder			-> the online vCPU with minimum load
 *	online holder, state HIGH and
 *	    max > min * threshold	-> the online vCPU with minimum load
 *	otherwise			-> stays
 *
 * The average is taken over all vCPUs, maximum and minimum over the online
 * ones (the paper calls them the eligible ones: where an admin's mask allows
 * fewer, over those and the holder); an online vCPU above the average is HIGH,
 * every other one LOW, and the holder is shown as HOLD. The paper leaves open
 * which of several vCPUs with the minimum is taken: here the holder itself if
 * it is one of them, else the first one found from @prefer on (rounding the
 * corner).
 *
 * Pure logic, no kernel calls, no allocation, one pass over the vCPUs.
 */
#ifndef _VB_CORE_ALGORITHM1_H
#define _VB_CORE_ALGORITHM1_H

#include "vbtypes.h"

#define VB_THRESHOLD_DEFAULT	150	/* percent; the paper's ratio 1.5 */
#define VB_THRESHOLD_MIN	100
#define VB_THRESHOLD_MAX	10000

/* Loads are capped here so that load * threshold fits 64 bits. */
#define VB_LOAD_MAX		(1ULL << 48)

enum vb_a1_state {
	VB_A1_OFFLINE,
	VB_A1_LOW,
	VB_A1_HIGH,
	VB_A1_HOLD,
};

enum vb_a1_reason {
	VB_A1_STAY_LOW,		/* holder online, not above the average */
	VB_A1_STAY_BALANCED,	/* holder HIGH, but max <= min * threshold */
	VB_A1_STAY_NONE_ONLINE,	/* nobody to move to */
	VB_A1_STAY_MINIMUM,	/* holder HIGH, but nobody eligible has less */
	VB_A1_MOVE_OFFLINE,	/* holder offline */
	VB_A1_MOVE_IMBALANCE,	/* holder HIGH and max > min * threshold */
};

/**
 * struct vb_a1_view - how Algorithm 1 sees the vCPUs
 * @nr: number of vCPUs, all of 0 .. nr - 1 count in the average unless
 *	@present says no
 * @load: interrupt load of a vCPU, any unit (nanoseconds in our callers)
 * @present: does the vCPU exist
 * @online: is it running on a physical CPU now
 * @eligible: may the interrupt go there (NULL: every online one)
 * @ctx: handed to the callbacks
 *
 * The callbacks are called once for each vCPU, in any context the caller is
 * in; they must not sleep if the caller may not.
 */
struct vb_a1_view {
	int nr;
	u64 (*load)(const void *ctx, int vcpu);
	bool (*present)(const void *ctx, int vcpu);
	bool (*online)(const void *ctx, int vcpu);
	bool (*eligible)(const void *ctx, int vcpu);
	const void *ctx;
};

struct vb_a1_result {
	int next;		/* vCPU that should hold the interrupt */
	enum vb_a1_reason reason;
	u64 avg, min, max;	/* loads as seen; min, max of the candidates */
	int nr_online;
};

static inline u64 vb_a1_capped_load(const struct vb_a1_view *v, int vcpu)
{
	u64 load = v->load(v->ctx, vcpu);

	return load < VB_LOAD_MAX ? load : VB_LOAD_MAX;
}

/**
 * vb_algorithm1() - decide which vCPU should hold an interrupt
 * @v: the vCPUs
 * @prev: present holder, 0 .. nr - 1
 * @threshold: imbalance ratio in percent, VB_THRESHOLD_MIN .. VB_THRESHOLD_MAX
 * @prefer: where the search for the minimum starts, 0 .. nr - 1
 *
 * Context: any (callbacks permitting).
 * Return: the decision; next == prev when nothing is to be done.
 */
static inline struct vb_a1_result
vb_algorithm1(const struct vb_a1_view *v, int prev, u32 threshold, int prefer)
{
	struct vb_a1_result r = { .next = prev };
	u64 sum = 0, prev_load = 0, target_min = 0;
	int i, nr_present = 0, nr_candidates = 0, target = -1;
	bool prev_online = false, eligible;

	for (i = 0; i < v->nr; i++) {
		int vcpu = prefer + i < v->nr ? prefer + i : prefer + i - v->nr;
		u64 load;

		if (!v->present(v->ctx, vcpu))
			continue;
		load = vb_a1_capped_load(v, vcpu);
		nr_present++;
		sum += load;
		if (!v->online(v->ctx, vcpu))
			continue;
		r.nr_online++;
		eligible = !v->eligible || v->eligible(v->ctx, vcpu);
		if (vcpu == prev) {
			prev_online = true;
			prev_load = load;
		} else if (!eligible) {
			continue;
		}
		if (!nr_candidates || load < r.min)
			r.min = load;
		if (!nr_candidates || load > r.max)
			r.max = load;
		nr_candidates++;
		if (!eligible)
			continue;
		if (target < 0 || load < target_min ||
		    (load == target_min && vcpu == prev)) {
			target = vcpu;
			target_min = load;
		}
	}
	r.avg = nr_present ? sum / nr_present : 0;

	if (target < 0) {
		r.reason = VB_A1_STAY_NONE_ONLINE;
	} else if (!prev_online) {
		r.next = target;
		r.reason = VB_A1_MOVE_OFFLINE;
	} else if (prev_load * nr_present <= sum) {
		/* Compared without the division: no rounding into HIGH. */
		r.reason = VB_A1_STAY_LOW;
	} else if (r.max * 100 <= r.min * threshold) {
		r.reason = VB_A1_STAY_BALANCED;
	} else if (target_min >= prev_load) {
		r.reason = VB_A1_STAY_MINIMUM;
	} else {
		r.next = target;
		r.reason = VB_A1_MOVE_IMBALANCE;
	}
	return r;
}

/**
 * vb_a1_state() - the paper's state of one vCPU (figure 4)
 * @online: running on a physical CPU
 * @holder: holds the interrupt (or, with several, at least one)
 * @load: its load
 * @avg: average load of all vCPUs
 *
 * Return: HOLD, HIGH, LOW, or that it is offline.
 */
static inline enum vb_a1_state vb_a1_state(bool online, bool holder, u64 load,
					   u64 avg)
{
	if (!online)
		return VB_A1_OFFLINE;
	if (holder)
		return VB_A1_HOLD;
	return load > avg ? VB_A1_HIGH : VB_A1_LOW;
}

static inline const char *vb_a1_state_name(enum vb_a1_state s)
{
	switch (s) {
	case VB_A1_LOW: return "LOW";
	case VB_A1_HIGH: return "HIGH";
	case VB_A1_HOLD: return "HOLD";
	default: return "offline";
	}
}

#endif /* _VB_CORE_ALGORITHM1_H */
