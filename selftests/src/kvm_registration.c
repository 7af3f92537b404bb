// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a registration, from VMs of our own: set up, used, left by
 * unregistering, by a reset and by the end of the VM. Prints KTAP. Needs
 * /dev/kvm and vbalance_host; reads its counters in debugfs.
 */
#include <signal.h>
#include <sys/wait.h>

#include "hosttest.h"

#define COOKIE	0x1122334455667788ULL

static void life(struct minivm *m)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);
	struct vb_vcpu_host *t = vm_host_table(h);
	long ret = vm_register(m, VM_AREA, COOKIE);
	__u64 changes;

	expect(ret, 0, "registration");
	report(h->host_status == VB_HOST_ACTIVE &&
	       (h->host_features & ~(VB_HF_REDIRECT | VB_HF_BOOST)) == VB_HF_RUN_STATE &&
	       h->host_abi_version == VB_ABI_VERSION, "host part of the header");
	expect(pinned_kb(getpid()), VB_AREA_PAGES(4) * VB_PAGE_SIZE / 1024,
	       "pages are charged to the process");
	report(h->nr_vcpus == 2 && t[0].flags == VB_VCPU_F_VALID &&
	       t[1].flags == VB_VCPU_F_VALID && !t[2].flags &&
	       t[0].apic_id == 0 && t[1].apic_id == 1,
	       "slots are in order of creation");
	report(t[0].state == VB_VCPU_VMM && !h->running[0],
	       "a vCPU that is in the VMM is shown there");
	expect(vm_call(m, 1, VB_HYPERCALL, VB_OP_STATUS, 0, 0, COOKIE), 0,
	       "status from another vCPU");

	/* The guest's part, and the host's own, full of nonsense. */
	memset((char *)h + h->guest_table_page * VB_PAGE_SIZE, 0xff,
	       VB_PAGE_SIZE);
	h->nr_slots = 0xffffffff;
	h->nr_pages = 0xffffffff;
	h->host_table_page = 0x7fffffff;
	h->nr_vcpus = 0xffffffff;
	memset(h->gfn, 0xff, sizeof(h->gfn));
	t[0].flags = 0xffffffff;
	changes = t[0].changed_tsc;
	expect(vm_op(m, VB_OP_STATUS, 0, 0, COOKIE), 0,
	       "hostile values: still registered");
	report(t[0].changed_tsc != changes,
	       "hostile values: states go on in the right place");

	/* A vCPU that comes later gets its slot. */
	h->nr_vcpus = 2;
	vm_add_vcpu(m);
	vm_mode(m, 2, 0);
	vm_call(m, 2, VB_HYPERCALL, VB_OP_PROBE, 0, 0, 0);
	report(t[2].flags == VB_VCPU_F_VALID && t[2].apic_id == 2 &&
	       h->nr_vcpus == 3, "a new vCPU gets its slot");

	h->cookie = 0;
	changes = t[0].changed_tsc;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes, "cookie 0 stops host writes");
	h->cookie = COOKIE;
	t[0].cookie = 1;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes,
	       "another cookie in the entry stops writes to it");
	expect(vm_unregister(m, COOKIE), -VB_ENOENT, "unregister");
	report(pinned_kb(getpid()) == 0 && all_unpinned(),
	       "unregister unpins");
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[1].changed_tsc != ~0ULL && t[0].changed_tsc == changes,
	       "no writes after unregistering");
}

static void again_and_reset(struct minivm *m)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE + 1);
	struct vb_vcpu_host *t = vm_host_table(h);
	__u64 changes;

	expect(vm_register(m, VM_AREA, COOKIE + 1), 0, "registered again");

	/* A kernel that comes without a reset that anybody saw. */
	h->cookie = 77;
	vm_header(m, VM_AREA + 0x8000, 4, COOKIE + 2);
	expect(vm_op(m, VB_OP_REGISTER, VM_AREA + 0x8000, VB_ABI_VERSION,
		     COOKIE + 2), -VB_EAGAIN,
	       "area of a kernel that is gone is given up");
	do {
		usleep(2000);
	} while (vm_op(m, VB_OP_STATUS, 0, 0, 0) == -VB_EAGAIN);
	h = (struct vb_header *)(m->mem + VM_AREA + 0x8000);
	t = vm_host_table(h);
	expect(vm_register(m, VM_AREA + 0x8000, COOKIE + 2), 0,
	       "the next kernel registers");

	vm_reset_mode(m, 0);
	/* The next load of the vCPU sees it. */
	vm_mode(m, 0, 0);
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(vm_wait_status(m, COOKIE + 2, -VB_EAGAIN) == -VB_ENOENT,
	       "a reset ends the registration");
	report(h->host_status == VB_HOST_GONE, "the guest is told");
	changes = t[0].changed_tsc;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes, "no writes after a reset");
	report(all_unpinned(), "a reset unpins");
}

/* The largest area there is. */
static void largest(void)
{
	struct vb_header *h;
	struct minivm m;

	vm_create(&m, 1);
	h = vm_header(&m, VM_AREA, VB_MAX_SLOTS, COOKIE);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "4096 slots");
	report(h->nr_vcpus == 1, "4096 slots: one vCPU");
	vm_destroy(&m);
	report(all_unpinned(), "a VM that goes while registered is unpinned");
}

static void killed(void)
{
	pid_t pid = fork();
	struct minivm m;
	int status;

	if (!pid) {
		vm_create(&m, 2);
		vm_header(&m, VM_AREA, 4, COOKIE);
		if (vm_register(&m, VM_AREA, COOKIE))
			_exit(1);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	report(WIFSIGNALED(status) && all_unpinned(),
	       "a VMM that is killed while registered");
}

/* Register, exit, destroy: many times, as fast as it goes. */
static void churn(void)
{
	int i, good = 1;

	for (i = 0; i < 100; i++) {
		struct minivm m;

		vm_create(&m, 1 + i % 4);
		vm_header(&m, VM_AREA, 4, COOKIE + i);
		good &= !vm_op(&m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
			       COOKIE + i);
		if (i % 3 == 1)
			good &= !vm_wait_status(&m, COOKIE + i, -VB_EAGAIN);
		if (i % 3 == 2)
			vm_op(&m, VB_OP_UNREGISTER, 0, 0, COOKIE + i);
		vm_destroy(&m);
	}
	report(good, "100 VMs come, register and go");
	report(all_unpinned(), "100 VMs: all unpinned");
}

int main(void)
{
	struct minivm m;
	int folders;

	begin();
	folders = vm_folders();
	vm_create(&m, 2);
	life(&m);
	again_and_reset(&m);
	vm_destroy(&m);
	largest();
	killed();
	churn();
	AWAIT(vm_folders() == folders);
	expect(vm_folders(), folders, "no folder of a VM is left");
	return end();
}
