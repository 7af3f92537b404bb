// SPDX-License-Identifier: GPL-2.0
/*
 * core/stuck.h: which pending bits count as stuck, for any times between looks.
 */
#include "core/stuck.h"

#include "ktap.h"
#include "prng.h"

#define MS	1000000ULL

static void set(struct vb_pending *p, unsigned int n)
{
	p->bits[n / 64] |= 1ULL << n % 64;
}

static void test_old(void)
{
	struct vb_stuck s = {};
	struct vb_pending p = {};
	int i;

	CHECK_EQ(vb_stuck_look(&s, &p, 0, 1), 0, "nothing there");
	set(&p, 5);
	set(&p, 200);
	/* Seen at 25 ms; at 125 it is 100 ms old, and no more. */
	for (i = 1; i <= 5; i++)
		CHECK_EQ(vb_stuck_look(&s, &p, 0, i * 25 * MS), 0, "%d", i);
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 126 * MS), 2, "both of them");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 151 * MS), 0, "not at once again");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 201 * MS), 0, "nor before 100 ms");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 251 * MS), 2, "but then");
}

static void test_taken(void)
{
	struct vb_stuck s = {};
	struct vb_pending p = {};
	u32 takes = ~0U - 20;
	int i;

	/* The same bit, set again and again. */
	set(&p, 0);
	for (i = 1; i < 50; i++)
		CHECK_EQ(vb_stuck_look(&s, &p, takes++, i * 25 * MS), 0,
			 "%d", i);
	/* Somebody takes another one's bits, and leaves this one. */
	takes--;
	for (i = 50; i < 54; i++)
		CHECK_EQ(vb_stuck_look(&s, &p, takes, i * 25 * MS), 0,
			 "%d", i);
	CHECK_EQ(vb_stuck_look(&s, &p, takes, 54 * 25 * MS), 1, "left");
}

/* Another bit each time: none of them is old. */
static void test_others(void)
{
	struct vb_stuck s = {};
	struct vb_pending p;
	unsigned int i;

	for (i = 1; i < 2 * VB_MAX_KEYS; i++) {
		p = (struct vb_pending){ };
		set(&p, i % VB_MAX_KEYS);
		CHECK_EQ(vb_stuck_look(&s, &p, 7, i * 50 * MS), 0, "%u", i);
	}
	/* One that stays beside others that come and go. */
	for (i = 1; i < 8; i++) {
		p = (struct vb_pending){ };
		set(&p, 300);
		set(&p, i);
		CHECK_EQ(vb_stuck_look(&s, &p, 7, (u64)(i + 2000) * 25 * MS),
			 i == 6, "round %u", i);
	}
}

/* The VM had no CPU: it does not count. */
static void test_paused(void)
{
	struct vb_stuck s = {};
	struct vb_pending p = {};

	set(&p, 64);
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 10 * MS), 0, "new");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 10000 * MS), 0, "ten seconds");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 20000 * MS), 0, "and once more");
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 20001 * MS), 1, "then it counts");
	/* Clocks of vCPUs differ a little. */
	CHECK_EQ(vb_stuck_look(&s, &p, 0, 20000 * MS), 0, "back in time");
	CHECK_EQ(s.ran, 0, "no time has passed");
}

/* Never one that was not there all the time, and each that was. */
static void test_random(void)
{
	unsigned int round, i, n;

	for (round = 0; round < 2000; round++) {
		struct vb_stuck s = {};
		struct vb_pending p = {};
		u64 now = MS, since = 0, gap;
		u32 takes = 0;
		bool there = false;

		for (i = 0; i < 200; i++) {
			gap = prng_below(40 * MS);
			now += gap;
			if (prng_below(32) == 0) {
				takes++;
				p.bits[3] = 0;
				there = false;
			}
			if (!there && prng_below(4) == 0) {
				p.bits[3] = 1;
				there = true;
				since = now;
			}
			n = vb_stuck_look(&s, &p, takes, now);
			CHECK(!n || (there && now - since > VB_STUCK_NS),
			      "round %u, look %u: too early", round, i);
			CHECK(n || !there || now - since <= VB_STUCK_NS +
			      40 * MS, "round %u, look %u: too late", round, i);
			if (n)
				since = now;
		}
	}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "a bit that nobody takes", test_old },
		{ "bits that are taken and set again", test_taken },
		{ "other bits each time", test_others },
		{ "a VM without a CPU", test_paused },
		{ "any times", test_random },
	};

	return ktap_main("stuck", tests, ARRAY_SIZE(tests));
}
