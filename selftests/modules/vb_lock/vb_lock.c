// SPDX-License-Identifier: GPL-2.0
/*
 * For tests: a PCI device's lock is held until this is unloaded, as by whoever
 * binds or unbinds its driver.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "which one, as in /sys/bus/pci/devices");

static struct completion lock_held;
static struct task_struct *lock_holder;
static struct device *lock_of;

static int lock_hold(void *unused)
{
	device_lock(lock_of);
	complete(&lock_held);
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	device_unlock(lock_of);
	return 0;
}

static int __init lock_init(void)
{
	lock_of = bus_find_device_by_name(&pci_bus_type, NULL, device);
	if (!lock_of)
		return -ENODEV;
	init_completion(&lock_held);
	lock_holder = kthread_run(lock_hold, NULL, "vb_lock");
	if (IS_ERR(lock_holder)) {
		put_device(lock_of);
		return PTR_ERR(lock_holder);
	}
	wait_for_completion(&lock_held);
	return 0;
}

static void __exit lock_exit(void)
{
	kthread_stop(lock_holder);
	put_device(lock_of);
}

module_init(lock_init);
module_exit(lock_exit);
MODULE_DESCRIPTION("Holds a PCI device's lock, for tests");
MODULE_LICENSE("GPL");
