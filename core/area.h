/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of a guest's header page the host takes over, and the check of it.
 * Plain C: compiled into the host module and into the user-space unit tests.
 */
#ifndef _VB_CORE_AREA_H
#define _VB_CORE_AREA_H

#include <vbalance/abi.h>

/* The host's private, checked copy of the layout. */
struct vb_area_layout {
	__u64	cookie;
	__u32	nr_slots;
	__u32	nr_pages;
	__u32	host_table_page;
	__u32	guest_table_page;
	__u32	redirect_page;
	__u32	pending_page;
};

/**
 * vb_area_check() - check a header against the hypercall's arguments
 * @hdr: a private copy of the header (the guest may change its own meanwhile)
 * @gpa: guest physical address given by the guest, bytes
 * @cookie: cookie given in the hypercall
 * @out: filled on success
 *
 * Context: any.
 * Return: 0 or a negative VB_E* code.
 */
static inline int vb_area_check(const struct vb_header *hdr, __u64 gpa,
				__u64 cookie, struct vb_area_layout *out)
{
	__u32 slots = hdr->nr_slots;

	if (hdr->magic != VB_MAGIC)
		return -VB_EINVAL;
	if (hdr->abi_version != VB_ABI_VERSION)
		return -VB_EPROTO;
	if (!cookie || hdr->cookie != cookie)
		return -VB_EINVAL;
	if (!slots || slots > VB_MAX_SLOTS || hdr->guest_flags)
		return -VB_EINVAL;
	if (hdr->nr_pages != VB_AREA_PAGES(slots) ||
	    hdr->host_table_page != VB_HOST_TABLE_PAGE ||
	    hdr->guest_table_page != VB_GUEST_TABLE_PAGE(slots) ||
	    hdr->redirect_page != VB_REDIRECT_PAGE(slots) ||
	    hdr->pending_page != VB_PENDING_PAGE(slots))
		return -VB_EINVAL;
	if (hdr->gfn[0] != gpa >> VB_PAGE_SHIFT)
		return -VB_EINVAL;

	out->cookie = cookie;
	out->nr_slots = slots;
	out->nr_pages = hdr->nr_pages;
	out->host_table_page = hdr->host_table_page;
	out->guest_table_page = hdr->guest_table_page;
	out->redirect_page = hdr->redirect_page;
	out->pending_page = hdr->pending_page;
	return 0;
}

#endif /* _VB_CORE_AREA_H */
