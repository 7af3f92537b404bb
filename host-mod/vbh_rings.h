/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vhost-net's rings: where they are (vbh_ring_table.c), for those who look at
 * them (vbh_rings.c).
 */
#ifndef _VBH_RINGS_H
#define _VBH_RINGS_H

#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/uaccess.h>

/* Of a device: vhost-net's receive and transmit. */
#define VBH_DEV_RINGS	2

/* Devices of a process. Bounds what a look takes. */
#define VBH_RING_DEVS	16
#define VBH_MM_RINGS	(VBH_RING_DEVS * VBH_DEV_RINGS)

/* A bit for each ring; which are for what is received. */
#define VBH_RINGS_RECEIVE	0x55555555U
static_assert(VBH_MM_RINGS == 32 && VBH_DEV_RINGS == 2);

struct vbh_ring {
	u64 avail, used;	/* user addresses; avail 0: not in use */
	u32 num;
	u32 told;		/* vb_ring_signal(): its vCPU is known */
};

struct vbh_ring_dev {
	const struct file *file;	/* key; NULL: none */
	u64 features;
	struct vbh_ring ring[VBH_DEV_RINGS];
};

/*
 * Readers take no lock. What they read of a device that is just changed may be
 * of two rings, which makes one wrong answer.
 */
struct vbh_ring_mm {
	struct hlist_node node;
	const struct mm_struct *mm;	/* key */
	bool incomplete;		/* there are more devices */
	struct vbh_ring_dev dev[VBH_RING_DEVS];
	struct rcu_head rcu;
};

/* @x: of the type of what is read. Return: 0, or -EFAULT at once. */
#define vbh_peek(x, address) ({						\
	int __err;							\
									\
	pagefault_disable();						\
	__err = get_user(x, (typeof(x) __user *)(address));		\
	pagefault_enable();						\
	__err;								\
})

struct vbh_ring_mm *vbh_ring_mm_find(const struct mm_struct *mm);

#endif /* _VBH_RINGS_H */
