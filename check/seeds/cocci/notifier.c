// SPDX-License-Identifier: GPL-2.0
static int set_up(void)
{
	return register_module_notifier(&left); /* SEED: for ever */
}
