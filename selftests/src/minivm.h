/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A VM of our own in a few lines: 2 MB of memory, vCPUs in 64-bit mode, and
 * two things that they can do: make a hypercall, from kernel or user mode
 * (vm_call), and spin, halt and leave on command (vm_loop, driven by a thread:
 * vmthread.h). For tests of vbalance_host that must not depend on a guest
 * kernel. Errors of the set-up end the process with status 4 (skip).
 */
#ifndef _VB_MINIVM_H
#define _VB_MINIVM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/kvm_para.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <vbalance/abi.h>

/* Guest physical layout. */
#define VM_MEM		0x200000UL
#define VM_PML4		0x1000UL
#define VM_PDPT		0x2000UL
#define VM_CODE		0x4000UL
#define VM_GDT		0x5000UL
#define VM_IDT		0x6000UL
#define VM_LOOP		0x7000UL	/* vm_loop, then its NMI handler */
#define VM_NMI		0x7f00UL
#define VM_AREA		0x10000UL	/* where vm_header() puts an area */
#define VM_BOXES	0x100000UL	/* struct vm_box[], below it stacks */

struct minivm {
	int kvm, vm;
	unsigned char *mem;
	int nr_vcpus;
	int *vcpu;
	struct kvm_run **run;
};

/* What vm_loop shares with us, one a vCPU. */
struct vm_box {
	__u64	command;	/* VM_CMD_*; 0 when taken */
	__u64	beats;		/* rounds */
	__u64	tsc;		/* at the last round */
	__u64	bit_clear;	/* rounds that found the own running bit clear */
	__u64	not_running;	/* rounds that found another state of its own */
	__u64	wakes;		/* returns from HLT */
	__u64	woke;		/* TSC after the last of these */
	__u64	calls;		/* TSC before the last hypercall */
	__u64	called;		/* TSC after it */
	__u64	stack[23];	/* for the frame of an NMI */
};

_Static_assert(sizeof(struct vm_box) == 256, "vm_box");

#define VM_MAX_VCPUS	((VM_MEM - VM_BOXES) / sizeof(struct vm_box))

#define VM_CMD_HALT	1
#define VM_CMD_LEAVE	2
#define VM_CMD_DONE	3	/* VB_OP_DONE, and on */
#define VM_CMD_KICK	4	/* KVM_HC_KICK_CPU, to vCPU 0, and on */

_Static_assert(VB_HYPERCALL == 0x76424c00 && VB_OP_DONE == 4 &&
	       KVM_HC_KICK_CPU == 5, "vm_loop");

/* rdi: own box, rsi: running bitmap, r8: own slot, r9: own state. */
extern const unsigned char vm_loop[], vm_loop_call[], vm_loop_end[];

__asm__(
".pushsection .rodata\n"
"vm_loop:\n"
"1:	incq	8(%rdi)\n"
"	rdtsc\n"
"	shl	$32, %rdx\n"
"	or	%rdx, %rax\n"
"	mov	%rax, 16(%rdi)\n"
"	xor	%eax, %eax\n"
"	btq	%r8, (%rsi)\n"
"	setnc	%al\n"
"	add	%rax, 24(%rdi)\n"
"	xor	%eax, %eax\n"
"	cmpl	$1, (%r9)\n"		/* VB_VCPU_RUNNING */
"	setne	%al\n"
"	add	%rax, 32(%rdi)\n"
"	mov	(%rdi), %rax\n"
"	test	%rax, %rax\n"
"	jz	1b\n"
"	movq	$0, (%rdi)\n"
"	dec	%rax\n"
"	jz	2f\n"
"	dec	%rax\n"
"	jnz	3f\n"
"	out	%al, $0xf4\n"
"	jmp	1b\n"
"2:	hlt\n"
"	rdtsc\n"
"	shl	$32, %rdx\n"
"	or	%rdx, %rax\n"
"	mov	%rax, 48(%rdi)\n"
"	incq	40(%rdi)\n"
"	jmp	1b\n"
"3:	mov	%eax, %ecx\n"
"	rdtsc\n"
"	shl	$32, %rdx\n"
"	or	%rdx, %rax\n"
"	mov	%rax, 56(%rdi)\n"
"	cmp	$2, %ecx\n"
"	mov	$0x76424c00, %eax\n"
"	mov	$4, %ebx\n"
"	mov	$0, %ecx\n"
"	jne	4f\n"
"	mov	$5, %eax\n"
"	xor	%ebx, %ebx\n"
"4:\n"
"vm_loop_call:\n"
"	vmcall\n"			/* vm_new() puts the right one here */
"	rdtsc\n"
"	shl	$32, %rdx\n"
"	or	%rdx, %rax\n"
"	mov	%rax, 64(%rdi)\n"
"	jmp	1b\n"
"vm_loop_end:\n"
".popsection\n");

