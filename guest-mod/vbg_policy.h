/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a policy is asked and what it answers. The caller holds the busy bit of
 * the interrupt, in hard interrupt context, and carries the answer out.
 */
#ifndef _VBG_POLICY_H
#define _VBG_POLICY_H

#include <linux/time64.h>

#include "vbg.h"

/* Long-lived decisions of policy=cost: horizon and shortest distance. */
#define VBG_STEER_NS	NSEC_PER_SEC

struct vbg_decision {
	int target;		/* == holder: stay */
	enum vbg_reason reason;
	u64 saved;
};

/*
 * What a decision is about: one interrupt, or all that follow it
 * (mapping=single).
 */
struct vbg_group {
	u32 nr_moves;
	u64 arrivals;		/* in the short window */
};

void vbg_group_add(struct vbg_group *g, const struct vbg_irq *i, u64 now);
bool vbg_policy_isolated(int cpu);
bool vbg_policy_eligible(const struct vbg_irq *i, int cpu);
struct vbg_decision vbg_policy_paper(struct vbg_irq *i, int holder, int me,
				     u64 now);
struct vbg_decision vbg_policy_cost(struct vbg_irq *i, int holder, int me,
				    u64 now, const struct vbg_group *g);

#endif /* _VBG_POLICY_H */
