/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What boosting a vCPU's thread may cost, and how often in a row it may happen
 * (CoINT, Algorithm 1: acc_array, threshold).
 *
 * Pure logic, no kernel calls. Times in nanoseconds.
 */
#ifndef _VB_CORE_BOOST_H
#define _VB_CORE_BOOST_H

#include "vbtypes.h"

/*
 * A bucket holds this much at most: what one burst may take from neighbours
 * before the share counts.
 */
#define VB_BOOST_BURST_NS	20000000LL

/* A new one holds this much: VMs can be made again and again. */
#define VB_BOOST_FIRST_NS	2000000LL

/*
 * What making a thread real-time and putting it back takes besides the CPU
 * time that it gets meanwhile: wake-ups and switches of the worker. An
 * estimate; without it a guest could ask for nothing but that, for nothing.
 */
#define VB_BOOST_FEE_NS		25000

/**
 * struct vb_bucket - CPU time that may still be taken
 * @tokens: ns; below 0: a debt, as what a boost takes is known at its end only
 * @filled: when it was filled last, ns of a monotonic clock; 0: never
 */
struct vb_bucket {
	s64 tokens;
	u64 filled;
};

/**
 * vb_bucket_fill() - bring a bucket up to date
 * @b: the bucket; callers serialise
 * @percent: what flows in, percent of one CPU, 0..100
 * @now: ns
 */
static inline void vb_bucket_fill(struct vb_bucket *b, u32 percent, u64 now)
{
	u64 most = (u64)(VB_BOOST_BURST_NS - b->tokens) * 100;
	u64 elapsed = now - b->filled;

	if (now < b->filled)
		return;
	/* Time that would do more than fill it could overflow below. */
	if (!b->filled)
		b->tokens = VB_BOOST_FIRST_NS;
	else if (percent && elapsed > most / percent)
		b->tokens = VB_BOOST_BURST_NS;
	else
		b->tokens += (s64)(elapsed * percent / 100);
	b->filled = now;
}

/* Why a boost is given or not. */
enum vb_boost_verdict {
	VB_BOOST_YES,
	VB_BOOST_VM_TOKENS,	/* the VM has used its share */
	VB_BOOST_VCPU_TOKENS,	/* the vCPU has used its share */
	VB_BOOST_IN_ROW,	/* as often in a row as is allowed */
	VB_BOOST_NR_VERDICTS,
};

/**
 * struct vb_boost_limits - what an administrator has set
 * @vm_percent: share of one CPU that a VM's boosts may take, 0..100
 * @vcpu_percent: the same of each of its vCPUs
 * @in_row: boosts in a row that a vCPU may get
 */
struct vb_boost_limits {
	u32 vm_percent, vcpu_percent;
	u32 in_row;
};

/**
 * vb_boost_ask() - may this vCPU get its CPU back?
 * @vm: bucket of its VM
 * @vcpu: its own
 * @in_row: how often it got it since it last was done by itself; counted up,
 *	or back to 0 when it has been too often (as CoINT does)
 * @limits: what is allowed
 * @reserve: what must stay in the VM's bucket for more important ones, ns
 * @now: ns, the clock of both buckets
 *
 * Context: any; callers serialise all vCPUs of a VM.
 * Return: yes, or why not.
 */
static inline enum vb_boost_verdict
vb_boost_ask(struct vb_bucket *vm, struct vb_bucket *vcpu, u32 *in_row,
	     const struct vb_boost_limits *limits, s64 reserve, u64 now)
{
	vb_bucket_fill(vm, limits->vm_percent, now);
	vb_bucket_fill(vcpu, limits->vcpu_percent, now);
	if (!limits->vm_percent || vm->tokens <= reserve)
		return VB_BOOST_VM_TOKENS;
	if (!limits->vcpu_percent || vcpu->tokens <= 0)
		return VB_BOOST_VCPU_TOKENS;
	if (*in_row >= limits->in_row) {
		*in_row = 0;
		return VB_BOOST_IN_ROW;
	}
	++*in_row;
	return VB_BOOST_YES;
}

