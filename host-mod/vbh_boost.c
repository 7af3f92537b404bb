// SPDX-License-Identifier: GPL-2.0
/*
 * The boost engine: a vCPU's thread gets its CPU at once, for a bounded time.
 *
 *	who asks (vbh_holder.c), in a hook, perhaps under the run-queue lock
 *	  -> lock-free list and irq_work
 *	    -> one real-time worker, which makes the thread SCHED_FIFO with the
 *	       least priority, and what it was at the end (vbh_lift.c)
 *
 * Works across cpu cgroups, unlike everything that the fair class offers. The
 * worker outranks what it boosts: a busy vCPU cannot keep it from ending a
 * boost, nor from running on the same CPU.
 *
 * A boost ends when the guest says that it is done (VB_OP_DONE), when the
 * vCPU leaves its CPU by itself (halt, exit to the VMM), after boost_us, when
 * its thread has been moved to a CPU that has no time for boosts, or when the VM
 * or this module goes. Its CPU time is paid from the buckets of VM, vCPU and CPU
 * (core/boost.h).
 *
 * Ownership of vbh_vcpu.boost: whoever changes state from IDLE to WANTED (any
 * hook) fills it in; from then on it is the worker's until that stores IDLE.
 * Others only set .over meanwhile. The VM's object stays as long as
 * vm->nr_boosts is not 0 (vbh_boost_wait()).
 */
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/sched.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/sched/task.h>
#include <linux/wait_bit.h>

#include "../compat/isolation.h"
#include "vbh.h"
#include "vbh_param.h"
#include "vbh_trace.h"

const char * const vbh_boost_count_names[VBH_B_NR_COUNTS] = {
#define VBH_BOOST_NAME(constant, name) [constant] = name,
	VBH_BOOST_COUNTS(VBH_BOOST_NAME)
#undef VBH_BOOST_NAME
};

/* vbh_show_boost() of vbh_trace.h names these. */
static_assert(VBH_B_HINT == 1 && VBH_B_TASK == 2 && VBH_B_HOLDER == 3 &&
	      VBH_B_FAST_PATH == 4 && VBH_B_WAITING == 5 &&
	      VBH_B_END_DONE == 7 && VBH_B_END_OFF == 8 &&
	      VBH_B_END_BOUND == 9 && VBH_B_END_GONE == 10 &&
	      VBH_B_END_MOVED == 11);

static struct task_struct *vbh_booster;
static LIST_HEAD(vbh_boost_active);	/* the worker's: begun, not finished */
static LLIST_HEAD(vbh_boost_wanted);
static bool vbh_boost_look;		/* something is over, or wanted */

static void vbh_boost_irq_work_fn(struct irq_work *work)
{
	wake_up_process(vbh_booster);
}

static DEFINE_IRQ_WORK(vbh_boost_irq_work, vbh_boost_irq_work_fn);

/* Context: any, also under the run-queue lock. */
static void vbh_boost_kick(void)
{
	WRITE_ONCE(vbh_boost_look, true);
	irq_work_queue(&vbh_boost_irq_work);
}

static void vbh_boost_count(struct vbh_vcpu *v, enum vbh_boost_count c)
{
	atomic64_inc(&v->vm->boosts[c]);
}

static void vbh_boost_limits(struct vb_boost_limits *l)
{
	l->vm_percent = READ_ONCE(vbh_boost_share);
	l->vcpu_percent = READ_ONCE(vbh_boost_vcpu_share);
	l->in_row = READ_ONCE(vbh_boost_row);
}

/*
 * What a vCPU's process may take is not taken from its interrupts.
 * Counts why not. Context: any (a raw lock that nothing else nests in).
 */
