// SPDX-License-Identifier: GPL-2.0
/*
 * core/cost.h: the two rules of policy=cost against their formulas in floating
 * point, and the properties they exist for.
 */
#include "core/algorithm1.h"	/* limits of the threshold */
#include "core/cost.h"

#include "ktap.h"
#include "prng.h"

typedef unsigned long long ull;

#define US	1000ULL
#define MS	1000000ULL
#define SEC	1000000000ULL
#define CAP	(1ULL << 38)
#define RATE	(1.0L * (1ULL << 30))	/* unit of rates */

/* ---- parts ---- */

static void test_remaining(void)
{
	static const struct { u64 mean, elapsed, want; } c[] = {
		{ 800, 0, 800 },
		{ 800, 1, 799 },
		{ 800, 699, 101 },
		{ 800, 700, 100 },	/* an eighth is always left */
		{ 800, 701, 100 },
		{ 800, 800, 100 },
		{ 800, 1ULL << 40, 100 },
		{ 0, 0, 0 },
		{ 0, 5, 0 },
		{ 30 * MS, 10 * MS, 20 * MS },
		{ 30 * MS, 29 * MS, 30 * MS / 8 },
	};
	u64 elapsed, before = ~0ULL, got;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		CHECK_EQ(vb_cost_remaining(c[i].mean, c[i].elapsed), c[i].want,
			 "mean %llu, elapsed %llu", (ull)c[i].mean,
			 (ull)c[i].elapsed);
	for (elapsed = 0; elapsed < 1000; elapsed++) {
		got = vb_cost_remaining(800, elapsed);
		CHECK(got <= before && got >= 100, "elapsed %llu: %llu",
		      (ull)elapsed, (ull)got);
		before = got;
	}
}

/* Times that cannot be, as after a difference that went below zero. */
static void test_remaining_extreme(void)
{
	static const u64 odd[] = { 0, 1, 7, 8, 99, 1ULL << 32, CAP, 1ULL << 61,
				   1ULL << 63, ~0ULL - (1ULL << 61),
				   ~0ULL - 50, ~0ULL - 1, ~0ULL };
	size_t m, e;

	for (m = 0; m < ARRAY_SIZE(odd); m++)
		for (e = 0; e < ARRAY_SIZE(odd); e++) {
			u64 mean = odd[m], floor = mean / 8;
			u64 want = mean > odd[e] && mean - odd[e] > floor ?
				   mean - odd[e] : floor;

			CHECK_EQ(vb_cost_remaining(mean, odd[e]), want,
				 "mean %llu, elapsed %llu", (ull)mean,
				 (ull)odd[e]);
		}
	CHECK_EQ(vb_cost_remaining(800, ~0ULL - 50), 100, "long gone");
}

static void test_cap(void)
{
	CHECK_EQ(vb_cost_cap(0), 0, "nothing");
	CHECK_EQ(vb_cost_cap(CAP - 1), CAP - 1, "below");
	CHECK_EQ(vb_cost_cap(CAP), CAP, "at");
	CHECK_EQ(vb_cost_cap(CAP + 1), CAP, "above");
	CHECK_EQ(vb_cost_cap(~0ULL), CAP, "end");
}

static void test_arrivals(void)
{
	CHECK_EQ(VB_RATE_SHIFT, 30, "unit of rates");
	CHECK_EQ(vb_cost_arrivals_q10(1, 1ULL << 30), 1024, "1 in a unit");
	CHECK_EQ(vb_cost_arrivals_q10(1, (1ULL << 30) / 1024), 1, "smallest");
	CHECK_EQ(vb_cost_arrivals_q10(1, (1ULL << 20) - 1), 0, "less");
	CHECK_EQ(vb_cost_arrivals_q10(1000, 1ULL << 20), 1000, "1000 a unit");
	CHECK_EQ(vb_cost_arrivals_q10(0, CAP), 0, "none");
	CHECK_EQ(vb_cost_arrivals_q10(5, 0), 0, "no time");
	CHECK_EQ(vb_cost_arrivals_q10(~0ULL, 1ULL << 20), 1ULL << 24,
		 "most that is believed");
	CHECK_EQ(vb_cost_arrivals_q10(~0ULL, ~0ULL), 1ULL << 42, "both");
}

