// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: a thread that changes another one's scheduling is held up between
 * the scheduler's look at what it may do and the change, until the other one
 * is not SCHED_FIFO any more (__sched_setscheduler(): that is where it asks
 * the security modules, and before it takes its lock). Or, if it is not, for a
 * time.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

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

/* Of whatever security modules there are the one that always is. */
static struct kprobe delay_probe = {
	.symbol_name = "cap_task_setscheduler",
	.pre_handler = delay_pre,
};

static int __init delay_init(void)
{
	return register_kprobe(&delay_probe);
}

static void __exit delay_exit(void)
{
	unregister_kprobe(&delay_probe);
}

module_init(delay_init);
module_exit(delay_exit);
MODULE_DESCRIPTION("Holds up who changes a thread's scheduling, for tests");
MODULE_LICENSE("GPL");
