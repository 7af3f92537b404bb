/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * vBalance ABI: the hypercall and the memory that a guest shares with its host.
 *
 * One header for both modules, the self tests and the tools. Everything is
 * fixed width and little endian (x86-64 only). A change of any field or
 * meaning changes VB_ABI_VERSION; fields may be added in what is reserved
 * (zero) today without a new version if zero keeps its old meaning.
 *
 * The shared area is a list of page frames of the guest's memory, in this
 * order (each part starts on a page boundary):
 *
 *	header page		struct vb_header		written by both,
 *								see the fields
 *	host vCPU table		struct vb_vcpu_host[nr_slots]	host -> guest
 *	guest vCPU table	struct vb_vcpu_guest[nr_slots]	guest -> host
 *	redirection		struct vb_redirect		written by both
 *	pending table		struct vb_pending[nr_slots]	host sets, guest
 *								clears
 *
 * A slot is KVM's vcpu_idx (dense, in order of creation, never reused while
 * the VM lives). The guest finds the slot of a CPU by the APIC id, which is
 * what KVM calls vcpu_id.
 *
 * Neither side trusts what the other writes: the host takes the layout from
 * the header once, at registration, checks it and keeps a private copy; it
 * never follows an index from guest memory that it has not checked. The
 * guest treats host data as hints about time, never as addresses.
 */
#ifndef _VBALANCE_ABI_H
#define _VBALANCE_ABI_H

#include <linux/types.h>

#define VB_ABI_VERSION		2

/* "vBalance" as a little-endian number; first word of the header page. */
#define VB_MAGIC		0x65636e616c614276ULL

#define VB_PAGE_SHIFT		12
#define VB_PAGE_SIZE		(1U << VB_PAGE_SHIFT)

/* KVM_MAX_VCPUS is at most 4096 on x86 (CONFIG_KVM_MAX_NR_VCPUS). */
#define VB_MAX_SLOTS		4096U

/*
 * The hypercall (VMCALL/VMMCALL, KVM's register convention):
 *	rax = VB_HYPERCALL, rbx = operation, rcx, rdx, rsi = arguments
 * Only valid from 64-bit kernel mode. Result in rax: >= 0, or a negative
 * error below. -1000 (KVM_ENOSYS) means that the host has no vbalance_host,
 * -1 (KVM_EPERM) that the caller was not in kernel mode.
 */
#define VB_HYPERCALL		0x76424c00UL	/* "vBL\0" */

/* Returns the host's VB_ABI_VERSION. No arguments. */
#define VB_OP_PROBE		0
/*
 * Register the shared area. rcx: guest physical address of the header page
 * (page aligned); rdx: VB_ABI_VERSION; rsi: the cookie that also stands in
 * the header (not 0). Returns 0 when the request was taken: pinning happens
 * later, ask VB_OP_STATUS until it no longer says -VB_EAGAIN. -VB_EAGAIN here:
 * a page is not present in the host, or the previous area is still being let
 * go; write to all pages and call again.
 */
#define VB_OP_REGISTER		1
/*
 * Ask for the end of host writes. rsi: the cookie. Returns 0 when taken: the
 * area may be freed when VB_OP_STATUS says -VB_ENOENT. Returns -VB_ENOENT when
 * there was nothing to end (a registration that failed included).
 */
#define VB_OP_UNREGISTER	2
/*
 * State of this VM's registration. rsi: the cookie. Returns 0: active with
 * this cookie; -VB_EAGAIN: being set up or torn down; -VB_ENOENT: none;
 * -VB_EBUSY: another cookie is registered; other errors: why the last
 * VB_OP_REGISTER failed.
 */
#define VB_OP_STATUS		3
/*
 * The calling vCPU is done with what vb_vcpu_guest.critical was about: a boost
 * ends. No arguments. Returns 0, also when there is no boost (any more).
 */
#define VB_OP_DONE		4
#define VB_NR_OPS		5