static bool vbh_boost_allowed(struct vbh_vcpu *v, enum vbh_boost_count why)
{
	s64 reserve = why == VBH_B_TASK ? VB_BOOST_BURST_NS / 2 : 0;
	static const enum vbh_boost_count refused[VB_BOOST_NR_VERDICTS] = {
		[VB_BOOST_VM_TOKENS] = VBH_B_NO_VM_TOKENS,
		[VB_BOOST_VCPU_TOKENS] = VBH_B_NO_VCPU_TOKENS,
		[VB_BOOST_IN_ROW] = VBH_B_IN_ROW,
	};
	struct vbh_boost *b = &v->boost;
	enum vb_boost_verdict verdict;
	struct vb_boost_limits limits;
	unsigned long flags;

	vbh_boost_limits(&limits);
	raw_spin_lock_irqsave(&v->vm->bucket_lock, flags);
	verdict = vb_boost_ask(&v->vm->bucket, &b->bucket, &b->in_row, &limits,
			       reserve, ktime_get_mono_fast_ns());
	raw_spin_unlock_irqrestore(&v->vm->bucket_lock, flags);
	if (verdict != VB_BOOST_YES)
		vbh_boost_count(v, refused[verdict]);
	return verdict == VB_BOOST_YES;
}

/**
 * vbh_boost_want() - ask for the CPU for a vCPU that has none
 * @v: vCPU
 * @task: its thread, runnable, or halted and about to wake up
 * @why: VBH_B_HINT, _TASK, _HOLDER, _WAITING or _FAST_PATH
 * @halted: it is halted; else it is preempted
 *
 * Context: any, also under the run-queue lock; preemption disabled, @task
 * cannot go before the caller is done (it is current, or was seen preempted
 * or halted on this RCU read side).
 */
void vbh_boost_want(struct vbh_vcpu *v, struct task_struct *task,
		    enum vbh_boost_count why, bool halted)
{
	struct vbh_boost *b = &v->boost;

	if (!vbh_can(VBH_F_BOOST) || !READ_ONCE(vbh_boost_param) ||
	    READ_ONCE(b->state) != VBH_BOOST_IDLE)
		return;
	if (ktime_get_mono_fast_ns() < READ_ONCE(b->not_before)) {
		vbh_boost_count(v, VBH_B_PAUSE);
		return;
	}
	if (!vbh_lift_may(task)) {
		vbh_boost_count(v, VBH_B_POLICY);
		return;
	}
	if (cmpxchg(&b->state, VBH_BOOST_IDLE, VBH_BOOST_WANTED) !=
	    VBH_BOOST_IDLE)
		return;
	b->in_row = 0;
	if (!vbh_boost_allowed(v, why)) {
		/* Behind this somebody else may want it. */
		smp_store_release(&b->state, VBH_BOOST_IDLE);
		return;
	}
	get_task_struct(task);
	b->task = task;
	WRITE_ONCE(b->why, why);
	b->was_halted = halted;
	b->word = READ_ONCE(v->word);
	atomic_inc(&v->vm->nr_boosts);
	llist_add(&b->node, &vbh_boost_wanted);
	vbh_boost_kick();
}

/**
 * vbh_boost_end() - a vCPU needs no boost any more
 * @v: vCPU
 * @why: one of VBH_B_END_*
 *
 * Context: any, also under the run-queue lock; RCU read side for @v. The boost
 * ends soon, not at once. Does nothing when there is none.
 */
void vbh_boost_end(struct vbh_vcpu *v, enum vbh_boost_count why)
{
	struct vbh_boost *b = &v->boost;

	if (READ_ONCE(b->state) == VBH_BOOST_IDLE || READ_ONCE(b->over))
		return;
	/*
	 * Has that boost ended in between this is about the next one, which
	 * then ends at once, or is found not to be needed: one boost is lost.
	 */
	WRITE_ONCE(b->over, why);
	vbh_boost_kick();
}

/* ---- the worker ---- */

