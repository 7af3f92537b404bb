// SPDX-License-Identifier: GPL-2.0
/*
 * Borrowing: a running vCPU serves the queues of one that has lost its CPU,
 * without any help from the host.
 *
 * Every interrupt and tick looks for active queues whose owner is away and
 * serves those that the device has signalled; once in a millisecond it looks at
 * some of the others as well. While there are active queues of such owners a
 * high-resolution timer on the vCPU that looked bounds the wait until the next
 * look. It backs off while it finds nothing, and its own cost (measured) never
 * exceeds a share of the vCPU (parameter borrow_cpu): where an interrupt is
 * dear it comes less often.
 *
 * With redirection the looks stay (an MSI that the owner had latched when it
 * lost its CPU was not redirected); the timer is for those queues only that
 * the host does not know.
 */
#include <linux/math64.h>

#include "../compat/hrtimer.h"
#include "../core/borrow.h"
#include "vbg.h"
#include "vbg_policy.h"

struct vbg_borrow {
	struct hrtimer timer;
	struct vb_borrow pace;
	u64 next_look;		/* vbg_clock() */
	u64 next_full;		/* the same, for queues without traffic */
	u32 from;		/* where in the table a look begins */
	bool online;		/* the timer may be armed here */
	bool found;		/* served something since it was armed */
	bool away;		/* an active queue's owner was away last time */
	bool fired;		/* the timer, in this interrupt */
	u32 served;		/* queues, in this interrupt */
};

static DEFINE_PER_CPU(struct vbg_borrow, vbg_borrows);

/* Between two looks on one CPU. */
#define VBG_BORROW_LOOK_NS	(50 * NSEC_PER_USEC)
/* Between two looks at queues that had nothing lately. */
#define VBG_BORROW_FULL_NS	NSEC_PER_MSEC

/* Had an arrival in the last window or two. */
static bool vbg_is_active(const struct vbg_irq *i, u64 now)
{
	return vb_decay_read(&i->arrivals, VB_DECAY_SHORT, now);
}

static bool vbg_owner_is_away(const struct vbg_irq *i, int me)
{
	int owner = READ_ONCE(i->where);
	u32 state;

	if (owner < 0 || owner == me)
		return false;
	state = vbg_cpu_state(owner);
	return state == VB_VCPU_PREEMPTED || state == VB_VCPU_OFF;
}

/* Is the timer for it? Not for what redirect_tx=0 leaves to the looks. */
static bool vbg_is_ours(const struct vbg_irq *i, enum vbg_mode mode)
{
	return mode == VBG_MODE_BORROW ||
	       (!vbg_is_lazy(i) && !vbg_redirect_has_key(i));
}

/* Return: there is an active queue of ours whose owner is away. */
static bool vbg_borrow_all(struct vbg_borrow *b, const struct vbg_table *t,
			   int me, u64 now, enum vbg_mode mode)
{
	bool full = now >= b->next_full, away = false, active, ours;
	u32 from = b->from < t->nr ? b->from : 0;
	struct vb_borrow_turn turn = { full ? VB_BORROW_TURN : 0, from };
	u32 k, n;

	if (full)
		b->next_full = now + VBG_BORROW_FULL_NS;

	for (k = 0, n = from; k < t->nr; k++, n = n + 1 < t->nr ? n + 1 : 0) {
		struct vbg_irq *i = t->irqs[n];

		if (!i->handler || !vbg_owner_is_away(i, me))
			continue;
		active = vbg_is_active(i, now);
		if (!active && !vb_borrow_in_turn(&turn, n, t->nr))
			continue;
		ours = vbg_is_ours(i, mode);
		away |= active && ours;
		if (!vbg_serve(i, VBG_SERVE_BORROW)) {
			b->found |= ours;
			b->served++;
			vbg_stat_inc(VBG_S_BORROWED);
		}
	}
	b->from = turn.next;
	return away;
}

static bool vbg_borrow_on(enum vbg_mode mode)
{
	return mode == VBG_MODE_BORROW || mode == VBG_MODE_REDIRECT;
}