/* Errors (positive values here, returned negative; errno numbers on purpose). */
#define VB_EPERM		1	/* not from kernel mode (said by KVM) */
#define VB_ENOENT		2	/* nothing registered */
#define VB_EAGAIN		11	/* in progress: ask again */
#define VB_ENOMEM		12	/* host out of memory */
#define VB_EFAULT		14	/* address not backed by guest memory */
#define VB_EBUSY		16	/* already registered */
#define VB_EINVAL		22	/* misaligned, bad size, bad header */
#define VB_EROFS		30	/* memory is read-only */
#define VB_EPROTO		71	/* unknown ABI version */
#define VB_EOPNOTSUPP		95	/* unknown operation */
#define VB_ENOSYS		1000	/* KVM_ENOSYS: no host module */

/* vb_header.host_features */
#define VB_HF_RUN_STATE		(1ULL << 0)	/* run states are published */
#define VB_HF_REDIRECT		(1ULL << 1)	/* MSIs are redirected */
#define VB_HF_BOOST		(1ULL << 2)	/* critical vCPUs are boosted */

/* vb_header.host_status */
#define VB_HOST_NONE		0	/* never touched by a host */
#define VB_HOST_ACTIVE		1	/* the host keeps the area up to date */
#define VB_HOST_GONE		2	/* the host has let go for good */

/* Run state of a vCPU, vb_vcpu_host.state. */
#define VB_VCPU_OFF		0	/* unknown, not created, waits for SIPI */
#define VB_VCPU_RUNNING		1	/* loaded on a physical CPU */
#define VB_VCPU_PREEMPTED	2	/* runnable, but has no physical CPU */
#define VB_VCPU_HALTED		3	/* HLT: KVM wakes it on an interrupt */
#define VB_VCPU_VMM		4	/* exit handled in user space, or asleep
					 * in the host kernel
					 */
#define VB_NR_VCPU_STATES	5

#define VB_MAX_AREA_PAGES	400U

/*
 * Header page. "guest": written by the guest before VB_OP_REGISTER and then
 * left alone until the area is unregistered. "host": written by the host.
 */
struct vb_header {
	/* 0x000: guest */
	__u64	magic;			/* VB_MAGIC */
	__u32	abi_version;		/* VB_ABI_VERSION */
	__u32	nr_slots;		/* 1 .. VB_MAX_SLOTS */
	__u32	nr_pages;		/* pages in gfn[], this one included */
	__u32	host_table_page;	/* index into gfn[] of the host table */
	__u32	guest_table_page;	/* index into gfn[] of the guest table */
	__u32	guest_flags;		/* 0 */
	__u64	cookie;			/* random, not 0. The host compares it
					 * before each write, here and in the
					 * entry: it stops as soon as one of
					 * them is gone. Guest sets it to 0 to
					 * stop host writes at once. Meant for
					 * what is not seen otherwise: a kernel
					 * that leaves unregisters, and a reset
					 * ends the registration.
					 */
	__u32	redirect_page;		/* index into gfn[] of vb_redirect */
	__u32	pending_page;		/* index into gfn[] of the pending table */
	__u8	reserved0[16];
	/* 0x040: host, own cache line */
	__u64	host_features;		/* VB_HF_* */
	__u32	host_status;		/* VB_HOST_* */
	__u32	host_abi_version;
	__u32	nr_vcpus;		/* slots in use, highest + 1 */
	__u32	host_tsc_khz;		/* the host's own TSC; *_tsc below count
					 * the guest's
					 */
	__u8	reserved1[40];
	/* 0x080: host; bit = slot, set while VB_VCPU_RUNNING */
	__u64	running[VB_MAX_SLOTS / 64];
	/* 0x280 */
	__u8	reserved2[128];
	/* 0x300: guest; gfn[0] is this page */
	__u64	gfn[VB_MAX_AREA_PAGES];
	__u8	reserved3[VB_PAGE_SIZE - 0x300 - 8 * VB_MAX_AREA_PAGES];
};

/*
 * Host -> guest, one cache line a vCPU, written by the CPU that loads or puts
 * the vCPU (and once at registration). changed_tsc is stored before state: who reads state and
 * then changed_tsc never sees a time older than the state's.
 */
