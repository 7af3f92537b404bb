// SPDX-License-Identifier: GPL-2.0
/*
 * What is read of structures that kernel/irq keeps to itself, and what the
 * tracepoints hand over: compared with the running kernel's BTF at load. With
 * symbol versions (Debian until 6.17) another release may load this module,
 * and no symbol that it links to covers these.
 */
#include <linux/hrtimer.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include <linux/kernel_stat.h>
#include <linux/kprobes.h>
#include <linux/msi.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/virtio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../common/facts.h"
#include "../common/release.h"
#include "../compat/irq_state.h"
#include "../compat/task_events.h"
#include "../compat/vector_events.h"
#include "vbg.h"

static const struct vb_fact vbg_facts[] = {
	VB_LINKED_FACTS(VBG_F_LOAD)
#ifdef CONFIG_KPROBES
	VB_KPROBE_FACTS(VBG_F_LOAD)
#endif
#ifdef CONFIG_PARAVIRT_XXL
	VB_MEMBER(VBG_F_LOAD, paravirt_patch_template, cpu.read_msr_safe),
#endif
	VB_SIZE(VBG_F_LOAD, delayed_work),
	VB_SIZE(VBG_F_LOAD, xarray),
	VB_PENDING_FACTS(VBG_F_LOAD)
	VB_TRACE(VBG_F_LOAD, irq_handler_entry, "0(*,4,irqaction*"),
	VB_TRACE(VBG_F_LOAD, irq_handler_exit, "0(*,4,irqaction*,4"),
	VB_TRACE(VBG_F_LOAD, softirq_entry, "0(*,4"),
	VB_TRACE(VBG_F_LOAD, softirq_exit, "0(*,4"),
	VB_TRACE(VBG_F_LOAD, local_timer_entry, "0(*,4"),
	VB_TRACE(VBG_F_LOAD, local_timer_exit, "0(*,4"),
	VB_TRACE(VBG_F_LOAD, cpu_idle, "0(*,4,4"),
	/* By memalloc_noio_save(). */
	VB_MEMBER(VBG_F_LOAD, task_struct, flags),
	VB_MEMBER(VBG_F_LOAD, irq_desc, lock),
	VB_MEMBER(VBG_F_LOAD, irq_desc, irq_data),
	VB_MEMBER(VBG_F_LOAD, irq_desc, irq_common_data),
	VB_MEMBER(VBG_F_LOAD, irq_desc, action),
	VB_MEMBER(VBG_F_LOAD, irq_desc, affinity_hint),
	VB_MEMBER(VBG_F_LOAD, irq_desc, irqs_unhandled),
	VB_MEMBER(VBG_F_LOAD, irq_data, chip),
	VB_MEMBER(VBG_F_LOAD, irq_data, common),
	VB_MEMBER(VBG_F_LOAD, irq_common_data, state_use_accessors),
	VB_MEMBER(VBG_F_LOAD, irq_common_data, affinity),
	VB_MEMBER(VBG_F_LOAD, irq_common_data, effective_affinity),
	VB_MEMBER(VBG_F_LOAD, irqaction, next),
	VB_MEMBER(VBG_F_LOAD, irqaction, handler),
	VB_MEMBER(VBG_F_LOAD, irqaction, thread_fn),
	VB_MEMBER(VBG_F_LOAD, irqaction, dev_id),
	VB_MEMBER(VBG_F_LOAD, irqaction, name),
	VB_MEMBER(VBG_F_LOAD, device, bus),
	VB_MEMBER(VBG_F_LOAD, device, mutex),
	VB_MEMBER(VBG_F_LOAD, device, init_name),
	VB_MEMBER(VBG_F_LOAD, device, kobj),
	VB_MEMBER(VBG_F_LOAD, kobject, name),
	VB_MEMBER(VBG_F_LOAD, bus_type, name),
	VB_MEMBER(VBG_F_LOAD, pci_dev, vendor),
	VB_MEMBER(VBG_F_LOAD, pci_dev, irq),
	VB_MEMBER(VBG_F_LOAD, pci_dev, dev),
	/* What stands before and after msix_enabled, which is one bit. */
	VB_MEMBER(VBG_F_LOAD, pci_dev, driver_exclusive_resource),
	VB_MEMBER(VBG_F_LOAD, pci_dev, dev_flags),
	VB_MEMBER(VBG_F_LOAD, virtio_device, dev),
	VB_MEMBER(VBG_F_LOAD, virtio_device, id),
	VB_MEMBER(VBG_F_LOAD, irq_chip, irq_mask),
	VB_MEMBER(VBG_F_LOAD, irq_chip, irq_unmask),
	VB_MEMBER(VBG_F_LOAD, irq_chip, irq_set_affinity),
	VB_MEMBER(VBG_F_LOAD, irq_chip, irq_retrigger),

	VB_IRQ_STATE_FACTS(VBG_F_SERVE)
	VB_MEMBER(VBG_F_SERVE, virtqueue, vdev),
	VB_MEMBER(VBG_F_SERVE, virtqueue, reset),
	VB_MEMBER(VBG_F_SERVE, virtio_device, features),

	VB_VECTOR_EVENT_FACTS(VBG_F_REDIRECT)
	VB_MEMBER(VBG_F_REDIRECT, irq_data, parent_data),
	VB_MEMBER(VBG_F_REDIRECT, irq_common_data, msi_desc),
	VB_SIZE(VBG_F_REDIRECT, msi_msg),
	VB_MEMBER(VBG_F_REDIRECT, irq_chip, name),

	VB_TASK_EVENT_FACTS(VBG_F_TASK)
	VB_MEMBER(VBG_F_TASK, task_struct, comm),
	VB_MEMBER(VBG_F_TASK, task_struct, thread_info.cpu),
};

/* Whose types the headers did not tell: nobody knows what would be called. */
static const char * const vbg_unknown[VBG_NR_FEATURES] = {
	[VBG_F_REDIRECT] = VB_VECTOR_EVENTS_MISSING,
	[VBG_F_TASK] = VB_TASK_EVENTS_MISSING,
};

static const char *vbg_differs[VBG_NR_FEATURES];
static int vbg_facts_compared;

/**
 * vbg_facts_check() - is the running kernel what this was built for?
 *
 * Another release is if all of this is the same in it; without BTF nobody knows.
 * Context: process, sleeps.
 *
 * Return: 0; -ENOEXEC: not at all; -ENOMEM.
 */
int vbg_facts_check(void)
{
	vbg_facts_compared = vb_facts_check(NULL, vbg_facts,
					    ARRAY_SIZE(vbg_facts),
					    vbg_differs);
	if (vbg_facts_compared == -ENOENT) {
		pr_info("no BTF to compare with (error %d): only the release is checked\n",
			vbg_facts_compared);
		return vb_check_release();
	}
	return vbg_differs[VBG_F_LOAD] ? vb_facts_refusal(vbg_facts_compared) :
					 0;
}

/* How many facts were compared; negative errno: why none. */
int vbg_facts_count(void)
{
	return vbg_facts_compared;
}

/* What differs, or was not known when this was built; or NULL. */
const char *vbg_facts_differ(enum vbg_feature f)
{
	return vbg_unknown[f] ?: vbg_differs[f];
}
