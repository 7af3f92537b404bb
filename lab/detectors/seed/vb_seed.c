// SPDX-License-Identifier: GPL-2.0
/*
 * Mistakes on purpose: what the debug kernels must report. Of each kind one,
 * which is made at load, in process context, when the parameter names it.
 */
#include <linux/debug_locks.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

static char *mistake = "none";
module_param(mistake, charp, 0444);
MODULE_PARM_DESC(mistake, "none, leak, locks, freed, race, or unwatched: lockdep is switched off");

static DEFINE_MUTEX(seed_a);
static DEFINE_MUTEX(seed_b);

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

static int __init seed_init(void)
{
	if (!strcmp(mistake, "none"))
		return 0;
	if (!strcmp(mistake, "leak"))
		return seed_leak();
	if (!strcmp(mistake, "locks"))
		return seed_locks();
	if (!strcmp(mistake, "freed"))
		return seed_freed();
	if (!strcmp(mistake, "race"))
		return seed_race();
	if (!strcmp(mistake, "unwatched")) {
		debug_locks_off();
		return 0;
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
