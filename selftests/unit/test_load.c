// SPDX-License-Identifier: GPL-2.0
/* core/load.h: decaying sums. */
#include "core/load.h"

#include "ktap.h"
#include "prng.h"

typedef unsigned long long ull;

static const unsigned int shifts[] = { VB_DECAY_SHORT, VB_DECAY_LONG };

static u64 read_at(struct vb_decay d, unsigned int shift, u64 now)
{
	return vb_decay_read(&d, shift, now);
}

static void test_half_lives(void)
{
	CHECK_EQ(VB_DECAY_SHORT, 27, "134 ms");
	CHECK_EQ(VB_DECAY_LONG, 32, "4.3 s");
}

/* Not a nanosecond before the epoch ends, and for each epoch once. */
static void test_halving(void)
{
	static const u64 amounts[] = { 1, 2, 3, 1000, 123456789, 1ULL << 40,
				       1ULL << 63, ~0ULL };
	unsigned int s, k;
	size_t a;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		u64 half = 1ULL << shifts[s], t0 = 5 * half + 17;

		for (a = 0; a < ARRAY_SIZE(amounts); a++) {
			struct vb_decay d = { 0 };
			u64 want = amounts[a];

			vb_decay_add(&d, shifts[s], t0, want);
			CHECK_EQ(read_at(d, shifts[s], t0), want, "at once");
			for (k = 1; k < 70; k++) {
				u64 edge = (5 + k) * half;

				CHECK_EQ(read_at(d, shifts[s], edge - 1), want,
					 "before edge %u of 2^%u", k, shifts[s]);
				want /= 2;
				CHECK_EQ(read_at(d, shifts[s], edge), want,
					 "at edge %u of 2^%u", k, shifts[s]);
			}
		}
	}
}

/* Very old sums are nothing; shifts of 64 and more are undefined in C. */
static void test_very_old(void)
{
	unsigned int s;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		struct vb_decay d = { 0 };
		u64 half = 1ULL << shifts[s];

		vb_decay_add(&d, shifts[s], 0, ~0ULL);
		CHECK_EQ(read_at(d, shifts[s], 63 * half), 1, "63 halvings");
		CHECK_EQ(read_at(d, shifts[s], 64 * half), 0, "64 halvings");
		CHECK_EQ(read_at(d, shifts[s], 65 * half), 0, "65 halvings");
		CHECK_EQ(read_at(d, shifts[s], 128 * half), 0, "128 halvings");
		CHECK_EQ(read_at(d, shifts[s], ~0ULL), 0, "end of time");
		vb_decay_add(&d, shifts[s], ~0ULL, 7);
		CHECK_EQ(read_at(d, shifts[s], ~0ULL), 7, "end of time");
	}
}

/* A clock of another CPU may be behind: nothing is lost, nothing grows. */
static void test_clock_back(void)
{
	unsigned int s;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		struct vb_decay d = { 0 };
		u64 half = 1ULL << shifts[s], t0 = 100 * half;

		vb_decay_add(&d, shifts[s], t0, 1000);
		CHECK_EQ(read_at(d, shifts[s], t0 - 1), 1000, "just before");
		CHECK_EQ(read_at(d, shifts[s], 0), 1000, "long before");
		vb_decay_add(&d, shifts[s], t0 - 1, 10);
		vb_decay_add(&d, shifts[s], t0 - 50 * half, 5);
		vb_decay_add(&d, shifts[s], 0, 1);
		CHECK_EQ(read_at(d, shifts[s], t0), 1016, "after three");
		/* The age is still counted from t0. */
		CHECK_EQ(read_at(d, shifts[s], t0 + half - 1), 1016, "epoch");
		CHECK_EQ(read_at(d, shifts[s], t0 + half), 508, "next epoch");
		vb_decay_add(&d, shifts[s], t0 + half, 2);
		CHECK_EQ(read_at(d, shifts[s], t0 + half), 510, "goes on");
		CHECK_EQ(read_at(d, shifts[s], t0), 510, "back again");
	}
}

/* Reading changes nothing, nor does adding nothing, at any time. */
static void test_touch(void)
{
	unsigned int s, i;

	prng_seed(0x76424c20);
	for (i = 0; i < 20000; i++) {
		struct vb_decay idle = { 0 }, touched;
		u64 now = prng_log(50);

		s = shifts[i % ARRAY_SIZE(shifts)];
		vb_decay_add(&idle, s, now, prng_log(63));
		touched = idle;
		while (prng_below(8)) {
			now += prng_log(s + 2);
			vb_decay_add(&touched, s, now, 0);
			CHECK_EQ(read_at(touched, s, now), read_at(idle, s, now),
				 "at %llu", (ull)now);
		}
	}
}

/*
 * Random streams against the sum of amount / 2^age in 128 bits: below it by
 * less than one unit for each halving there was, never above it.
 */
static void test_streams(void)
{
	unsigned int s, i, j;

	prng_seed(0x76424c21);
	for (i = 0; i < 3000; i++) {
		struct vb_decay d = { 0 };
		unsigned __int128 exact = 0;	/* 64 fractional bits */
		u64 now = prng_log(45), epoch, got, floor;
		unsigned int halvings = 0;

		s = shifts[i % ARRAY_SIZE(shifts)];
		epoch = now >> s;
		for (j = 0; j < 50; j++) {
			u64 amount = prng_log(40);

			now += prng_log(s + 1);
			for (; epoch < now >> s; epoch++) {
				exact >>= 1;
				halvings++;
			}
			exact += (unsigned __int128)amount << 64;
			vb_decay_add(&d, s, now, amount);
			got = read_at(d, s, now);
			floor = exact >> 64;
			CHECK(got <= floor && got + halvings >= floor,
			      "2^%u at %llu: %llu, not %llu (%u halvings)", s,
			      (ull)now, (ull)got, (ull)floor, halvings);
		}
	}
}

