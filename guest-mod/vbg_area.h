/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The area shared with vbalance_host (include/vbalance/abi.h) as the guest
 * holds it: vbg_page.c registers it and reads run states from it,
 * vbg_redirect.c keeps the redirection's part of it.
 */
#ifndef _VBG_AREA_H
#define _VBG_AREA_H

#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include <vbalance/abi.h>

#include "../core/stuck.h"

struct vbg_area {
	struct vb_header *hdr;
	const struct vb_vcpu_host *host;
	struct vb_vcpu_guest *guest;
	struct vb_redirect *redirect;
	struct vb_pending *pending;
	struct page **pages;
	u32 nr_pages;
	u32 nr_slots;
	u64 cookie;
	struct {
		u64 seen;		/* since when its pending bits are seen
					 * and left, vbg_clock(); 0: they are
					 * not
					 */
		u32 takes;		/* changes when some are taken */
		struct vb_stuck stuck;	/* under stuck_lock */
	} *wait;			/* of each slot */
	raw_spinlock_t stuck_lock;
	u64 stuck_next;			/* next look, vbg_clock() */
	u64 taken_before;		/* bits, when this one began */
	bool host_done;			/* has confirmed that it has let go */
	u32 silent;			/* kept: how often nobody answered */
	int slot[];			/* of each CPU; -1: not known */
};

/* The area while it is alive. Readers: RCU-sched. */
extern struct vbg_area __rcu *vbg_active;

struct vbg_area *vbg_area_alloc(void);
void vbg_area_free(struct vbg_area *a);
void vbg_area_touch(struct vbg_area *a);
void vbg_account_open(struct vbg_area *a);
void vbg_account_close(const struct vbg_area *a, bool sure);
void vbg_stuck_look(struct vbg_area *a, int cpu, u64 now);

#endif /* _VBG_AREA_H */