/* When the timer should fire, ns from now; 0: not at all. */
static u64 vbg_borrow_period(struct vbg_borrow *b)
{
	bool found = b->found;
	u64 ns;

	b->found = false;
	if (!READ_ONCE(b->online) || !b->away || !vbg_borrow_on(vbg_mode()))
		return 0;
	ns = vb_borrow_next(&b->pace, READ_ONCE(vbg_borrow_us) * NSEC_PER_USEC,
			    READ_ONCE(vbg_borrow_cpu), found);
	if (ns > b->pace.period)
		vbg_stat_inc(VBG_S_TIMER_LIMITED);
	return ns;
}

static void vbg_borrow_arm(struct vbg_borrow *b)
{
	u64 ns;

	/* Also in the timer's own interrupt, before its function runs. */
	if (hrtimer_active(&b->timer))
		return;
	ns = vbg_borrow_period(b);
	if (!ns)
		return;
	hrtimer_start(&b->timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
	vbg_stat_inc(VBG_S_TIMER_ARMED);
}

/**
 * vbg_borrow_look() - serve queues whose owners are away
 * @c: what we know of this CPU
 * @me: this CPU
 * @now: vbg_clock()
 * Context: hard interrupt.
 * Return: it has gone through the queues.
 */
bool vbg_borrow_look(struct vbg_cpu *c, int me, u64 now)
{
	const struct vbg_table *t = rcu_dereference_sched(vbg_table);
	struct vbg_borrow *b = this_cpu_ptr(&vbg_borrows);
	enum vbg_mode mode = vbg_mode();

	b->served = 0;
	/* Whoever comes after us has more time. */
	if (now < b->next_look || c->look_owed || vbg_leaves_soon(c, now))
		return false;
	if (vbg_policy_isolated(me) || !t || !t->nr || !vbg_borrow_on(mode) ||
	    !vbg_have_source()) {
		/* Nothing is known of anybody: the timer ends. */
		b->away = false;
		return false;
	}
	b->next_look = now + VBG_BORROW_LOOK_NS;
	b->away = vbg_borrow_all(b, t, me, now, mode);
	if (b->away)
		vbg_borrow_arm(b);
	return true;
}

/*
 * The look was made when this interrupt began (local_timer_entry): all that is
 * left is when the next one should be.
 */
static enum hrtimer_restart vbg_borrow_fn(struct hrtimer *timer)
{
	struct vbg_borrow *b = container_of(timer, struct vbg_borrow, timer);
	u64 ns = vbg_borrow_period(b);

	vbg_stat_inc(VBG_S_TIMER_FIRED);
	this_cpu_add(vbg_stats.v[VBG_S_TIMER_BORROWED], b->served);
	b->fired = true;
	if (!ns)
		return HRTIMER_NORESTART;
	hrtimer_forward(timer, ktime_get(), ns_to_ktime(ns));
	vbg_stat_inc(VBG_S_TIMER_ARMED);
	return HRTIMER_RESTART;
}

/**
 * vbg_borrow_timer_exit() - the end of a local timer interrupt
 * @ns: how long it took, without what was stolen
 * Context: hard interrupt.
 */
void vbg_borrow_timer_exit(u64 ns)
{
	struct vbg_borrow *b = this_cpu_ptr(&vbg_borrows);

	if (!b->fired)
		return;
	b->fired = false;
	vb_borrow_cost(&b->pace, ns);
	this_cpu_add(vbg_stats.v[VBG_S_TIMER_NS], ns);
}

void vbg_borrow_cpu_on(int cpu)
{
	WRITE_ONCE(per_cpu(vbg_borrows, cpu).online, true);
}

/* Context: process. */
void vbg_borrow_cpu_off(int cpu)
{
	struct vbg_borrow *b = &per_cpu(vbg_borrows, cpu);

	WRITE_ONCE(b->online, false);
	hrtimer_cancel(&b->timer);
}

void vbg_borrow_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vb_hrtimer_setup(&per_cpu(vbg_borrows, cpu).timer,
				 vbg_borrow_fn, CLOCK_MONOTONIC,
				 HRTIMER_MODE_REL_PINNED_HARD);
}

/* The probes are off: nobody arms one any more. Context: process. */
void vbg_borrow_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vbg_borrow_cpu_off(cpu);
}
