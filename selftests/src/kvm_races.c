// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest or its VMM changes after a registration was taken and before
 * the host's work item pins it. Prints KTAP. Needs /dev/kvm and vbalance_host;
 * reads its counters in debugfs.
 *
 * The work item serves one VM after the other and waits for a grace period
 * after each: some other VMs that register first make the time that we need.
 * When it was too short, what came out is undone and tried again.
 */
#define _GNU_SOURCE
#include "refusal.h"

#define BUSY		4
#define TRIES		30
#define SIDE		VM_MEM		/* guest address of the second slot */
#define OTHER_COOKIE	99ULL

static struct minivm vm, busy[BUSY];
static unsigned char *side;		/* one page of host memory behind it */
static unsigned char *spare;		/* another one */

static struct vb_header *header(void)
{
	return (struct vb_header *)(vm.mem + VM_AREA);
}

static unsigned char *page_new(void)
{
	unsigned char *p = mmap(NULL, VB_PAGE_SIZE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1,
				0);

	if (p == MAP_FAILED)
		vm_must(-1, "mmap");
	return p;
}

/* An area with page @from of it (-1: none) in the second slot; returns gpa. */
static __u64 area(int from)
{
	struct vb_header *h = vm_header(&vm, VM_AREA, 4, COOKIE);

	if (from < 0)
		return VM_AREA;
	side = page_new();
	spare = page_new();
	vm_memory(&vm, 1, SIDE, side, VB_PAGE_SIZE, 0);
	h->gfn[from] = SIDE >> VB_PAGE_SHIFT;
	if (!from) {
		memcpy(side, h, VB_PAGE_SIZE);
		memcpy(spare, h, VB_PAGE_SIZE);
	}
	return from ? VM_AREA : SIDE;
}

static void area_gone(int from)
{
	if (from < 0)
		return;
	vm_memory(&vm, 1, SIDE, side, 0, 0);
	munmap(side, VB_PAGE_SIZE);
	if (spare)
		munmap(spare, VB_PAGE_SIZE);
}

static void busy_begin(void)
{
	int i;

	for (i = 0; i < BUSY; i++) {
		vm_header(&busy[i], VM_AREA, 1, OTHER_COOKIE);
		vm_op(&busy[i], VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
		      OTHER_COOKIE);
	}
}

static void busy_end(void)
{
	int i;

	for (i = 0; i < BUSY; i++) {
		vm_wait_status(&busy[i], OTHER_COOKIE, -VB_EAGAIN);
		vm_unregister(&busy[i], OTHER_COOKIE);
	}
}

/* Taken, then changed, @from in the second slot: must end with @err. */
static void race(int from, void (*change)(void), long err, const char *name)
{
	struct counts before;
	char text[128];
	long ret = 0;
	int i, counted = 0;

	for (i = 0; i < TRIES && ret != err; i++) {
		__u64 gpa = area(from);

		before = counts_now();
		busy_begin();
		ret = vm_op(&vm, VB_OP_REGISTER, gpa, VB_ABI_VERSION, COOKIE);
		if (!ret) {
			change();
			ret = vm_wait_status(&vm, COOKIE, -VB_EAGAIN);
		} else {
			printf("# %s: not taken: %ld\n", name, ret);
		}
		if (!ret)
			vm_unregister(&vm, COOKIE);
		busy_end();
		if (ret == err)
			counted = only_grew(&before, err);
		area_gone(from);
	}
	expect(ret, err, name);
	snprintf(text, sizeof(text), "%s: counted once, nothing pinned", name);
	report(counted, text);
}

static void change_cookie(void)
{
	header()->cookie = COOKIE + 1;
}

static void clear_cookie(void)
{
	header()->cookie = 0;
}

static void change_magic(void)
{
	header()->magic++;
}

static void unmap(void)
{
	munmap(side, VB_PAGE_SIZE);
}

static void read_only(void)
{
	mprotect(side, VB_PAGE_SIZE, PROT_READ);
}

static void give_back(void)
{
	madvise(side, VB_PAGE_SIZE, MADV_REMOVE);
}

/* The same address and content, another page (both exist: no reuse). */
static void replace(void)
{
	if (mremap(spare, VB_PAGE_SIZE, VB_PAGE_SIZE,
		   MREMAP_MAYMOVE | MREMAP_FIXED, side) == MAP_FAILED)
		vm_must(-1, "mremap");
	spare = NULL;
	/* Present in its new place, as the old one was. */
	*(volatile unsigned char *)side = *side;
}

/* Who failed to register has nothing to unregister. */
static void unregister_refused(void)
{
	long ret = 0;
	int i;

	for (i = 0; i < TRIES && ret != -VB_EINVAL; i++) {
		area(-1);
		busy_begin();
		vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE);
		change_cookie();
		ret = vm_wait_status(&vm, COOKIE, -VB_EAGAIN);
		if (!ret)
			vm_unregister(&vm, COOKIE);
		busy_end();
	}
	expect(ret, -VB_EINVAL, "refused by the work item");
	expect(vm_unregister(&vm, COOKIE), -VB_ENOENT,
	       "refused by the work item, then unregistered: nothing is there");
}