/*
 * Two owners with loads in a fixed ratio, each written at its own moments and
 * then read at one time: the ratio is the same, but for the rounding.
 */
static void test_ratio(void)
{
	unsigned int s, i, j;

	prng_seed(0x76424c22);
	for (i = 0; i < 3000; i++) {
		struct vb_decay a = { 0 }, b = { 0 };
		u64 factor = 1 + prng_below(9), base = prng_log(40), now, ra, rb;

		s = shifts[i % ARRAY_SIZE(shifts)];
		for (j = 0; j < 30; j++) {
			u64 amount = prng_log(32), epoch;

			base += prng_log(2);
			epoch = base << s;
			vb_decay_add(&a, s, epoch + prng_below(1ULL << s),
				     amount);
			vb_decay_add(&b, s, epoch + prng_below(1ULL << s),
				     amount * factor);
		}
		now = (base + prng_below(3)) << s;
		ra = read_at(a, s, now);
		rb = read_at(b, s, now);
		/* Fewer than 100 halvings: less than one unit each. */
		CHECK(rb + 100 >= ra * factor &&
		      rb <= (ra + 100) * factor, "%llu and %llu, ratio %llu",
		      (ull)ra, (ull)rb, (ull)factor);
	}
}

/* An owner that was not written for long is not favoured, nor punished. */
static void test_ratio_idle(void)
{
	unsigned int s;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		struct vb_decay early = { 0 }, late = { 0 };
		u64 half = 1ULL << shifts[s];

		/* One half-life apart: half the amount is the same load. */
		vb_decay_add(&early, shifts[s], 7 * half + 3, 8000);
		vb_decay_add(&late, shifts[s], 9 * half - 1, 4000);
		CHECK_EQ(read_at(early, shifts[s], 9 * half - 1),
			 read_at(late, shifts[s], 9 * half - 1), "same epoch");
		CHECK_EQ(read_at(early, shifts[s], 11 * half),
			 read_at(late, shifts[s], 11 * half), "later");
	}
}

/* A stream of 1 per ns, as the comment on the window says. */
static void test_window(void)
{
	unsigned int s, i;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		u64 half = 1ULL << shifts[s], step = half / 64, now = 0, w;
		struct vb_decay d = { 0 };

		for (i = 0; i < 64 * 64; i++) {
			/* What came in the last step is put in at its end. */
			now += step;
			vb_decay_add(&d, shifts[s], now - 1, step);
			if (i < 64 * 48)
				continue;
			w = vb_decay_window_ns(shifts[s], now - 1);
			CHECK(read_at(d, shifts[s], now - 1) <= w + 1 &&
			      read_at(d, shifts[s], now - 1) + 64 >= w,
			      "2^%u, step %u: sum %llu, window %llu", shifts[s],
			      i, (ull)read_at(d, shifts[s], now - 1), (ull)w);
		}
		CHECK_EQ(vb_decay_window_ns(shifts[s], 0), half, "start");
		CHECK_EQ(vb_decay_window_ns(shifts[s], 8 * half), half, "edge");
		CHECK_EQ(vb_decay_window_ns(shifts[s], 8 * half + 5), half + 5,
			 "later");
		CHECK_EQ(vb_decay_window_ns(shifts[s], 9 * half - 1),
			 2 * half - 1, "end of epoch");
		CHECK_EQ(vb_decay_window_ns(shifts[s], ~0ULL), 2 * half - 1,
			 "end of time");
	}
}

/* Rates (sum / window) of two sums are alike whatever the half-life is. */
static void test_rate(void)
{
	unsigned int s, i;

	for (s = 0; s < ARRAY_SIZE(shifts); s++) {
		struct vb_decay d = { 0 };
		u64 now = 0, ppm;

		/* 300 us of load in every ms. */
		for (i = 0; i < 60000; i++, now += 1000000)
			vb_decay_add(&d, shifts[s], now, 300000);
		ppm = read_at(d, shifts[s], now) /
		      (vb_decay_window_ns(shifts[s], now) / 1000000);
		CHECK(ppm > 290000 && ppm < 310000, "2^%u: %llu ppm", shifts[s],
		      (ull)ppm);
	}
}

/* A full sum stays full: it must not look like an idle vCPU's. */
static void test_saturation(void)
{
	static const u64 full[] = { ~0ULL, ~0ULL - 1, ~0ULL - 99, 1ULL << 63 };
	unsigned int s;
	size_t i;

	for (s = 0; s < ARRAY_SIZE(shifts); s++)
		for (i = 0; i < ARRAY_SIZE(full); i++) {
			struct vb_decay d = { 0 };
			u64 half = 1ULL << shifts[s];

			vb_decay_add(&d, shifts[s], half, full[i]);
			vb_decay_add(&d, shifts[s], half, 1ULL << 63);
			CHECK_EQ(read_at(d, shifts[s], half), ~0ULL,
				 "%llu + 2^63", (ull)full[i]);
			CHECK_EQ(read_at(d, shifts[s], 2 * half), ~0ULL >> 1,
				 "decays from there");
		}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "half-lives", test_half_lives },
		{ "halved at every epoch", test_halving },
		{ "very old sums", test_very_old },
		{ "clock that goes back", test_clock_back },
		{ "adding nothing changes nothing", test_touch },
		{ "random streams against 128-bit sums", test_streams },
		{ "ratios are kept", test_ratio },
		{ "ratios are kept when one is idle", test_ratio_idle },
		{ "length of the window", test_window },
		{ "rate over the window", test_rate },
		{ "saturation", test_saturation },
	};

	return ktap_main("load", tests, ARRAY_SIZE(tests));
}
