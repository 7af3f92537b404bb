// SPDX-License-Identifier: GPL-2.0
/*
 * core/redirect.h: keys of interrupts, and which loads count as equal. The
 * table of keys is the guest's: it may hold anything.
 */
#include <stdlib.h>
#include <string.h>

#include "core/redirect.h"

#include "ktap.h"
#include "prng.h"

typedef unsigned long long ull;

static const u32 vectors[] = { 0, 1, 15, 16, 0x31, 0x7f, 0x80, 254, 255 };
static const u32 dests[] = { 0, 1, 2, 0x7f, 0xff, 0x100, 0x7fff, 0x8000,
			     0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
static const u32 slots[] = { 0, 1, 63, 64, 255, 256, 4095, 0xffff };

/* By the positions that abi.h gives in words, without its macros. */
static u64 golden(u32 vector, bool logical, u32 dest, u32 slot)
{
	return 0x100 + vector + (logical ? 0x200 : 0) + slot * 0x10000ULL +
	       dest * 0x100000000ULL;
}

#define FOR_EACH(i, a)	for (i = 0; i < ARRAY_SIZE(a); i++)

static void test_make(void)
{
	size_t v, d, s;
	int l;

	FOR_EACH(v, vectors) FOR_EACH(d, dests) FOR_EACH(s, slots)
	for (l = 0; l < 2; l++) {
		u64 key = vb_key_make(vectors[v], l, dests[d], slots[s]);

		CHECK_EQ(key, golden(vectors[v], l, dests[d], slots[s]),
			 "vector %u, logical %d, destination %#x, slot %u",
			 vectors[v], l, dests[d], slots[s]);
		CHECK_EQ(vb_key_slot(key), slots[s], "slot");
	}
	/* What does not fit its field does not reach another one. */
	CHECK_EQ(vb_key_make(0x100, false, 0, 0), 0x100, "vector 256");
	CHECK_EQ(vb_key_make(~0U, false, 0, 0), 0x1ff, "all vector bits");
	CHECK_EQ(vb_key_make(0, false, 0, 0x10000), 0x100, "slot 65536");
	CHECK_EQ(vb_key_make(0, false, 0, ~0U), 0xffff0100, "all slot bits");
	CHECK_EQ(vb_key_slot(~0ULL), 0xffff, "slot of garbage");
	CHECK_EQ(vb_key_slot(0xffffffff0000ffffULL), 0, "slot 0 of garbage");
}

static bool same(u64 a, u64 b)
{
	bool match = vb_key_match(a, b);

	CHECK(vb_key_match(b, a) == match, "%#llx and %#llx: one way only",
	      (ull)a, (ull)b);
	return match;
}

/* The same MSI, whatever the slot. */
static void test_match_slot(void)
{
	size_t v, d, s, t;

	FOR_EACH(v, vectors) FOR_EACH(d, dests) FOR_EACH(s, slots)
	FOR_EACH(t, slots) {
		CHECK(same(vb_key_make(vectors[v], false, dests[d], slots[s]),
			   vb_key_make(vectors[v], false, dests[d], slots[t])),
		      "slots %u and %u", slots[s], slots[t]);
		CHECK(same(vb_key_make(vectors[v], true, dests[d], slots[s]),
			   vb_key_make(vectors[v], true, dests[d], slots[t])),
		      "slots %u and %u", slots[s], slots[t]);
	}
}

static void test_match_fields(void)
{
	size_t a, b;

	FOR_EACH(a, vectors) FOR_EACH(b, vectors)
		CHECK(same(vb_key_make(vectors[a], false, 5, 1),
			   vb_key_make(vectors[b], false, 5, 1)) == (a == b),
		      "vectors %u and %u", vectors[a], vectors[b]);
	FOR_EACH(a, dests) FOR_EACH(b, dests)
		CHECK(same(vb_key_make(0x31, true, dests[a], 1),
			   vb_key_make(0x31, true, dests[b], 1)) == (a == b),
		      "destinations %#x and %#x", dests[a], dests[b]);
	CHECK(!same(vb_key_make(0x31, true, 5, 1),
		    vb_key_make(0x31, false, 5, 1)), "destination mode");
	CHECK(!same(0, vb_key_make(0, false, 0, 0)), "an unused key");
}

/* Each bit of a key but those of the slot. */
static void test_match_bits(void)
{
	unsigned int bit, i;

	prng_seed(0x76424c10);
	for (i = 0; i < 1000; i++) {
		u64 key = prng_u64();

		CHECK(same(key, key), "%#llx and itself", (ull)key);
		for (bit = 0; bit < 64; bit++)
			CHECK(same(key, key ^ 1ULL << bit) ==
			      (bit >= 16 && bit < 32), "%#llx, bit %u",
			      (ull)key, bit);
	}
}

/* ---- what an MSI's address says ---- */

/* By the fields that asm/msi.h names, as a guest's kernel fills them in. */
union msi_lo {
	struct {
		u32 reserved_0 : 2, logical : 1, redirect_hint : 1,
		    reserved_1 : 1, virt_destid_8_14 : 7, destid_0_7 : 8,
		    base : 12;
	};
	u32 word;
};

static u32 msi_lo(u32 dest, bool logical, bool extended)
{
	union msi_lo a = { .logical = logical, .destid_0_7 = dest & 0xff,
			   .virt_destid_8_14 = extended ? dest >> 8 : 0,
			   .base = 0xfee };

	return a.word;
}

static void check_msi(u32 dest, u32 lo, u32 hi, bool logical)
{
	CHECK_EQ(vb_msi_dest(lo, hi), dest, "%#x:%#x", hi, lo);
	CHECK_EQ(vb_msi_is_logical(lo), logical, "%#x:%#x", hi, lo);
}

/* Literally, as seen on the bus. */
static void test_msi_known(void)
{
	check_msi(0, 0xfee00000, 0, false);
	check_msi(3, 0xfee03000, 0, false);
	check_msi(255, 0xfeeff000, 0, false);
	check_msi(0x0f, 0xfee0f004, 0, true);
	check_msi(0xff, 0xfeeff00c, 0, true);	/* with the redirection hint */
	check_msi(256, 0xfee00020, 0, false);
	check_msi(257, 0xfee01020, 0, false);
	check_msi(0x7fff, 0xfeefffe0, 0, false);
	check_msi(256, 0xfee00000, 0x100, false);
	check_msi(0x7fff, 0xfeeff000, 0x7f00, false);
	check_msi(0x8000, 0xfee00000, 0x8000, false);
	check_msi(0xffffffff, 0xfeeff000, 0xffffff00, false);
	/* x2APIC's cluster 1, CPU 2 of it */
	check_msi(0x10004, 0xfee04004, 0x10000, true);
}

/* Every id that the guest's form can have, and the VMM's of the same. */
static void test_msi_forms(void)
{
	u32 dest;
	int l;

	for (dest = 0; dest < 0x8000; dest++)
		for (l = 0; l < 2; l++) {
			check_msi(dest, msi_lo(dest, l, true), 0, l);
			check_msi(dest, msi_lo(dest, l, false), dest & ~0xffU,
				  l);
		}
}

static void test_msi_high(void)
{
	unsigned int i;

	prng_seed(0x76424c13);
	for (i = 0; i < 100000; i++) {
		u32 dest = prng_log(32);

		check_msi(dest, msi_lo(dest, i & 1, false), dest & ~0xffU,
			  i & 1);
	}
}

/* What an address holds beside the id and its mode. */
static void test_msi_rest(void)
{
	static const u32 others[] = { 1, 2, 8, 0x10, 0x100000, 0x80000000 };
	size_t i, d;

	FOR_EACH(d, dests) FOR_EACH(i, others)
		check_msi(dests[d], msi_lo(dests[d], d & 1, false) ^ others[i],
			  (dests[d] & ~0xffU) | 0xff, d & 1);
}

static struct vb_redirect table;

/* @nr keys, all different, for different slots. */
static void fill(u32 nr)
{
	u32 n;

	memset(&table, 0, sizeof(table));
	for (n = 0; n < nr; n++)
		table.key[n] = vb_key_make(n & 0xff, n & 1, 1000 + n, n * 7);
	table.nr_keys = nr;
}

/* Of all tests: most of what they say is of tables that are long gone. */
static u16 hints[VB_KEY_HINTS];

static u64 msi(u32 n)
{
	return vb_key_make(n & 0xff, n & 1, 1000 + n, 0);
}

static void test_find(void)
{
	static const u32 sizes[] = { 1, 2, 63, 64, 65, 511, 512 };
	size_t i;
	u32 n;

	FOR_EACH(i, sizes) {
		fill(sizes[i]);
		for (n = 0; n < 512; n++) {
			u64 key = 77;
			int found = vb_key_find(&table, msi(n), &key, hints);

			CHECK(found == (n < sizes[i] ? (int)n : -1),
			      "key %u of %u: %d", n, sizes[i], found);
			if (found >= 0)
				CHECK_EQ(vb_key_slot(key), n * 7, "key %u", n);
		}
	}
	/* Two that are equal: one of them, with its own slot. */
	fill(3);
	table.key[1] = vb_key_make(0x31, false, 9, 4);
	table.key[2] = vb_key_make(0x31, false, 9, 5);
	{
		u64 key;
		int found = vb_key_find(&table, vb_key_make(0x31, false, 9, 0),
					&key, hints);

		CHECK(found == 1 || found == 2, "%d", found);
		CHECK_EQ(key, table.key[found], "copy of the key");
	}
}

/* Unused ones, and what lies behind the end, are nothing. */
static void test_find_none(void)
{
	u64 key;

	memset(&table, 0, sizeof(table));
	table.nr_keys = VB_MAX_KEYS;
	CHECK(vb_key_find(&table, vb_key_make(0, false, 0, 0), &key, hints) == -1,
	      "unused keys");
	fill(8);
	table.nr_keys = 0;
	CHECK(vb_key_find(&table, msi(0), &key, hints) == -1, "no keys");
	table.nr_keys = 7;
	CHECK(vb_key_find(&table, msi(7), &key, hints) == -1, "beyond the last key");
	/* A hole is no end. */
	table.nr_keys = 8;
	table.key[3] = 0;
	CHECK(vb_key_find(&table, msi(7), &key, hints) == 7, "behind a hole");
	CHECK(vb_key_find(&table, msi(3), &key, hints) == -1, "in a hole");
}

/* Where a key was found last is only where it is looked for first. */
static void test_find_moved(void)
{
	u64 key;

	fill(8);
	CHECK(vb_key_find(&table, msi(5), &key, hints) == 5, "found");
	CHECK(vb_key_find(&table, msi(5), &key, hints) == 5, "found again");
	table.nr_keys = 5;
	CHECK(vb_key_find(&table, msi(5), &key, hints) == -1,
	      "not beyond the end");
	table.nr_keys = 8;
	table.key[2] = table.key[5];
	table.key[5] = 0;
	CHECK(vb_key_find(&table, msi(5), &key, hints) == 2, "moved");
	table.key[2] = table.key[6];
	CHECK(vb_key_find(&table, msi(5), &key, hints) == -1, "gone");
}

/* The word behind the last key is not one, whatever nr_keys says. */
static void test_find_hostile_nr(void)
{
	static const u32 many[] = { 513, 514, 1024, 0x7fffffff, 0x80000000,
				    0xffffffff };
	struct vb_redirect *small;
	u64 key, behind;
	size_t i;

	FOR_EACH(i, many) {
		fill(512);
		table.nr_keys = many[i];
		CHECK(vb_key_find(&table, msi(511), &key, hints) == 511, "last of %u",
		      many[i]);
		/* In all that follows stands what is looked for. */
		memset((char *)&table + 4096, 0x31, sizeof(table) - 4096);
		table.nr_keys = many[i];
		memcpy(&behind, (char *)&table + 4096, sizeof(behind));
		CHECK(vb_key_find(&table, behind, &key, hints) == -1,
		      "%u keys: a word that is none", many[i]);
	}
	/* Nor is anything read behind it: the sanitizer watches. */
	small = malloc(sizeof(*small));
	memset(small, 0xff, sizeof(*small));
	CHECK(vb_key_find(small, msi(1), &key, hints) == -1, "garbage");
	free(small);
}

/* A guest that fills its table with noise gets one of its own keys or none. */
static void test_find_noise(void)
{
	unsigned int i, n, hits = 0;

	prng_seed(0x76424c11);
	for (i = 0; i < 5000; i++) {
		u64 want = vb_key_make(prng_u64(), prng_below(2), prng_below(4),
				       0), key = 0;
		int found;

		for (n = 0; n < VB_MAX_KEYS; n++)
			table.key[n] = prng_below(8) ? prng_log(64) :
				vb_key_make(prng_u64(), prng_below(2),
					    prng_below(4), prng_u64());
		table.nr_keys = prng_below(4) ? prng_below(600) : prng_u64();
		found = vb_key_find(&table, want, &key, hints);
		for (n = 0; n < VB_MAX_KEYS && n < table.nr_keys; n++)
			if ((table.key[n] & ~0xffff0000ULL) == want)
				break;
		if (n == VB_MAX_KEYS || n >= table.nr_keys) {
			CHECK(found == -1, "%d, nothing is there", found);
			continue;
		}
		hits++;
		/* Of two that are equal either. */
		CHECK(found >= 0 && vb_key_match(table.key[found], want),
		      "%d, not %u", found, n);
		CHECK_EQ(key, table.key[found], "copy of the key");
	}
	CHECK(hits > 100 && hits < 4900, "%u hits", hits);
}

static void test_limit(void)
{
	static const struct { u64 min; u32 threshold; u64 want; } c[] = {
		/* 1/32 of 2^27 ns is the floor. */
		{ 0, 150, 4194304 },
		{ 0, 100, 4194304 },
		{ 0, 10000, 4194304 },
		{ 1, 150, 4194304 },
		{ 2796202, 150, 4194304 },	/* 4194303 */
		{ 2796203, 150, 4194304 },	/* 4194304.5 */
		{ 2796204, 150, 4194306 },
		{ 4194303, 100, 4194304 },
		{ 4194304, 100, 4194304 },
		{ 4194305, 100, 4194305 },
		{ 41943, 10000, 4194304 },
		{ 41944, 10000, 4194400 },
		{ 100000000, 100, 100000000 },
		{ 100000000, 150, 150000000 },
		{ 100000000, 10000, 10000000000ULL },
		{ 100000001, 150, 150000001 },
		{ 1ULL << 48, 100, 1ULL << 48 },
		{ 1ULL << 48, 150, 422212465065984ULL },
		{ 1ULL << 48, 10000, 28147497671065600ULL },
	};
	size_t i;

	FOR_EACH(i, c)
		CHECK_EQ(vb_redirect_limit(c[i].min, c[i].threshold), c[i].want,
			 "least load %llu, threshold %u", (ull)c[i].min,
			 c[i].threshold);
}

/* Loads that no guest can have. */
static void test_limit_overflow(void)
{
	static const u64 huge[] = { (1ULL << 48) + 1, 1ULL << 52, 1ULL << 63,
				    ~0ULL / 100, ~0ULL - 1, ~0ULL };
	static const u32 thresholds[] = { 100, 150, 10000 };
	size_t i, t;

	FOR_EACH(i, huge) FOR_EACH(t, thresholds)
		CHECK_EQ(vb_redirect_limit(huge[i], thresholds[t]),
			 (1ULL << 48) / 100 * thresholds[t] +
			 (1ULL << 48) % 100 * thresholds[t] / 100,
			 "least load %llu", (ull)huge[i]);
}

/* Against 128 bits; and more load never means a lower limit. */
static void test_limit_random(void)
{
	unsigned int i;

	prng_seed(0x76424c12);
	for (i = 0; i < 200000; i++) {
		u64 min = prng_log(64);
		u32 threshold = 100 + prng_below(9901);
		u64 limit = vb_redirect_limit(min, threshold);
		unsigned __int128 want = min > 1ULL << 48 ? 1ULL << 48 : min;

		want = want * threshold / 100;
		if (want < 4194304)
			want = 4194304;
		CHECK(limit == want, "least load %llu, threshold %u: %llu",
		      (ull)min, threshold, (ull)limit);
		if (min <= 1ULL << 48)
			CHECK(limit >= min, "the least load itself counts");
		CHECK(vb_redirect_limit(min + !!~min, threshold) >= limit,
		      "%llu and one more", (ull)min);
	}
}

static void test_stay(void)
{
	/* mean, on for, service: short? */
	static const struct {
		u64 mean, on_for, service;
		bool is_short;
	} c[] = {
		{ 0, 0, 0, false },
		{ 0, 5, 5, false },		/* nothing known of stays */
		{ 100, 99, 0, false },		/* nothing known of service */
		{ 100, 0, 10, false },
		{ 100, 90, 10, false },		/* just enough */
		{ 100, 91, 10, true },
		{ 100, 100, 1, true },
		{ 100, 199, 1, true },		/* overdue */
		{ 100, 200, 1, false },		/* of another kind */
		{ 100, 1000, 1, false },
		{ 100, 0, 100, false },		/* service is half at most */
		{ 100, 50, 1000, false },
		{ 100, 51, 1000, true },
		{ ~0ULL, 0, ~0ULL, false },
		{ ~0ULL, ~0ULL, ~0ULL, false },	/* wraps, and does no harm */
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		CHECK_EQ(vb_stay_is_short(c[i].mean, c[i].on_for, c[i].service),
			 c[i].is_short, "case %u", i);
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "will a stay be long enough", test_stay },
		{ "keys have the ABI's form", test_make },
		{ "the slot never matters", test_match_slot },
		{ "every other field matters", test_match_fields },
		{ "every other bit matters", test_match_bits },
		{ "known addresses of MSIs", test_msi_known },
		{ "ids of 15 bits, in both forms", test_msi_forms },
		{ "ids of 32 bits", test_msi_high },
		{ "other bits of an address", test_msi_rest },
		{ "find each key", test_find },
		{ "find what is not there", test_find_none },
		{ "find what has moved", test_find_moved },
		{ "hostile number of keys", test_find_hostile_nr },
		{ "noise", test_find_noise },
		{ "loads that count as equal", test_limit },
		{ "loads beyond all bounds", test_limit_overflow },
		{ "loads at random", test_limit_random },
	};

	return ktap_main("redirect", tests, ARRAY_SIZE(tests));
}
