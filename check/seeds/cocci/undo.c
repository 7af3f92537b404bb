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
	return tracepoint_probe_register(tp, probe, NULL); /* SEED: not awaited */
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
