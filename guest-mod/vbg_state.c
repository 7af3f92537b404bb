// SPDX-License-Identifier: GPL-2.0
/*
 * Run state of a vCPU: the shared area while it is alive, else steal time.
 */
#include "vbg.h"

const char *vbg_state_name(u32 state)
{
	static const char * const names[VB_NR_VCPU_STATES] = {
		[VB_VCPU_OFF] = "off",
		[VB_VCPU_RUNNING] = "running",
		[VB_VCPU_PREEMPTED] = "preempted",
		[VB_VCPU_HALTED] = "halted",
		[VB_VCPU_VMM] = "vmm",
	};

	return state < VB_NR_VCPU_STATES ? names[state] : "?";
}

static bool vbg_lookup(int cpu, u32 *state, u64 *episode)
{
	if (vbg_page_state(cpu, state, episode))
		return true;
	if (vbg_source == VBG_SOURCE_PAGE)
		return false;
	return vbg_steal_state(cpu, state, episode);
}

u32 vbg_cpu_state(int cpu)
{
	u32 state;
	u64 episode;

	/* Without any source nothing is known to be away: nothing is moved. */
	return vbg_lookup(cpu, &state, &episode) ? state : VB_VCPU_RUNNING;
}

u64 vbg_cpu_episode(int cpu)
{
	u32 state;
	u64 episode;

	return vbg_lookup(cpu, &state, &episode) ? episode : 0;
}

/* Is anything known about run states at all? Without it nothing is decided. */
bool vbg_have_source(void)
{
	return vbg_page_active() ||
	       (vbg_source != VBG_SOURCE_PAGE && vbg_steal_available());
}

const char *vbg_state_source(void)
{
	if (vbg_page_active())
		return "page";
	return vbg_have_source() ? "steal" : "none";
}
