/* SPDX-License-Identifier: GPL-2.0 */
/* What KVM calls to deliver an interrupt when that may sleep on its way. */
#ifndef _VB_COMPAT_DELIVERY_H
#define _VB_COMPAT_DELIVERY_H

#include <linux/errno.h>
#include <linux/types.h>

/* No header declares it: it is looked for as KVM comes, not by a probe. */
#define VB_DELIVERY_SLEEPING	"__kvm_irq_delivery_to_apic"

/**
 * vb_delivery_is_one() - do all deliveries come by the one that may not sleep?
 * @find: vbh_probe_address()
 *
 * Older kernels do not have the other apart, and need no hook on it:
 * kvm_irq_delivery_to_apic() calls kvm_irq_delivery_to_apic_fast() first.
 * Context: process, callers serialise.
 * Return: there is no other.
 */
static inline bool
vb_delivery_is_one(int (*find)(const char *symbol, unsigned long *at))
{
	unsigned long at;

	return find(VB_DELIVERY_SLEEPING, &at) == -ENOENT &&
	       find("kvm_irq_delivery_to_apic", &at) != -ENOENT;
}

#endif /* _VB_COMPAT_DELIVERY_H */
