// SPDX-License-Identifier: GPL-2.0
/*
 * Looking at all interrupts, asking the policy (vbg_policy.c), doing what it
 * says.
 *
 * vbg_look() runs in every device interrupt and timer tick of every CPU, but
 * not more often than every VBG_LOOK_NS on one. For nearly all interrupts
 * nearly always the answer is that the holder runs, or is away, and was judged
 * a moment ago, which costs one lookup of the holder and one of its state.
 *
 * A move leaves the guest several times with interrupts off, so a look tries
 * one at most; the next one goes on behind it. A look is due when this CPU has
 * had as much time for others as the one before took (vbg_pay()), and after a
 * move when as much has passed.
 */
#include <linux/cpumask.h>

#include "../common/fault.h"
#include "vbg.h"
#include "vbg_policy.h"
#include "vbg_trace.h"

const char * const vbg_reason_names[VBG_NR_REASONS] = {
#define VBG_REASON_NAME(constant, name) [constant] = name,
	VBG_REASONS(VBG_REASON_NAME)
#undef VBG_REASON_NAME
};

/* Between two looks of one CPU: interrupts can come at 100000 a second. */
#define VBG_LOOK_NS	(50 * NSEC_PER_USEC)
/* A running holder is judged again after this. */
#define VBG_RELOOK_NS	(4 * NSEC_PER_MSEC)
/* Interrupts judged in one look: a big guest has hundreds. */
#define VBG_LOOK_MOST	64

/* ---- one interrupt ---- */

/*
 * The last move was refused: the CPU before has not cleaned up its vector,
 * which cannot have changed before it has run again; or the holder has not
 * taken its first interrupt, of which nothing is seen from here.
 */
static bool vbg_cleaning_up(const struct vbg_irq *i, u64 now)
{
	if (i->busy_cpu < 0 || !cpu_online(i->busy_cpu))
		return false;
	return now < i->busy_until ||
	       (i->busy_episode == vbg_cpu_episode(i->busy_cpu) &&
		!vbg_cpu_running(i->busy_cpu));
}

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
	WRITE_ONCE(i->home, where);
	i->cpu = where;
}

static bool vbg_policy_is_paper(void)
{
	return READ_ONCE(vbg_policy) == VBG_POLICY_PAPER;
}

/* An error that will not go away: the next attempts would only cost exits. */
#define VBG_FAILED_NS	(10 * NSEC_PER_SEC)

/* Return: a move was tried. */
static bool vbg_apply(struct vbg_irq *i, int holder,
		      const struct vbg_decision *d)
{
	bool observe = vbg_mode() == VBG_MODE_NONE;
	u64 cost;
	int err;

	trace_vb_guest_decision(i->irq, holder, d->target, d->reason,
				d->saved, observe);
	if (d->target == holder)
		return false;
	i->last_saved = d->saved;
	i->tried_cpu = holder;
	i->tried_episode = vbg_cpu_episode(holder);
	if (observe) {
		vbg_stat_inc(VBG_S_OBSERVED);
		return false;
	}
	err = vbg_move(i, d->target, &cost);
	if (err == -ESTALE)
		vbg_maintain_soon();
	else if (err && err != -EBUSY && err != -EAGAIN)
		i->backoff_until = vbg_clock() + VBG_FAILED_NS;
	return true;
}

static void vbg_record(struct vbg_irq *i, enum vbg_reason reason)
{
	WRITE_ONCE(i->last_reason, reason);
	i->decisions[reason]++;
	vbg_stat_inc(VBG_S_DECISIONS);
}

/* Judged a moment ago, and nothing has changed that would matter? */
static bool vbg_judged(const struct vbg_irq *i, int holder, u64 now)
{
	if (holder != READ_ONCE(i->cpu))
		return false;
	if (vbg_cpu_running(holder))
		return now < READ_ONCE(i->next_look);
	return !vbg_policy_is_paper() && now < READ_ONCE(i->next_rescue) &&
	       READ_ONCE(i->judged_episode) == vbg_cpu_episode(holder);
}

