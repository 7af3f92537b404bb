// SPDX-License-Identifier: GPL-2.0
/*
 * Pinning and mapping of a guest's shared area.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../common/fault.h"
#include "../compat/pin_page.h"
#include "vbh.h"
#include "vbh_trace.h"

/*
 * Pages that the guest wrote a moment ago are present and writable. What is
 * not (swapped out since, ballooned away) is refused instead of faulted in:
 * a fault could wait for a user-space handler of the VMM for ever, and this
 * work item serves all VMs. For the same reason it waits for the VMM's
 * mmap_lock only a moment, not until it gets it.
 */
#define VBH_PIN_TRIES	20	/* 1 to 2 ms each */
#define VBH_PIN_FLAGS	(FOLL_WRITE | FOLL_LONGTERM | FOLL_NOFAULT)

/*
 * The addresses were looked up in the memslots at the time of the hypercall;
 * since then the VMM may have taken the slot away and put memory of its own
 * there. What was noted then must be what is pinned now. (A page that had to
 * migrate to be pinned for long differs as well: the guest's next attempt
 * finds it in its new place.)
 */
static bool vbh_same_pages(const struct vbh_request *req, struct page **pages)
{
	u32 i;

	for (i = 0; i < req->layout.nr_pages; i++)
		if (pages[i] != req->page[i])
			return false;
	return true;
}

/*
 * Memory of a file on a real file system must not be written behind the file
 * system's back. FOLL_LONGTERM refuses it on newer kernels (6.5 on), not on
 * all that we run on.
 */
static bool vbh_may_pin(struct page *page)
{
	struct folio *folio = page_folio(page);

	return folio_test_swapbacked(folio) || folio_test_hugetlb(folio);
}

static int vbh_pin_one(unsigned long hva, struct page **page)
{
	if (vb_fault("pin") || vb_pin_user_page(hva, VBH_PIN_FLAGS, page) != 1)
		return -VB_EFAULT;
	if (vbh_may_pin(*page))
		return 0;
	unpin_user_page(*page);
	return -VB_EFAULT;
}

static bool vbh_mmap_lock(struct mm_struct *mm)
{
	int tries;

	if (vb_fault("mmap_lock"))
		return false;
	for (tries = 0; tries < VBH_PIN_TRIES; tries++) {
		if (mmap_read_trylock(mm))
			return true;
		usleep_range(1000, 2000);
	}
	return false;
}

static int vbh_pin(const struct vbh_request *req, struct page **pages)
{
	u32 i = 0, nr = req->layout.nr_pages;
	int err = 0;

	if (!mmget_not_zero(req->mm))
		return -VB_EFAULT;
	kthread_use_mm(req->mm);
	if (vbh_mmap_lock(req->mm)) {
		for (i = 0; i < nr && !err; i++)
			err = vbh_pin_one(req->hva[i], &pages[i]);
		mmap_read_unlock(req->mm);
		if (err)
			i--;	/* the one that failed is not pinned */
	} else {
		err = -VB_EFAULT;
	}
	kthread_unuse_mm(req->mm);
	/* Not the one to tear down a VMM that died meanwhile. */
	mmput_async(req->mm);
	if (!err && !vbh_same_pages(req, pages))
		err = -VB_EFAULT;
	if (err)
		unpin_user_pages(pages, i);
	return err;
}

static void vbh_unpin(struct page **pages, u32 nr, struct mm_struct *mm)
{
	atomic64_sub(nr, &mm->pinned_vm);
	unpin_user_pages_dirty_lock(pages, nr, true);
	vbh_stat_add(VBH_S_PAGES_UNPINNED, nr);
}

/*
 * First writes. The memory behind the addresses may have changed since the
 * check. No pause between this one and the writes: the guest frees the pages
 * soon after it has taken its cookie away.
 */
static int vbh_area_begin(struct vbh_reg *reg, const u64 *wanted)
{
	u32 i, nr = reg->layout.nr_slots;
	u64 features = VB_HF_RUN_STATE;
	int err = 0;

	if (vbh_can(VBH_F_REDIRECT))
		features |= VB_HF_REDIRECT;
	if (vbh_can(VBH_F_BOOST))
		features |= VB_HF_BOOST;
	preempt_disable();
	if (READ_ONCE(*wanted) != reg->layout.cookie) {
		err = -VB_EAGAIN;
		goto out;
	}
	if (READ_ONCE(reg->hdr->magic) != VB_MAGIC ||
	    READ_ONCE(reg->hdr->cookie) != reg->layout.cookie) {
		err = -VB_EINVAL;
		goto out;
	}
	memset(reg->hdr->running, 0, sizeof(reg->hdr->running));
	memset(reg->table, 0, (size_t)nr * sizeof(*reg->table));
	for (i = 0; i < nr; i++)
		WRITE_ONCE(reg->table[i].cookie, reg->layout.cookie);
	WRITE_ONCE(reg->hdr->nr_vcpus, 0);
	WRITE_ONCE(reg->hdr->host_abi_version, VB_ABI_VERSION);
	WRITE_ONCE(reg->hdr->host_tsc_khz, tsc_khz);
	WRITE_ONCE(reg->hdr->host_features, features);
out:
	preempt_enable();
	return err;
}

