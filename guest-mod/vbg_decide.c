// SPDX-License-Identifier: GPL-2.0
/*
 * Deciding: kernel glue around core/algorithm1.h and core/cost.h.
 *
 * vbg_look() runs in every device interrupt and timer tick of every CPU. For
 * nearly all interrupts nearly always the answer is that the holder runs and
 * was judged a moment ago, which costs one lookup of the holder and one of its
 * state.
 *
 * policy=paper is Algorithm 1 as it stands: the holder is not running -> move
 * to the running vCPU with minimum load; the holder is HIGH and the imbalance
 * exceeds the threshold -> the same; each time it is looked at, at any price.
 *
 * policy=cost uses the same choice of a target, but a move has to earn what it
 * costs (core/cost.h), is tried once in an absence of the holder, and moves
 * between running vCPUs are for what lasts: steering by waits and balancing
 * by the 1.5 rule, each at most once in VBG_STEER_NS for an interrupt.
 */
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/sched/clock.h>

#include "vbg.h"
#include "vbg_trace.h"
#include "../core/cost.h"

const char * const vbg_reason_names[VBG_NR_REASONS] = {
#define VBG_REASON_NAME(constant, name) [constant] = name,
	VBG_REASONS(VBG_REASON_NAME)
#undef VBG_REASON_NAME
};

/* A running holder is judged again after this (policy=paper). */
#define VBG_RELOOK_NS	(4 * NSEC_PER_MSEC)
/* Long-lived decisions of policy=cost: horizon and shortest distance. */
#define VBG_STEER_NS	NSEC_PER_SEC
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