/* For the guest, which calls VB_OP_DONE only then. */
static void vbh_boost_tell(struct vbh_vcpu *v, bool on)
{
	struct vbh_reg *reg;

	preempt_disable();
	reg = rcu_dereference_sched(v->vm->reg);
	if (reg && v->slot < reg->layout.nr_slots &&
	    READ_ONCE(reg->table[v->slot].cookie) == reg->layout.cookie &&
	    READ_ONCE(reg->hdr->cookie) == reg->layout.cookie)
		WRITE_ONCE(reg->table[v->slot].boosted, on);
	preempt_enable();
}

/*
 * Of each physical CPU, for all VMs together: what runs there besides must
 * not lose more, however many of them there are. The worker's.
 */
static DEFINE_PER_CPU(struct vb_bucket, vbh_cpu_bucket);
static DEFINE_PER_CPU(struct vb_turn, vbh_cpu_turn);

static u64 vbh_boost_bound(void)
{
	return (u64)READ_ONCE(vbh_boost_us) * NSEC_PER_USEC;
}

static void vbh_boost_pay(struct vbh_vcpu *v, u64 ns)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&v->vm->bucket_lock, flags);
	vb_boost_pay(&v->vm->bucket, &v->boost.bucket, ns);
	raw_spin_unlock_irqrestore(&v->vm->bucket_lock, flags);
	atomic64_add(ns, &v->vm->boosts[VBH_B_TIME_NS]);
	v->boost.paid += ns;
}

static void vbh_boost_pay_cpu(const struct vbh_vcpu *v, u64 ns)
{
	per_cpu_ptr(&vbh_cpu_bucket, v->boost.cpu)->tokens -= ns;
}

/* CPU time since the last time. The CPU pays that it was on then. */
static void vbh_boost_charge(struct vbh_vcpu *v)
{
	struct vbh_boost *b = &v->boost;
	u64 sum = READ_ONCE(b->task->se.sum_exec_runtime);

	vbh_boost_pay(v, sum - b->paid_until);
	vbh_boost_pay_cpu(v, sum - b->paid_until);
	/* Not the fee: who is refused has paid it, and nobody had the CPU. */
	vb_turn_pay(per_cpu_ptr(&vbh_cpu_turn, b->cpu), sum - b->paid_until,
		    ktime_get_mono_fast_ns());
	b->paid_until = sum;
}

/* What has been taken so far. None of those that go on is a pause. */
static void vbh_boost_charge_all(int cpu)
{
	struct vbh_vcpu *v;

	list_for_each_entry(v, &vbh_boost_active, boost.active)
		if (v->boost.cpu == cpu && !v->boost.ended)
			vbh_boost_charge(v);
}

/* For the CPU that it is on. Counts why not. */
static bool vbh_boost_cpu_allows(struct vbh_vcpu *v)
{
	int nr = task_cpu(v->boost.task);
	struct vb_bucket *bucket = per_cpu_ptr(&vbh_cpu_bucket, nr);
	u32 percent = READ_ONCE(vbh_boost_cpu_share);
	u64 bound = vbh_boost_bound(), now;

	vbh_boost_charge_all(nr);
	v->boost.cpu = nr;
	now = ktime_get_mono_fast_ns();
	vb_bucket_fill(bucket, percent, now);
	if (!percent || bucket->tokens <= 0) {
		vbh_boost_count(v, VBH_B_NO_CPU_TOKENS);
		return false;
	}
	if (!vb_turn_ask(per_cpu_ptr(&vbh_cpu_turn, nr),
			 bound * READ_ONCE(vbh_boost_row), bound, now)) {
		vbh_boost_count(v, VBH_B_CPU_TURN);
		return false;
	}
	return true;
}

/*
 * A thread that may run elsewhere is moved by somebody, or by the scheduler when
 * its CPU has several that are real-time, and its boost to a CPU that was not
 * asked.
 */
static bool vbh_boost_strayed(struct vbh_vcpu *v)
{
	if (task_cpu(v->boost.task) == v->boost.cpu)
		return false;
	vbh_boost_charge(v);
	return !vbh_boost_cpu_allows(v);
}

