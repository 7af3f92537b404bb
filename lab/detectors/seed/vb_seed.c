// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes on purpose: what the debug kernels must report. Of each kind one,
 * which is made at load, in process context, when the parameter names it.
 */
#include <linux/debug_locks.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>

static char *mistake = "none";
module_param(mistake, charp, 0444);
MODULE_PARM_DESC(mistake, "none, leak, locks, freed, race, rcu, atomic, timer, shift, or unwatched: lockdep is switched off");

static DEFINE_MUTEX(seed_a);
static DEFINE_MUTEX(seed_b);
static DEFINE_SPINLOCK(seed_spin);
static int seed_value;
static int __rcu *seed_pointer = RCU_INITIALIZER(&seed_value);
static int seed_width = 40;

static struct task_struct *seed_thread[2];
static unsigned long seed_counter;

/* Nothing points to it when this has returned. */
static noinline int seed_leak(void)
{
	return kmalloc(200, GFP_KERNEL) ? 0 : -ENOMEM;
}

/* Nobody waits here; that they could is what lockdep is to see. */
static noinline int seed_locks(void)
{
	mutex_lock(&seed_a);
	mutex_lock(&seed_b);
	mutex_unlock(&seed_b);
	mutex_unlock(&seed_a);

	mutex_lock(&seed_b);
	mutex_lock(&seed_a);
	mutex_unlock(&seed_a);
	mutex_unlock(&seed_b);
	return 0;
}

static noinline int seed_freed(void)
{
	char *p = kzalloc(200, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	/* Of no account what it reads. */
	return READ_ONCE(p[100]) ? 0 : 0;
}

/* Nobody changes it; that somebody could is what PROVE_RCU is to see. */
static noinline int seed_rcu(void)
{
	return READ_ONCE(*rcu_dereference(seed_pointer)) ? 0 : 0;
}

/* It does not sleep, with so much memory; it may. */
static noinline int seed_atomic(void)
{
	void *p;

	spin_lock(&seed_spin);
	p = kmalloc(200, GFP_KERNEL);
	spin_unlock(&seed_spin);
	kfree(p);
	return p ? 0 : -ENOMEM;
}

static void seed_tick(struct timer_list *unused)
{
}

/* Debug objects, having told, take the timer off its list. */
static noinline int seed_timer(void)
{
	struct timer_list *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	timer_setup(t, seed_tick, 0);
	mod_timer(t, jiffies + 3600 * HZ);
	kfree(t);
	return 0;
}

/* Wider than an int. */
static noinline int seed_shift(void)
{
	return 1 << READ_ONCE(seed_width) ? 0 : 0;
}

static int seed_racer(void *unused)
{
	while (!kthread_should_stop()) {
		int n;

		/* Plain, from two threads. */
		for (n = 0; n < 1000; n++) {
			seed_counter++;
			barrier();
		}
		cond_resched();
	}
	return 0;
}

static void seed_stop(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(seed_thread); i++) {
		if (!IS_ERR_OR_NULL(seed_thread[i]))
			kthread_stop(seed_thread[i]);
	}
}

/* They run until the module is unloaded. */
static int seed_race(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(seed_thread); i++) {
		seed_thread[i] = kthread_run(seed_racer, NULL, "vb_seed/%d", i);
		if (IS_ERR(seed_thread[i])) {
			seed_stop();
			return PTR_ERR(seed_thread[i]);
		}
	}
	return 0;
}

static int seed_nothing(void)
{
	return 0;
}

static int seed_unwatched(void)
{
	debug_locks_off();
	return 0;
}

static const struct {
	const char *name;
	int (*make)(void);
} seed_mistakes[] = {
	{ "none", seed_nothing },
	{ "leak", seed_leak },
	{ "locks", seed_locks },
	{ "freed", seed_freed },
	{ "race", seed_race },
	{ "rcu", seed_rcu },
	{ "atomic", seed_atomic },
	{ "timer", seed_timer },
	{ "shift", seed_shift },
	{ "unwatched", seed_unwatched },
};

static int __init seed_init(void)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(seed_mistakes); n++) {
		if (!strcmp(mistake, seed_mistakes[n].name))
			return seed_mistakes[n].make();
	}
	return -EINVAL;
}

static void __exit seed_exit(void)
{
	seed_stop();
}

module_init(seed_init);
module_exit(seed_exit);
MODULE_DESCRIPTION("Mistakes that the lab's debug kernels must report");
MODULE_LICENSE("GPL");