/*
 * The same without a look at its descriptor, which costs more than all else:
 * by what the kernel said when it configured the vector. Where it says nothing
 * (no redirection), a foreign move is seen at the next evaluation.
 */
static bool vbg_is_judged(const struct vbg_irq *i, u64 now)
{
	int holder = READ_ONCE(i->where);

	return holder >= 0 && vbg_judged(i, holder, now);
}

static struct vbg_decision vbg_decide(struct vbg_irq *i, int holder, int me,
				      u64 now, const struct vbg_group *g)
{
	if (now < i->backoff_until)
		return (struct vbg_decision) { holder, VBG_R_BACKOFF, 0 };
	if (vbg_cleaning_up(i, now))
		return (struct vbg_decision) { holder, VBG_R_CLEANUP, 0 };
	if (vbg_policy_is_paper())
		return vbg_policy_paper(i, holder, me, now);
	return vbg_policy_cost(i, holder, me, now, g);
}

/*
 * Decide for an interrupt and what follows it. Return: a move was tried, which
 * takes its time: @now is over.
 */
static bool vbg_decide_one(struct vbg_irq *i, int me, u64 now,
			   const struct vbg_group *g)
{
	struct vbg_decision d;
	bool pending, tried = false;
	int holder;

	if (vbg_is_judged(i, now) || !vbg_irq_lock(i))
		return false;
	/* Judged: somebody was faster, or what we were told was not the last. */
	holder = vbg_irq_where(i, &pending);
	if (holder < 0 || pending || vbg_judged(i, holder, now))
		goto out_unlock;
	vbg_check_foreign(i, holder, now);
	WRITE_ONCE(i->next_look, now + VBG_RELOOK_NS);
	d = vbg_decide(i, holder, me, now, g);
	vbg_record(i, d.reason);
	tried = vbg_apply(i, holder, &d);
out_unlock:
	vbg_irq_unlock(i);
	return tried;
}

/*
 * mapping=single: the first movable interrupt leads, the others follow to
 * where it is. That they follow is what the setting asks for and is not
 * weighed again; under policy=cost each does so once a second at most.
 * Return: a move was tried.
 */
static bool vbg_follow(struct vbg_irq *i, int target, u64 now)
{
	struct vbg_decision d = { target, VBG_R_FOLLOW, 0 };
	bool pending, tried = false;
	int holder = vbg_irq_where(i, NULL);

	if ((holder == target && holder == READ_ONCE(i->cpu)) ||
	    !vbg_irq_lock(i))
		return false;
	holder = vbg_irq_where(i, &pending);
	if (holder < 0 || pending)
		goto out_unlock;
	vbg_check_foreign(i, holder, now);
	if (holder == target || now < i->backoff_until ||
	    vbg_cleaning_up(i, now) || !vbg_policy_eligible(i, target))
		goto out_unlock;
	if (!vbg_policy_is_paper()) {
		if (now < i->next_steer)
			goto out_unlock;
		i->next_steer = now + VBG_STEER_NS;
	}
	vbg_record(i, d.reason);
	tried = vbg_apply(i, holder, &d);
out_unlock:
	vbg_irq_unlock(i);
	return tried;
}

/* mapping=single: whom the others follow, or NULL; @g: all of them. */
static struct vbg_irq *vbg_leader(const struct vbg_table *t, u64 now,
				  struct vbg_group *g)
{
	struct vbg_irq *leader = NULL;
	int n;

	for (n = 0; n < t->nr; n++) {
		if (t->irqs[n]->fixed)
			continue;
		vbg_group_add(g, t->irqs[n], now);
		if (!leader)
			leader = t->irqs[n];
	}
	return leader;
}

/*
 * Where to? -1: nobody is sent after a leader that sits on a descheduled vCPU,
 * or to where somebody else has put it.
 */