/**
 * vbh_boost_goes_on() - has a vCPU got the CPU by a boost, for now?
 * @v: vCPU
 * Context: the worker's.
 * Return: it has, and the worker is not about to end it.
 */
bool vbh_boost_goes_on(const struct vbh_vcpu *v)
{
	const struct vbh_boost *b = &v->boost;

	return READ_ONCE(b->state) == VBH_BOOST_ON && !READ_ONCE(b->over) &&
	       !b->ended && ktime_get_mono_fast_ns() < b->deadline;
}

/*
 * What was asked while the last boost was not quite over was not heard: the
 * thread loses its CPU before the worker has come to its end. The same goes for
 * what was to be asked for as this one goes.
 */
static void vbh_boost_missed(struct vbh_vcpu *v)
{
	enum vbh_boost_count why;
	struct task_struct *task;
	struct vbh_vcpu *w;
	u32 state;

	/* What is seen without a CPU from here on is there until the end. */
	preempt_disable();
	/*
	 * When the hooks go, this feature is off before: states are not
	 * followed any more then, nor that a thread seen without a CPU ends.
	 */
	if (!vbh_can(VBH_F_BOOST))
		goto out;
	state = READ_ONCE(v->word) & VBH_STATE_MASK;
	why = vbh_is_critical(v);
	w = READ_ONCE(v->vm->waits);
	if (why && state == VB_VCPU_PREEMPTED) {
		smp_rmb();	/* as in vbh_holder_irq() */
		task = READ_ONCE(v->task);
		if (task)
			vbh_boost_want(v, task, why, false);
	} else if (w && w != v && state != VB_VCPU_RUNNING &&
		   !vbh_will_be_served(w)) {
		vbh_holder_last(v);
	}
out:
	preempt_enable();
}

static void vbh_boost_free(struct vbh_vcpu *v)
{
	struct vbh_boost *b = &v->boost;
	struct vbh_vm *vm = v->vm;

	put_task_struct(b->task);
	b->task = NULL;
	WRITE_ONCE(b->over, 0);
	/* Behind this it belongs to whoever wants the next one. */
	smp_store_release(&b->state, VBH_BOOST_IDLE);
	smp_mb();	/* who was refused until now is seen below */
	if (!READ_ONCE(vm->unlinked) && !kthread_should_stop())
		vbh_boost_missed(v);
	/* Behind this @vm and @v may go. */
	if (atomic_dec_and_test(&vm->nr_boosts))
		wake_up_var(&vm->nr_boosts);
}

/*
 * One that is halted has been sent an interrupt, and is awake, but for a CPU, if
 * its thread is queued. Not before: as a real-time thread it would wake up on the
 * CPU that it slept on, whatever CPU is idle. (An interrupt that is injected
 * with interrupts on, by an ioctl, may bring the worker before it wakes anybody.)
 * A sleeper that the fair class has not let go of yet (DELAY_DEQUEUE) is taken
 * for an awake one: it wakes up on its CPU anyway.
 */
static bool vbh_boost_waits(const struct vbh_vcpu *v)
{
	u32 state = READ_ONCE(v->word) & VBH_STATE_MASK;

	return state == VB_VCPU_PREEMPTED ||
	       (state == VB_VCPU_HALTED && v->boost.was_halted &&
		READ_ONCE(v->boost.task->on_rq) &&
		!READ_ONCE(v->boost.task->on_cpu));
}

/* Is it still the same thread that waits for its CPU, for the same reason? */
static bool vbh_boost_needed(const struct vbh_vcpu *v)
{
	const struct vbh_boost *b = &v->boost;

	if (READ_ONCE(b->over) || !vbh_boost_waits(v) ||
	    READ_ONCE(v->task) != b->task)
		return false;
	if (!vbh_is_for_irq(b->why))
		return vbh_is_critical(v);
	/*
	 * Has it had a CPU since it has taken what waited. To a sleeper nothing
	 * is posted.
	 */
	return READ_ONCE(v->word) == b->word &&
	       (b->why != VBH_B_FAST_PATH || b->was_halted ||
		!vbh_will_be_served(v));
}

