// SPDX-License-Identifier: GPL-2.0
/*
 * Run states from KVM's steal-time record, which every KVM host keeps for a
 * Linux guest (Documentation/virt/kvm/x86/msr.rst, MSR_KVM_STEAL_TIME).
 *
 * The kernel's per-CPU record is not exported, but the MSR that registered it
 * is readable and says where it is. `preempted` is set when the vCPU loses
 * its CPU involuntarily (kvm_arch_vcpu_put), `version` changes each time it
 * gets one back, `steal` is the time in ns it has waited for a CPU.
 */
#include <linux/cc_platform.h>
#include <linux/kvm_para.h>
#include <linux/mm.h>
#include <asm/msr.h>

#include "vbg.h"

static DEFINE_PER_CPU(const struct kvm_steal_time *, vbg_steal);

/**
 * vbg_steal_attach_cpu() - find the record of this CPU
 * @unused: for smp_call_function
 * Context: on the CPU itself, interrupts may be off.
 */
void vbg_steal_attach_cpu(void *unused)
{
	const struct kvm_steal_time *st = NULL;
	u32 low, high;
	u64 msr;

	/* A host without the feature answers with #GP; off is 0. */
	if (!rdmsr_safe(MSR_KVM_STEAL_TIME, &low, &high)) {
		msr = (u64)high << 32 | low;
		if (msr & KVM_MSR_ENABLED)
			st = __va(msr & KVM_STEAL_VALID_BITS);
		/* Not pfn_valid(), which is inline: it reads structures. */
		if (st && !virt_addr_valid(st))
			st = NULL;
	}
	this_cpu_write(vbg_steal, st);
}

bool vbg_steal_available(void)
{
	return per_cpu(vbg_steal, cpumask_first(cpu_online_mask));
}

/*
 * An idle vCPU is not waiting for a CPU, whatever the flag says (hosts before
 * 5.17 also set it on a voluntary halt).
 */
bool vbg_steal_state(int cpu, u32 *state, u64 *episode)
{
	const struct kvm_steal_time *st = per_cpu(vbg_steal, cpu);

	if (!st)
		return false;
	*episode = READ_ONCE(st->version);
	if (!cpu_online(cpu))
		*state = VB_VCPU_OFF;
	else if (cpu == raw_smp_processor_id())
		/* Also in an interrupt that ends our idling. */
		*state = VB_VCPU_RUNNING;
	else if (READ_ONCE(per_cpu(vbg_cpus, cpu).idle))
		*state = VB_VCPU_HALTED;
	else if (READ_ONCE(st->preempted) & KVM_VCPU_PREEMPTED)
		*state = VB_VCPU_PREEMPTED;
	else
		*state = VB_VCPU_RUNNING;
	return true;
}

bool vbg_steal_ns(int cpu, u64 *ns)
{
	const struct kvm_steal_time *st = per_cpu(vbg_steal, cpu);

	if (!st)
		return false;
	*ns = READ_ONCE(st->steal);
	return true;
}
