/* SPDX-License-Identifier: GPL-2.0 */
/* What KVM calls to deliver an interrupt when that may sleep on its way. */
#ifndef _VB_COMPAT_DELIVERY_H
#define _VB_COMPAT_DELIVERY_H

#include <linux/errno.h>
#include <linux/types.h>

/* No header declares them: they are looked for as KVM comes, not by a probe. */
#define VB_DELIVERY_SLEEPING	"__kvm_irq_delivery_to_apic"
#define VB_DELIVERY_ONE		"kvm_irq_delivery_to_apic"

/**
 * vb_delivery_is_one() - do all deliveries come by the one that may not sleep?
 * @sleeping: -ENOENT: there is no VB_DELIVERY_SLEEPING
 * @one: -ENOENT: there is no VB_DELIVERY_ONE
 *
 * Older kernels do not have the first apart, and need no hook on it: the second
 * calls kvm_irq_delivery_to_apic_fast() before it does anything that sleeps.
 * Context: any.
 * Return: there is no other.
 */
static inline bool vb_delivery_is_one(int sleeping, int one)
{
	return sleeping == -ENOENT && one != -ENOENT;
}

#endif /* _VB_COMPAT_DELIVERY_H */