/* ---- rescue ---- */

static struct vb_cost_result rescue(struct vb_cost_rescue c)
{
	return vb_cost_rescue(&c);
}

static const char *show_rescue(const struct vb_cost_rescue *c,
			       struct vb_cost_result r)
{
	static char buf[320];

	snprintf(buf, sizeof(buf),
		 "cost %llu rate %llu target on %llu of %llu holder off %llu of %llu: verdict %d saved %llu",
		 (ull)c->move_cost, (ull)c->rate, (ull)c->target_on_for,
		 (ull)c->target_on_mean, (ull)c->holder_off_for,
		 (ull)c->holder_off_mean, r.verdict, (ull)r.saved);
	return buf;
}

/* A case in which a move plainly pays: others are made from it. */
static struct vb_cost_rescue good_rescue(void)
{
	return (struct vb_cost_rescue) {
		.move_cost = 1 * MS,
		.rate = 1000,
		.target_on_mean = 30 * MS,
		.target_on_for = 0,
		.holder_off_mean = 90 * MS,
		.holder_off_for = 0,
	};
}

/* Worked by hand. */
static void test_rescue_examples(void)
{
	struct vb_cost_rescue c = good_rescue();
	struct vb_cost_result r = rescue(c);

	/* 30 - 1 = 29 ms to win; an interrupt comes surely in that time; at
	 * half of it the holder is away for 90 - 1 - 14.5 = 74.5 ms more.
	 */
	CHECK_EQ(r.saved, 74500 * US, "%s", show_rescue(&c, r));
	CHECK_EQ(r.verdict, VB_COST_MOVE_RESCUE, "%s", show_rescue(&c, r));

	/* One interrupt in 2^30 ns: P = 27 of 1024 in 29 ms, cut off. */
	c.rate = 1;
	r = rescue(c);
	CHECK_EQ(r.saved, 74500 * US * 27 / 1024, "%s", show_rescue(&c, r));
	CHECK_EQ(r.verdict, VB_COST_MOVE_RESCUE, "%s", show_rescue(&c, r));
	c.move_cost = 2 * MS;
	r = rescue(c);
	CHECK_EQ(r.saved, 74000 * US * 26 / 1024, "%s", show_rescue(&c, r));
	CHECK_EQ(r.verdict, VB_COST_STAY_SAVING, "%s", show_rescue(&c, r));

	/* The target has 4 of 30 ms left, but a move takes 5. */
	c = good_rescue();
	c.target_on_for = 26 * MS;
	c.move_cost = 5 * MS;
	r = rescue(c);
	CHECK_EQ(r.verdict, VB_COST_STAY_USELESS, "%s", show_rescue(&c, r));
	/* The holder is back before the target leaves: 6 of 90 ms, 1/8 = 11.25 */
	c.target_on_for = 0;
	c.holder_off_for = 84 * MS;
	c.move_cost = 11250 * US;
	r = rescue(c);
	CHECK_EQ(r.verdict, VB_COST_STAY_USELESS, "%s", show_rescue(&c, r));
	c.move_cost = 1250 * US;
	r = rescue(c);
	CHECK_EQ(r.saved, 5 * MS, "%s", show_rescue(&c, r));
	CHECK_EQ(r.verdict, VB_COST_MOVE_RESCUE, "%s", show_rescue(&c, r));
}

