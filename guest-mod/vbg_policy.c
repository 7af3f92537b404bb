// SPDX-License-Identifier: GPL-2.0
/*
 * The two policies: kernel glue around core/algorithm1.h and core/cost.h.
 *
 * policy=paper is Algorithm 1 as it stands: the holder is not running -> move
 * to the running vCPU with minimum load, at any price; the holder is HIGH and
 * the imbalance exceeds the threshold -> the same.
 *
 * policy=cost uses the same choice of a target, but a move has to earn what it
 * costs (core/cost.h), is tried once in an absence of the holder, and moves
 * between running vCPUs are for what lasts: steering by waits and balancing
 * by the 1.5 rule, each at most once in VBG_STEER_NS for an interrupt.
 */
#include <linux/cpumask.h>
#include <linux/math64.h>

#include "vbg.h"
#include "vbg_policy.h"
#include "../compat/isolation.h"
#include "../core/cost.h"

/* One that is away, in the same absence, after this (policy=cost). */
#define VBG_RERESCUE_NS	(500 * NSEC_PER_USEC)
/* Moves by load under policy=cost: as rare as irqbalance's. */
#define VBG_BALANCE_NS	(10 * NSEC_PER_SEC)
/*
 * Below this share of the window (1/32 = 3 % of a CPU) interrupt load is not
 * worth balancing: the ratio of two such loads means nothing. policy=cost.
 */
#define VBG_LOAD_FLOOR_SHIFT	5

u64 vbg_cpu_load_ns(int cpu, u64 now)
{
	return vb_decay_read(&per_cpu(vbg_cpus, cpu).load, VB_DECAY_SHORT, now);
}

u64 vbg_cpu_load_long_ns(int cpu, u64 now)
{
	return vb_decay_read(&per_cpu(vbg_cpus, cpu).load_long, VB_DECAY_LONG,
			     now);
}

/* Mean wait of an interrupt that arrives at a random time at this CPU, ns. */
u64 vbg_cpu_wait_ns(int cpu, u64 now)
{
	u64 us2 = vb_decay_read(&per_cpu(vbg_cpus, cpu).lost_us2, VB_DECAY_LONG,
				now);
	u64 window_us = div_u64(vb_decay_window_ns(VB_DECAY_LONG, now), 1000);

	return div64_u64(us2, 2 * window_us) * 1000;
}

/* ---- Algorithm 1's view of the vCPUs ---- */

struct vbg_view {
	const struct vbg_irq *irq;
	u64 now;
	bool lasting;		/* loads over the long window */
};

static u64 vbg_view_load(const void *ctx, int cpu)
{
	const struct vbg_view *v = ctx;

	return v->lasting ? vbg_cpu_load_long_ns(cpu, v->now) :
			    vbg_cpu_load_ns(cpu, v->now);
}

static bool vbg_view_present(const void *ctx, int cpu)
{
	return cpu_online(cpu);
}

static bool vbg_view_online(const void *ctx, int cpu)
{
	return vbg_cpu_running(cpu);
}

/* Whoever keeps noise away from a CPU means ours, too. */
bool vbg_policy_isolated(int cpu)
{
	return vb_cpu_is_isolated(cpu) ||
	       !housekeeping_test_cpu(cpu, HK_TYPE_MANAGED_IRQ);
}

/* May this CPU have the interrupt? */
bool vbg_policy_eligible(const struct vbg_irq *i, int cpu)
{
	if (!cpu_active(cpu))
		return false;
	return i->restricted ? cpumask_test_cpu(cpu, i->mask) :
			       !vbg_policy_isolated(cpu);
}

static bool vbg_view_eligible(const void *ctx, int cpu)
{
	return vbg_policy_eligible(((const struct vbg_view *)ctx)->irq, cpu);
}

static struct vb_a1_result vbg_algorithm1(const struct vbg_irq *i, int holder,
					  int me, u64 now, bool lasting)
{
	struct vbg_view ctx = { .irq = i, .now = now, .lasting = lasting };
	struct vb_a1_view view = {
		.nr = nr_cpu_ids,
		.load = vbg_view_load,
		.present = vbg_view_present,
		.online = vbg_view_online,
		.eligible = vbg_view_eligible,
		.ctx = &ctx,
	};

	return vb_algorithm1(&view, holder, READ_ONCE(vbg_threshold), me);
}

