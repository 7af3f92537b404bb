// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest or its VMM does while the host's work item has pinned an area,
 * or has failed to, and has not said so yet. Prints KTAP. Needs /dev/kvm, root
 * and a vbalance_host that waits there when it is asked to (common/fault.h).
 */
#include "refusal.h"

#define SIDE		VM_MEM		/* guest address of the second slot */

static struct minivm vm;

static void work_item_waits(const char *point)
{
	set_parameter("fail_point", point);
	set_parameter("fail_at", "-1");
}

static void work_item_goes_on(void)
{
	set_parameter("fail_at", "0");
}

/* Taken, and the work item has come so far that @counter has grown. */
static void taken(const char *point, const char *counter, const char *name)
{
	long before = stat_of(counter), ret;

	work_item_waits(point);
	ret = vm_op(&vm, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE);
	report(!ret && AWAIT(stat_of(counter) > before), name);
}

static void unregisters(void)
{
	struct vb_header *h = vm_header(&vm, VM_AREA, 4, COOKIE);

	taken("setup", "pages_pinned", "unregisters: it has been pinned");
	expect(vm_op(&vm, VB_OP_UNREGISTER, 0, 0, COOKIE), 0,
	       "unregisters: meanwhile");
	expect(vm_op(&vm, VB_OP_STATUS, 0, 0, COOKIE), -VB_EAGAIN,
	       "unregisters: it is being let go");
	work_item_goes_on();
	expect(vm_wait_status(&vm, COOKIE, -VB_EAGAIN), -VB_ENOENT,
	       "unregisters: it is gone");
	report(h->host_status == VB_HOST_GONE, "unregisters: the page says so");
	report(!pages_held(), "unregisters: nothing stays pinned");
}

static void unregisters_refused(void)
{
	struct vb_header *h = vm_header(&vm, VM_AREA, 4, COOKIE);
	void *p = page_of_file();

	if (!p) {
		skip("refused", "no page that cannot be pinned");
		return;
	}
	vm_memory(&vm, 1, SIDE, p, VB_PAGE_SIZE, 0);
	h->gfn[1] = SIDE >> VB_PAGE_SHIFT;
	taken("setup", "refused_efault", "refused: it could not be pinned");
	expect(vm_op(&vm, VB_OP_UNREGISTER, 0, 0, COOKIE), 0,
	       "refused: unregisters before it knows");
	work_item_goes_on();
	expect(vm_wait_status(&vm, COOKIE, -VB_EAGAIN), -VB_ENOENT,
	       "refused: there is nothing");
	report(!pages_held(), "refused: nothing stays pinned");
	vm_memory(&vm, 1, SIDE, p, 0, 0);
	munmap(p, VB_PAGE_SIZE);
	vm_header(&vm, VM_AREA, 4, COOKIE);
	expect(vm_register(&vm, VM_AREA, COOKIE), 0,
	       "refused: another area is taken");
	expect(vm_unregister(&vm, COOKIE), -VB_ENOENT, "refused: and left");
}

/* The table's pages are others' already, the header is still what it was. */
static void reset(void)
{
	struct vb_header *h = vm_header(&vm, VM_AREA, 4, COOKIE);
	unsigned char *table = (unsigned char *)vm_host_table(h);
	long refused = stat_of("refused_eagain");
	int i, kept = 1;

	taken("begin", "pages_pinned", "reset: it has been pinned");
	vm_reset_mode(&vm, 0);
	vm_mode(&vm, 0, 0);
	memset(table, 0x5a, VB_PAGE_SIZE);
	work_item_goes_on();
	expect(vm_wait_status(&vm, COOKIE, -VB_EAGAIN), -VB_ENOENT,
	       "reset: it is gone");
	for (i = 0; i < (int)VB_PAGE_SIZE; i++)
		kept &= table[i] == 0x5a;
	report(kept && h->host_status == VB_HOST_NONE,
	       "reset: nothing has been written");
	expect(stat_of("refused_eagain"), refused, "reset: nothing is refused");
	report(!pages_held(), "reset: nothing stays pinned");
}

static void destroyed(int folders)
{
	vm_header(&vm, VM_AREA, 4, COOKIE);
	taken("setup", "pages_pinned", "destroyed: it has been pinned");
	vm_destroy(&vm);
	work_item_goes_on();
	report(all_unpinned(), "destroyed: nothing stays pinned");
	report(AWAIT(vm_folders() == folders), "destroyed: the VM is forgotten");
}

/* Between the guest's word and the host's last one the memory gets an owner. */
static void destroyed_untold(int folders)
{
	struct vb_header *h;

	vm_create(&vm, 1);
	h = vm_header(&vm, VM_AREA, 4, COOKIE);
	expect(vm_register(&vm, VM_AREA, COOKIE), 0, "untold: registered");
	work_item_waits("tell");
	expect(vm_op(&vm, VB_OP_UNREGISTER, 0, 0, COOKIE), 0,
	       "untold: unregisters");
	/* Nothing shows that it has come there. */
	usleep(200000 * slowness());
	vm_close(&vm);
	expect(h->host_status, VB_HOST_ACTIVE, "untold: when it is destroyed");
	work_item_goes_on();
	report(all_unpinned(), "untold: nothing stays pinned");
	report(h->cookie == COOKIE && h->host_status == VB_HOST_ACTIVE,
	       "untold: nor is it any more");
	munmap(vm.mem, VM_MEM);
	report(AWAIT(vm_folders() == folders), "untold: the VM is forgotten");
}

int main(void)
{
	int folders;

	begin();
	if (access(PARAMETERS "fail_point", W_OK)) {
		printf("1..0 # SKIP vbalance_host was not built with VB_FAULTS=y\n");
		return 4;
	}
	folders = vm_folders();
	vm_create(&vm, 1);
	unregisters();
	unregisters_refused();
	reset();
	destroyed(folders);
	destroyed_untold(folders);
	return end();
}
