/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does a virtqueue's ring allow interrupts? Then its driver has nothing left
 * to do: from an interrupt to the end of its work it does not want another one
 * (CoINT, III.A). Split rings (virtio 1.2, 2.7) in little-endian memory.
 *
 * Pure logic, no kernel calls.
 */
#ifndef _VB_CORE_RINGS_H
#define _VB_CORE_RINGS_H

#include "vbtypes.h"

/* Features of a device (virtio 1.2, 6). */
#define VB_RING_F_EVENT_IDX		(1ULL << 29)
#define VB_RING_F_ACCESS_PLATFORM	(1ULL << 33)
#define VB_RING_F_PACKED		(1ULL << 34)

/* A device whose features are not known. */
#define VB_RING_F_NOT_SAID		(~0ULL)

/* struct vring_avail: flags, idx, ring[num], used_event. */
#define VB_RING_AVAIL_FLAGS		0
#define VB_RING_AVAIL_IDX		2
#define VB_RING_USED_EVENT(num)		(4 + 2 * (u64)(num))
#define VB_RING_NO_INTERRUPT		1
/* struct vring_used: flags, idx, ... */
#define VB_RING_USED_IDX		2

enum vb_rings {
	VB_RINGS_UNKNOWN,
	VB_RINGS_HELD,		/* one does not allow interrupts */
	VB_RINGS_OPEN,		/* all allow them */
};

/**
 * vb_ring_is_legible() - is there a split ring at the device's addresses?
 * @features: of the device
 *
 * With ACCESS_PLATFORM they are addresses of an IOMMU. Of a packed ring only
 * the driver knows where in the ring it is.
 *
 * Return: there is.
 */
static inline bool vb_ring_is_legible(u64 features)
{
	return !(features & (VB_RING_F_ACCESS_PLATFORM | VB_RING_F_PACKED));
}

/**
 * vb_ring_state() - what one ring says
 * @features: of the device
 * @num: size of the ring; 0: not known
 * @flags: avail->flags; read without EVENT_IDX only
 * @used_event: the driver wants an interrupt when this entry has been used;
 *	with EVENT_IDX only, as
 * @used_idx: the next entry that the device will use
 *
 * With EVENT_IDX the driver asks for each interrupt by moving used_event to
 * where it is, or ahead of it (by less than the ring). Once the device has
 * passed that, there is none until it has been moved again. "Never" cannot be
 * said: Linux writes 0, which is near ahead in num of 65536 cases; then an
 * interrupt will indeed come.
 *
 * Return: whether it allows interrupts, or that it does not tell.
 */
static inline enum vb_rings vb_ring_state(u64 features, u32 num, __u16 flags,
					  __u16 used_event, __u16 used_idx)
{
	bool open;

	if (!num || !vb_ring_is_legible(features))
		return VB_RINGS_UNKNOWN;
	if (features & VB_RING_F_EVENT_IDX)
		open = (__u16)(used_event - used_idx) < num;
	else
		open = !(flags & VB_RING_NO_INTERRUPT);
	return open ? VB_RINGS_OPEN : VB_RINGS_HELD;
}

/* A signal of a device that cannot be told from its others. */
#define VB_SIGNAL_ANY		(~0U)

/**
 * vb_ring_signal() - has a device interrupted, or is it about to?
 * @used_idx: the next entry that the device will use
 * @used_event: the driver wants an interrupt when this entry has been used
 *
 * For EVENT_IDX.
 *
 * Return: which signal that is (never VB_SIGNAL_ANY), or 0: it has not.
 */
static inline u32 vb_ring_signal(__u16 used_idx, __u16 used_event)
{
	return (__s16)(used_idx - used_event) > 0 ? 1U << 16 | used_event : 0;
}

/**
 * vb_signal_is_new() - is there anything to call a queue's handler for?
 * @signal: what the device has signalled; 0: nothing
 * @taken: what it had when the handler was called last
 *
 * A device interrupts once for each used_event. The driver leaves that where
 * it was until it has taken everything, and so long the ring looks as if it
 * waited for the handler.
 *
 * Return: there is, or it is not known.
 */
static inline bool vb_signal_is_new(u32 signal, u32 taken)
{
	return signal && (signal == VB_SIGNAL_ANY || signal != taken);
}

/* Both together: one that is held is enough, OPEN takes all. */
static inline enum vb_rings vb_rings_join(enum vb_rings a, enum vb_rings b)
{
	if (a == VB_RINGS_HELD || b == VB_RINGS_HELD)
		return VB_RINGS_HELD;
	return a == b ? a : VB_RINGS_UNKNOWN;
}

#endif /* _VB_CORE_RINGS_H */
