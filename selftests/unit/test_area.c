// SPDX-License-Identifier: GPL-2.0
/*
 * core/area.h: what the host accepts as a guest's header page. The guest is
 * hostile here: whatever is accepted has to be a layout the host can live by.
 */
#include <string.h>

#include "core/area.h"

#include "ktap.h"
#include "prng.h"

#define COOKIE	0x1122334455667788ULL
#define GPA	0x12345000ULL

/* The layout by 64-bit arithmetic, without the ABI's macros. */
static __u64 host_pages(__u64 slots)
{
	return (slots * 64 + 4095) / 4096;
}

static __u64 guest_pages(__u64 slots)
{
	return (slots * 128 + 4095) / 4096;
}

static __u64 pending_pages(__u64 slots)
{
	return (slots * 64 + 4095) / 4096;
}

/* One after the other; two pages of keys and counts. */
static __u64 redirect_at(__u64 slots)
{
	return 1 + host_pages(slots) + guest_pages(slots);
}

static __u64 all_pages(__u64 slots)
{
	return redirect_at(slots) + 2 + pending_pages(slots);
}

static void make_header(struct vb_header *h, __u32 slots)
{
	memset(h, 0, sizeof(*h));
	h->magic = VB_MAGIC;
	h->abi_version = 2;
	h->nr_slots = slots;
	h->nr_pages = all_pages(slots);
	h->host_table_page = 1;
	h->guest_table_page = 1 + host_pages(slots);
	h->redirect_page = redirect_at(slots);
	h->pending_page = redirect_at(slots) + 2;
	h->cookie = COOKIE;
	h->gfn[0] = GPA / 4096;
}

/* Is this a header that may be accepted? The contract in abi.h, in full. */
static bool consistent(const struct vb_header *h, __u64 gpa, __u64 cookie)
{
	return h->magic == VB_MAGIC && h->abi_version == 2 &&
	       cookie && h->cookie == cookie && !h->guest_flags &&
	       h->nr_slots >= 1 && h->nr_slots <= 4096 &&
	       h->nr_pages == all_pages(h->nr_slots) &&
	       h->nr_pages <= 400 && h->host_table_page == 1 &&
	       h->guest_table_page == 1 + host_pages(h->nr_slots) &&
	       h->redirect_page == redirect_at(h->nr_slots) &&
	       h->pending_page == redirect_at(h->nr_slots) + 2 &&
	       h->gfn[0] == gpa / 4096;
}

/* The tables lie in the area, apart from each other and from the header. */
static bool sound(const struct vb_area_layout *l)
{
	__u64 host_end = l->host_table_page + host_pages(l->nr_slots);
	__u64 guest_end = l->guest_table_page + guest_pages(l->nr_slots);
	__u64 redirect_end = l->redirect_page + 2ULL;
	__u64 pending_end = l->pending_page + pending_pages(l->nr_slots);

	return l->nr_slots && l->nr_slots <= 4096 && l->nr_pages <= 400 &&
	       l->host_table_page >= 1 && l->guest_table_page >= host_end &&
	       l->redirect_page >= guest_end &&
	       l->pending_page >= redirect_end &&
	       pending_end <= l->nr_pages && l->cookie;
}

/* Check once; a refusal must leave the result alone. */
static int check(const struct vb_header *h, __u64 gpa, __u64 cookie)
{
	struct vb_area_layout out, before;
	struct vb_header copy = *h;
	int err;

	memset(&out, 0xa5, sizeof(out));
	before = out;
	err = vb_area_check(h, gpa, cookie, &out);
	CHECK(!memcmp(&copy, h, sizeof(copy)), "header was written to");
	if (err) {
		CHECK(!memcmp(&out, &before, sizeof(out)), "layout after %d",
		      err);
		return err;
	}
	CHECK(sound(&out), "%u slots, %u pages, parts at %u, %u, %u and %u",
	      out.nr_slots, out.nr_pages, out.host_table_page,
	      out.guest_table_page, out.redirect_page, out.pending_page);
	CHECK_EQ(out.cookie, cookie, "cookie");
	CHECK_EQ(out.nr_slots, h->nr_slots, "slots");
	CHECK_EQ(out.nr_pages, h->nr_pages, "pages");
	CHECK_EQ(out.host_table_page, h->host_table_page, "host table");
	CHECK_EQ(out.guest_table_page, h->guest_table_page, "guest table");
	CHECK_EQ(out.redirect_page, h->redirect_page, "redirection");
	CHECK_EQ(out.pending_page, h->pending_page, "pending table");
	return 0;
}

