// SPDX-License-Identifier: GPL-2.0
static int left_behind(void)
{
	int err = register_kprobe(&probe) ?: /* SEED: for ever */
		  register_kretprobe(&probe) ?: /* SEED */
		  register_ftrace_function(&ops) ?: /* SEED */
		  register_reboot_notifier(&nb) ?: /* SEED */
		  register_pm_notifier(&nb) ?: /* SEED */
		  bus_register_notifier(&bus, &nb); /* SEED */

	if (err)
		return err;
	err = atomic_notifier_chain_register(&list, &nb); /* SEED */
	if (err)
		return err;
	err = cpuhp_setup_state(state, "", NULL, NULL); /* SEED */
	if (err < 0)
		return err;
	err = cpuhp_setup_state_nocalls(state, "", NULL, NULL); /* SEED */
	if (err < 0)
		return err;
	dir = debugfs_create_dir("dir", NULL); /* SEED */
	dir = vb_debugfs_get("dir"); /* SEED */
	return tracepoint_probe_register(tp, probe, NULL); /* SEED: not awaited */
}

static void goes_on(void)
{
	queue_delayed_work(own, &late, HZ); /* SEED: when it is its time */
	mod_delayed_work(own, &late, HZ); /* SEED */
	irq_work_queue(&irq_work); /* SEED */
	irq_work_queue_on(&irq_work, 0); /* SEED */
	hrtimer_start(&timer, now, HRTIMER_MODE_REL); /* SEED */
	hrtimer_start_range_ns(&timer, now, 0, HRTIMER_MODE_REL); /* SEED */
	thread = kthread_run(forever, NULL, "thread"); /* SEED */
	queue = alloc_workqueue("queue", 0, 0); /* SEED */
}

static int set_up(void)
{
	return register_module_notifier(&taken_back);
}

static void take_down(void)
{
	unregister_module_notifier(&taken_back);
	tracepoint_probe_unregister(tp, probe, NULL);
}
