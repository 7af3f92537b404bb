// SPDX-License-Identifier: GPL-2.0
/*
 * core/borrow.h: how often the timer looks, and that it never takes more than
 * its share.
 */
#include "core/borrow.h"

#include "ktap.h"
#include "prng.h"

#define US	1000ULL
#define MS	1000000ULL

static void test_backs_off(void)
{
	struct vb_borrow b = {};
	u64 want = 500 * US;
	int i;

	for (i = 0; i < 10; i++) {
		CHECK_EQ(vb_borrow_next(&b, 500 * US, 2, false), want, "%d", i);
		if (want < 4 * MS)
			want *= 2;
	}
	CHECK_EQ(want, 4 * MS, "the longest period");
	CHECK_EQ(vb_borrow_next(&b, 500 * US, 2, true), 500 * US, "found");
	CHECK_EQ(vb_borrow_next(&b, 500 * US, 2, false), 1 * MS, "again");
}

static void test_off(void)
{
	struct vb_borrow b = {};

	CHECK_EQ(vb_borrow_next(&b, 0, 2, true), 0, "no period");
	CHECK_EQ(vb_borrow_next(&b, 500 * US, 0, true), 0, "no share");
	CHECK_EQ(b.period, 0, "nothing happened");
}

/* The parameter changes while it runs. */
static void test_base_changes(void)
{
	struct vb_borrow b = {};

	CHECK_EQ(vb_borrow_next(&b, 100 * US, 100, false), 100 * US, "first");
	CHECK_EQ(vb_borrow_next(&b, 900 * US, 100, false), 900 * US, "up");
	CHECK_EQ(vb_borrow_next(&b, 10 * MS, 100, false), 10 * MS, "over 4 ms");
	CHECK_EQ(vb_borrow_next(&b, 10 * MS, 100, false), 10 * MS, "stays");
	CHECK_EQ(vb_borrow_next(&b, 100 * US, 100, true), 100 * US, "down");
}

/* Any costs, any finds: what it took is within the share of the time. */
static void test_budget(void)
{
	int run, i;

	prng_seed(5);
	for (run = 0; run < 2000; run++) {
		u64 base = 1 + prng_below(2 * MS);
		u32 percent = 1 + prng_below(100);
		u64 cost = prng_below(3 * MS), time = 0, used = 0, next;
		struct vb_borrow b = {};

		/* The first one is not known yet: it is what it is. */
		vb_borrow_cost(&b, cost);
		for (i = 0; i < 100; i++) {
			next = vb_borrow_next(&b, base, percent,
					      prng_below(2));
			CHECK(next >= base, "%llu < %llu", next, base);
			time += next;
			used += cost;
			vb_borrow_cost(&b, cost);
		}
		/* Twice what is measured is charged: half of the share. */
		CHECK(used * 100 <= time * percent, "cost %llu: %llu of %llu",
		      cost, used, time);
	}
}

static void test_cost(void)
{
	struct vb_borrow b = {};
	int i;

	vb_borrow_cost(&b, 10 * US);
	CHECK_EQ(b.cost, 20 * US, "the first sample, doubled");
	for (i = 0; i < 100; i++)
		vb_borrow_cost(&b, 50 * US);
	CHECK(b.cost > 99 * US && b.cost <= 100 * US, "follows: %llu", b.cost);
	vb_borrow_cost(&b, ~0ULL);
	CHECK(b.cost < 2 * MS, "one bad sample: %llu", b.cost);
	for (i = 0; i < 1000; i++)
		vb_borrow_cost(&b, ~0ULL);
	CHECK(b.cost <= 8 * MS, "the most: %llu", b.cost);
	CHECK(vb_borrow_next(&b, 1, 1, true) <= 800 * MS, "no overflow");
}

/*
 * Of those whose turn it can be (every @step-th) all are taken where they are
 * few; of many nobody is passed over, or taken once more before all were.
 */
static void turns(u32 nr, u32 step)
{
	u32 seen[5 * VB_BORROW_TURN] = { 0 };
	u32 some = (nr + step - 1) / step, from = 0, look, k, n;
	u32 most = (some + VB_BORROW_TURN - 1) / VB_BORROW_TURN;

	for (look = 0; look < most; look++) {
		struct vb_borrow_turn t = { VB_BORROW_TURN, from };
		u32 now = 0;

		for (k = 0, n = from; k < nr; k++, n = n + 1 < nr ? n + 1 : 0)
			if (n % step == 0 && vb_borrow_in_turn(&t, n, nr)) {
				seen[n]++;
				now++;
			}
		CHECK_EQ(now, some < VB_BORROW_TURN ? some : VB_BORROW_TURN,
			 "%u, every %u", nr, step);
		from = t.next;
		CHECK(from < nr, "%u of %u", from, nr);
	}
	for (n = 0; n < nr; n += step)
		CHECK(seen[n] == 1 || (seen[n] == 2 && some > VB_BORROW_TURN),
		      "%u of %u, every %u: %u", n, nr, step, seen[n]);
}

static void test_turns(void)
{
	struct vb_borrow_turn none = { 0, 3 };
	u32 nr, step;

	for (nr = 1; nr < 5 * VB_BORROW_TURN; nr++)
		for (step = 1; step < 5; step++)
			turns(nr, step);
	CHECK(!vb_borrow_in_turn(&none, 5, 8), "nobody's");
	CHECK_EQ(none.next, 3, "where it was");
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "backs off while it finds nothing", test_backs_off },
		{ "switched off", test_off },
		{ "the parameter changes", test_base_changes },
		{ "never more than its share", test_budget },
		{ "cost", test_cost },
		{ "turns", test_turns },
	};

	return ktap_main("borrow", tests, ARRAY_SIZE(tests));
}