static void test_valid(void)
{
	struct vb_header h;
	__u32 slots;

	for (slots = 1; slots <= 4096; slots++) {
		make_header(&h, slots);
		CHECK(check(&h, GPA, COOKIE) == 0, "%u slots", slots);
	}
}

/* What is reserved, or the host's, or a later page's, is not judged here. */
static void test_not_judged(void)
{
	struct vb_header h;

	make_header(&h, 4);
	memset(h.reserved0, 0xff, sizeof(h.reserved0));
	h.host_features = ~0ULL;
	h.host_status = VB_HOST_GONE;
	h.host_abi_version = 77;
	h.nr_vcpus = ~0U;
	h.host_tsc_khz = ~0U;
	memset(h.reserved1, 0xff, sizeof(h.reserved1));
	memset(h.running, 0xff, sizeof(h.running));
	memset(h.reserved2, 0xff, sizeof(h.reserved2));
	memset(&h.gfn[1], 0xff, sizeof(h.gfn) - sizeof(h.gfn[0]));
	memset(h.reserved3, 0xff, sizeof(h.reserved3));
	CHECK(check(&h, GPA, COOKIE) == 0, "fields that are not the guest's");
}

static void test_addresses(void)
{
	static const __u64 gfns[] = { 0, 1, 0xfffff, 0x100000, 1ULL << 40,
				      (1ULL << 52) - 1 };
	struct vb_header h;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(gfns); i++) {
		make_header(&h, 4);
		h.gfn[0] = gfns[i];
		CHECK(check(&h, gfns[i] << 12, COOKIE) == 0, "gfn %#llx",
		      (unsigned long long)gfns[i]);
		CHECK(check(&h, (gfns[i] ^ 1) << 12, COOKIE) == -VB_EINVAL,
		      "neighbour of gfn %#llx", (unsigned long long)gfns[i]);
	}
	make_header(&h, 4);
	h.gfn[0] |= 1ULL << 52;
	CHECK(check(&h, GPA, COOKIE) == -VB_EINVAL, "gfn beyond 64 bits");
}

/* Change one field; everything else is that of a valid header of 100 slots. */
#define WRONG(error, change) do {					\
	struct vb_header h;						\
									\
	make_header(&h, 100);						\
	change;								\
	CHECK(check(&h, GPA, COOKIE) == -(error), #change);		\
} while (0)

static void test_magic(void)
{
	unsigned int bit;

	WRONG(VB_EINVAL, h.magic = 0);
	WRONG(VB_EINVAL, h.magic = __builtin_bswap64(VB_MAGIC));
	for (bit = 0; bit < 64; bit++)
		WRONG(VB_EINVAL, h.magic ^= 1ULL << bit);
}

static void test_version(void)
{
	unsigned int bit;

	WRONG(VB_EPROTO, h.abi_version = 0);
	WRONG(VB_EPROTO, h.abi_version = 1);
	WRONG(VB_EPROTO, h.abi_version = 3);
	for (bit = 0; bit < 32; bit++)
		WRONG(VB_EPROTO, h.abi_version ^= 1U << bit);
	/* A page that is no header at all is not "unknown version". */
	WRONG(VB_EINVAL, h.magic = 0; h.abi_version = 0);
}

static void test_cookie(void)
{
	struct vb_header h;
	unsigned int bit;

	WRONG(VB_EINVAL, h.cookie = 0);
	for (bit = 0; bit < 64; bit++)
		WRONG(VB_EINVAL, h.cookie ^= 1ULL << bit);
	make_header(&h, 100);
	CHECK(check(&h, GPA, 0) == -VB_EINVAL, "no cookie in the call");
	h.cookie = 0;
	CHECK(check(&h, GPA, 0) == -VB_EINVAL, "no cookie at all");
}