static enum vbg_reason vbg_a1_reason(enum vb_a1_reason r)
{
	switch (r) {
	case VB_A1_STAY_LOW: return VBG_R_LOW;
	case VB_A1_STAY_BALANCED: return VBG_R_BALANCED;
	case VB_A1_STAY_NONE_ONLINE: return VBG_R_NONE_ONLINE;
	case VB_A1_STAY_MINIMUM: return VBG_R_MINIMUM;
	case VB_A1_MOVE_OFFLINE: return VBG_R_OFFLINE;
	default: return VBG_R_IMBALANCE;
	}
}

static enum vbg_reason vbg_cost_reason(enum vb_cost_verdict v)
{
	switch (v) {
	case VB_COST_STAY_EPISODE: return VBG_R_EPISODE;
	case VB_COST_STAY_USELESS: return VBG_R_USELESS;
	case VB_COST_STAY_SAVING: return VBG_R_SAVING;
	case VB_COST_STAY_SIMILAR: return VBG_R_SIMILAR;
	case VB_COST_MOVE_RESCUE: return VBG_R_RESCUE;
	default: return VBG_R_STEER;
	}
}

/* ---- the two policies ---- */

struct vbg_decision vbg_policy_paper(struct vbg_irq *i, int holder, int me,
				     u64 now)
{
	struct vb_a1_result r = vbg_algorithm1(i, holder, me, now, false);

	return (struct vbg_decision) { r.next, vbg_a1_reason(r.reason), 0 };
}

/* Arrivals per 2^VB_RATE_SHIFT ns (about a second). */
static u64 vbg_group_rate(const struct vbg_group *g, u64 now)
{
	return div64_u64(g->arrivals << VB_RATE_SHIFT,
			 vb_decay_window_ns(VB_DECAY_SHORT, now));
}

void vbg_group_add(struct vbg_group *g, const struct vbg_irq *i, u64 now)
{
	g->nr_moves++;
	g->arrivals += vb_decay_read(&i->arrivals, VB_DECAY_SHORT, now);
}

/*
 * How long the holder has been away: the shared area says it; steal time does
 * not, then it is estimated from when it was back last and its mean stay.
 */
static u64 vbg_away_for(int holder, u64 now)
{
	const struct vbg_cpu *c = &per_cpu(vbg_cpus, holder);
	u64 ns, since;

	if (vbg_page_since_ns(holder, &ns))
		return ns;
	since = READ_ONCE(c->back_since) + READ_ONCE(c->on_mean);
	return now > since ? now - since : 0;
}

static bool vbg_tried(const struct vbg_irq *i, int holder)
{
	return i->tried_cpu == holder &&
	       i->tried_episode == vbg_cpu_episode(holder);
}

static struct vbg_decision vbg_decide_rescue(struct vbg_irq *i, int holder,
					     int me, u64 now,
					     const struct vbg_group *g)
{
	u64 rate = vbg_group_rate(g, now);
	struct vb_a1_result a1;
	const struct vbg_cpu *h = &per_cpu(vbg_cpus, holder);
	const struct vbg_cpu *t;
	struct vb_cost_result r;
	struct vb_cost_rescue c;

	/* An idle queue saves nothing: the walk over all CPUs is not needed. */
	if (!rate)
		return (struct vbg_decision) { holder, VBG_R_SAVING, 0 };
	a1 = vbg_algorithm1(i, holder, me, now, false);
	if (a1.next == holder)
		return (struct vbg_decision) {
			holder, vbg_a1_reason(a1.reason), 0 };
	t = &per_cpu(vbg_cpus, a1.next);
	c = (struct vb_cost_rescue) {
		.move_cost = vbg_move_cost() * g->nr_moves,
		.rate = rate,
		.tried = vbg_tried(i, holder),
		.target_on_mean = READ_ONCE(t->on_mean),
		.target_on_for = now - min(now, READ_ONCE(t->back_since)),
		.holder_off_mean = READ_ONCE(h->off_mean),
		.holder_off_for = vbg_away_for(holder, now),
	};
	r = vb_cost_rescue(&c);
	return (struct vbg_decision) {
		r.verdict == VB_COST_MOVE_RESCUE ? a1.next : holder,
		vbg_cost_reason(r.verdict), r.saved };
}