static struct vb_cost_rescue random_rescue(void)
{
	return (struct vb_cost_rescue) {
		.move_cost = prng_below(4) ? prng_log(30) : prng_log(64),
		.rate = prng_below(8) ? prng_log(20) : prng_log(64),
		.target_on_mean = prng_below(8) ? prng_log(34) : prng_log(64),
		.target_on_for = prng_log(33),
		.holder_off_mean = prng_below(8) ? prng_log(36) : prng_log(64),
		.holder_off_for = prng_log(33),
	};
}

/* What the comment in cost.h says, in floating point. */
static long double rescue_left(u64 mean, u64 elapsed)
{
	long double left = (long double)mean - elapsed;

	return left > mean / 8 ? left : mean / 8;
}

static void check_rescue_formula(const struct vb_cost_rescue *c)
{
	struct vb_cost_result r = vb_cost_rescue(c);
	long double away, stay, useful, p, rate, saved;

	away = rescue_left(c->holder_off_mean, c->holder_off_for);
	if (away > CAP)
		away = CAP;
	stay = c->target_on_mean ?
	       rescue_left(c->target_on_mean, c->target_on_for) : away;
	useful = (stay < away ? stay : away) - c->move_cost;
	if (useful <= 0) {
		CHECK(r.verdict == VB_COST_STAY_USELESS && !r.saved, "%s",
		      show_rescue(c, r));
		return;
	}
	rate = c->rate < 1ULL << 24 ? c->rate : 1ULL << 24;
	p = rate * useful / RATE;
	if (p > 1)
		p = 1;
	saved = p * (away - c->move_cost - useful / 2);
	/* P has ten bits. */
	CHECK(r.saved <= saved + 2 && r.saved + away / 1024 + 2 >= saved,
	      "not %.0Lf: %s", saved, show_rescue(c, r));
	CHECK(r.verdict == (r.saved > c->move_cost ? VB_COST_MOVE_RESCUE :
						     VB_COST_STAY_SAVING),
	      "%s", show_rescue(c, r));
	/* Nobody waits longer than the holder is away. */
	CHECK(r.saved <= away - c->move_cost, "%s", show_rescue(c, r));
}

static void test_rescue_formula(void)
{
	unsigned int i, moved = 0, runs = 300000;
	struct vb_cost_rescue c;

	prng_seed(0x76424c30);
	for (i = 0; i < runs; i++) {
		c = random_rescue();
		check_rescue_formula(&c);
		moved += vb_cost_rescue(&c).verdict == VB_COST_MOVE_RESCUE;
	}
	CHECK(moved > runs / 20 && moved < runs / 2, "%u of %u move", moved,
	      runs);
}

static void test_rescue_tried(void)
{
	struct vb_cost_rescue c = good_rescue();
	struct vb_cost_result r;
	int i;

	c.tried = true;
	r = rescue(c);
	CHECK(r.verdict == VB_COST_STAY_EPISODE && !r.saved, "the good one");
	prng_seed(0x76424c31);
	for (i = 0; i < 50000; i++) {
		c = random_rescue();
		c.tried = true;
		r = rescue(c);
		CHECK(r.verdict == VB_COST_STAY_EPISODE && !r.saved, "%s",
		      show_rescue(&c, r));
		c.tried = false;
		r = rescue(c);
		CHECK(r.verdict != VB_COST_STAY_EPISODE, "%s",
		      show_rescue(&c, r));
	}
}