static void test_slots(void)
{
	WRONG(VB_EINVAL, h.nr_slots = 0);
	WRONG(VB_EINVAL, h.nr_slots = 4097);
	WRONG(VB_EINVAL, h.nr_slots = ~0U);
	/* slots * size of an entry is 0 and a page in 32 bits. */
	WRONG(VB_EINVAL, h.nr_slots = 1U << 26);
	WRONG(VB_EINVAL, h.nr_slots = (1U << 26) + 1; h.nr_pages = 6;
	      h.guest_table_page = 2; h.redirect_page = 3; h.pending_page = 5);
	WRONG(VB_EINVAL, h.nr_slots = 0; h.nr_pages = 3;
	      h.guest_table_page = 1; h.redirect_page = 1; h.pending_page = 3);
	/* Pages for 100 slots do not fit others. */
	WRONG(VB_EINVAL, h.nr_slots = 64);
	WRONG(VB_EINVAL, h.nr_slots = 129);
	/* One too many, with pages to match. */
	WRONG(VB_EINVAL, make_header(&h, 4097));
	/* All the list could hold. */
	WRONG(VB_EINVAL, make_header(&h, 6336));
}

static void test_layout(void)
{
	struct vb_header whole;

	/* 100 slots: 1 + 2 + 4 + 2 + 2 pages, parts at 1, 3, 7 and 9. */
	make_header(&whole, 100);
	CHECK_EQ(whole.nr_pages, 11, "100 slots");
	CHECK_EQ(whole.redirect_page, 7, "100 slots");
	CHECK_EQ(whole.pending_page, 9, "100 slots");
	WRONG(VB_EINVAL, h.nr_pages = 0);
	WRONG(VB_EINVAL, h.nr_pages = 7);	/* version 1 */
	WRONG(VB_EINVAL, h.nr_pages = 10);
	WRONG(VB_EINVAL, h.nr_pages = 12);
	WRONG(VB_EINVAL, h.nr_pages = 400);
	WRONG(VB_EINVAL, h.nr_pages = 401);
	WRONG(VB_EINVAL, h.nr_pages = ~0U);
	WRONG(VB_EINVAL, h.host_table_page = 0);
	WRONG(VB_EINVAL, h.host_table_page = 2);
	WRONG(VB_EINVAL, h.host_table_page = ~0U);
	WRONG(VB_EINVAL, h.guest_table_page = 0);
	WRONG(VB_EINVAL, h.guest_table_page = 1);
	WRONG(VB_EINVAL, h.guest_table_page = 2);
	WRONG(VB_EINVAL, h.guest_table_page = 4);
	WRONG(VB_EINVAL, h.guest_table_page = 7);
	WRONG(VB_EINVAL, h.guest_table_page = ~0U);
	WRONG(VB_EINVAL, h.redirect_page = 0);
	WRONG(VB_EINVAL, h.redirect_page = 1);
	WRONG(VB_EINVAL, h.redirect_page = 3);
	WRONG(VB_EINVAL, h.redirect_page = 6);
	WRONG(VB_EINVAL, h.redirect_page = 8);
	WRONG(VB_EINVAL, h.redirect_page = 9);
	WRONG(VB_EINVAL, h.redirect_page = 10);	/* half beyond the end */
	WRONG(VB_EINVAL, h.redirect_page = 11);
	WRONG(VB_EINVAL, h.redirect_page = ~0U);
	WRONG(VB_EINVAL, h.pending_page = 0);
	WRONG(VB_EINVAL, h.pending_page = 1);
	WRONG(VB_EINVAL, h.pending_page = 3);
	WRONG(VB_EINVAL, h.pending_page = 7);
	WRONG(VB_EINVAL, h.pending_page = 8);
	WRONG(VB_EINVAL, h.pending_page = 10);	/* half beyond the end */
	WRONG(VB_EINVAL, h.pending_page = 11);
	WRONG(VB_EINVAL, h.pending_page = ~0U);
	/* Parts in another order. */
	WRONG(VB_EINVAL, h.guest_table_page = 1; h.host_table_page = 5);
	WRONG(VB_EINVAL, h.pending_page = 7; h.redirect_page = 9);
}