/**
 * vbh_area_map() - pin and map a requested area
 * @req: the request; its mm reference stays the caller's
 * @wanted: the cookie of what the VM waits for; may change at any time
 * @err: negative VB_E* on failure; -VB_EAGAIN: reset, unregistered or destroyed
 *	meanwhile, and nothing was written
 *
 * Context: our work item (a kernel thread); sleeps.
 * Return: the area, not yet visible to the hooks, or NULL.
 */
struct vbh_reg *vbh_area_map(const struct vbh_request *req, const u64 *wanted,
			     int *err)
{
	const struct vb_area_layout *l = &req->layout;
	struct vbh_reg *reg;
	void *map;

	*err = -VB_ENOMEM;
	reg = vb_fault("map") ? NULL : kzalloc(sizeof(*reg), GFP_KERNEL);
	if (!reg)
		goto err_trace;
	reg->pages = vb_fault("map") ? NULL :
		     kvcalloc(l->nr_pages, sizeof(*reg->pages), GFP_KERNEL);
	if (!reg->pages)
		goto err_free_reg;
	*err = vbh_pin(req, reg->pages);
	if (*err)
		goto err_free_pages;
	atomic64_add(l->nr_pages, &req->mm->pinned_vm);
	vbh_stat_add(VBH_S_PAGES_PINNED, l->nr_pages);
	*err = -VB_ENOMEM;
	map = vb_fault("map") ? NULL :
	      vmap(reg->pages, l->nr_pages, VM_MAP, PAGE_KERNEL);
	if (!map)
		goto err_unpin;

	reg->hdr = map;
	reg->table = map + (size_t)l->host_table_page * VB_PAGE_SIZE;
	reg->guest = map + (size_t)l->guest_table_page * VB_PAGE_SIZE;
	reg->redirect = map + (size_t)l->redirect_page * VB_PAGE_SIZE;
	reg->pending = map + (size_t)l->pending_page * VB_PAGE_SIZE;
	reg->layout = *l;
	reg->mm = req->mm;
	vb_fault_wait("begin");
	*err = vbh_area_begin(reg, wanted);
	if (*err)
		goto err_unmap;
	mmgrab(reg->mm);
	reg->pid = req->pid;
	trace_vb_host_area(req->pid, l->cookie, l->nr_pages, 1, 0);
	*err = 0;
	return reg;

err_unmap:
	vunmap(map);
err_unpin:
	vbh_unpin(reg->pages, l->nr_pages, req->mm);
err_free_pages:
	kvfree(reg->pages);
err_free_reg:
	kfree(reg);
err_trace:
	trace_vb_host_area(req->pid, l->cookie, l->nr_pages, 1, *err);
	return NULL;
}

/**
 * vbh_area_tell() - leave VB_HOST_GONE behind if the page still has our cookie
 * @reg: an area; the last write into it
 * Context: any.
 */
void vbh_area_tell(struct vbh_reg *reg)
{
	/* No pause between check and write: the page may get another owner. */
	preempt_disable();
	if (READ_ONCE(reg->hdr->cookie) == reg->layout.cookie) {
		memset(reg->hdr->running, 0, sizeof(reg->hdr->running));
		/* Nobody runs any more, then: it is over. */
		smp_store_release(&reg->hdr->host_status, VB_HOST_GONE);
	}
	preempt_enable();
}

/**
 * vbh_area_release() - unmap and unpin
 * @reg: an area that no hook can see any more (a grace period has passed)
 * Context: may sleep.
 */
void vbh_area_release(struct vbh_reg *reg)
{
	u32 nr = reg->layout.nr_pages;

	trace_vb_host_area(reg->pid, reg->layout.cookie, nr, 0, 0);
	vunmap(reg->hdr);
	vbh_unpin(reg->pages, nr, reg->mm);
	mmdrop(reg->mm);
	kvfree(reg->pages);
	kfree(reg);
}
