// SPDX-License-Identifier: GPL-2.0
/* core/serve.h: against interrupts whose work is known. */
#include "core/serve.h"

#include "ktap.h"
#include "prng.h"

#define MOMENT	100
#define REST	VB_SERVE_REST
#define START	1000000ULL

static u64 answered;
static bool told;

static bool look(struct vb_serve *s, u64 irq, u64 now, bool sent, bool prompt)
{
	const struct vb_serve_look l = {
		.irq = irq, .answered = answered, .now = now, .moment = MOMENT,
		.sent = sent, .told = told, .prompt = prompt,
	};

	return vb_serve_goes_on(s, &l);
}

/* Nothing is sent: so many times as long, and not less than as many moments. */
static void test_silent(void)
{
	struct vb_serve s = {};
	u64 took, irq = START, t;

	for (took = 0; took < 1000; took += 7, irq += 100000) {
		u64 rest = REST * (took > MOMENT ? took : MOMENT);

		CHECK(look(&s, irq, irq + took, false, true), "open after %llu",
		      (unsigned long long)took);
		CHECK_EQ(s.took, took, "measured");
		for (t = 0; t < rest; t += 11)
			CHECK(look(&s, irq, irq + took + t, false, t & 1),
			      "%llu of %llu", (unsigned long long)t,
			      (unsigned long long)rest);
		CHECK_EQ(vb_serve_next(&s, irq, irq, irq + took), rest, "next");
		CHECK(!look(&s, irq, irq + took + rest, false, true), "over");
		CHECK_EQ(vb_serve_next(&s, irq, irq, irq + took + rest), 0, "none");
	}
}

/* A moment from when it is seen first that something was sent, once. */
static void test_sent(void)
{
	struct vb_serve s = {};
	u64 irq = START;

	CHECK(look(&s, irq, irq + 900, false, true), "open");
	CHECK(look(&s, irq, irq + 1000, true, true), "sent");
	CHECK(look(&s, irq, irq + 1050, true, true), "a moment");
	CHECK_EQ(vb_serve_next(&s, irq, irq, irq + 1050), 50, "until then");
	CHECK(!look(&s, irq, irq + 1000 + MOMENT, true, true), "is over");
	/* Not longer than it has without. */
	irq += 100000;
	CHECK(look(&s, irq, irq + 300, false, true), "open");
	CHECK(look(&s, irq, irq + 290 + REST * 300, true, true),
	      "sent at the end");
	CHECK(!look(&s, irq, irq + 300 + REST * 300, true, true), "no longer");
	/* Open and sent at once. */
	irq += 100000;
	CHECK(look(&s, irq, irq + 300, true, true), "both");
	CHECK(!look(&s, irq, irq + 300 + MOMENT, true, true), "a moment only");
}

/* The answer is out: whatever else is known. */
static void test_answered(void)
{
	struct vb_serve s = {};

	answered = START;
	CHECK(!look(&s, START, START + 1, false, true), "this one");
	CHECK(look(&s, START + 5, START + 9, false, true), "not the next");
	answered = START + 5;
	CHECK(!look(&s, START + 5, START + 10, false, true), "now it is");
	CHECK(!look(&s, 0, START + 10, false, true), "no interrupt at all");
	CHECK_EQ(vb_serve_next(&s, 0, 0, START + 10), 0, "nor a next look");
	answered = 0;
}

/* As long again as it took, when the device knows; never more than without. */
static void test_told(void)
{
	struct vb_serve s = {};
	u64 irq = START;

	CHECK(look(&s, irq, irq + 15, false, true), "open");
	told = true;
	CHECK(look(&s, irq, irq + 20, true, true), "told");
	CHECK(look(&s, irq, irq + 34, true, true), "as long again");
	CHECK(!look(&s, irq, irq + 35, true, true), "is over");
	irq += 100000;
	CHECK(look(&s, irq, irq + 15, true, true), "seen with that only");
	CHECK_EQ(s.took, 15, "measured");
	CHECK(!look(&s, irq, irq + 30, true, true), "as long again is over");
	irq += 100000;
	CHECK(look(&s, irq, irq + 150, true, true), "it took longer");
	CHECK(!look(&s, irq, irq + 150 + MOMENT, true, true), "a moment only");
	told = false;
	irq += 100000;
	CHECK(look(&s, irq, irq + 15, true, true), "not told");
	CHECK(look(&s, irq, irq + 14 + MOMENT, true, true), "a moment");
	CHECK(!look(&s, irq, irq + 15 + MOMENT, true, true), "that is over");
	irq += 100000;
	CHECK(look(&s, irq, irq + 499, false, false), "late: as of a moment");
	CHECK(!look(&s, irq, irq + 500, false, false), "late: not for longer");
	CHECK_EQ(vb_serve_next(&s, irq, irq + 70, irq + 80), 10, "from then");
}