/* It has taken that much CPU time, ns. */
static inline void vb_boost_pay(struct vb_bucket *vm, struct vb_bucket *vcpu,
				u64 ns)
{
	vm->tokens -= (s64)ns;
	vcpu->tokens -= (s64)ns;
}

/**
 * struct vb_turn - boosts on one CPU that follow each other, of any vCPUs
 * @ns: CPU time that they have taken
 * @last: when one was allowed last, or paid for
 *
 * Buckets would allow a burst. What else runs on that CPU, kernel threads too,
 * waits for no longer than this.
 */
struct vb_turn {
	u64 ns, last;
};

/**
 * vb_turn_pay() - account CPU time of a boost
 * @t: the CPU's; callers serialise
 * @ns: CPU time up to now, as far as it is known: 0 of a thread that was looked
 *	at between two ticks of its CPU may have had that all the time
 * @now: ns of a monotonic clock
 */
static inline void vb_turn_pay(struct vb_turn *t, u64 ns, u64 now)
{
	t->ns += ns;
	t->last = now;
}

/**
 * vb_turn_ask() - may there be another boost on this CPU now?
 * @t: the CPU's; a new turn begins if others have had the CPU for long enough
 * @most: of a turn, ns; the last boost may exceed it by its own length
 * @pause: others must have had the CPU for this long between two turns, ns
 * @now: ns
 *
 * Boosts that go on there are paid for first, or they would look like a pause.
 *
 * Return: there may.
 */
static inline bool vb_turn_ask(struct vb_turn *t, u64 most, u64 pause, u64 now)
{
	if (now >= t->last && now - t->last >= pause)
		t->ns = 0;
	if (t->ns >= most)
		return false;
	t->last = now;
	return true;
}

/*
 * TSC cycles from @then to @now, which may be read in either order: nothing
 * keeps rdtsc() from being executed before @then is loaded, and another CPU may
 * have written that just now.
 */
static inline u64 vb_cycles_since(u64 then, u64 now)
{
	return now > then ? now - then : 0;
}

/**
 * vb_holder_is_fresh() - may a device's interrupt still be in the works?
 * @at: when it came, TSC; 0: there is none
 * @now: TSC
 * @most: cycles that its work may take
 * Return: it may.
 */
static inline bool vb_holder_is_fresh(u64 at, u64 now, u64 most)
{
	return at && vb_cycles_since(at, now) < most;
}

/**
 * vb_holder_waited() - did an interrupt come while its vCPU had no CPU?
 * @at: when it came, TSC; 0: there is none
 * @gone: when the vCPU lost or left its CPU, TSC
 *
 * It is injected when the vCPU is back, and its work begins then.
 *
 * Return: it did.
 */
static inline bool vb_holder_waited(u64 at, u64 gone)
{
	return at && at >= gone;
}

/* Of how many needless boosts in a row of a sleeper the last is heeded. */
#define VB_WAKE_QUICK_MAX	6

/**
 * vb_wake_ask() - ask for a boost of a sleeper that an interrupt wakes up?
 * @n: how many interrupts there were so far
 * @quick: as vb_wake_note() has left it
 *
 * A boost that turns out to be needless, as its thread got a CPU at once, costs
 * a wake-up of the worker: after each such it is tried half as often.
 *
 * Return: yes.
 */
static inline bool vb_wake_ask(u32 n, u32 quick)
{
	return !(n & ((1U << quick) - 1));
}

/**
 * vb_wake_note() - has it been needed?
 * @quick: so far
 * @needed: the thread still had no CPU
 * Return: @quick from now on.
 */
static inline u32 vb_wake_note(u32 quick, bool needed)
{
	if (needed)
		return 0;
	return quick < VB_WAKE_QUICK_MAX ? quick + 1 : quick;
}

#endif /* _VB_CORE_BOOST_H */