/*
 * On the CPU of what it raises the worker would be in its way: the scheduler
 * would push a thread that may run elsewhere to another CPU, whose own work has
 * nothing to do with it. Having left it the worker wakes up where it was last,
 * and may go everywhere again: should somebody more important be busy there, it
 * is needed elsewhere to end what is under way.
 */
static void vbh_boost_step_aside(const struct task_struct *p)
{
	static struct cpumask all, others;	/* the worker's */
	int cpu = task_cpu(p), n;

	if (p->nr_cpus_allowed == 1 || cpu != raw_smp_processor_id())
		return;
	/* Since 7.0 this mask may be replaced. */
	rcu_read_lock();
	cpumask_copy(&all, housekeeping_cpumask(HK_TYPE_KTHREAD));
	rcu_read_unlock();
	cpumask_and(&others, cpu_active_mask, &all);
	cpumask_clear_cpu(cpu, &others);
	/* Nobody would take it away from there again. */
	for_each_cpu(n, &others)
		if (vb_cpu_is_isolated(n))
			cpumask_clear_cpu(n, &others);
	if (!cpumask_empty(&others) && !set_cpus_allowed_ptr(current, &others))
		set_cpus_allowed_ptr(current, &all);
}

/* Or what is refused would be asked for again at once, without end. */
static void vbh_boost_later(struct vbh_boost *b)
{
	WRITE_ONCE(b->not_before, ktime_get_mono_fast_ns() + vbh_boost_bound());
}

/* Return: it has been begun. */
static bool vbh_boost_begin(struct vbh_vcpu *v)
{
	struct vbh_boost *b = &v->boost;
	bool needed;
	u32 state;
	int err;

	b->paid = 0;
	b->ended = 0;
	vbh_boost_pay(v, VB_BOOST_FEE_NS);
	needed = vbh_boost_needed(v);
	if (needed) {
		if (!vbh_boost_cpu_allows(v)) {
			vbh_boost_later(b);
			return false;
		}
		vbh_boost_step_aside(b->task);
	}
	/*
	 * From before it is seen without a CPU: what the boost will have taken
	 * is all younger, and none that is not late can be longer.
	 */
	b->deadline = ktime_get_mono_fast_ns() + vbh_boost_bound();
	needed = needed && vbh_boost_needed(v);
	/* One that is still asleep says nothing about how soon it gets a CPU. */
	state = READ_ONCE(v->word) & VBH_STATE_MASK;
	if (b->was_halted && vbh_is_for_irq(b->why) &&
	    (needed || state != VB_VCPU_HALTED))
		WRITE_ONCE(v->quick, vb_wake_note(READ_ONCE(v->quick), needed));
	if (!needed) {
		vbh_boost_count(v, VBH_B_NOT_NEEDED);
		return false;
	}
	b->paid_until = READ_ONCE(b->task->se.sum_exec_runtime);
	vbh_boost_tell(v, true);
	err = vbh_lift(&b->lift, b->task);
	if (err) {
		vbh_boost_tell(v, false);
		vbh_boost_count(v, err == -EOPNOTSUPP ? VBH_B_UNWATCHED :
							VBH_B_POLICY);
		vbh_boost_later(b);
		return false;
	}
	/* The others' fees are no debt of the CPU: that would have no bottom. */
	vbh_boost_pay_cpu(v, VB_BOOST_FEE_NS);
	WRITE_ONCE(b->state, VBH_BOOST_ON);
	vbh_boost_count(v, b->why);
	trace_vb_host_boost(v->vm->pid, v->apic_id, b->why);
	return true;
}

/* Who is boosted less often than that takes little, and has slept since. */
#define VBH_BOOST_DEBT_NS	(100 * NSEC_PER_MSEC)

