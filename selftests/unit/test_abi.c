// SPDX-License-Identifier: GPL-2.0
/*
 * The ABI's layout and numbers as golden values: what a host and a guest built
 * at different times must agree on. A change here is a change of the ABI.
 */
#include <stddef.h>
#include <string.h>

#include <vbalance/abi.h>

#include "ktap.h"

struct field {
	const char *name;
	size_t got_offset, got_size;
	size_t offset, size;
};

#define FIELD(type, member, off, len) \
	{ #type "." #member, offsetof(struct type, member), \
	  sizeof(((struct type *)0)->member), off, len }

/* Every field, in order, without a hole; up to the end of the structure. */
static void check_layout(const struct field *f, size_t nr, size_t whole)
{
	size_t i, end = 0;

	for (i = 0; i < nr; i++) {
		CHECK_EQ(f[i].got_offset, f[i].offset, "%s", f[i].name);
		CHECK_EQ(f[i].got_size, f[i].size, "%s", f[i].name);
		CHECK_EQ(f[i].got_offset, end, "%s: hole", f[i].name);
		end = f[i].got_offset + f[i].got_size;
	}
	CHECK_EQ(end, whole, "end of the structure");
}

static void test_header(void)
{
	static const struct field f[] = {
		FIELD(vb_header, magic, 0x000, 8),
		FIELD(vb_header, abi_version, 0x008, 4),
		FIELD(vb_header, nr_slots, 0x00c, 4),
		FIELD(vb_header, nr_pages, 0x010, 4),
		FIELD(vb_header, host_table_page, 0x014, 4),
		FIELD(vb_header, guest_table_page, 0x018, 4),
		FIELD(vb_header, guest_flags, 0x01c, 4),
		FIELD(vb_header, cookie, 0x020, 8),
		FIELD(vb_header, redirect_page, 0x028, 4),
		FIELD(vb_header, pending_page, 0x02c, 4),
		FIELD(vb_header, reserved0, 0x030, 16),
		FIELD(vb_header, host_features, 0x040, 8),
		FIELD(vb_header, host_status, 0x048, 4),
		FIELD(vb_header, host_abi_version, 0x04c, 4),
		FIELD(vb_header, nr_vcpus, 0x050, 4),
		FIELD(vb_header, host_tsc_khz, 0x054, 4),
		FIELD(vb_header, reserved1, 0x058, 40),
		FIELD(vb_header, running, 0x080, 512),
		FIELD(vb_header, reserved2, 0x280, 128),
		FIELD(vb_header, gfn, 0x300, 3200),
		FIELD(vb_header, reserved3, 0xf80, 128),
	};

	CHECK_EQ(sizeof(struct vb_header), 4096, "size");
	check_layout(f, ARRAY_SIZE(f), 4096);
}

static void test_vcpu_host(void)
{
	static const struct field f[] = {
		FIELD(vb_vcpu_host, state, 0x00, 4),
		FIELD(vb_vcpu_host, apic_id, 0x04, 4),
		FIELD(vb_vcpu_host, changed_tsc, 0x08, 8),
		FIELD(vb_vcpu_host, nr_preempted, 0x10, 8),
		FIELD(vb_vcpu_host, preempted_tsc, 0x18, 8),
		FIELD(vb_vcpu_host, flags, 0x20, 4),
		FIELD(vb_vcpu_host, boosted, 0x24, 4),
		FIELD(vb_vcpu_host, cookie, 0x28, 8),
		FIELD(vb_vcpu_host, reserved1, 0x30, 16),
	};

	CHECK_EQ(sizeof(struct vb_vcpu_host), 64, "size");
	check_layout(f, ARRAY_SIZE(f), 64);
}

static void test_vcpu_guest(void)
{
	static const struct field f[] = {
		FIELD(vb_vcpu_guest, irq_load_ns, 0x00, 8),
		FIELD(vb_vcpu_guest, redirect_vector, 0x08, 4),
		FIELD(vb_vcpu_guest, service_ns, 0x0c, 4),
		FIELD(vb_vcpu_guest, critical, 0x10, 4),
		FIELD(vb_vcpu_guest, reserved0, 0x14, 4),
		FIELD(vb_vcpu_guest, reserved, 0x18, 104),
	};

	CHECK_EQ(sizeof(struct vb_vcpu_guest), 128, "size");
	check_layout(f, ARRAY_SIZE(f), 128);
}

/* What different sides write has cache lines (64 bytes) of its own. */
static void test_redirect(void)
{
	static const struct field f[] = {
		FIELD(vb_redirect, key, 0x0000, 4096),
		FIELD(vb_redirect, nr_keys, 0x1000, 4),
		FIELD(vb_redirect, reserved0, 0x1004, 60),
		FIELD(vb_redirect, nr_diverted, 0x1040, 8),
		FIELD(vb_redirect, nr_posted, 0x1048, 8),
		FIELD(vb_redirect, reserved1, 0x1050, 48),
		FIELD(vb_redirect, transmit, 0x1080, 64),
		FIELD(vb_redirect, reserved2, 0x10c0, 320),
		FIELD(vb_redirect, pending_slots, 0x1200, 512),
		FIELD(vb_redirect, reserved3, 0x1400, 3072),
	};

	CHECK_EQ(sizeof(struct vb_redirect), 8192, "size");
	check_layout(f, ARRAY_SIZE(f), 8192);
}

