/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Redirection at delivery: keys of interrupts, and which running vCPU serves
 * in place of the one that has lost its CPU.
 *
 * Pure logic, no kernel calls: compiled into both modules and into the
 * user-space unit tests.
 */
#ifndef _VB_CORE_REDIRECT_H
#define _VB_CORE_REDIRECT_H

#include <vbalance/abi.h>
#include "vbtypes.h"
#include "algorithm1.h"

/**
 * vb_key_make() - key of an interrupt
 * @vector: 0..255
 * @logical: destination mode of the MSI
 * @dest: destination of the MSI, as the interrupt controller sees it
 * @slot: vCPU that it is for, 0 .. VB_MAX_SLOTS - 1
 *
 * Return: the key, valid.
 */
static inline u64 vb_key_make(u32 vector, bool logical, u32 dest, u32 slot)
{
	return VB_KEY_VALID | (vector & VB_KEY_VECTOR_MASK) |
	       (logical ? VB_KEY_LOGICAL : 0) |
	       (u64)(slot & 0xffff) << VB_KEY_SLOT_SHIFT |
	       (u64)dest << VB_KEY_DEST_SHIFT;
}

static inline u32 vb_key_slot(u64 key)
{
	return key >> VB_KEY_SLOT_SHIFT & 0xffff;
}

/* Do two keys (one of them without slot) name the same MSI? */
static inline bool vb_key_match(u64 key, u64 other)
{
	return !((key ^ other) & ~(0xffffULL << VB_KEY_SLOT_SHIFT));
}

/**
 * vb_msi_dest() - destination of an MSI, as the host's KVM has it at delivery
 * @address_lo: bits 0..7 of the id are its bits 12..19; bits 8..14 are its
 *	bits 5..11 where the hypervisor offers that (KVM_FEATURE_MSI_EXT_DEST_ID)
 * @address_hi: bits 8..31 of the id in their place; KVM's own form
 *	(KVM_CAP_X2APIC_API), into which the VMM brings the one above
 *
 * As __irq_msi_compose_msg() of the guest writes it (arch/x86/kernel/apic/apic.c).
 * The host decodes none: struct kvm_lapic_irq has the id.
 *
 * Return: APIC id, or mask of them (vb_msi_is_logical()).
 */
static inline u32 vb_msi_dest(u32 address_lo, u32 address_hi)
{
	return (address_lo >> 12 & 0xff) | (address_lo >> 5 & 0x7f) << 8 |
	       (address_hi & 0xffffff00);
}

static inline bool vb_msi_is_logical(u32 address_lo)
{
	return address_lo & 1U << 2;
}

/* Where MSIs were found last, so that the table is not searched each time. */
#define VB_KEY_HINTS		64

static inline u32 vb_key_hint(u64 want)
{
	return (want ^ want >> VB_KEY_DEST_SHIFT) % VB_KEY_HINTS;
}

/**
 * vb_key_find() - which registered interrupt is this MSI?
 * @r: the guest's table; may change at any time and hold anything
 * @want: vb_key_make() of the MSI, any slot
 * @key: the key that matched, a private copy
 * @hints: VB_KEY_HINTS entries, at first 0; may be shared without a lock, as
 *	what they say is checked
 *
 * Context: any.
 * Return: 0 .. VB_MAX_KEYS - 1, or -1.
 */
static inline int vb_key_find(const struct vb_redirect *r, u64 want, u64 *key,
			      u16 *hints)
{
	u32 nr = READ_ONCE(r->nr_keys);
	u16 *hint = &hints[vb_key_hint(want)];
	u32 n = READ_ONCE(*hint);

	if (nr > VB_MAX_KEYS)
		nr = VB_MAX_KEYS;
	if (n < nr) {
		*key = READ_ONCE(r->key[n]);
		if (vb_key_match(*key, want))
			return (int)n;
	}
	for (n = 0; n < nr; n++) {
		*key = READ_ONCE(r->key[n]);
		if (vb_key_match(*key, want)) {
			WRITE_ONCE(*hint, n);
			return (int)n;
		}
	}
	return -1;
}

/*
 * Loads up to here are equally small: 1/32 of the window in which the guest
 * sums them up (core/load.h). Their ratio means nothing.
 */
#define VB_REDIRECT_FLOOR_NS	(1ULL << (27 - 5))

/**
 * vb_redirect_limit() - loads up to which vCPUs count as equal
 * @min: least load of all candidates, ns
 * @threshold: imbalance ratio, percent
 *
 * With the holder offline Algorithm 1 takes the online vCPU with the least
 * load. What is not above that by the ratio that it calls an imbalance is no
 * reason to prefer one: among those the choice goes to the vCPU that has been
 * on its CPU for the shortest time, because it will stay longest. Exits to the
 * VMM in which it keeps its CPU do not count.
 *
 * Return: ns.
 */
static inline u64 vb_redirect_limit(u64 min, u32 threshold)
{
	u64 limit = min < VB_LOAD_MAX ? min : VB_LOAD_MAX;

	limit = limit * threshold / 100;
	return limit > VB_REDIRECT_FLOOR_NS ? limit : VB_REDIRECT_FLOOR_NS;
}

/*
 * A shorter absence does not end a stay: it is an interrupt of the host or a
 * kernel thread, not somebody else's time slice.
 */
#define VB_ABSENCE_MIN_NS	100000ULL

/**
 * vb_stay_is_short() - will a vCPU lose its CPU before it has served?
 * @mean: mean of its stays on a CPU that ended with losing it; 0: not known
 * @on_for: how long it has been there
 * @service: how long it takes to serve an interrupt; 0: not known
 *
 * All in one unit of time. Time slices make stays alike, so the end of one can
 * be foreseen. A vCPU that is preempted in NAPI keeps everything that comes
 * after it waiting for a whole turn (CoINT's interruptability-holder
 * preemption); the next one to get the CPU has all of its stay before it.
 * An interrupt that takes longer than half of a stay is not waited with for
 * more than the other half, and a stay that is twice as long as the mean is of
 * another kind.
 *
 * Return: it will; false when it is not known.
 */
static inline bool vb_stay_is_short(u64 mean, u64 on_for, u64 service)
{
	if (!mean || !service)
		return false;
	if (service > mean / 2)
		service = mean / 2;
	return on_for + service > mean && on_for / 2 < mean;
}

#endif /* _VB_CORE_REDIRECT_H */