/* A cost that reaches the time to win is no good at any rate. */
static void test_rescue_useless(void)
{
	struct vb_cost_rescue c = good_rescue();
	struct vb_cost_result r;

	c.rate = ~0ULL;
	for (c.move_cost = 29 * MS; c.move_cost < 31 * MS;
	     c.move_cost += 10 * US) {
		r = rescue(c);
		CHECK((r.verdict == VB_COST_STAY_USELESS) ==
		      (c.move_cost >= 30 * MS), "%s", show_rescue(&c, r));
	}
	c.move_cost = 30 * MS;
	CHECK_EQ(rescue(c).verdict, VB_COST_STAY_USELESS, "equal");
	c.move_cost = 30 * MS - 1;
	CHECK(rescue(c).verdict != VB_COST_STAY_USELESS, "a nanosecond");
	/* And when the holder's return is what limits it. */
	c.holder_off_mean = 20 * MS;
	c.move_cost = 20 * MS;
	CHECK_EQ(rescue(c).verdict, VB_COST_STAY_USELESS, "equal");
	c.move_cost = 20 * MS - 1;
	CHECK(rescue(c).verdict != VB_COST_STAY_USELESS, "a nanosecond");
	/* Nothing is known of absences: there is nothing to win. */
	c.holder_off_mean = 0;
	c.move_cost = 0;
	CHECK_EQ(rescue(c).verdict, VB_COST_STAY_USELESS, "no absence");
}

/* Saves no more than it costs: stays. Pays by one ns: moves. */
static void test_rescue_boundary(void)
{
	struct vb_cost_rescue c = good_rescue();
	struct vb_cost_result r;
	u64 low = 0, high = 30 * MS;

	/* Sure arrival: saved = 90 - 30/2 - cost/2 ms; holds up to the stay. */
	r = rescue(c);
	CHECK(r.saved > c.move_cost, "%s", show_rescue(&c, r));
	/* Rare arrivals: a largest cost exists; it is found by halving. */
	c.rate = 4;
	while (high - low > 1) {
		c.move_cost = (low + high) / 2;
		r = rescue(c);
		if (r.verdict == VB_COST_MOVE_RESCUE)
			low = c.move_cost;
		else
			high = c.move_cost;
	}
	c.move_cost = low;
	r = rescue(c);
	CHECK(r.verdict == VB_COST_MOVE_RESCUE && r.saved > low, "%s",
	      show_rescue(&c, r));
	c.move_cost = high;
	r = rescue(c);
	CHECK(r.verdict == VB_COST_STAY_SAVING && r.saved <= high, "%s",
	      show_rescue(&c, r));
	CHECK(low > MS && low < 29 * MS, "%llu", (ull)low);
	/* Exactly even: 4 ms away, both; P = 1; saved = (4 - c) / 2 = c. */
	c = (struct vb_cost_rescue) {
		.move_cost = 1 * MS, .rate = 1 << 20,
		.target_on_mean = 3 * MS, .holder_off_mean = 3 * MS,
	};
	r = rescue(c);
	CHECK(r.saved == 1 * MS && r.verdict == VB_COST_STAY_SAVING, "%s",
	      show_rescue(&c, r));
	c.holder_off_mean++;
	r = rescue(c);
	CHECK(r.saved == 1 * MS + 1 && r.verdict == VB_COST_MOVE_RESCUE, "%s",
	      show_rescue(&c, r));
}

/* Dearer is never better; rarer is never better; nor is an earlier return. */
static void test_rescue_monotone(void)
{
	int i;

	prng_seed(0x76424c32);
	for (i = 0; i < 200000; i++) {
		struct vb_cost_rescue c = random_rescue(), d = c;
		struct vb_cost_result r = rescue(c), q;
		u64 step = 1 + prng_log(30);

		d.move_cost = c.move_cost + step < step ? ~0ULL :
			      c.move_cost + step;
		q = rescue(d);
		CHECK(q.saved <= r.saved, "dearer: %s", show_rescue(&d, q));
		CHECK(q.verdict != VB_COST_MOVE_RESCUE ||
		      r.verdict == VB_COST_MOVE_RESCUE, "dearer: %s",
		      show_rescue(&d, q));

		d = c;
		d.rate -= d.rate < step ? d.rate : step;
		q = rescue(d);
		CHECK(q.saved <= r.saved, "rarer: %s", show_rescue(&d, q));

		d = c;
		d.holder_off_for += step;
		q = rescue(d);
		/* An unknown stay of the target changes along. */
		CHECK(q.saved <= r.saved, "sooner back: %s",
		      show_rescue(&d, q));

		d = c;
		if (d.target_on_mean) {
			d.target_on_for += step;
			q = rescue(d);
			CHECK(r.verdict != VB_COST_STAY_USELESS ||
			      q.verdict == VB_COST_STAY_USELESS,
			      "sooner gone: %s", show_rescue(&d, q));
		}
	}
}

