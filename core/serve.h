/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long does a vCPU still work for an interrupt whose rings are open again?
 *
 * Linux asks for the next interrupt before it hands what it has received to its
 * protocols (virtqueue_napi_complete(), then napi_complete_done()). A vCPU that
 * loses its CPU in between has emptied the ring, and answered nothing. Nor has
 * one that was to run the process that answers.
 *
 * Pure logic, no kernel calls. Times in TSC cycles.
 */
#ifndef _VB_CORE_SERVE_H
#define _VB_CORE_SERVE_H

#include "boost.h"

/*
 * How many times as long as it took to empty the ring. To hand a packet over
 * takes about as long again; the process that is to answer runs after that,
 * where it was woken up. If it does not get to it within the boost it waits
 * there for the vCPU's next turn: with once as long requests and responses
 * lost a third with slices of 30 ms (Documentation/measurements.md).
 */
#define VB_SERVE_REST	4

/**
 * struct vb_serve - what is known of the work for a vCPU's interrupts
 * @open_for: the interrupt (its time) that @took and @until are about
 * @took: from an interrupt until its rings were seen open: falls at once (by
 *	half, if that was late), and at most doubles with one, which may have been
 *	seen late
 * @until: what is left may take until then
 * @late_for: the interrupt whose rings a late look has found open: a later look
 *	does not say what it took
 *
 * The vCPU's thread's own.
 */
struct vb_serve {
	u64 open_for, took, until, late_for;
};

/**
 * struct vb_serve_look - a look at a vCPU whose rings are open
 * @irq: when it got its interrupt; 0: it has none
 * @answered: the interrupt whose answer has been sent
 * @now: time
 * @moment: what it takes to tell the device what has been put into a ring
 * @sent: something was put into a transmit ring since the interrupt
 * @told: and the device was told of it
 * @prompt: the rings may have been open for a moment only. By others can only be
 *	seen that it took no longer.
 */
struct vb_serve_look {
	u64 irq, answered, now, moment;
	bool sent, told, prompt;
};

static inline u64 vb_serve_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/*
 * A late look says only that it took no longer. Nor is it sure that this is what
 * the interrupt was for: half as long at least.
 */
static inline void vb_serve_measure(struct vb_serve *s,
				    const struct vb_serve_look *l, u64 age)
{
	u64 most = 2 * vb_serve_max(s->took, l->moment);

	if (l->prompt && s->late_for != l->irq)
		s->took = age < most ? age : most;
	else if (age < s->took)
		s->took = vb_serve_max(age, (s->took + 1) / 2);
}

/**
 * vb_serve_held() - a look at a vCPU whose rings are held
 * @s: its; when they are open again that can be measured
 */
static inline void vb_serve_held(struct vb_serve *s)
{
	s->late_for = 0;
}

/**
 * vb_serve_goes_on() - is a vCPU whose rings are open still at work?
 * @s: its
 * @l: this look
 *
 * It is given VB_SERVE_REST times as long as it took to get there; when something
 * has been sent, a moment; when the device has been told of that, as long again
 * as it took, and not more than a moment: that may have been no more than an ACK
 * of TCP, and the process that is to answer runs now.
 *
 * Return: it is.
 */
static inline bool vb_serve_goes_on(struct vb_serve *s,
				    const struct vb_serve_look *l)
{
	u64 age = vb_cycles_since(l->irq, l->now), rest;

	if (!l->irq || l->answered == l->irq)
		return false;
	if (s->open_for != l->irq) {
		vb_serve_measure(s, l, age);
		if (!l->prompt) {
			s->late_for = l->irq;
			return !l->sent && s->took && age <
				(1 + VB_SERVE_REST) * vb_serve_max(s->took,
								   l->moment);
		}
		s->open_for = l->irq;
		s->until = l->now + VB_SERVE_REST *
			vb_serve_max(s->took, l->moment);
	}
	rest = l->told && s->took < l->moment ? s->took : l->moment;
	if (l->sent && s->until > l->now + rest)
		s->until = l->now + rest;
	return l->now < s->until;
}

/**
 * vb_serve_next() - when to look again?
 * @s: the vCPU's
 * @irq: when it got its interrupt; 0: it has none
 * @from: that, or when it has told the device after that
 * @now: time
 *
 * While its rings are held, after as long again as it has been since then.
 *
 * Return: cycles from now; the caller bounds them.
 */
static inline u64 vb_serve_next(const struct vb_serve *s, u64 irq, u64 from,
				u64 now)
{
	if (!irq)
		return 0;
	if (s->open_for == irq)
		return vb_cycles_since(now, s->until);
	return vb_cycles_since(from, now);
}

#endif /* _VB_CORE_SERVE_H */
