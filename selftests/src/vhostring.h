/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vhost-net's devices with rings of our own, in our memory, in front of no
 * network. Needs /dev/vhost-net.
 */
#ifndef _VB_VHOSTRING_H
#define _VB_VHOSTRING_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vhost.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "minivm.h"
#include "../core/rings.h"

#define RINGS	2		/* of a device */
#define NUM	8		/* entries of a ring */

/* struct vring_avail and struct vring_used, as far as they matter. */
struct ring {
	volatile __u16 flags, idx, ring[NUM], used_event;
	__u16 pad[53];
	volatile __u16 used_flags, used_idx;
} __attribute__((aligned(256)));

static_assert(offsetof(struct ring, used_event) == VB_RING_USED_EVENT(NUM),
	      "used_event");

struct device {
	int fd;
	__u64 features;
	struct ring *ring;	/* RINGS of them, a page */
};

static inline void device_must(struct device *d, unsigned long cmd,
			       const void *arg, const char *what)
{
	vm_must(ioctl(d->fd, cmd, arg), what);
}

static inline int set_features(struct device *d, __u64 features)
{
	return ioctl(d->fd, VHOST_SET_FEATURES, &features) ? errno : 0;
}

static inline void set_addresses(struct device *d)
{
	unsigned int i;

	for (i = 0; i < RINGS; i++) {
		struct vhost_vring_state num = { .index = i, .num = NUM };
		struct ring *r = &d->ring[i];
		struct vhost_vring_addr addr = {
			.index = i,
			/* Nobody ever reads a descriptor. */
			.desc_user_addr = (unsigned long)d->ring,
			.avail_user_addr = (unsigned long)&r->flags,
			.used_user_addr = (unsigned long)&r->used_flags,
		};

		device_must(d, VHOST_SET_VRING_NUM, &num, "VHOST_SET_VRING_NUM");
		device_must(d, VHOST_SET_VRING_ADDR, &addr,
			    "VHOST_SET_VRING_ADDR");
	}
}

static inline void device_open(struct device *d, __u64 features)
{
	static const struct vhost_memory no_memory = { .nregions = 0 };

	d->fd = vm_must(open("/dev/vhost-net", O_RDWR | O_CLOEXEC),
			"/dev/vhost-net");
	d->features = features;
	d->ring = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (d->ring == MAP_FAILED)
		vm_must(-1, "mmap of rings");
	device_must(d, VHOST_SET_OWNER, NULL, "VHOST_SET_OWNER");
	device_must(d, VHOST_SET_MEM_TABLE, &no_memory, "VHOST_SET_MEM_TABLE");
	if (set_features(d, features))
		vm_must(-1, "VHOST_SET_FEATURES");
	set_addresses(d);
}

static inline void device_close(struct device *d)
{
	close(d->fd);
	munmap(d->ring, getpagesize());
}

/* The other kind's words say the opposite. */
static inline void ring_allows(struct device *d, int i, int open)
{
	struct ring *r = &d->ring[i];
	int events = !!(d->features & VB_RING_F_EVENT_IDX);

	r->used_idx = 65534;
	r->used_event = open == events ? 65534 : 65533;
	r->flags = open == events ? VB_RING_NO_INTERRUPT : 0;
}

static inline void device_allows(struct device *d, int open)
{
	int i;

	for (i = 0; i < RINGS; i++)
		ring_allows(d, i, open);
}

#endif /* _VB_VHOSTRING_H */
