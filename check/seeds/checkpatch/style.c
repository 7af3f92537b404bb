// SPDX-License-Identifier: GPL-2.0
static int fine(int a)
{
	return a;
}

#if LINUX_VERSION_CODE /* SEED: compat/ has probes for this */
#endif

static int spacing(int a)
{
	return fine(a)+1; /* SEED: only --strict tells */
}