/*
 * n busy vCPUs take turns of S on one CPU: whoever runs is gone after S. A
 * move that costs S or more arrives when its target leaves, always.
 */
static void test_stacked(void)
{
	static const u64 slices[] = { 700 * US, 2800 * US, 4 * MS, 10 * MS,
				      30 * MS, 100 * MS };
	size_t i;
	int n, turn;

	for (i = 0; i < ARRAY_SIZE(slices); i++)
		for (n = 2; n <= 16; n++)
			for (turn = 0; turn < n - 1; turn++) {
				u64 s = slices[i];
				struct vb_cost_rescue c = {
					.move_cost = s,
					.rate = ~0ULL,
					.target_on_mean = s,
					.holder_off_mean = (n - 1) * s,
					.holder_off_for = turn * s,
				};

				CHECK(rescue(c).verdict !=
				      VB_COST_MOVE_RESCUE, "%d of %d", turn, n);
				c.target_on_for = s / 2;
				CHECK(rescue(c).verdict !=
				      VB_COST_MOVE_RESCUE, "%d of %d", turn, n);
				c.move_cost = 65 * s / 10;
				CHECK(rescue(c).verdict !=
				      VB_COST_MOVE_RESCUE, "%d of %d", turn, n);
				/* It is the price that forbids it. */
				c.move_cost = s / 100;
				if (n > 2)
					CHECK(rescue(c).verdict ==
					      VB_COST_MOVE_RESCUE,
					      "cheap, %d of %d", turn, n);
			}
}

/* And none is a better home than another: all wait alike. */
static void test_stacked_steer(void)
{
	u32 threshold;

	for (threshold = VB_THRESHOLD_MIN; threshold <= VB_THRESHOLD_MAX;
	     threshold++) {
		struct vb_cost_steer c = {
			.rate = 1 << 24, .horizon = 1 * SEC,
			.holder_wait = 45 * MS, .target_wait = 45 * MS,
			.threshold = threshold,
		};

		CHECK_EQ(vb_cost_steer(&c).verdict, VB_COST_STAY_SIMILAR,
			 "%u", threshold);
	}
}

/* A target that never lost its CPU is there as long as the holder is away. */
static void test_rescue_steady_target(void)
{
	struct vb_cost_rescue c = good_rescue(), d;
	struct vb_cost_result r, q;
	int i;

	c.target_on_mean = 0;
	c.target_on_for = 12345 * SEC;
	r = rescue(c);
	/* 90 - 1 = 89 ms to win, half of it is waited for. */
	CHECK(r.verdict == VB_COST_MOVE_RESCUE && r.saved == 44500 * US, "%s",
	      show_rescue(&c, r));
	c.move_cost = 30 * MS;
	r = rescue(c);
	CHECK_EQ(r.verdict, VB_COST_STAY_SAVING, "%s", show_rescue(&c, r));
	c.move_cost = 29 * MS;
	r = rescue(c);
	CHECK_EQ(r.verdict, VB_COST_MOVE_RESCUE, "%s", show_rescue(&c, r));
	/* The same as one with a very long stay. */
	prng_seed(0x76424c33);
	for (i = 0; i < 50000; i++) {
		c = random_rescue();
		c.target_on_mean = 0;
		d = c;
		d.target_on_mean = ~0ULL;
		d.target_on_for = 0;
		r = rescue(c);
		q = rescue(d);
		CHECK(r.verdict == q.verdict && r.saved == q.saved, "%s",
		      show_rescue(&c, r));
	}
}