struct vb_vcpu_host {
	__u32	state;			/* VB_VCPU_* */
	__u32	apic_id;		/* vcpu_id; valid when flags has VALID */
	__u64	changed_tsc;		/* guest TSC at the last change of state */
	__u64	nr_preempted;		/* times this vCPU lost its CPU, wraps */
	__u64	preempted_tsc;		/* TSC cycles spent in PREEMPTED in all
					 * finished episodes, wraps
					 */
	__u32	flags;			/* VB_VCPU_F_* */
	__u32	boosted;		/* not 0: this vCPU has its CPU out of
					 * turn, and says VB_OP_DONE when it is
					 * no longer critical
					 */
	__u64	cookie;			/* copy of the header's, by the host: in
					 * the line that it is about to write
					 */
	__u64	reserved1[2];
};

#define VB_VCPU_F_VALID		(1U << 0)	/* slot is in use */

/* Guest -> host, two cache lines a vCPU. All fields are hints. */
struct vb_vcpu_guest {
	__u64	irq_load_ns;		/* interrupt time in the guest's decaying
					 * window (hard + soft), nanoseconds
					 */
	__u32	redirect_vector;	/* vector by which this vCPU is told of
					 * its pending bits; 0: give it none
					 */
	__u32	service_ns;		/* how long it takes to serve an
					 * interrupt, soft interrupts included;
					 * 0: not known. One that will lose its
					 * CPU before that gets none.
					 */
	__u32	critical;		/* VB_CRITICAL_* */
	__u32	reserved0;
	__u64	reserved[13];
};

/*
 * vb_vcpu_guest.critical: what others wait for is being done on this vCPU. It
 * is CoINT's interruptability holder, or would be (an interrupt that is just
 * being moved arrives nowhere). Should it lose its CPU, it may get it back at
 * once for a short time. 0: this guest does not say.
 */
#define VB_CRITICAL_SAID	(1U << 0)	/* the word is kept up to date */
#define VB_CRITICAL_IRQ		(1U << 1)	/* from the interrupt to the end
						 * of NAPI or of the block
						 * layer's soft interrupt
						 */
#define VB_CRITICAL_MOVE	(1U << 2)	/* an affinity is being changed */
#define VB_CRITICAL_TASK	(1U << 3)	/* a process that an interrupt
						 * has woken has not slept
						 * again; less urgent
						 */
#define VB_CRITICAL_ANY		(VB_CRITICAL_IRQ | VB_CRITICAL_MOVE | \
				 VB_CRITICAL_TASK)

/*
 * Redirection at delivery. The guest lists the MSIs of its virtqueues: key n
 * says where interrupt n goes at present. When the host is about to deliver an
 * MSI that matches a key to a vCPU that has lost its CPU (or is about to, or
 * has been in the VMM for long), it sets bit n in the pending word of a vCPU
 * that runs, then that vCPU's bit in pending_slots, and delivers that vCPU's
 * redirect_vector instead. With no such vCPU it sets bit n in the pending word
 * of the destination: whichever vCPU gets a CPU first serves the queue
 * ("posted"). The MSI is delivered as it is then, or as the destination's own
 * redirect_vector if that runs and is about to lose its CPU.
 *
 * The guest, before it reads the pending word of a slot, clears the slot's bit
 * in pending_slots; then takes the bits with an atomic exchange. A bit that
 * it cannot serve now it sets again, in any slot, before that slot's bit in
 * pending_slots. A set bit means "look at the queues of interrupt n": serving
 * once too often is harmless.
 *
 * The host reads the key and the redirect_vector again after it has set the
 * bit, and delivers the MSI as it is if one of them has changed. So a guest
 * that takes an interrupt's key or a vCPU's vector away and looks at those
 * queues once after that has lost nothing, and may then give the number to
 * another interrupt. A key must be taken away or changed before the vector
 * that it names can belong to another interrupt.
 *
 * Bit n of transmit says that interrupt n only tells that something has been
 * sent, so that its queue can be freed: nobody waits for that as for an answer.
 * The host boosts no vCPU for it. It may change at any time.
 *
 * A key is one 64-bit word that changes in one store; 0 is unused. Of an MSI's
 * 32-bit destination all bits count (x2APIC ids above 255 included).
 */
#define VB_MAX_KEYS		512U	/* multiple of 64 */
#define VB_KEY_VECTOR_MASK	0xffULL
#define VB_KEY_VALID		(1ULL << 8)
#define VB_KEY_LOGICAL		(1ULL << 9)	/* destination mode */
#define VB_KEY_SLOT_SHIFT	16		/* 16 bits: vCPU that it is for */
#define VB_KEY_DEST_SHIFT	32		/* 32 bits: destination of the MSI */

