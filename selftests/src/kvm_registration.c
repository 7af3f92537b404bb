// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a registration, from VMs of our own: set up, used, left by
 * unregistering, by a reset and by the end of the VM. Prints KTAP. Needs
 * /dev/kvm and vbalance_host; reads its counters in debugfs.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
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
	unsigned int i, kept;

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
	report(h->host_status == VB_HOST_GONE,
	       "a reset: the guest is told before it runs again");
	/* From now on it is what others make of it. */
	h->host_status = 77;
	memset(h->running, 0x55, sizeof(h->running));
	report(vm_wait_status(m, COOKIE + 2, -VB_EAGAIN) == -VB_ENOENT,
	       "a reset ends the registration");
	kept = h->host_status == 77;
	for (i = 0; i < sizeof(h->running); i++)
		kept &= ((unsigned char *)h->running)[i] == 0x55;
	report(kept, "a reset: nothing is written into what comes next");
	changes = t[0].changed_tsc;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes, "no writes after a reset");
	report(all_unpinned(), "a reset unpins");
}

#define REAL_CODE	0x3000
#define REAL_MISSING	0x8000
#define REAL_MARK	0x9000

static struct kvm_run *real_run;

static void on_signal(int sig)
{
	(void)sig;
	real_run->immediate_exit = 1;
}

static void *real_thread(void *arg)
{
	struct minivm *m = arg;

	while (!ioctl(m->vcpu[0], KVM_RUN, 0))
		;
	return NULL;
}

/* A thread that touches what is missing in @at waits. Return: a userfaultfd. */
static int missing(void *at)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (unsigned long)at, .len = VB_PAGE_SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	/* Else poll() does not wait. */
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	vm_must(madvise(at, VB_PAGE_SIZE, MADV_DONTNEED), "MADV_DONTNEED");
	vm_must(ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
	vm_must(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	return fd;
}

/*
 * The boot vCPU sleeps in real mode, inside KVM_RUN: so does one that has just
 * left its nested guest while KVM waits for a page of this one. It was not reset.
 */
static void sleeps_within(void)
{
	static const unsigned char code[] = {
		0xa0, 0x00, 0x80,		/* mov al, [REAL_MISSING] */
		0xc6, 0x06, 0x00, 0x90, 0x01,	/* mov byte [REAL_MARK], 1 */
		0xeb, 0xfe,			/* jmp . */
	};
	unsigned char *mem = mmap(NULL, VM_MEM, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
				  -1, 0);
	struct kvm_regs regs = { .rip = REAL_CODE, .rflags = 2 };
	struct sigaction sa = { .sa_handler = on_signal };
	struct uffdio_zeropage page;
	struct pollfd wait;
	pthread_t thread;
	struct minivm m;
	int i;

	if (mem == MAP_FAILED)
		vm_must(-1, "mmap");
	wait.fd = missing(mem + REAL_MISSING);
	wait.events = POLLIN;
	if (wait.fd < 0) {
		skip("the boot vCPU sleeps in KVM_RUN", "no userfaultfd");
		munmap(mem, VM_MEM);
		return;
	}
	vm_new(&m, mem, 0);
	memcpy(mem + REAL_CODE, code, sizeof(code));
	for (i = 0; i < 2; i++) {
		vm_add_vcpu(&m);
		vm_mode(&m, i, 0);
	}
	vm_reset_mode(&m, 0);
	vm_must(ioctl(m.vcpu[0], KVM_SET_REGS, &regs), "KVM_SET_REGS");
	real_run = m.run[0];
	sigaction(SIGUSR1, &sa, NULL);
	vm_pthread(&thread, real_thread, &m);
	report(poll(&wait, 1, 10000 * slowness()) == 1 &&
	       wait.revents == POLLIN, "the boot vCPU sleeps in KVM_RUN");

	vm_header(&m, VM_AREA, 4, COOKIE);
	expect(vm_call(&m, 1, VB_HYPERCALL, VB_OP_REGISTER, VM_AREA,
		       VB_ABI_VERSION, COOKIE), 0, "it sleeps: another one asks");
	expect(vm_wait_status_by(&m, 1, COOKIE, -VB_EAGAIN), 0,
	       "it sleeps: another one registers");
	page = (struct uffdio_zeropage) {
		.range = { .start = (unsigned long)mem + REAL_MISSING,
			   .len = VB_PAGE_SIZE },
	};
	vm_must(ioctl(wait.fd, UFFDIO_ZEROPAGE, &page), "UFFDIO_ZEROPAGE");
	report(AWAIT(*(volatile unsigned char *)(mem + REAL_MARK)),
	       "it sleeps: it goes on");
	expect(vm_wait_status_by(&m, 1, COOKIE, -VB_EAGAIN), 0,
	       "it sleeps: the registration stays");
	expect(vm_value(&m, "reset"), 0, "it sleeps: this was no reset");

	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	real_run->immediate_exit = 0;
	vm_mode(&m, 0, 0);
	expect(vm_wait_status_by(&m, 1, COOKIE, -VB_EAGAIN), -VB_ENOENT,
	       "it sleeps: once it has left KVM_RUN it was one");
	close(wait.fd);
	vm_destroy(&m);
	report(all_unpinned(), "it sleeps: unpinned at the end");
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

/* Its memory may be a file's, and that another VM's already. */
static void ended(void)
{
	struct vb_vcpu_host was, *t;
	struct vb_header *h;
	struct minivm m;

	vm_create(&m, 2);
	h = vm_header(&m, VM_AREA, 4, COOKIE);
	t = vm_host_table(h);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "of memory that stays");
	was = t[1];
	vm_call(&m, 1, VB_HYPERCALL, VB_OP_PROBE, 0, 0, 0);
	report(was.cookie == COOKIE && was.changed_tsc != t[1].changed_tsc,
	       "a call is written into its table");
	was = t[1];
	vm_close(&m);
	report(all_unpinned() && !memcmp(&was, &t[1], sizeof(was)),
	       "a VM's end is not");
	expect(h->host_status, VB_HOST_GONE, "whose host has gone");
	munmap(m.mem, VM_MEM);
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
	sleeps_within();
	largest();
	ended();
	killed();
	churn();
	AWAIT(vm_folders() == folders);
	expect(vm_folders(), folders, "no folder of a VM is left");
	return end();
}