static const u64 extremes[] = { 0, 1, 8, 1 << 20, 1ULL << 30, CAP - 1, CAP,
				CAP + 1, 1ULL << 63, ~0ULL - 50, ~0ULL };
#define NR_EXTREMES	ARRAY_SIZE(extremes)

static void test_rescue_extreme(void)
{
	u64 n, code, all = 1;
	int field;

	for (field = 0; field < 6; field++)
		all *= NR_EXTREMES;
	for (n = 0; n < all; n++) {
		struct vb_cost_rescue c = { 0 };
		u64 *value[] = { &c.move_cost, &c.rate, &c.target_on_mean,
				 &c.target_on_for, &c.holder_off_mean,
				 &c.holder_off_for };

		code = n;
		for (field = 0; field < 6; field++) {
			*value[field] = extremes[code % NR_EXTREMES];
			code /= NR_EXTREMES;
		}
		check_rescue_formula(&c);
	}
}

/* ---- steering ---- */

static const char *show_steer(const struct vb_cost_steer *c,
			      struct vb_cost_result r)
{
	static char buf[256];

	snprintf(buf, sizeof(buf),
		 "cost %llu rate %llu horizon %llu holder %llu target %llu threshold %u: verdict %d saved %llu",
		 (ull)c->move_cost, (ull)c->rate, (ull)c->horizon,
		 (ull)c->holder_wait, (ull)c->target_wait, c->threshold,
		 r.verdict, (ull)r.saved);
	return buf;
}

static struct vb_cost_steer good_steer(void)
{
	return (struct vb_cost_steer) {
		.move_cost = 10 * MS,
		.rate = 1024,
		.horizon = 1 << 20,	/* one arrival */
		.holder_wait = 45 * MS,
		.target_wait = 5 * MS,
		.threshold = 150,
	};
}

static struct vb_cost_steer random_steer(void)
{
	u64 target = prng_log(prng_below(8) ? 33 : 64);

	return (struct vb_cost_steer) {
		.move_cost = prng_log(prng_below(8) ? 36 : 64),
		.rate = prng_log(prng_below(8) ? 16 : 64),
		.horizon = prng_log(prng_below(8) ? 34 : 64),
		.holder_wait = prng_below(4) ? target + target / 4 *
			       prng_below(5) : prng_log(64),
		.target_wait = target,
		.threshold = prng_below(3) ? 150 : 100 + prng_below(9901),
	};
}

static void test_steer_examples(void)
{
	struct vb_cost_steer c = good_steer();
	struct vb_cost_result r = vb_cost_steer(&c);

	CHECK(r.verdict == VB_COST_MOVE_STEER && r.saved == 40 * MS, "%s",
	      show_steer(&c, r));
	c.move_cost = 40 * MS;
	r = vb_cost_steer(&c);
	CHECK(r.verdict == VB_COST_STAY_SAVING && r.saved == 40 * MS, "%s",
	      show_steer(&c, r));
	c.move_cost--;
	r = vb_cost_steer(&c);
	CHECK_EQ(r.verdict, VB_COST_MOVE_STEER, "%s", show_steer(&c, r));
	c.horizon *= 10;
	r = vb_cost_steer(&c);
	CHECK_EQ(r.saved, 400 * MS, "%s", show_steer(&c, r));
	c.rate = 0;
	r = vb_cost_steer(&c);
	CHECK(r.verdict == VB_COST_STAY_SAVING && !r.saved, "%s",
	      show_steer(&c, r));
	/* Many arrivals: at least 10000 a second are believed. */
	c.rate = 10000;
	c.horizon = 1ULL << 30;
	r = vb_cost_steer(&c);
	CHECK_EQ(r.saved, 10000 * 40 * MS, "%s", show_steer(&c, r));
}