static void test_pending(void)
{
	static const struct field f[] = {
		FIELD(vb_pending, bits, 0x00, 64),
	};

	CHECK_EQ(sizeof(struct vb_pending), 64, "size");
	check_layout(f, ARRAY_SIZE(f), 64);
}

/* No entry of a table straddles two pages: pages are mapped one by one. */
static void test_page_fit(void)
{
	CHECK_EQ(VB_PAGE_SIZE, 4096, "page size");
	CHECK_EQ(VB_PAGE_SIZE % sizeof(struct vb_vcpu_host), 0, "host table");
	CHECK_EQ(VB_PAGE_SIZE % sizeof(struct vb_vcpu_guest), 0, "guest table");
	CHECK_EQ(VB_PAGE_SIZE % sizeof(struct vb_pending), 0, "pending table");
}

static void test_numbers(void)
{
	static const struct { const char *name; unsigned long long got, want; }
	n[] = {
		{ "VB_ABI_VERSION", VB_ABI_VERSION, 2 },
		{ "VB_PAGE_SHIFT", VB_PAGE_SHIFT, 12 },
		{ "VB_MAX_SLOTS", VB_MAX_SLOTS, 4096 },
		{ "VB_MAX_AREA_PAGES", VB_MAX_AREA_PAGES, 400 },
		{ "VB_HYPERCALL", VB_HYPERCALL, 0x76424c00 },
		{ "VB_OP_PROBE", VB_OP_PROBE, 0 },
		{ "VB_OP_REGISTER", VB_OP_REGISTER, 1 },
		{ "VB_OP_UNREGISTER", VB_OP_UNREGISTER, 2 },
		{ "VB_OP_STATUS", VB_OP_STATUS, 3 },
		{ "VB_OP_DONE", VB_OP_DONE, 4 },
		{ "VB_NR_OPS", VB_NR_OPS, 5 },
		{ "VB_EPERM", VB_EPERM, 1 },
		{ "VB_ENOENT", VB_ENOENT, 2 },
		{ "VB_EAGAIN", VB_EAGAIN, 11 },
		{ "VB_ENOMEM", VB_ENOMEM, 12 },
		{ "VB_EFAULT", VB_EFAULT, 14 },
		{ "VB_EBUSY", VB_EBUSY, 16 },
		{ "VB_EINVAL", VB_EINVAL, 22 },
		{ "VB_EROFS", VB_EROFS, 30 },
		{ "VB_EPROTO", VB_EPROTO, 71 },
		{ "VB_EOPNOTSUPP", VB_EOPNOTSUPP, 95 },
		{ "VB_ENOSYS", VB_ENOSYS, 1000 },
		{ "VB_HF_RUN_STATE", VB_HF_RUN_STATE, 1 },
		{ "VB_HF_REDIRECT", VB_HF_REDIRECT, 2 },
		{ "VB_HF_BOOST", VB_HF_BOOST, 4 },
		{ "VB_CRITICAL_SAID", VB_CRITICAL_SAID, 1 },
		{ "VB_CRITICAL_IRQ", VB_CRITICAL_IRQ, 2 },
		{ "VB_CRITICAL_MOVE", VB_CRITICAL_MOVE, 4 },
		{ "VB_CRITICAL_TASK", VB_CRITICAL_TASK, 8 },
		{ "VB_MAX_KEYS", VB_MAX_KEYS, 512 },
		{ "VB_KEY_VECTOR_MASK", VB_KEY_VECTOR_MASK, 0xff },
		{ "VB_KEY_VALID", VB_KEY_VALID, 0x100 },
		{ "VB_KEY_LOGICAL", VB_KEY_LOGICAL, 0x200 },
		{ "VB_KEY_SLOT_SHIFT", VB_KEY_SLOT_SHIFT, 16 },
		{ "VB_KEY_DEST_SHIFT", VB_KEY_DEST_SHIFT, 32 },
		{ "VB_HOST_NONE", VB_HOST_NONE, 0 },
		{ "VB_HOST_ACTIVE", VB_HOST_ACTIVE, 1 },
		{ "VB_HOST_GONE", VB_HOST_GONE, 2 },
		{ "VB_VCPU_OFF", VB_VCPU_OFF, 0 },
		{ "VB_VCPU_RUNNING", VB_VCPU_RUNNING, 1 },
		{ "VB_VCPU_PREEMPTED", VB_VCPU_PREEMPTED, 2 },
		{ "VB_VCPU_HALTED", VB_VCPU_HALTED, 3 },
		{ "VB_VCPU_VMM", VB_VCPU_VMM, 4 },
		{ "VB_NR_VCPU_STATES", VB_NR_VCPU_STATES, 5 },
		{ "VB_VCPU_F_VALID", VB_VCPU_F_VALID, 1 },
	};
	__u64 magic = VB_MAGIC;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(n); i++)
		CHECK_EQ(n[i].got, n[i].want, "%s", n[i].name);
	CHECK(!memcmp(&magic, "vBalance", 8), "magic as text in memory");
	CHECK_EQ(VB_HYPERCALL >> 32, 0, "KVM cuts numbers of 32-bit callers");
	CHECK(VB_HYPERCALL > 0xffff, "KVM's own numbers are small");
}

