// SPDX-License-Identifier: GPL-2.0
/*
 * The process behind an interrupt. A request is not answered when NAPI is
 * done: a process that it woke has to run, on this vCPU mostly (the wake-up is
 * a synchronous one). If the vCPU loses its CPU then, the answer waits for a
 * whole turn as it would in NAPI. So the time that such a process takes counts
 * as part of what it takes to serve an interrupt (vbg_leaves_soon()), and until
 * it sleeps again the vCPU is critical, in a weaker sense (VB_CRITICAL_TASK).
 *
 * One process a CPU, the one that was woken first. What does not sleep again
 * within VBG_TASK_MAX_NS of CPU time is no answer to a request but a busy
 * process that happens to receive.
 *
 * Follows the idea of partial boosting in "Task-aware virtual machine
 * scheduling for I/O performance" (VEE 2009, JPDC 2011): there the hypervisor
 * guesses which task is bound by I/O, here the guest sees it.
 */
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "vbg.h"

#define VBG_TASK_MAX_NS	(2 * NSEC_PER_MSEC)

/* A passing mean that forgets when no process is woken any more. */
static void vbg_task_sample(struct vbg_cpu *c, u64 ns)
{
	c->task_ns = c->task_ns - c->task_ns / 8 + ns / 8;
}

static u64 vbg_task_ran(const struct vbg_cpu *c, int cpu, u64 now)
{
	return vbg_busy_ns(c->task_since, now, c->task_stolen,
			   vbg_stolen_ns(cpu));
}

static void vbg_task_end(struct vbg_cpu *c, u64 sample)
{
	c->task = NULL;
	vbg_task_sample(c, sample);
}

/*
 * A process, or the thread that NAPI was given (dev_set_threaded(),
 * net/core/dev.c): then what it wakes in its turn is not seen.
 */
static bool vbg_task_counts(const struct task_struct *p)
{
	return !(p->flags & PF_KTHREAD) || str_has_prefix(p->comm, "napi/");
}

/*
 * sched_wakeup: a task can run. Preemption disabled; mostly under its run
 * queue's lock with interrupts off, but not where a task that has not gone to
 * sleep yet is woken up on its own CPU (try_to_wake_up()). The CPU is the one
 * that wakes, or the task's.
 */
void vbg_task_wakeup(void *data, struct task_struct *p)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	int cpu = smp_processor_id();
	unsigned long flags;

	/* By what an interrupt of ours has led to. */
	if (!(c->critical & VB_CRITICAL_IRQ) || c->task || !in_interrupt() ||
	    task_cpu(p) != cpu || !vbg_task_counts(p))
		return;
	local_irq_save(flags);
	c->task = p;
	c->task_since = vbg_clock();
	c->task_stolen = vbg_stolen_ns(cpu);
	c->task_woken = true;
	vbg_critical_begin(c, cpu, VB_CRITICAL_TASK);
	local_irq_restore(flags);
}

/* sched_switch. Under the run queue's lock, interrupts off. */
void vbg_task_switch(void *data, bool preempt, struct task_struct *prev,
		     struct task_struct *next, unsigned int prev_state)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	int cpu;

	/*
	 * @prev is compared only: what was woken may have gone elsewhere. One
	 * that is preempted on its way to sleep has not slept yet.
	 */
	if (likely(!c->task) || prev != c->task || !prev_state || preempt)
		return;
	cpu = smp_processor_id();
	vbg_task_end(c, vbg_task_ran(c, cpu, vbg_clock()));
	vbg_critical_end_later(c, cpu, VB_CRITICAL_TASK);
}

/* An interrupt begins. Context: in it. */
void vbg_task_look(struct vbg_cpu *c, int cpu, u64 now)
{
	if (!c->task || vbg_task_ran(c, cpu, now) <= VBG_TASK_MAX_NS)
		return;
	vbg_task_end(c, 0);
	vbg_critical_end(c, cpu, VB_CRITICAL_TASK);
}

/* An interrupt of ours, and all behind it, is over. Context: interrupts off. */
void vbg_task_served(struct vbg_cpu *c)
{
	if (!c->task_woken)
		vbg_task_sample(c, 0);
	c->task_woken = false;
}