/* Two pages. */
struct vb_redirect {
	/* 0x0000: guest */
	__u64	key[VB_MAX_KEYS];
	/* 0x1000: guest */
	__u32	nr_keys;		/* all keys from here on are 0 */
	__u32	reserved0[15];
	/* 0x1040: host; counts of pending bits that it has set */
	__u64	nr_diverted;		/* for a vCPU that ran */
	__u64	nr_posted;		/* for the destination itself */
	__u64	reserved1[6];
	/* 0x1080: guest; bit n: interrupt of key n */
	__u64	transmit[VB_MAX_KEYS / 64];
	__u8	reserved2[0x140];
	/* 0x1200: both, atomic; bit = slot whose pending word is not empty */
	__u64	pending_slots[VB_MAX_SLOTS / 64];
	__u8	reserved3[0xc00];
};

/* Bit n: interrupt of key n. Both, atomic. */
struct vb_pending {
	__u64	bits[VB_MAX_KEYS / 64];
};

#define VB_DIV_UP(a, b)		(((a) + (b) - 1) / (b))
#define VB_HOST_TABLE_PAGES(slots) \
	VB_DIV_UP((slots) * (__u32)sizeof(struct vb_vcpu_host), VB_PAGE_SIZE)
#define VB_GUEST_TABLE_PAGES(slots) \
	VB_DIV_UP((slots) * (__u32)sizeof(struct vb_vcpu_guest), VB_PAGE_SIZE)
#define VB_REDIRECT_PAGES \
	VB_DIV_UP((__u32)sizeof(struct vb_redirect), VB_PAGE_SIZE)
#define VB_PENDING_PAGES(slots) \
	VB_DIV_UP((slots) * (__u32)sizeof(struct vb_pending), VB_PAGE_SIZE)
#define VB_HOST_TABLE_PAGE		1U
#define VB_GUEST_TABLE_PAGE(slots) \
	(VB_HOST_TABLE_PAGE + VB_HOST_TABLE_PAGES(slots))
#define VB_REDIRECT_PAGE(slots) \
	(VB_GUEST_TABLE_PAGE(slots) + VB_GUEST_TABLE_PAGES(slots))
#define VB_PENDING_PAGE(slots)	(VB_REDIRECT_PAGE(slots) + VB_REDIRECT_PAGES)
#define VB_AREA_PAGES(slots) \
	(VB_PENDING_PAGE(slots) + VB_PENDING_PAGES(slots))

#ifndef __cplusplus
_Static_assert(sizeof(struct vb_header) == VB_PAGE_SIZE, "vb_header size");
_Static_assert(__builtin_offsetof(struct vb_header, host_features) == 0x40,
	       "vb_header host line");
_Static_assert(__builtin_offsetof(struct vb_header, running) == 0x80,
	       "vb_header bitmap");
_Static_assert(__builtin_offsetof(struct vb_header, gfn) == 0x300,
	       "vb_header page list");
_Static_assert(sizeof(struct vb_vcpu_host) == 64, "vb_vcpu_host size");
_Static_assert(sizeof(struct vb_vcpu_guest) == 128, "vb_vcpu_guest size");
_Static_assert(sizeof(struct vb_redirect) == 2 * VB_PAGE_SIZE,
	       "vb_redirect size");
_Static_assert(__builtin_offsetof(struct vb_redirect, nr_keys) == VB_PAGE_SIZE,
	       "vb_redirect second page");
_Static_assert(__builtin_offsetof(struct vb_redirect, nr_diverted) == 0x1040,
	       "vb_redirect host line");
_Static_assert(__builtin_offsetof(struct vb_redirect, transmit) == 0x1080,
	       "vb_redirect guest line");
_Static_assert(__builtin_offsetof(struct vb_redirect, pending_slots) == 0x1200,
	       "vb_redirect summary");
_Static_assert(sizeof(struct vb_pending) == 64, "vb_pending size");
_Static_assert(VB_AREA_PAGES(VB_MAX_SLOTS) <= VB_MAX_AREA_PAGES,
	       "page list holds the largest area");
#endif

#endif /* _VBALANCE_ABI_H */
