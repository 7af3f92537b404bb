// SPDX-License-Identifier: GPL-2.0
/*
 * What do the run-state hooks cost?
 *
 * Every vCPU ioctl loads the vCPU and puts it again (vcpu_load, vcpu_put), so
 * a loop of the cheapest one, KVM_GET_MP_STATE, is a loop of both hooks. Run
 * it with and without vbalance_host (bench/hookcost does, in alternation);
 * the difference is the price of a load-and-put pair, which is what one
 * context switch away from a vCPU and back to it pays.
 *
 *	hookcost ITERATIONS ROUNDS [registered]
 *
 * prints nanoseconds per pair, a line a round. "registered": the VM runs a few
 * instructions first that register a shared area, so that each hook also
 * publishes. In an emulated machine with -icount shift=0 a nanosecond is an
 * instruction.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <vbalance/abi.h>

/* Guest physical layout. */
#define MEM_SIZE	0x200000UL
#define PML4		0x1000UL
#define PDPT		0x2000UL
#define CODE		0x4000UL
#define AREA		0x10000UL
#define COOKIE		0x1122334455667788ULL

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int must(int ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(4);
	}
	return ret;
}

static int is_amd(void)
{
	unsigned int a = 0, b, c, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
	return c == 0x444d4163;		/* "cAMD" of AuthenticAMD */
}

static void long_mode(int vcpu, unsigned char *mem)
{
	struct kvm_segment code = {
		.selector = 8, .type = 11, .present = 1, .s = 1, .l = 1,
		.g = 1, .limit = ~0U,
	};
	struct kvm_segment data = {
		.selector = 16, .type = 3, .present = 1, .s = 1, .db = 1,
		.g = 1, .limit = ~0U,
	};
	struct kvm_sregs s;

	*(__u64 *)(mem + PML4) = PDPT | 3;
	*(__u64 *)(mem + PDPT) = 0x83;		/* 1 GB page at 0 */
	must(ioctl(vcpu, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.cr3 = PML4;
	s.cr4 |= 1 << 5;			/* PAE */
	s.cr0 |= 1 | 1U << 31;			/* PE, PG */
	s.efer |= 1 << 8 | 1 << 10;		/* LME, LMA */
	must(ioctl(vcpu, KVM_SET_SREGS, &s), "KVM_SET_SREGS");
}

/* One hypercall from the guest's kernel mode; returns its rax. */
static long hypercall(int vcpu, struct kvm_run *run, __u64 op, __u64 a1,
		      __u64 a2, __u64 a3)
{
	struct kvm_regs r = {
		.rip = CODE, .rflags = 2, .rax = VB_HYPERCALL, .rbx = op,
		.rcx = a1, .rdx = a2, .rsi = a3,
	};

	must(ioctl(vcpu, KVM_SET_REGS, &r), "KVM_SET_REGS");
	must(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
	if (run->exit_reason != KVM_EXIT_HLT) {
		fprintf(stderr, "guest: exit reason %u\n", run->exit_reason);
		exit(4);
	}
	must(ioctl(vcpu, KVM_GET_REGS, &r), "KVM_GET_REGS");
	return r.rax;
}

static void register_area(int kvm, int vm, int vcpu)
{
	static const unsigned char call[2][4] = {
		{ 0x0f, 0x01, 0xc1, 0xf4 },	/* vmcall; hlt */
		{ 0x0f, 0x01, 0xd9, 0xf4 },	/* vmmcall; hlt */
	};
	struct kvm_userspace_memory_region region = {
		.memory_size = MEM_SIZE,
	};
	struct kvm_cpuid2 *cpuid;
	struct vb_header *hdr;
	struct kvm_run *run;
	unsigned char *mem;
	int i, size;
	long ret;

	mem = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	size = must(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "vCPU map size");
	run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
	if (mem == MAP_FAILED || run == MAP_FAILED)
		must(-1, "mmap");
	region.userspace_addr = (unsigned long)mem;
	must(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "memory");

	cpuid = calloc(1, sizeof(*cpuid) + 256 * sizeof(cpuid->entries[0]));
	cpuid->nent = 256;
	must(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid), "cpuid");
	must(ioctl(vcpu, KVM_SET_CPUID2, cpuid), "set cpuid");
	free(cpuid);
	memcpy(mem + CODE, call[is_amd()], sizeof(call[0]));
	long_mode(vcpu, mem);

	hdr = (struct vb_header *)(mem + AREA);
	hdr->magic = VB_MAGIC;
	hdr->abi_version = VB_ABI_VERSION;
	hdr->nr_slots = 1;
	hdr->nr_pages = VB_AREA_PAGES(1);
	hdr->host_table_page = 1;
	hdr->guest_table_page = 1 + VB_HOST_TABLE_PAGES(1);
	hdr->cookie = COOKIE;
	for (i = 0; i < (int)hdr->nr_pages; i++)
		hdr->gfn[i] = (AREA >> VB_PAGE_SHIFT) + i;
	ret = hypercall(vcpu, run, VB_OP_REGISTER, AREA, VB_ABI_VERSION,
			COOKIE);
	for (i = 0; i < 1000 && (!i || ret == -VB_EAGAIN); i++) {
		if (ret && ret != -VB_EAGAIN)
			break;
		usleep(1000);
		ret = hypercall(vcpu, run, VB_OP_STATUS, 0, 0, COOKIE);
	}
	if (ret || hdr->host_status != VB_HOST_ACTIVE) {
		fprintf(stderr, "registration: %ld\n", ret);
		exit(4);
	}
}

int main(int argc, char **argv)
{
	long i, n = argc > 2 ? atol(argv[1]) : 0;
	long round, rounds = argc > 2 ? atol(argv[2]) : 0;
	int kvm, vm, vcpu;
	struct kvm_mp_state state;

	if (n < 1 || rounds < 1 ||
	    (argc > 3 && strcmp(argv[3], "registered"))) {
		fprintf(stderr, "usage: %s ITERATIONS ROUNDS [registered]\n",
			argv[0]);
		return 2;
	}
	kvm = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	vm = must(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	vcpu = must(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	if (argc > 3)
		register_area(kvm, vm, vcpu);
	for (round = 0; round < rounds; round++) {
		double start = now_ns();

		for (i = 0; i < n; i++)
			must(ioctl(vcpu, KVM_GET_MP_STATE, &state),
			     "KVM_GET_MP_STATE");
		printf("%.2f\n", (now_ns() - start) / n);
	}
	return 0;
}