/* The CPU at which interrupts wait least; the holder if it is as good. */
static int vbg_least_wait(const struct vbg_irq *i, int holder, u64 now)
{
	u64 best_wait = vbg_cpu_wait_ns(holder, now);
	int cpu, best = holder;

	for_each_online_cpu(cpu) {
		u64 wait = vbg_cpu_wait_ns(cpu, now);

		if (wait < best_wait && vbg_policy_eligible(i, cpu)) {
			best = cpu;
			best_wait = wait;
		}
	}
	return best;
}

static bool vbg_balance_due(const struct vbg_irq *i, int holder, u64 now)
{
	u64 floor = vb_decay_window_ns(VB_DECAY_LONG, now) >>
		    VBG_LOAD_FLOOR_SHIFT;

	return now >= i->next_balance &&
	       vbg_cpu_load_long_ns(holder, now) >= floor;
}

/* The 1.5 rule on loads that last. */
static struct vbg_decision vbg_decide_balance(struct vbg_irq *i, int holder,
					      int me, u64 now)
{
	struct vb_a1_result a1 = vbg_algorithm1(i, holder, me, now, true);
	u64 own = vb_decay_read(&i->load_long, VB_DECAY_LONG, now);

	if (a1.reason != VB_A1_MOVE_IMBALANCE)
		return (struct vbg_decision) {
			holder, vbg_a1_reason(a1.reason), 0 };
	/* Balancing must not bring the interrupt to where it waits longer. */
	if (vbg_cpu_wait_ns(a1.next, now) > vbg_cpu_wait_ns(holder, now))
		return (struct vbg_decision) { holder, VBG_R_SIMILAR, 0 };
	/*
	 * An interrupt that is most of its CPU's load would only carry the
	 * imbalance along: the target would be the next to be HIGH.
	 */
	if (vbg_cpu_load_long_ns(a1.next, now) + own >=
	    vbg_cpu_load_long_ns(holder, now))
		return (struct vbg_decision) { holder, VBG_R_BALANCED, 0 };
	return (struct vbg_decision) { a1.next, VBG_R_IMBALANCE, 0 };
}

static struct vbg_decision vbg_decide_lasting(struct vbg_irq *i, int holder,
					      int me, u64 now,
					      const struct vbg_group *g)
{
	int best = vbg_least_wait(i, holder, now);
	struct vb_cost_steer c = {
		.move_cost = vbg_move_cost() * g->nr_moves,
		.rate = vbg_group_rate(g, now),
		.horizon = VBG_STEER_NS,
		.holder_wait = vbg_cpu_wait_ns(holder, now),
		.target_wait = vbg_cpu_wait_ns(best, now),
		.threshold = READ_ONCE(vbg_threshold),
	};
	struct vb_cost_result r = vb_cost_steer(&c);

	if (r.verdict == VB_COST_MOVE_STEER)
		return (struct vbg_decision) { best, VBG_R_STEER, r.saved };
	if (vbg_balance_due(i, holder, now)) {
		i->next_balance = now + VBG_BALANCE_NS;
		return vbg_decide_balance(i, holder, me, now);
	}
	return (struct vbg_decision) { holder, vbg_cost_reason(r.verdict),
				       r.saved };
}

struct vbg_decision vbg_policy_cost(struct vbg_irq *i, int holder, int me,
				    u64 now, const struct vbg_group *g)
{
	u32 state = vbg_cpu_state(holder);

	i->judged_episode = vbg_cpu_episode(holder);
	i->next_rescue = now + VBG_RERESCUE_NS;
	/* Its queues are served by others meanwhile: no move is worth it. */
	if ((state == VB_VCPU_PREEMPTED || state == VB_VCPU_OFF) &&
	    vbg_mode() != VBG_MODE_AFFINITY && vbg_mode() != VBG_MODE_NONE)
		return (struct vbg_decision) { holder, VBG_R_SERVED, 0 };
	if (state == VB_VCPU_PREEMPTED || state == VB_VCPU_OFF)
		return vbg_decide_rescue(i, holder, me, now, g);
	/* Halted: KVM wakes it. In the VMM: back at once, mostly. */
	if (now < i->next_steer)
		return (struct vbg_decision) { holder, VBG_R_HOLDER_RUNS, 0 };
	i->next_steer = now + VBG_STEER_NS;
	return vbg_decide_lasting(i, holder, me, now, g);
}