static inline int vm_must(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(4);
	}
	return ret;
}

static inline void vm_pthread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	errno = pthread_create(thread, NULL, fn, arg);
	if (errno)
		vm_must(-1, "pthread_create");
}

static inline int vm_is_amd(void)
{
	unsigned int a = 0, b, c, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
	return c == 0x444d4163;		/* "cAMD" of AuthenticAMD */
}

static inline void vm_memory(struct minivm *m, int slot, __u64 gpa, void *mem,
			     __u64 size, __u32 flags)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot, .flags = flags, .guest_phys_addr = gpa,
		.memory_size = size, .userspace_addr = (unsigned long)mem,
	};

	vm_must(ioctl(m->vm, KVM_SET_USER_MEMORY_REGION, &region),
		"KVM_SET_USER_MEMORY_REGION");
}

/* 64-bit mode, flat, identity mapped; @user: privilege level 3. */
static inline void vm_mode(struct minivm *m, int i, int user)
{
	struct kvm_segment code = {
		.selector = user ? 0x1b : 8, .type = 11, .present = 1, .s = 1,
		.l = 1, .g = 1, .limit = ~0U, .dpl = user ? 3 : 0,
	};
	struct kvm_segment data = {
		.selector = user ? 0x23 : 16, .type = 3, .present = 1, .s = 1,
		.db = 1, .g = 1, .limit = ~0U, .dpl = user ? 3 : 0,
	};
	struct kvm_sregs s;

	vm_must(ioctl(m->vcpu[i], KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.gdt.base = VM_GDT;
	s.gdt.limit = 3 * 8 - 1;
	s.idt.base = VM_IDT;
	s.idt.limit = 256 * 16 - 1;
	s.cs = code;
	s.ds = data;
	s.es = data;
	s.fs = data;
	s.gs = data;
	s.ss = data;
	s.cr3 = VM_PML4;
	s.cr4 |= 1 << 5;			/* PAE */
	s.cr0 |= 1 | 1U << 31;			/* PE, PG */
	s.efer |= 1 << 8 | 1 << 10;		/* LME, LMA */
	vm_must(ioctl(m->vcpu[i], KVM_SET_SREGS, &s), "KVM_SET_SREGS");
}

/* What a VMM does on a reset, as far as the boot vCPU is concerned. */
static inline void vm_reset_mode(struct minivm *m, int i)
{
	struct kvm_sregs s;

	vm_must(ioctl(m->vcpu[i], KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.cr0 = 0x60000010;
	s.cr4 = 0;
	s.cr3 = 0;
	s.efer = 0;
	s.cs.l = 0;
	vm_must(ioctl(m->vcpu[i], KVM_SET_SREGS, &s), "KVM_SET_SREGS");
}

/* Of a vCPU's struct kvm_run. */
static inline int vm_map_size(const struct minivm *m)
{
	return vm_must(ioctl(m->kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "map size");
}

/* @id: the APIC id; vm->vcpu[] is in order of creation, like the slots. */
static inline void vm_add_vcpu_id(struct minivm *m, unsigned int id)
{
	int size = vm_map_size(m);
	struct kvm_cpuid2 *cpuid;
	int i = m->nr_vcpus++;

	m->vcpu = realloc(m->vcpu, m->nr_vcpus * sizeof(*m->vcpu));
	m->run = realloc(m->run, m->nr_vcpus * sizeof(*m->run));
	m->vcpu[i] = vm_must(ioctl(m->vm, KVM_CREATE_VCPU, id),
			     "KVM_CREATE_VCPU");
	m->run[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 m->vcpu[i], 0);
	if (m->run[i] == MAP_FAILED)
		vm_must(-1, "mmap of a vCPU");
	cpuid = calloc(1, sizeof(*cpuid) + 256 * sizeof(cpuid->entries[0]));
	cpuid->nent = 256;
	vm_must(ioctl(m->kvm, KVM_GET_SUPPORTED_CPUID, cpuid), "cpuid");
	vm_must(ioctl(m->vcpu[i], KVM_SET_CPUID2, cpuid), "set cpuid");
	free(cpuid);
}

static inline void vm_add_vcpu(struct minivm *m)
{
	vm_add_vcpu_id(m, m->nr_vcpus);
}

/* Memory that outlives the process when it was mapped before a fork(). */
static inline unsigned char *vm_memory_new(void)
{
	void *mem = mmap(NULL, VM_MEM, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (mem == MAP_FAILED)
		vm_must(-1, "mmap");
	return mem;
}

/* A VM without vCPUs. @mem: VM_MEM bytes. @irqchip: KVM's own (HLT waits). */
static inline void vm_new(struct minivm *m, unsigned char *mem, int irqchip)
{
	static const unsigned char call[2][8] = {
		{ 0x0f, 0x01, 0xc1, 0xe6, 0xf4 },	/* vmcall; out */
		{ 0x0f, 0x01, 0xd9, 0xe6, 0xf4 },	/* vmmcall; out */
	};

	memset(m, 0, sizeof(*m));
	m->kvm = vm_must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	m->vm = vm_must(ioctl(m->kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	if (irqchip)
		vm_must(ioctl(m->vm, KVM_CREATE_IRQCHIP, 0),
			"KVM_CREATE_IRQCHIP");
	m->mem = mem;
	vm_memory(m, 0, 0, m->mem, VM_MEM, 0);
	*(__u64 *)(m->mem + VM_PML4) = VM_PDPT | 7;
	*(__u64 *)(m->mem + VM_PDPT) = 0x87;	/* 1 GB page at 0 */
	memcpy(m->mem + VM_CODE, call[vm_is_amd()], sizeof(call[0]));
	memcpy(m->mem + VM_LOOP, vm_loop, vm_loop_end - vm_loop);
	memcpy(m->mem + VM_LOOP + (vm_loop_call - vm_loop), call[vm_is_amd()],
	       3);
	memcpy(m->mem + VM_NMI, "\x48\xcf", 2);			/* iretq */
	((__u64 *)(m->mem + VM_GDT))[1] = 0x00af9b000000ffffULL;	/* code */
	((__u64 *)(m->mem + VM_GDT))[2] = 0x00cf93000000ffffULL;	/* data */
	/* Interrupt gate of vector 2, selector 8. */
	((__u64 *)(m->mem + VM_IDT))[4] = 0x00008e0000080000ULL | VM_NMI;
}

static inline void vm_create(struct minivm *m, int vcpus)
{
	int i;

	vm_new(m, vm_memory_new(), 0);
	for (i = 0; i < vcpus; i++) {
		vm_add_vcpu(m);
		vm_mode(m, i, 0);
	}
}

/* The VM's end; its memory stays. */
static inline void vm_close(struct minivm *m)
{
	int i;
	int size = vm_map_size(m);

	for (i = 0; i < m->nr_vcpus; i++) {
		munmap(m->run[i], size);
		close(m->vcpu[i]);
	}
	close(m->vm);
	close(m->kvm);
	free(m->vcpu);
	free(m->run);
}

static inline void vm_destroy(struct minivm *m)
{
	vm_close(m);
	munmap(m->mem, VM_MEM);
}

/*
 * One hypercall on vCPU @i; returns rax. The vCPU then leaves by OUT, which
 * IOPL 3 allows in user mode too.
 */
static inline long vm_call(struct minivm *m, int i, __u64 nr, __u64 op,
			   __u64 a1, __u64 a2, __u64 a3)
{
	struct kvm_regs r = {
		.rip = VM_CODE, .rflags = 0x3002, .rax = nr, .rbx = op,
		.rcx = a1, .rdx = a2, .rsi = a3,
	};

	vm_must(ioctl(m->vcpu[i], KVM_SET_REGS, &r), "KVM_SET_REGS");
	while (ioctl(m->vcpu[i], KVM_RUN, 0) < 0)
		if (errno != EINTR)
			vm_must(-1, "KVM_RUN");
	if (m->run[i]->exit_reason != KVM_EXIT_IO) {
		fprintf(stderr, "guest: exit reason %u\n",
			m->run[i]->exit_reason);
		exit(4);
	}
	vm_must(ioctl(m->vcpu[i], KVM_GET_REGS, &r), "KVM_GET_REGS");
	return r.rax;
}

static inline long vm_op(struct minivm *m, __u64 op, __u64 a1, __u64 a2,
			 __u64 a3)
{
	return vm_call(m, 0, VB_HYPERCALL, op, a1, a2, a3);
}

/* A correct area of @slots slots at guest address @at, not registered yet. */
static inline struct vb_header *vm_header(struct minivm *m, __u64 at,
					  __u32 slots, __u64 cookie)
{
	struct vb_header *h = (struct vb_header *)(m->mem + at);
	__u32 i;

	memset(h, 0, VB_AREA_PAGES(slots) * (size_t)VB_PAGE_SIZE);
	h->magic = VB_MAGIC;
	h->abi_version = VB_ABI_VERSION;
	h->nr_slots = slots;
	h->nr_pages = VB_AREA_PAGES(slots);
	h->host_table_page = VB_HOST_TABLE_PAGE;
	h->guest_table_page = VB_GUEST_TABLE_PAGE(slots);
	h->redirect_page = VB_REDIRECT_PAGE(slots);
	h->pending_page = VB_PENDING_PAGE(slots);
	h->cookie = cookie;
	for (i = 0; i < h->nr_pages; i++)
		h->gfn[i] = (at >> VB_PAGE_SHIFT) + i;
	return h;
}

static inline struct vb_vcpu_host *vm_host_table(struct vb_header *h)
{
	return (struct vb_vcpu_host *)((char *)h +
				       h->host_table_page * VB_PAGE_SIZE);
}

static inline struct vb_redirect *vm_redirect(struct vb_header *h)
{
	return (struct vb_redirect *)((char *)h +
				      h->redirect_page * VB_PAGE_SIZE);
}

/*
 * vCPU @by asks for the status until it is no longer @while_is (10 s at most).
 */
static inline long vm_wait_status_by(struct minivm *m, int by, __u64 cookie,
				     long while_is)
{
	long ret = while_is;
	int i;

	for (i = 0; i < 5000 && ret == while_is; i++) {
		if (i)
			usleep(2000);
		ret = vm_call(m, by, VB_HYPERCALL, VB_OP_STATUS, 0, 0, cookie);
	}
	return ret;
}

static inline long vm_wait_status(struct minivm *m, __u64 cookie, long while_is)
{
	return vm_wait_status_by(m, 0, cookie, while_is);
}

/* Registration to its end; returns the final status. */
static inline long vm_register(struct minivm *m, __u64 gpa, __u64 cookie)
{
	long ret = vm_op(m, VB_OP_REGISTER, gpa, VB_ABI_VERSION, cookie);

	return ret ? ret : vm_wait_status(m, cookie, -VB_EAGAIN);
}

static inline long vm_unregister(struct minivm *m, __u64 cookie)
{
	long ret = vm_op(m, VB_OP_UNREGISTER, 0, 0, cookie);

	return ret ? ret : vm_wait_status(m, cookie, -VB_EAGAIN);
}

#endif /* _VB_MINIVM_H */