/*
 * What a boost has taken is known when its thread has been put back: the end
 * of the next one pays for it. Return: ns.
 */
static u64 vbh_boost_debt(const struct vbh_boost *b, u64 now)
{
	if (!READ_ONCE(vbh_boost_repay) || !vbh_can(VBH_F_REPAY) ||
	    now > b->debt_since + VBH_BOOST_DEBT_NS)
		return 0;
	return b->debt;
}

/* It was to end, or to be extended, a good while ago. */
static void vbh_boost_note_late(struct vbh_vcpu *v, u64 now)
{
	if (now > v->boost.deadline + vbh_boost_bound() / 2)
		vbh_boost_count(v, VBH_B_LATE);
}

/*
 * The thread is what it was; vbh_boost_finish() has to follow. @why: unless it
 * is told to end by somebody meanwhile.
 */
static void vbh_boost_put_back(struct vbh_vcpu *v, enum vbh_boost_count why)
{
	struct vbh_boost *b = &v->boost;
	u64 now = ktime_get_mono_fast_ns(), bound = vbh_boost_bound();

	b->ended = READ_ONCE(b->over) ?: why;
	vbh_unlift(&b->lift, vbh_boost_debt(b, now));
	if (b->lift.left_normal)
		vbh_boost_count(v, VBH_B_LEFT_NORMAL);
	atomic64_add(b->lift.repaid, &v->vm->boosts[VBH_B_REPAID_NS]);
	vbh_boost_tell(v, false);
	vbh_boost_charge(v);
	b->debt = b->paid - VB_BOOST_FEE_NS;
	b->debt_since = now;
	vbh_boost_note_late(v, ktime_get_mono_fast_ns());
	if (b->paid > atomic64_read(&v->vm->boosts[VBH_B_LONGEST_NS]))
		atomic64_set(&v->vm->boosts[VBH_B_LONGEST_NS], b->paid);
	/* It did not get done: the others have the CPU for as long now. */
	if (b->ended == VBH_B_END_BOUND || b->ended == VBH_B_END_MOVED)
		WRITE_ONCE(b->not_before, now + max(b->paid, bound));
	trace_vb_host_boost_end(v->vm->pid, v->apic_id, b->ended, b->paid);
}

/* Return: it is over; false: somebody is changing the thread, later again. */
static bool vbh_boost_finish(struct vbh_vcpu *v)
{
	struct vbh_boost *b = &v->boost;

	if (!vbh_lift_settle(&b->lift))
		return false;
	if (b->lift.changed)
		vbh_boost_count(v, VBH_B_USER_CHANGED);
	vbh_boost_count(v, b->ended);
	return true;
}

/*
 * The time is up and it is still critical: once more, if that is allowed, as
 * if it had lost its CPU again.
 */
static bool vbh_boost_again(struct vbh_vcpu *v, u64 now)
{
	struct vbh_boost *b = &v->boost;
	enum vbh_boost_count why;

	vbh_boost_charge(v);
	/* One that has never run does not need more time. */
	if ((READ_ONCE(v->word) & VBH_STATE_MASK) == VB_VCPU_HALTED)
		return false;
	why = vbh_is_critical(v);
	if (!why || !READ_ONCE(vbh_boost_param) ||
	    vbh_lift_is_limited(b->task) ||
	    !vbh_boost_allowed(v, why) || !vbh_boost_cpu_allows(v))
		return false;
	WRITE_ONCE(b->why, why);
	vbh_boost_note_late(v, now);
	b->deadline = now + vbh_boost_bound();
	vbh_boost_count(v, VBH_B_EXTENDED);
	return true;
}

/* Return: why one that is on ends now; VBH_B_NONE: it goes on. */
static enum vbh_boost_count vbh_boost_over(struct vbh_vcpu *v, u64 now)
{
	int over = READ_ONCE(v->boost.over);