static void test_flags_gfn(void)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++)
		WRONG(VB_EINVAL, h.guest_flags = 1U << bit);
	for (bit = 0; bit < 64; bit++)
		WRONG(VB_EINVAL, h.gfn[0] ^= 1ULL << bit);
}

static __u32 odd_number(__u32 good)
{
	switch (prng_below(6)) {
	case 0: return good + 1;
	case 1: return good - 1;
	case 2: return prng_below(500);
	case 3: return prng_u64();
	case 4: return good ^ (1U << prng_below(32));
	default: return good;
	}
}

/* Break zero to three fields of a valid header in many ways. */
static void fuzz_header(struct vb_header *h)
{
	unsigned int n = prng_below(4);

	make_header(h, 1 + prng_below(prng_below(2) ? 4096 : 70));
	while (n--) {
		switch (prng_below(11)) {
		case 0:
			h->magic ^= 1ULL << prng_below(64);
			break;
		case 1:
			h->abi_version = odd_number(2);
			break;
		case 2:
			h->nr_slots = odd_number(h->nr_slots);
			break;
		case 3:
			h->nr_pages = odd_number(h->nr_pages);
			break;
		case 4:
			h->host_table_page = odd_number(1);
			break;
		case 5:
			h->guest_table_page = odd_number(h->guest_table_page);
			break;
		case 6:
			h->redirect_page = odd_number(h->redirect_page);
			break;
		case 7:
			h->pending_page = odd_number(h->pending_page);
			break;
		case 8:
			h->guest_flags = odd_number(0);
			break;
		case 9:
			h->cookie ^= prng_below(2) << prng_below(64);
			break;
		default:
			h->gfn[0] ^= prng_below(2) << prng_below(64);
			break;
		}
	}
}

static void check_fuzzed(const struct vb_header *h, unsigned int *accepted)
{
	int err = check(h, GPA, COOKIE);

	CHECK(!err == consistent(h, GPA, COOKIE),
	      "error %d for %u slots, %u pages, parts at %u, %u, %u and %u, version %u",
	      err, h->nr_slots, h->nr_pages, h->host_table_page,
	      h->guest_table_page, h->redirect_page, h->pending_page,
	      h->abi_version);
	if (err)
		CHECK(err == -VB_EINVAL ||
		      (err == -VB_EPROTO && h->abi_version != 2),
		      "error %d with version %u", err, h->abi_version);
	else
		(*accepted)++;
}

static void test_fuzz(void)
{
	unsigned int i, accepted = 0, runs = 300000;
	struct vb_header h;

	prng_seed(0x76424c01);
	for (i = 0; i < runs; i++) {
		fuzz_header(&h);
		check_fuzzed(&h, &accepted);
	}
	/* Both sides of the check were tried. */
	CHECK(accepted > runs / 10 && accepted < runs * 9 / 10,
	      "%u of %u accepted", accepted, runs);
}

/* Nothing valid to begin with, but for magic and version. */
static void test_noise(void)
{
	unsigned int i, word, accepted = 0;
	struct vb_header h;

	prng_seed(0x76424c02);
	for (i = 0; i < 20000; i++) {
		for (word = 0; word < sizeof(h) / 8; word++)
			((__u64 *)&h)[word] = prng_log(64);
		check_fuzzed(&h, &accepted);
		h.magic = VB_MAGIC;
		h.abi_version = 2;
		check_fuzzed(&h, &accepted);
	}
	CHECK_EQ(accepted, 0, "noise accepted");
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "valid headers of 1 to 4096 slots", test_valid },
		{ "other fields are not judged", test_not_judged },
		{ "address has to be that of the first page", test_addresses },
		{ "wrong magic", test_magic },
		{ "wrong version", test_version },
		{ "wrong cookie", test_cookie },
		{ "wrong number of slots", test_slots },
		{ "wrong page count and table positions", test_layout },
		{ "flags and first page", test_flags_gfn },
		{ "corrupted headers, at random", test_fuzz },
		{ "noise", test_noise },
	};

	return ktap_main("area", tests, ARRAY_SIZE(tests));
}