static void test_steer_threshold(void)
{
	u32 threshold;
	int i;

	prng_seed(0x76424c34);
	for (threshold = 100; threshold <= 10000; threshold++)
		for (i = 0; i < 4; i++) {
			u64 target = 1 + prng_log(i < 3 ? 30 : 8);
			struct vb_cost_steer c = {
				.rate = 1 << 20, .horizon = 1 * SEC,
				.holder_wait = target * threshold / 100,
				.target_wait = target,
				.threshold = threshold,
			};
			struct vb_cost_result r = vb_cost_steer(&c);

			CHECK(r.verdict == VB_COST_STAY_SIMILAR && !r.saved,
			      "%s", show_steer(&c, r));
			c.holder_wait++;
			r = vb_cost_steer(&c);
			CHECK_EQ(r.verdict, VB_COST_MOVE_STEER, "%s",
				 show_steer(&c, r));
		}
}

static void check_steer_formula(const struct vb_cost_steer *c)
{
	struct vb_cost_result r = vb_cost_steer(c);
	u64 holder = c->holder_wait < CAP ? c->holder_wait : CAP;
	u64 target = c->target_wait < CAP ? c->target_wait : CAP;
	u64 horizon = c->horizon < CAP ? c->horizon : CAP;
	u64 rate = c->rate < 1ULL << 24 ? c->rate : 1ULL << 24;
	long double gain, arrivals, saved;

	if ((unsigned __int128)holder * 100 <=
	    (unsigned __int128)target * c->threshold || holder <= target) {
		CHECK(r.verdict == VB_COST_STAY_SIMILAR && !r.saved, "%s",
		      show_steer(c, r));
		return;
	}
	gain = holder - target;
	arrivals = rate * (long double)horizon / RATE;
	if (arrivals > 1 << 14)
		arrivals = 1 << 14;
	saved = arrivals * gain;
	/* Arrivals have ten bits behind the point. */
	CHECK(r.saved <= saved + 1 && r.saved + gain / 1024 + 2 >= saved,
	      "not %.0Lf: %s", saved, show_steer(c, r));
	CHECK(r.verdict == (r.saved > c->move_cost ? VB_COST_MOVE_STEER :
						     VB_COST_STAY_SAVING),
	      "%s", show_steer(c, r));
}

static void test_steer_formula(void)
{
	unsigned int i, moved = 0, runs = 300000;
	struct vb_cost_steer c;

	prng_seed(0x76424c35);
	for (i = 0; i < runs; i++) {
		c = random_steer();
		check_steer_formula(&c);
		moved += vb_cost_steer(&c).verdict == VB_COST_MOVE_STEER;
	}
	CHECK(moved > runs / 20 && moved < runs / 2, "%u of %u move", moved,
	      runs);
}

static void test_steer_monotone(void)
{
	int i;

	prng_seed(0x76424c36);
	for (i = 0; i < 200000; i++) {
		struct vb_cost_steer c = random_steer(), d = c;
		struct vb_cost_result r = vb_cost_steer(&c), q;
		u64 step = 1 + prng_log(30);
		int what = prng_below(6);

		switch (what) {
		case 0:
			d.move_cost += step;
			break;
		case 1:
			d.rate /= 2;
			break;
		case 2:
			d.horizon /= 2;
			break;
		case 3:
			d.holder_wait -= d.holder_wait / 4;
			break;
		case 4:
			d.target_wait += d.target_wait / 4;
			break;
		default:
			d.threshold += step % 1000;
			break;
		}
		if (d.move_cost < c.move_cost || d.target_wait < c.target_wait)
			continue;	/* wrapped */
		q = vb_cost_steer(&d);
		CHECK(q.saved <= r.saved, "%d: %llu before: %s", what,
		      (ull)r.saved, show_steer(&d, q));
		CHECK(q.verdict != VB_COST_MOVE_STEER ||
		      r.verdict == VB_COST_MOVE_STEER, "%d: %s", what,
		      show_steer(&d, q));
	}
}

