// SPDX-License-Identifier: GPL-2.0
static int set_up(void)
{
	int err = register_kprobe(&left_behind); /* SEED: for ever */

	if (err)
		return err;
	err = tracepoint_probe_register(tp, probe, NULL); /* SEED: not awaited */
	if (err)
		return err;
	return register_module_notifier(&taken_back);
}

static void take_down(void)
{
	unregister_module_notifier(&taken_back);
	tracepoint_probe_unregister(tp, probe, NULL);
}