static int vbg_leads_to(struct vbg_irq *leader, u64 now)
{
	int target = vbg_irq_where(leader, NULL);

	if (target < 0 || target != READ_ONCE(leader->cpu) ||
	    now < READ_ONCE(leader->backoff_until) || !vbg_cpu_running(target))
		return -1;
	return target;
}

static bool vbg_decide_alone(struct vbg_irq *i, int me, u64 now)
{
	struct vbg_group g = {};

	vbg_group_add(&g, i, now);
	return vbg_decide_one(i, me, now, &g);
}

/*
 * On from where the last look has ended. @leader: the others follow, to
 * @target; NULL: each has its own way. Return: a move was tried.
 */
static bool vbg_look_on(struct vbg_cpu *c, const struct vbg_table *t, int me,
			u64 now, const struct vbg_irq *leader, int target)
{
	struct vbg_irq *i;
	int k, n, judged = 0;

	for (k = 0; k < t->nr; k++) {
		n = c->look_from + k;
		if (n >= t->nr)
			n -= t->nr;
		i = t->irqs[n];
		if (i->fixed || i == leader ||
		    (!leader && vbg_is_judged(i, now)))
			continue;
		if (judged++ == VBG_LOOK_MOST) {
			c->look_from = n;
			return false;
		}
		if (leader ? vbg_follow(i, target, now) :
			     vbg_decide_alone(i, me, now)) {
			c->look_from = n + 1 < t->nr ? n + 1 : 0;
			return true;
		}
	}
	return false;
}

static bool vbg_look_all(struct vbg_cpu *c, const struct vbg_table *t, int me,
			 u64 now)
{
	struct vbg_irq *leader;
	struct vbg_group g = {};
	int target;

	if (c->look_from >= t->nr)
		c->look_from = 0;
	if (READ_ONCE(vbg_mapping) != VBG_MAPPING_SINGLE)
		return vbg_look_on(c, t, me, now, NULL, -1);
	leader = vbg_leader(t, now, &g);
	if (!leader)
		return false;
	if (vbg_decide_one(leader, me, now, &g))
		return true;
	target = vbg_leads_to(leader, now);
	return target >= 0 && vbg_look_on(c, t, me, now, leader, target);
}

/**
 * vbg_look() - read the states and decide for each interrupt
 * @c: what we know of this CPU
 * @me: this CPU, which is running, that much is sure
 * @now: vbg_clock()
 *
 * Context: hard interrupt. Moves one interrupt at most (MMIO exits) when a
 * policy says so; the rest of the table is due at the next look.
 * Return: what it has done.
 */
enum vbg_looked vbg_look(struct vbg_cpu *c, int me, u64 now)
{
	const struct vbg_table *t = rcu_dereference_sched(vbg_table);

	if (now < c->next_look || c->look_owed)
		return VBG_LOOKED_NOT;
	c->next_look = now + VBG_LOOK_NS;
	vbg_stat_inc(VBG_S_LOOKS);
	if (!t || !t->nr)
		return VBG_LOOKED_NOT;
	if (unlikely(!vbg_have_source())) {
		vbg_stat_inc(VBG_S_NO_SOURCE);
		return VBG_LOOKED_NOT;
	}
	vb_fault_delay("look", 20 * NSEC_PER_MSEC);
	return vbg_look_all(c, t, me, now) ? VBG_LOOKED_MOVED : VBG_LOOKED;
}

/* ---- once a second ---- */

static void vbg_refresh_mask(struct vbg_irq *i, u64 now)
{
	if (!vbg_irq_mask_changed(i))
		return;
	/* Our moves do not touch the mask: this was somebody else. */
	i->count[VBG_C_FOREIGN]++;
	/*
	 * Perhaps to where we had brought it: then no move tells us, and the
	 * way home would lead out of the mask.
	 */
	if (i->restricted && !cpumask_test_cpu(i->home, i->mask))
		WRITE_ONCE(i->home, i->cpu);
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
			vbg_refresh_mask(i, vbg_clock());
			vbg_irq_unlock(i);
		}
		rcu_read_unlock();
		local_irq_restore(flags);
	}
}