/* Who steers from A to B never steers back: no ping-pong, however cheap. */
static void test_steer_no_return(void)
{
	int i, moved = 0;

	prng_seed(0x76424c37);
	for (i = 0; i < 100000; i++) {
		struct vb_cost_steer c = random_steer();
		u64 wait = c.holder_wait;

		c.move_cost = 0;
		if (vb_cost_steer(&c).verdict != VB_COST_MOVE_STEER)
			continue;
		moved++;
		c.holder_wait = c.target_wait;
		c.target_wait = wait;
		CHECK_EQ(vb_cost_steer(&c).verdict, VB_COST_STAY_SIMILAR,
			 "%s", show_steer(&c, vb_cost_steer(&c)));
	}
	CHECK(moved > 10000, "only %d moves", moved);
}

/* No absences here, long ones there: all interrupts come here. */
static void test_steer_steady_target(void)
{
	u64 wait;

	for (wait = 1 * MS; wait < 1 * SEC; wait += 1 * MS) {
		struct vb_cost_steer c = {
			.move_cost = 30 * MS, .rate = 1000, .horizon = 1 * SEC,
			.holder_wait = wait, .target_wait = 0,
			.threshold = VB_THRESHOLD_MAX,
		};

		CHECK_EQ(vb_cost_steer(&c).verdict, VB_COST_MOVE_STEER,
			 "%llu", (ull)wait);
		c.holder_wait = 0;
		c.target_wait = wait;
		CHECK_EQ(vb_cost_steer(&c).verdict, VB_COST_STAY_SIMILAR,
			 "%llu, the other way", (ull)wait);
		c.target_wait = 0;
		CHECK_EQ(vb_cost_steer(&c).verdict, VB_COST_STAY_SIMILAR,
			 "neither");
	}
}

static void test_steer_extreme(void)
{
	static const u32 thresholds[] = { VB_THRESHOLD_MIN,
		VB_THRESHOLD_DEFAULT, VB_THRESHOLD_MAX };
	u64 n, code, all = ARRAY_SIZE(thresholds);
	int field;

	for (field = 0; field < 5; field++)
		all *= NR_EXTREMES;
	for (n = 0; n < all; n++) {
		struct vb_cost_steer c = { 0 };
		u64 *value[] = { &c.move_cost, &c.rate, &c.horizon,
				 &c.holder_wait, &c.target_wait };

		c.threshold = thresholds[n % ARRAY_SIZE(thresholds)];
		code = n / ARRAY_SIZE(thresholds);
		for (field = 0; field < 5; field++) {
			*value[field] = extremes[code % NR_EXTREMES];
			code /= NR_EXTREMES;
		}
		check_steer_formula(&c);
	}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "remaining time", test_remaining },
		{ "remaining time, impossible inputs", test_remaining_extreme },
		{ "cap on times", test_cap },
		{ "expected arrivals", test_arrivals },
		{ "rescue: worked examples", test_rescue_examples },
		{ "rescue: formula, random cases", test_rescue_formula },
		{ "rescue: formula, extreme inputs", test_rescue_extreme },
		{ "rescue: once in an absence", test_rescue_tried },
		{ "rescue: cost exceeds what is left", test_rescue_useless },
		{ "rescue: saving exceeds the cost", test_rescue_boundary },
		{ "rescue: monotone", test_rescue_monotone },
		{ "rescue: stacked vCPUs never at cost of a slice",
		  test_stacked },
		{ "rescue: target that never leaves",
		  test_rescue_steady_target },
		{ "steer: worked examples", test_steer_examples },
		{ "steer: formula, random cases", test_steer_formula },
		{ "steer: formula, extreme inputs", test_steer_extreme },
		{ "steer: threshold boundary", test_steer_threshold },
		{ "steer: monotone", test_steer_monotone },
		{ "steer: never back again", test_steer_no_return },
		{ "steer: stacked vCPUs are alike", test_stacked_steer },
		{ "steer: target without absences", test_steer_steady_target },
	};

	return ktap_main("cost", tests, ARRAY_SIZE(tests));
}