/* The layout that was checked is the one that is used. */
static void layout(void)
{
	struct counts before = counts_now();
	struct vb_header *h = header();
	struct vb_vcpu_host *t;
	int i, j, late = 0;
	long ret = -1;

	for (i = 0; i < TRIES && !late; i++) {
		area(-1);
		t = vm_host_table(h);
		memset(vm.mem + VM_AREA + 0x10000, 0x5a, 0x10000);
		busy_begin();
		ret = vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
			    COOKIE);
		h->nr_slots = VB_MAX_SLOTS;
		h->nr_pages = VB_MAX_AREA_PAGES;
		h->host_table_page = 0x10;
		h->guest_table_page = 0x11;
		h->redirect_page = 0x12;
		h->pending_page = 0x14;
		for (j = 0; j < (int)VB_MAX_AREA_PAGES; j++)
			h->gfn[j] = (VM_AREA + 0x10000) >> VB_PAGE_SHIFT;
		/* Was that before the host wrote its part? */
		late = !__atomic_load_n(&t[0].cookie, __ATOMIC_SEQ_CST);
		if (!ret)
			ret = vm_wait_status(&vm, COOKIE, -VB_EAGAIN);
		late &= !ret && t[0].cookie == COOKIE &&
			t[0].flags == VB_VCPU_F_VALID;
		for (j = 0; j < 0x10000; j++)
			late &= vm.mem[VM_AREA + 0x10000 + j] == 0x5a;
		vm_unregister(&vm, COOKIE);
		busy_end();
	}
	report(late, "its layout changed: the one that was checked is used");
	report(only_grew(&before, 0), "its layout changed: nothing is refused");
}

/* Unregistered before it was pinned: as if it had never been. */
static void unregister_at_once(void)
{
	struct counts before = counts_now();
	struct vb_header *h = header();
	int i, good = 0, again_good = 1;
	long again, ret;

	for (i = 0; i < TRIES && !good; i++) {
		area(-1);
		busy_begin();
		vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE);
		ret = vm_op(&vm, VB_OP_UNREGISTER, 0, 0, COOKIE);
		good = !ret && vm_wait_status(&vm, COOKIE, -VB_EAGAIN) ==
			-VB_ENOENT && h->host_status == VB_HOST_NONE &&
			!vm_host_table(h)[0].cookie;
		busy_end();
	}
	report(good, "unregistered before it was pinned: never written");
	report(only_grew(&before, 0),
	       "unregistered before it was pinned: nothing is refused");

	/* A new one at once: "still being let go", which says: call again. */
	for (i = 0; i < TRIES && again_good; i++) {
		area(-1);
		busy_begin();
		vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE);
		vm_op(&vm, VB_OP_UNREGISTER, 0, 0, COOKIE);
		again = vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
			      COOKIE + 1);
		/* -VB_EINVAL: all was over already (the header has COOKIE). */
		again_good = again == -VB_EAGAIN || again == -VB_EINVAL;
		if (!again_good)
			printf("# registered again at once: %ld\n", again);
		vm_wait_status(&vm, COOKIE, -VB_EAGAIN);
		busy_end();
	}
	report(again_good,
	       "registered again while the last one is let go: -VB_EAGAIN");
}

/* The VM goes before its area was pinned. */
static void gone(void)
{
	struct counts before = counts_now();
	int i, good = 1;

	for (i = 0; i < TRIES; i++) {
		struct minivm m;

		vm_create(&m, 1);
		vm_header(&m, VM_AREA, 4, COOKIE);
		busy_begin();
		good &= !vm_op(&m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
			       COOKIE);
		vm_destroy(&m);
		busy_end();
	}
	good &= all_unpinned();
	report(good && only_grew(&before, 0),
	       "VMs that go before their area is pinned");
}

int main(void)
{
	int i;

	begin();
	for (i = 0; i < BUSY; i++)
		vm_create(&busy[i], 1);
	vm_create(&vm, 1);
	race(-1, change_cookie, -VB_EINVAL, "cookie changed");
	race(-1, clear_cookie, -VB_EINVAL, "cookie cleared");
	race(-1, change_magic, -VB_EINVAL, "magic changed");
	race(1, unmap, -VB_EFAULT, "table unmapped");
	race(0, unmap, -VB_EFAULT, "header unmapped");
	race(1, read_only, -VB_EFAULT, "table made read-only");
	race(1, give_back, -VB_EFAULT, "table given back");
	race(1, replace, -VB_EFAULT, "table replaced by another page");
	race(0, replace, -VB_EFAULT,
	     "header replaced by another page with its content");
	unregister_refused();
	layout();
	unregister_at_once();
	gone();
	vm_destroy(&vm);
	for (i = 0; i < BUSY; i++)
		vm_destroy(&busy[i]);
	report(pinned_kb(getpid()) == 0 && all_unpinned(),
	       "nothing pinned at the end");
	return end();
}