/* Slot by slot: a new page is begun when the current one is full. */
static void test_area_pages(void)
{
	unsigned int slots, host_pages = 0, guest_pages = 0, pending_pages = 0;
	unsigned int host_left = 0, guest_left = 0, pending_left = 0;

	CHECK_EQ(VB_REDIRECT_PAGES, 2, "keys, and what else there is");
	CHECK_EQ(VB_HOST_TABLE_PAGE, 1, "behind the header");
	for (slots = 1; slots <= 4096; slots++) {
		if (host_left < 64) {
			host_pages++;
			host_left = 4096;
		}
		host_left -= 64;
		if (guest_left < 128) {
			guest_pages++;
			guest_left = 4096;
		}
		guest_left -= 128;
		if (pending_left < 64) {
			pending_pages++;
			pending_left = 4096;
		}
		pending_left -= 64;
		CHECK_EQ(VB_HOST_TABLE_PAGES(slots), host_pages, "%u", slots);
		CHECK_EQ(VB_GUEST_TABLE_PAGES(slots), guest_pages, "%u", slots);
		CHECK_EQ(VB_PENDING_PAGES(slots), pending_pages, "%u", slots);
		CHECK_EQ(VB_GUEST_TABLE_PAGE(slots), 1 + host_pages, "%u",
			 slots);
		CHECK_EQ(VB_REDIRECT_PAGE(slots), 1 + host_pages + guest_pages,
			 "%u", slots);
		CHECK_EQ(VB_PENDING_PAGE(slots),
			 1 + host_pages + guest_pages + 2, "%u", slots);
		CHECK_EQ(VB_AREA_PAGES(slots),
			 1 + host_pages + guest_pages + 2 + pending_pages,
			 "%u slots", slots);
	}
	CHECK_EQ(VB_AREA_PAGES(1), 6, "one slot");
	CHECK_EQ(VB_AREA_PAGES(32), 6, "last slots of all first pages");
	CHECK_EQ(VB_AREA_PAGES(33), 7, "second guest page");
	CHECK_EQ(VB_AREA_PAGES(65), 10, "second page of the others");
	CHECK_EQ(VB_AREA_PAGES(4096), 259, "all slots");
	CHECK(VB_AREA_PAGES(VB_MAX_SLOTS) <= VB_MAX_AREA_PAGES, "list too short");
	/* An expression as argument: 65 slots, at a boundary of all tables. */
	slots = 64;
	CHECK_EQ(VB_HOST_TABLE_PAGES(slots + 1), 2, "precedence");
	CHECK_EQ(VB_GUEST_TABLE_PAGES(slots + 1), 3, "precedence");
	CHECK_EQ(VB_PENDING_PAGES(slots + 1), 2, "precedence");
	CHECK_EQ(VB_REDIRECT_PAGE(slots | 1), 6, "precedence");
	CHECK_EQ(VB_PENDING_PAGE(slots | 1), 8, "precedence");
	CHECK_EQ(VB_AREA_PAGES(slots | 1), 10, "precedence");
}

/* A bit for each slot, and for each key. */
static void test_bitmap(void)
{
	struct vb_redirect r;
	struct vb_pending p;
	struct vb_header h;

	CHECK_EQ(sizeof(h.running) * 8, VB_MAX_SLOTS, "running");
	CHECK_EQ(ARRAY_SIZE(h.gfn), VB_MAX_AREA_PAGES, "gfn");
	CHECK_EQ(ARRAY_SIZE(r.key), VB_MAX_KEYS, "keys");
	CHECK_EQ(sizeof(r.pending_slots) * 8, VB_MAX_SLOTS, "pending_slots");
	CHECK_EQ(sizeof(p.bits) * 8, VB_MAX_KEYS, "pending");
	CHECK(VB_MAX_SLOTS <= 1 << 16, "a slot fits its field of a key");
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "header page, every field", test_header },
		{ "host table entry, every field", test_vcpu_host },
		{ "guest table entry, every field", test_vcpu_guest },
		{ "redirection, every field", test_redirect },
		{ "pending table entry, every field", test_pending },
		{ "entries do not straddle pages", test_page_fit },
		{ "operations, errors, states, magic", test_numbers },
		{ "area pages for 1 to 4096 slots", test_area_pages },
		{ "bitmaps and lists hold the maximum", test_bitmap },
	};

	return ktap_main("abi", tests, ARRAY_SIZE(tests));
}
