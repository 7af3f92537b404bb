// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: a thread that changes another one's scheduling is held up between
 * the scheduler's look at what it may do and the change, until the other one
 * is not SCHED_FIFO any more (__sched_setscheduler(): that is where it asks
 * the security modules, and before it takes its lock). Or, if it is not, for a
 * time. Or what a thread wants to keep of another one is made what it would be,
 * were it read as that is put back.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <uapi/linux/sched.h>
#include <uapi/linux/sched/types.h>

/* A boost is over by then, or its end needs the CPU that is held here. */
#define DELAY_MOST_NS	(100 * NSEC_PER_MSEC)

/*
 * vbalance_host lets a system call begin anew until the boost is over. Held up
 * each time it would go on for minutes: the next one begins before the booster
 * has looked at what the last one did.
 */
#define DELAY_MOST_CALLS	20

static int caller;
static int calls;		/* that were held up, of this caller */

static int delay_set_caller(const char *val, const struct kernel_param *kp)
{
	WRITE_ONCE(calls, 0);
	return param_set_int(val, kp);
}

static const struct kernel_param_ops delay_caller_ops = {
	.set = delay_set_caller,
	.get = param_get_int,
};

module_param_cb(caller, &delay_caller_ops, &caller, 0644);
MODULE_PARM_DESC(caller, "thread that is held up, its first calls (default 0: none)");

static uint hold_ms;
module_param(hold_ms, uint, 0644);
MODULE_PARM_DESC(hold_ms, "how long where the other one is not SCHED_FIFO, ms (default 0)");

static int outlived;
module_param(outlived, int, 0444);
MODULE_PARM_DESC(outlived, "how often the other thread's policy ended meanwhile");

static int torn;
module_param(torn, int, 0644);
MODULE_PARM_DESC(torn, "thread whose calls that keep another one's parameters have read them as they were changed (default 0: none)");

static uint torn_calls;
module_param(torn_calls, uint, 0644);
MODULE_PARM_DESC(torn_calls, "how many of its next ones (default 0)");

/* Context: the caller's, preemption disabled. */
static int delay_pre(struct kprobe *p, struct pt_regs *regs)
{
	const struct task_struct *t = (const struct task_struct *)regs->di;
	u64 end = ktime_get_mono_fast_ns() + DELAY_MOST_NS;

	if (task_pid_nr(current) != READ_ONCE(caller) ||
	    calls >= DELAY_MOST_CALLS)
		return 0;
	/* There is but one caller. */
	WRITE_ONCE(calls, calls + 1);
	if (READ_ONCE(t->policy) != SCHED_FIFO) {
		mdelay(READ_ONCE(hold_ms));
		return 0;
	}
	while (READ_ONCE(t->policy) == SCHED_FIFO) {
		if (ktime_get_mono_fast_ns() > end)
			return 0;
		cpu_relax();
	}
	WRITE_ONCE(outlived, outlived + 1);
	return 0;
}

/*
 * get_params() takes no lock: it finds a real-time thread that has no priority
 * yet, or any more, and then leaves the nice value that the caller gave (here
 * 0). Where others probe this function, too, the last that came is the first.
 * Context: the caller's, preemption disabled.
 */
static int torn_pre(struct kprobe *p, struct pt_regs *regs)
{
	struct sched_attr *attr = (struct sched_attr *)regs->si;

	if (task_pid_nr(current) != READ_ONCE(torn) || !torn_calls ||
	    !(attr->sched_flags & SCHED_FLAG_KEEP_PARAMS))
		return 0;
	/* There is but one such thread. */
	WRITE_ONCE(torn_calls, torn_calls - 1);
	attr->sched_priority = 0;
	attr->sched_nice = 0;
	return 0;
}

static struct kprobe delay_probes[] = {
	/* Of whatever security modules there are the one that always is. */
	{ .symbol_name = "cap_task_setscheduler", .pre_handler = delay_pre },
	{ .symbol_name = "__sched_setscheduler", .pre_handler = torn_pre },
};

static struct kprobe *delay_all[] = { &delay_probes[0], &delay_probes[1] };

static int __init delay_init(void)
{
	return register_kprobes(delay_all, ARRAY_SIZE(delay_all));
}

static void __exit delay_exit(void)
{
	unregister_kprobes(delay_all, ARRAY_SIZE(delay_all));
}

module_init(delay_init);
module_exit(delay_exit);
MODULE_DESCRIPTION("Holds up who changes a thread's scheduling, for tests");
MODULE_LICENSE("GPL");
