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
		FIELD(vb_header, reserved0, 0x028, 24),
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
		FIELD(vb_vcpu_host, reserved0, 0x24, 4),
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
		FIELD(vb_vcpu_guest, reserved, 0x08, 120),
	};

	CHECK_EQ(sizeof(struct vb_vcpu_guest), 128, "size");
	check_layout(f, ARRAY_SIZE(f), 128);
}

/* No entry of a table straddles two pages: pages are mapped one by one. */
static void test_page_fit(void)
{
	CHECK_EQ(VB_PAGE_SIZE, 4096, "page size");
	CHECK_EQ(VB_PAGE_SIZE % sizeof(struct vb_vcpu_host), 0, "host table");
	CHECK_EQ(VB_PAGE_SIZE % sizeof(struct vb_vcpu_guest), 0, "guest table");
}

static void test_numbers(void)
{
	static const struct { const char *name; unsigned long long got, want; }
	n[] = {
		{ "VB_ABI_VERSION", VB_ABI_VERSION, 1 },
		{ "VB_PAGE_SHIFT", VB_PAGE_SHIFT, 12 },
		{ "VB_MAX_SLOTS", VB_MAX_SLOTS, 4096 },
		{ "VB_MAX_AREA_PAGES", VB_MAX_AREA_PAGES, 400 },
		{ "VB_HYPERCALL", VB_HYPERCALL, 0x76424c00 },
		{ "VB_OP_PROBE", VB_OP_PROBE, 0 },
		{ "VB_OP_REGISTER", VB_OP_REGISTER, 1 },
		{ "VB_OP_UNREGISTER", VB_OP_UNREGISTER, 2 },
		{ "VB_OP_STATUS", VB_OP_STATUS, 3 },
		{ "VB_NR_OPS", VB_NR_OPS, 4 },
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
	unsigned int slots, host_pages = 0, guest_pages = 0;
	unsigned int host_left = 0, guest_left = 0;

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
		CHECK_EQ(VB_HOST_TABLE_PAGES(slots), host_pages, "%u", slots);
		CHECK_EQ(VB_GUEST_TABLE_PAGES(slots), guest_pages, "%u", slots);
		CHECK_EQ(VB_AREA_PAGES(slots), 1 + host_pages + guest_pages,
			 "%u slots", slots);
	}
	CHECK_EQ(VB_AREA_PAGES(1), 3, "one slot");
	CHECK_EQ(VB_AREA_PAGES(32), 3, "last slots of both first pages");
	CHECK_EQ(VB_AREA_PAGES(33), 4, "second guest page");
	CHECK_EQ(VB_AREA_PAGES(65), 6, "second host page, third guest page");
	CHECK_EQ(VB_AREA_PAGES(4096), 193, "all slots");
	CHECK(VB_AREA_PAGES(VB_MAX_SLOTS) <= VB_MAX_AREA_PAGES, "list too short");
	/* An expression as argument: 65 slots, at a boundary of both tables. */
	slots = 64;
	CHECK_EQ(VB_HOST_TABLE_PAGES(slots + 1), 2, "precedence");
	CHECK_EQ(VB_GUEST_TABLE_PAGES(slots + 1), 3, "precedence");
	CHECK_EQ(VB_AREA_PAGES(slots | 1), 6, "precedence");
}

/* A bit for each slot. */
static void test_bitmap(void)
{
	struct vb_header h;

	CHECK_EQ(sizeof(h.running) * 8, VB_MAX_SLOTS, "bits");
	CHECK_EQ(ARRAY_SIZE(h.gfn), VB_MAX_AREA_PAGES, "gfn");
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "header page, every field", test_header },
		{ "host table entry, every field", test_vcpu_host },
		{ "guest table entry, every field", test_vcpu_guest },
		{ "entries do not straddle pages", test_page_fit },
		{ "operations, errors, states, magic", test_numbers },
		{ "area pages for 1 to 4096 slots", test_area_pages },
		{ "bitmap and page list hold the maximum", test_bitmap },
	};

	return ktap_main("abi", tests, ARRAY_SIZE(tests));
}