static bool vbg_view_eligible(const void *ctx, int cpu)
{
	const struct vbg_irq *i = ((const struct vbg_view *)ctx)->irq;

	return cpu_active(cpu) &&
	       (!i->restricted || cpumask_test_cpu(cpu, i->mask));
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

struct vbg_decision {
	int target;		/* == holder: stay */
	enum vbg_reason reason;
	u64 saved;
};

static struct vbg_decision vbg_decide_paper(struct vbg_irq *i, int holder,
					    int me, u64 now)
{
	struct vb_a1_result r = vbg_algorithm1(i, holder, me, now, false);

	return (struct vbg_decision) { r.next, vbg_a1_reason(r.reason), 0 };
}

/* Arrivals per 2^VB_RATE_SHIFT ns (about a second). */
static u64 vbg_irq_rate(const struct vbg_irq *i, u64 now)
{
	u64 n = vb_decay_read(&i->arrivals, VB_DECAY_SHORT, now);

	return div64_u64(n << VB_RATE_SHIFT,
			 vb_decay_window_ns(VB_DECAY_SHORT, now));
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

/*
 * The last move was refused because the CPU before has not cleaned up its
 * vector; that cannot have changed before it has run again.
 */
static bool vbg_cleaning_up(const struct vbg_irq *i)
{
	return i->busy_cpu >= 0 &&
	       i->busy_episode == vbg_cpu_episode(i->busy_cpu) &&
	       !vbg_cpu_running(i->busy_cpu);
}

static struct vbg_decision vbg_decide_rescue(struct vbg_irq *i, int holder,
					     int me, u64 now, u32 nr_moves)
{
	struct vb_a1_result a1;
	const struct vbg_cpu *h = &per_cpu(vbg_cpus, holder);
	const struct vbg_cpu *t;
	struct vb_cost_result r;
	struct vb_cost_rescue c;

	if (vbg_tried(i, holder))
		return (struct vbg_decision) { holder, VBG_R_EPISODE, 0 };
	a1 = vbg_algorithm1(i, holder, me, now, false);
	if (a1.next == holder)
		return (struct vbg_decision) {
			holder, vbg_a1_reason(a1.reason), 0 };
	t = &per_cpu(vbg_cpus, a1.next);
	c = (struct vb_cost_rescue) {
		.move_cost = vbg_move_cost() * nr_moves,
		.rate = vbg_irq_rate(i, now),
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
	struct vbg_view ctx = { .irq = i, .now = now };
	int cpu, best = holder;

	for_each_online_cpu(cpu) {
		u64 wait = vbg_cpu_wait_ns(cpu, now);

		if (wait < best_wait && vbg_view_eligible(&ctx, cpu)) {
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
					      int me, u64 now, u32 nr_moves)
{
	int best = vbg_least_wait(i, holder, now);
	struct vb_cost_steer c = {
		.move_cost = vbg_move_cost() * nr_moves,
		.rate = vbg_irq_rate(i, now),
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

static struct vbg_decision vbg_decide_cost(struct vbg_irq *i, int holder,
					   int me, u64 now, u32 nr_moves)
{
	u32 state = vbg_cpu_state(holder);

	if (state == VB_VCPU_PREEMPTED || state == VB_VCPU_OFF)
		return vbg_decide_rescue(i, holder, me, now, nr_moves);
	/* Halted: KVM wakes it. In the VMM: back at once, mostly. */
	if (now < i->next_steer)
		return (struct vbg_decision) { holder, VBG_R_HOLDER_RUNS, 0 };
	i->next_steer = now + VBG_STEER_NS;
	return vbg_decide_lasting(i, holder, me, now, nr_moves);
}

/* ---- one interrupt ---- */

/*
 * Did somebody else move it? The admin's or irqbalance's wish stands, as a
 * mask that binds us and as a time in which we keep our hands off. A CPU that
 * went offline has pushed its interrupts away: that is nobody's wish.
 */
static void vbg_check_foreign(struct vbg_irq *i, int where, u64 now)
{
	if (likely(where == i->cpu))
		return;
	trace_vb_guest_foreign(i->irq, i->cpu, where, i->restricted);
	if (i->cpu >= 0 && cpu_online(i->cpu)) {
		i->count[VBG_C_FOREIGN]++;
		i->backoff_until = now +
			(u64)READ_ONCE(vbg_backoff_ms) * NSEC_PER_MSEC;
	}
	i->home = where;
	i->cpu = where;
}

static bool vbg_policy_is_paper(void)
{
	return READ_ONCE(vbg_policy) == VBG_POLICY_PAPER;
}

static void vbg_apply(struct vbg_irq *i, int holder,
		      const struct vbg_decision *d)
{
	bool observe = READ_ONCE(vbg_observe) ||
		       READ_ONCE(vbg_remap) == VBG_REMAP_NONE;
	u64 cost;

	trace_vb_guest_decision(i->irq, holder, d->target, d->reason,
				d->saved, observe);
	if (d->target == holder)
		return;
	i->last_saved = d->saved;
	i->tried_cpu = holder;
	i->tried_episode = vbg_cpu_episode(holder);
	if (observe) {
		vbg_stat_inc(VBG_S_OBSERVED);
		return;
	}
	if (vbg_move(i, d->target, &cost) == -ESTALE)
		vbg_maintain_soon();
}

static void vbg_record(struct vbg_irq *i, enum vbg_reason reason)
{
	i->last_reason = reason;
	i->decisions[reason]++;
	vbg_stat_inc(VBG_S_DECISIONS);
}

/*
 * Decide for an interrupt; @nr_moves is how many go with it (mapping=single).
 * Return: where it should be, or -1 when nothing was decided.
 */
static int vbg_decide_one(struct vbg_irq *i, int me, u64 now, u32 nr_moves)
{
	struct vbg_decision d;
	bool pending;
	int holder;

	holder = vbg_irq_where(i, &pending);
	if (holder < 0 || pending)
		return -1;
	/* Nearly always: somebody else's, it runs, and was judged just now. */
	if (holder == i->cpu && now < READ_ONCE(i->next_look) &&
	    vbg_cpu_running(holder))
		return -1;
	if (!vbg_irq_lock(i))
		return -1;
	/* Again: somebody may have moved it before we got the bit. */
	holder = vbg_irq_where(i, &pending);
	if (holder < 0 || pending) {
		vbg_irq_unlock(i);
		return -1;
	}
	vbg_check_foreign(i, holder, now);
	i->next_look = now + VBG_RELOOK_NS;
	if (i->fixed) {
		d = (struct vbg_decision) { holder, VBG_R_FIXED, 0 };
		i->next_look = now + VBG_STEER_NS;
	} else if (now < i->backoff_until) {
		d = (struct vbg_decision) { holder, VBG_R_BACKOFF, 0 };
	} else if (vbg_cleaning_up(i)) {
		d = (struct vbg_decision) { holder, VBG_R_CLEANUP, 0 };
	} else if (vbg_policy_is_paper()) {
		d = vbg_decide_paper(i, holder, me, now);
	} else {
		d = vbg_decide_cost(i, holder, me, now, nr_moves);
	}
	vbg_record(i, d.reason);
	vbg_apply(i, holder, &d);
	vbg_irq_unlock(i);
	return d.reason == VBG_R_BACKOFF || d.reason == VBG_R_CLEANUP ?
	       -1 : d.target;
}

/* mapping=single: the first movable interrupt leads, the others follow. */
static void vbg_follow(struct vbg_irq *i, int target, u64 now)
{
	struct vbg_decision d = { target, VBG_R_IMBALANCE, 0 };
	struct vbg_view ctx = { .irq = i, .now = now };
	bool pending;
	int holder = vbg_irq_where(i, NULL);

	if (i->fixed || (holder == target && holder == i->cpu) ||
	    !vbg_irq_lock(i))
		return;
	holder = vbg_irq_where(i, &pending);
	if (holder < 0 || pending)
		goto out_unlock;
	vbg_check_foreign(i, holder, now);
	if (holder == target || now < i->backoff_until ||
	    vbg_cleaning_up(i) || !vbg_view_eligible(&ctx, target))
		goto out_unlock;
	/* The leader's decision has paid for one attempt of each follower. */
	if (!vbg_policy_is_paper()) {
		if (now < i->next_steer)
			goto out_unlock;
		i->next_steer = now + VBG_STEER_NS;
	}
	vbg_record(i, d.reason);
	vbg_apply(i, holder, &d);
out_unlock:
	vbg_irq_unlock(i);
}

static void vbg_look_single(const struct vbg_table *t, int me, u64 now)
{
	struct vbg_irq *leader = NULL;
	u32 movable = 0;
	int n, target;

	for (n = 0; n < t->nr; n++) {
		if (t->irqs[n]->fixed)
			continue;
		movable++;
		if (!leader)
			leader = t->irqs[n];
	}
	if (!leader)
		return;
	target = vbg_decide_one(leader, me, now, movable);
	/* Nobody is sent after a leader that sits on a descheduled vCPU. */
	if (target < 0 || !vbg_cpu_running(target))
		return;
	for (n = 0; n < t->nr; n++)
		if (t->irqs[n] != leader)
			vbg_follow(t->irqs[n], target, now);
}

/**
 * vbg_look() - read the states and decide for each interrupt
 * @me: this CPU, which is running, that much is sure
 *
 * Context: hard interrupt. Moves interrupts (MMIO exits) when a policy says
 * so.
 */
void vbg_look(int me)
{
	const struct vbg_table *t = rcu_dereference_sched(vbg_table);
	u64 now = local_clock();
	int n;

	vbg_stat_inc(VBG_S_LOOKS);
	if (!t)
		return;
	if (unlikely(!vbg_have_source())) {
		vbg_stat_inc(VBG_S_NO_SOURCE);
		return;
	}
	if (READ_ONCE(vbg_mapping) == VBG_MAPPING_SINGLE) {
		vbg_look_single(t, me, now);
		return;
	}
	for (n = 0; n < t->nr; n++)
		vbg_decide_one(t->irqs[n], me, now, 1);
}

/* ---- once a second ---- */

static void vbg_refresh_mask(struct vbg_irq *i, u64 now)
{
	if (!vbg_irq_mask_changed(i))
		return;
	/* Our moves do not touch the mask: this was somebody else. */
	i->count[VBG_C_FOREIGN]++;
	i->backoff_until = now + (u64)READ_ONCE(vbg_backoff_ms) * NSEC_PER_MSEC;
	trace_vb_guest_foreign(i->irq, i->cpu, vbg_irq_where(i, NULL),
			       i->restricted);
}

/**
 * vbg_decide_slow() - what need not be done in interrupts
 * Context: the maintenance work item, under vbg_irqs_mutex.
 */
void vbg_decide_slow(void)
{
	struct vbg_table *t = rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex));
	unsigned long flags;
	int n;

	vbg_move_age_cost();
	for (n = 0; t && n < t->nr; n++) {
		struct vbg_irq *i = t->irqs[n];

		vbg_move_fix_unhandled(i);
		/* Not interrupted while holding the bit: it is not a lock. */
		local_irq_save(flags);
		rcu_read_lock();
		if (vbg_irq_lock(i)) {
			vbg_refresh_mask(i, local_clock());
			vbg_irq_unlock(i);
		}
		rcu_read_unlock();
		local_irq_restore(flags);
	}
}