	if (over)
		return over;
	if (vbh_boost_strayed(v))
		return VBH_B_END_MOVED;
	if (now >= v->boost.deadline && !vbh_boost_again(v, now))
		return VBH_B_END_BOUND;
	return VBH_B_NONE;
}

static void vbh_boost_take_new(void)
{
	struct llist_node *new = llist_del_all(&vbh_boost_wanted);
	struct vbh_vcpu *v, *next;

	llist_for_each_entry_safe(v, next, new, boost.node) {
		if (vbh_boost_begin(v))
			list_add_tail(&v->boost.active, &vbh_boost_active);
		else
			vbh_boost_free(v);
	}
}

/*
 * Until somebody's change of a thread is looked for again: as long as it has
 * taken, within these. Who makes it may have lost its CPU for long.
 */
#define VBH_BOOST_SETTLE_NS	(50 * NSEC_PER_USEC)
#define VBH_BOOST_SETTLE_MAX_NS	(10 * NSEC_PER_MSEC)

/* Return: when to look at them again, 0: there is none. */
static u64 vbh_boost_end_due(bool all)
{
	struct vbh_vcpu *v, *next;
	enum vbh_boost_count why;
	u64 now, first = 0;

	list_for_each_entry_safe(v, next, &vbh_boost_active, boost.active) {
		struct vbh_boost *b = &v->boost;

		now = ktime_get_mono_fast_ns();
		if (!b->ended) {
			why = all ? VBH_B_END_GONE : vbh_boost_over(v, now);
			if (why)
				vbh_boost_put_back(v, why);
		}
		if (b->ended) {
			if (vbh_boost_finish(v)) {
				list_del(&b->active);
				vbh_boost_free(v);
				continue;
			}
			/* It was put back after @now, if just now. */
			b->deadline = now + clamp_t(s64, now - b->debt_since,
						    VBH_BOOST_SETTLE_NS,
						    VBH_BOOST_SETTLE_MAX_NS);
		}
		if (!first || b->deadline < first)
			first = b->deadline;
	}
	return first;
}

static int vbh_boost_thread(void *unused)
{
	ktime_t when;
	u64 first;

	sched_set_fifo(current);
	while (!kthread_should_stop()) {
		WRITE_ONCE(vbh_boost_look, false);
		smp_mb();	/* before the list and .over are read */
		vbh_boost_take_new();
		first = vbh_boost_end_due(false);
		when = ns_to_ktime(first);
		set_current_state(TASK_IDLE);
		if (READ_ONCE(vbh_boost_look) || kthread_should_stop())
			__set_current_state(TASK_RUNNING);
		else if (first)
			schedule_hrtimeout_range(&when, 0, HRTIMER_MODE_ABS);
		else
			schedule();
	}
	/*
	 * No hook is on any more, and no VM left whose boosts would not have been
	 * waited for (vbh_vm_drop_all()): there are none.
	 */
	vbh_boost_take_new();
	while (vbh_boost_end_due(true))
		usleep_range(20, 100);
	return 0;
}

/**
 * vbh_boost_wait() - until no boost of a VM is under way
 * @vm: off the tables, and a grace period has passed
 * Context: process, sleeps. Each has been told to end.
 */
void vbh_boost_wait(struct vbh_vm *vm)
{
	wait_var_event(&vm->nr_boosts, !atomic_read(&vm->nr_boosts));
}

/* Before the hooks. Context: process. Return: 0 or a negative errno. */
int vbh_boost_init(void)
{
	struct task_struct *t = kthread_run(vbh_boost_thread, NULL,
					    "vbalance_boost");

	if (IS_ERR(t))
		return PTR_ERR(t);
	vbh_booster = t;
	vbh_lift_init(t);
	return 0;
}

/*
 * After the hooks, before the VMs: those wait for boosts that only the worker
 * ends. Context: process.
 */
void vbh_boost_exit(void)
{
	irq_work_sync(&vbh_boost_irq_work);
	kthread_stop(vbh_booster);
	vbh_lift_exit();
}
