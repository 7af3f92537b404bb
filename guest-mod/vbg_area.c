// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the shared area.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "vbg.h"
#include "vbg_area.h"
#include "../common/fault.h"

void vbg_area_free(struct vbg_area *a)
{
	u32 i;

	if (a->hdr)
		vunmap(a->hdr);
	for (i = 0; a->pages && i < a->nr_pages; i++)
		if (a->pages[i])
			__free_page(a->pages[i]);
	kvfree(a->pages);
	kvfree(a->wait);
	kvfree(a);
}

/* Context: process, sleeps. Return: an area, not registered, or NULL. */
struct vbg_area *vbg_area_alloc(void)
{
	u32 i, slots = min_t(u32, nr_cpu_ids, VB_MAX_SLOTS);
	struct vbg_area *a;
	void *map;

	a = kvzalloc(struct_size(a, slot, nr_cpu_ids), GFP_KERNEL);
	if (!a)
		return NULL;
	a->nr_slots = slots;
	raw_spin_lock_init(&a->stuck_lock);
	a->nr_pages = VB_AREA_PAGES(slots);
	for (i = 0; i < nr_cpu_ids; i++)
		a->slot[i] = -1;
	a->pages = kvcalloc(a->nr_pages, sizeof(*a->pages), GFP_KERNEL);
	a->wait = kvcalloc(slots, sizeof(*a->wait), GFP_KERNEL);
	if (vb_fault("area") || !a->pages || !a->wait)
		goto err_free;
	for (i = 0; i < a->nr_pages; i++) {
		a->pages[i] = vb_fault("area") ? NULL :
			      alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!a->pages[i])
			goto err_free;
	}
	map = vb_fault("area") ? NULL :
	      vmap(a->pages, a->nr_pages, VM_MAP, PAGE_KERNEL);
	if (!map)
		goto err_free;
	do {
		a->cookie = get_random_u64();
	} while (!a->cookie);

	a->hdr = map;
	a->hdr->magic = VB_MAGIC;
	a->hdr->abi_version = VB_ABI_VERSION;
	a->hdr->nr_slots = slots;
	a->hdr->nr_pages = a->nr_pages;
	a->hdr->host_table_page = VB_HOST_TABLE_PAGE;
	a->hdr->guest_table_page = VB_GUEST_TABLE_PAGE(slots);
	a->hdr->redirect_page = VB_REDIRECT_PAGE(slots);
	a->hdr->pending_page = VB_PENDING_PAGE(slots);
	a->hdr->cookie = a->cookie;
	for (i = 0; i < a->nr_pages; i++)
		a->hdr->gfn[i] = page_to_pfn(a->pages[i]);
	a->host = map + (size_t)a->hdr->host_table_page * VB_PAGE_SIZE;
	a->guest = map + (size_t)a->hdr->guest_table_page * VB_PAGE_SIZE;
	a->redirect = map + (size_t)a->hdr->redirect_page * VB_PAGE_SIZE;
	a->pending = map + (size_t)a->hdr->pending_page * VB_PAGE_SIZE;
	return a;

err_free:
	vbg_area_free(a);
	return NULL;
}

/*
 * Writes to each page, so that the host has memory behind it: it does not
 * wait for pages that it would have to bring in.
 */
void vbg_area_touch(struct vbg_area *a)
{
	u32 i;

	for (i = 0; i < a->nr_pages; i++)
		WRITE_ONCE(*((u64 *)a->hdr + (i + 1) * (VB_PAGE_SIZE / 8) - 1),
			   0);
}