/* A late look goes by what the last interrupt took. */
static void test_late(void)
{
	struct vb_serve s = {};
	u64 irq = START + 100000, most;

	CHECK(!look(&s, irq, irq + 1, false, false), "nothing measured yet");
	look(&s, START, START + 2 * MOMENT, false, true);
	look(&s, START + 1000, START + 1400, false, true);
	most = (1 + REST) * 400;
	CHECK(look(&s, irq, irq + most - 1, false, false), "it may be at work");
	CHECK(!look(&s, irq, irq + most - 1, true, false), "it has sent");
	CHECK(!look(&s, irq, irq + most, false, false), "it had the time");
	CHECK_EQ(s.took, 400, "measured as before");
	CHECK(s.open_for == START + 1000, "of the other one");
	/* What follows it has been open for longer still. */
	CHECK(look(&s, irq, irq + most + 1, false, true), "has the CPU again");
	CHECK_EQ(s.took, 400, "that was not what it took");
	CHECK_EQ(s.until, irq + most + 1 + REST * 400, "time for the rest");
	irq += 100000;
	CHECK(look(&s, irq, irq + 300, false, false), "sooner than that");
	CHECK_EQ(s.took, 300, "it took no longer");
	CHECK(look(&s, irq, irq + 350, false, true), "has the CPU again");
	CHECK_EQ(s.took, 300, "nor now");
	irq += 100000;
	CHECK(look(&s, irq, irq + 3, false, false), "at once");
	CHECK_EQ(s.took, 150, "by half");
	vb_serve_held(&s);
	CHECK(look(&s, irq, irq + 280, false, true), "held, and open again");
	CHECK_EQ(s.took, 280, "measured");
	irq += 100000;
	look(&s, irq, irq, false, false);
	look(&s, irq, irq - 1, false, false);
	CHECK_EQ(s.took, 70, "clocks differ");
	while (s.took > 1)
		look(&s, irq, irq, false, false);
	look(&s, irq, irq, false, false);
	CHECK_EQ(s.took, 1, "never unknown again");
	s.took = 300;
	irq += 100000;
	look(&s, irq, irq + 600, false, true);
	CHECK_EQ(s.took, 600, "the next one is measured");
}

/*
 * Interrupts at which there is nothing to do, some of them before a vCPU loses its
 * CPU, and whoever is boosted for that is looked at late: it is not taken for a
 * slow one for ever.
 */
static void test_settles(void)
{
	struct vb_serve s = { .took = 50000 };
	u64 irq = START;
	int i, held = 0;

	prng_seed(0x76427302);
	for (i = 0; i < 1000; i++, irq += 1000000) {
		u64 lost = irq + prng_below(10000);

		if (!look(&s, irq, lost, false, false))
			continue;
		held += i >= 100;
		look(&s, irq, lost + 1000 + prng_below(50000), false, true);
	}
	CHECK(held < 100, "%d of 900", held);
}

/* One that was seen late does not make a slow vCPU of a fast one. */
static void test_took(void)
{
	struct vb_serve s = {};
	u64 irq = START, most = MOMENT, took;
	int i;

	for (i = 0; i < 10; i++, irq += 100000) {
		most *= 2;
		look(&s, irq, irq + 50000, false, true);
		took = most < 50000 ? most : 50000;
		CHECK_EQ(s.took, took, "doubles");
		CHECK_EQ(s.until, irq + 50000 + REST * took, "this one, too");
	}
	for (took = 50000; took; took /= 3, irq += 100000) {
		look(&s, irq, irq + took, false, true);
		CHECK_EQ(s.took, took, "falls at once");
	}
	look(&s, irq, irq + 3 * MOMENT, false, true);
	CHECK_EQ(s.took, 2 * MOMENT, "from a moment on");
}

/* While held: twice as late each time. */
static void test_next(void)
{
	struct vb_serve s = {};
	u64 t, n;

	for (t = START + 100, n = 0; n < 5; n++)
		t += vb_serve_next(&s, START, START, t);
	CHECK_EQ(t, START + 3200, "doubled five times");
	CHECK_EQ(vb_serve_next(&s, START, START, START - 5), 0, "clocks differ");
}

/* Never for longer than that after it was seen open. */
static void test_bounded(void)
{
	struct vb_serve s = {};
	u64 irq = START, seen = 0, t;
	int i;

	prng_seed(0x76427301);
	for (i = 0; i < 20000; i++, irq += 1 + prng_below(5000)) {
		seen = 0;
		for (t = irq; t < irq + 9000; t += 1 + prng_below(200)) {
			bool prompt = prng_below(2), goes;
			u64 most;

			goes = look(&s, irq, t, prng_below(8) == 0, prompt);
			if (prompt && !seen)
				seen = t;
			if (!seen || !goes)
				continue;
			most = REST * (seen - irq > MOMENT ? seen - irq :
				       MOMENT);
			CHECK(t < seen + most, "at %llu, seen at %llu",
			      (unsigned long long)(t - irq),
			      (unsigned long long)(seen - irq));
		}
	}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "nothing is sent", test_silent },
		{ "something is sent", test_sent },
		{ "the answer is out", test_answered },
		{ "the device is told", test_told },
		{ "a late look", test_late },
		{ "late ones only", test_settles },
		{ "what it takes", test_took },
		{ "the next look", test_next },
		{ "bounds", test_bounded },
	};

	return ktap_main("serve", tests, ARRAY_SIZE(tests));
}
