// SPDX-License-Identifier: GPL-2.0
static int queued(void)
{
	own = alloc_ordered_workqueue("own", 0); /* SEED: for ever */
	queue_delayed_work(own, &work, HZ);
	mod_delayed_work(own, &work, 0);
	mod_delayed_work(system_wq, &work, 0); /* SEED */
	cancel_delayed_work_sync(&work);
	schedule_work(&other); /* SEED */
	schedule_on_each_cpu(everywhere); /* SEED */
	return schedule_delayed_work(&work, HZ); /* SEED */
}
