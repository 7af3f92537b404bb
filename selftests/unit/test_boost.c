// SPDX-License-Identifier: GPL-2.0
/*
 * core/boost.h: that nobody gets more than the share and one burst, how often
 * in a row (CoINT, Algorithm 1), and who is a holder for how long.
 */
#include "core/boost.h"

#include "ktap.h"
#include "prng.h"

#define US	1000ULL
#define MS	1000000ULL
#define SEC	1000000000ULL
#define YEAR	(365 * 24 * 3600 * SEC)
#define BURST	VB_BOOST_BURST_NS
#define START	(5 * SEC)

typedef __int128 s128;

static struct vb_bucket full(u32 percent)
{
	struct vb_bucket b = {};

	vb_bucket_fill(&b, percent, START);
	b.tokens = BURST;
	return b;
}

/* As those ask that may use all there is. */
static enum vb_boost_verdict ask(struct vb_bucket *vm, struct vb_bucket *vcpu,
				 u32 *in_row,
				 const struct vb_boost_limits *limits, u64 now)
{
	return vb_boost_ask(vm, vcpu, in_row, limits, 0, now);
}

static void test_first(void)
{
	u32 percent;

	for (percent = 0; percent <= 100; percent++) {
		struct vb_bucket b = {};

		vb_bucket_fill(&b, percent, START);
		CHECK_EQ(b.tokens, VB_BOOST_FIRST_NS, "%u %%", percent);
		vb_bucket_fill(&b, percent, START);
		CHECK_EQ(b.tokens, VB_BOOST_FIRST_NS, "%u %%, the same time",
			 percent);
		vb_bucket_fill(&b, percent, START + 100);
		CHECK_EQ(b.tokens, VB_BOOST_FIRST_NS + percent, "%u %%, later",
			 percent);
	}
}

/* Some ask only while more than a reserve is there. */
static void test_reserve(void)
{
	struct vb_boost_limits l = { 5, 5, 100 };
	struct vb_bucket vm = full(5), vcpu = full(5);
	u32 in_row = 0;

	vm.tokens = BURST / 2;
	CHECK_EQ(vb_boost_ask(&vm, &vcpu, &in_row, &l, BURST / 2, START),
		 VB_BOOST_VM_TOKENS, "no more than the reserve");
	CHECK_EQ(in_row, 0, "and not counted");
	CHECK_EQ(vb_boost_ask(&vm, &vcpu, &in_row, &l, BURST / 2, START + 20),
		 VB_BOOST_YES, "a nanosecond more");
	vm.tokens = 1;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, START + 20), VB_BOOST_YES,
		 "others may have all of it");
	vm.tokens = BURST;
	vcpu.tokens = 1;
	CHECK_EQ(vb_boost_ask(&vm, &vcpu, &in_row, &l, BURST / 2, START + 20),
		 VB_BOOST_YES, "the reserve is the VM's");
}

static void test_never_above_burst(void)
{
	static const u64 waits[] = { 1, US, MS, SEC, YEAR, 500 * YEAR };
	u64 now, i;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		struct vb_bucket b = full(100);

		now = START + waits[i];
		vb_bucket_fill(&b, 100, now);
		CHECK_EQ(b.tokens, BURST, "full, %llu later", waits[i]);
		b.tokens -= 3 * MS;
		vb_bucket_fill(&b, 50, now += 6 * MS - 2);
		CHECK_EQ(b.tokens, BURST - 1, "almost");
		vb_bucket_fill(&b, 50, now += 2);
		CHECK_EQ(b.tokens, BURST, "just full");
		vb_bucket_fill(&b, 50, now += 2);
		CHECK_EQ(b.tokens, BURST, "and no more");
	}
}

/* Any trace, also with debts of years and times of centuries. */
static void test_model(void)
{
	int run, i;

	prng_seed(1);
	for (run = 0; run < 3000; run++) {
		u32 percent = prng_below(101);
		struct vb_bucket b = full(percent);
		u64 now = START, step;
		s128 want = BURST;

		for (i = 0; i < 100; i++) {
			step = prng_log(56);
			now += step;
			vb_bucket_fill(&b, percent, now);
			want += (s128)step * percent / 100;
			if (want > BURST)
				want = BURST;
			if (!CHECK(b.tokens == want, "%u %%, step %llu: %lld",
				   percent, step, b.tokens))
				return;
			if (prng_below(2)) {
				step = prng_log(prng_below(20) ? 26 : 54);
				b.tokens -= (s64)step;
				want -= step;
			}
		}
	}
}

/*
 * One that takes whatever it may, and more: all that it ever takes is the
 * share of the time, a burst, and what it took too much at the end. One that
 * always waits for more gets its share but for what the roundings lose.
 */
static void test_share(void)
{
	int run, i;

	prng_seed(2);
	for (run = 0; run < 2000; run++) {
		struct vb_boost_limits l = {
			.vm_percent = 1 + prng_below(50), .vcpu_percent = 100,
			.in_row = ~0U,
		};
		struct vb_bucket vm = full(50), vcpu = full(50);
		u64 now = START, used = 0, ns = 0, longest = 0, asked = 0;
		u64 most = 1 + prng_log(24), pause = 1 + prng_log(22);
		bool was_full = false;
		u32 in_row = 0;

		for (i = 0; i < 3000; i++, asked++) {
			enum vb_boost_verdict v;

			now += 1 + prng_below(pause);
			v = ask(&vm, &vcpu, &in_row, &l, now);
			was_full |= i && vm.tokens == BURST;
			if (v != VB_BOOST_YES)
				continue;
			ns = prng_below(most + 1);
			now += ns;
			used += ns;
			longest = ns > longest ? ns : longest;
			vb_boost_pay(&vm, &vcpu, ns);
		}
		CHECK((s128)used * 100 <= (s128)(now - START) * l.vm_percent +
		      (s128)(BURST + longest) * 100,
		      "%u %%: %llu of %llu ns, longest %llu", l.vm_percent,
		      used, now - START, longest);
		/* Nothing was left unused for long. */
		if (!was_full && vm.tokens <= 0)
			CHECK((s128)(used + asked) * 100 >=
			      (s128)(now - START - longest - pause) *
			      l.vm_percent + (s128)BURST * 100,
			      "%u %%: only %llu of %llu ns", l.vm_percent,
			      used, now - START);
	}
}

static void test_debt(void)
{
	struct vb_boost_limits l = { 5, 50, 4 };
	struct vb_bucket vm = full(50), vcpu = full(50);
	u32 in_row = 0;
	u64 now = START;

	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now), VB_BOOST_YES,
		 "full");
	vb_boost_pay(&vm, &vcpu, BURST + 5 * MS);
	CHECK_EQ(vm.tokens, -5 * MS, "of the VM");
	CHECK_EQ(vcpu.tokens, -5 * MS, "of the vCPU");
	now += 100 * MS;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now),
		 VB_BOOST_VM_TOKENS, "just paid back: nothing there");
	CHECK_EQ(vm.tokens, 0, "just paid back");
	now += 20;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now), VB_BOOST_YES,
		 "one nanosecond there");
	/* A debt that an overflow would turn into a fortune. */
	vb_boost_pay(&vm, &vcpu, YEAR);
	now += 19 * YEAR;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now),
		 VB_BOOST_VM_TOKENS, "a year's debt after 19 years");
	now += 2 * YEAR;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now), VB_BOOST_YES,
		 "a year's debt after 21 years");
}

static void test_percent_zero(void)
{
	struct vb_boost_limits l = { 0, 4, 4 };
	struct vb_bucket vm = full(50), vcpu = full(50);
	u32 in_row = 0;
	u64 now = START;
	int i;

	for (i = 0; i < 10; i++, now += SEC)
		CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now),
			 VB_BOOST_VM_TOKENS, "VM: %d", i);
	l = (struct vb_boost_limits){ 5, 0, 4 };
	for (i = 0; i < 10; i++, now += SEC)
		CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, now),
			 VB_BOOST_VCPU_TOKENS, "vCPU: %d", i);
	CHECK_EQ(in_row, 0, "nothing was counted");
	/* What was not there before does not flow in afterwards. */
	vm.tokens = 0;
	vb_bucket_fill(&vm, 0, now += YEAR);
	CHECK_EQ(vm.tokens, 0, "nothing flows in");
	vb_bucket_fill(&vm, 5, now + 20);
	CHECK_EQ(vm.tokens, 1, "only from the change on");
}

static void test_clock_back(void)
{
	struct vb_bucket b = full(5);

	b.tokens = 0;
	vb_bucket_fill(&b, 5, START + 100 * MS);
	CHECK_EQ(b.tokens, 5 * MS, "forward");
	vb_bucket_fill(&b, 5, START + 50 * MS);
	CHECK_EQ(b.tokens, 5 * MS, "back: nothing flows in");
	vb_bucket_fill(&b, 5, START + 100 * MS);
	CHECK_EQ(b.tokens, 5 * MS, "the same time does not count twice");
	vb_bucket_fill(&b, 5, START + 200 * MS);
	CHECK_EQ(b.tokens, 10 * MS, "and on");
}

static void test_huge_times(void)
{
	static const u64 now[] = { 1ULL << 62, 1ULL << 63, ~0ULL };
	u32 percent;
	u64 i;

	for (i = 0; i < ARRAY_SIZE(now); i++) {
		for (percent = 1; percent <= 100; percent++) {
			struct vb_bucket b = full(percent);

			b.tokens = -(s64)SEC;
			vb_bucket_fill(&b, percent, now[i]);
			CHECK_EQ(b.tokens, BURST, "%u %%, %llx", percent,
				 now[i]);
		}
	}
}

/* The first reason counts, and only a row that is too long is counted down. */
static void test_order(void)
{
	struct vb_boost_limits l = { 5, 5, 2 };
	int vm_empty, vcpu_empty, row;

	for (vm_empty = 0; vm_empty < 2; vm_empty++)
	for (vcpu_empty = 0; vcpu_empty < 2; vcpu_empty++)
	for (row = 0; row < 2; row++) {
		struct vb_bucket vm = full(5), vcpu = full(5);
		u32 in_row = row ? 2 : 1, after;
		enum vb_boost_verdict want, got;

		if (vm_empty)
			vm.tokens = 0;
		if (vcpu_empty)
			vcpu.tokens = 0;
		want = vm_empty ? VB_BOOST_VM_TOKENS :
			vcpu_empty ? VB_BOOST_VCPU_TOKENS :
			row ? VB_BOOST_IN_ROW : VB_BOOST_YES;
		after = want == VB_BOOST_YES ? 2 :
			want == VB_BOOST_IN_ROW ? 0 : in_row;
		got = ask(&vm, &vcpu, &in_row, &l, START);
		CHECK_EQ(got, want, "%d %d %d", vm_empty, vcpu_empty, row);
		CHECK_EQ(in_row, after, "%d %d %d", vm_empty, vcpu_empty, row);
		CHECK_EQ(vm.tokens, vm_empty ? 0 : BURST, "asking is free");
		CHECK_EQ(vcpu.tokens, vcpu_empty ? 0 : BURST, "asking is free");
	}
}

/*
 * Lines 8 to 15 of the paper's algorithm, and what instant transitory
 * scheduling does to its acc (IV.B). "acc <= threshold" lets threshold + 1 in
 * a row pass; our limit is how many pass.
 */
struct coint {
	u32 acc, threshold;
};

static bool coint_again(struct coint *c)
{
	if (c->acc <= c->threshold) {
		c->acc++;
		return true;
	}
	c->acc = 0;
	return false;
}

static void test_in_row(void)
{
	int run, i;

	prng_seed(3);
	for (run = 0; run < 300; run++) {
		struct vb_boost_limits l = { 50, 50, 1 + prng_below(100) };
		struct coint c = { .threshold = l.in_row - 1 };
		struct vb_bucket vm = full(50), vcpu = full(50);
		u32 in_row = 0, row = 0;
		u64 now = START;

		for (i = 0; i < 1000; i++) {
			bool got = ask(&vm, &vcpu, &in_row, &l,
						now++) == VB_BOOST_YES;

			CHECK(got == coint_again(&c), "limit %u, %d",
			      l.in_row, i);
			row = got ? row + 1 : 0;
			CHECK(row <= l.in_row, "%u in a row", row);
			/* It was done by itself, now and then. */
			if (!prng_below(2 * l.in_row)) {
				in_row = 0;
				c.acc = 0;
				row = 0;
			}
		}
	}
}

/* The limit is lowered while a row is longer. */
static void test_limit_changes(void)
{
	struct vb_boost_limits l = { 50, 50, 100 };
	struct vb_bucket vm = full(50), vcpu = full(50);
	u32 in_row = 0;
	int i;

	for (i = 0; i < 50; i++)
		CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, START),
			 VB_BOOST_YES, "%d", i);
	l.in_row = 3;
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, START),
		 VB_BOOST_IN_ROW, "too long now");
	for (i = 0; i < 3; i++)
		CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, START),
			 VB_BOOST_YES, "%d", i);
	CHECK_EQ(ask(&vm, &vcpu, &in_row, &l, START),
		 VB_BOOST_IN_ROW, "three");
}

/* Two vCPUs: each within its own share, together within the VM's. */
static void test_two_vcpus(void)
{
	int run, i, w;

	prng_seed(4);
	for (run = 0; run < 500; run++) {
		struct vb_boost_limits l = {
			1 + prng_below(50), 1 + prng_below(50), ~0U,
		};
		struct vb_bucket vm = {}, vcpu[2] = {};
		u64 used[2] = {}, now = START, most = 1 + prng_log(22), ns;
		u32 in_row[2] = {}, percent;
		u64 refused[VB_BOOST_NR_VERDICTS] = {};

		for (i = 0; i < 4000; i++) {
			enum vb_boost_verdict v;

			w = prng_below(2);
			now += prng_below(200 * US);
			v = ask(&vm, &vcpu[w], &in_row[w], &l, now);
			refused[v]++;
			if (v != VB_BOOST_YES)
				continue;
			ns = prng_below(most + 1);
			used[w] += ns;
			vb_boost_pay(&vm, &vcpu[w], ns);
		}
		for (w = 0; w < 3; w++) {
			ns = w < 2 ? used[w] : used[0] + used[1];
			percent = w < 2 ? l.vcpu_percent : l.vm_percent;
			CHECK((s128)ns * 100 <=
			      (s128)(now - START) * percent +
			      (s128)(BURST + most) * 100,
			      "%d: %llu of %llu ns, %u %%", w, ns, now - START,
			      percent);
		}
		/* The VM's bucket is never the fuller one then. */
		if (l.vm_percent <= l.vcpu_percent)
			CHECK_EQ(refused[VB_BOOST_VCPU_TOKENS], 0,
				 "%u %%, %u %%", l.vm_percent, l.vcpu_percent);
	}
}

/* One that spends all does not leave the other without its own bucket. */
static void test_second_vcpu(void)
{
	struct vb_boost_limits l = { 50, 5, 4 };
	struct vb_bucket vm = full(50), vcpu[2] = { full(5), full(5) };
	u32 in_row[2] = {};

	CHECK_EQ(ask(&vm, &vcpu[0], &in_row[0], &l, START),
		 VB_BOOST_YES, "first");
	vb_boost_pay(&vm, &vcpu[0], BURST);
	CHECK_EQ(ask(&vm, &vcpu[1], &in_row[1], &l, START),
		 VB_BOOST_VM_TOKENS, "the VM's is empty for the second, too");
	CHECK_EQ(ask(&vm, &vcpu[0], &in_row[0], &l, START + MS),
		 VB_BOOST_YES, "a little of both is there");
	vb_boost_pay(&vm, &vcpu[0], 300 * US);
	CHECK_EQ(ask(&vm, &vcpu[0], &in_row[0], &l, START + MS),
		 VB_BOOST_VCPU_TOKENS, "the first has used its own");
	CHECK_EQ(ask(&vm, &vcpu[1], &in_row[1], &l, START + MS),
		 VB_BOOST_YES, "the second has not");
	CHECK_EQ(in_row[0], 2, "the first one's row");
	CHECK_EQ(in_row[1], 1, "the second one's row");
}

/* Boosts one after the other, each with a gap: what others must get. */
static void test_turn(void)
{
	struct vb_turn t = {};
	u64 now = START;
	int i;

	for (i = 0; i < 4; i++) {
		CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now), "%d", i);
		now += 2 * MS + 100 * US;
		vb_turn_pay(&t, 2 * MS, now);
	}
	CHECK(!vb_turn_ask(&t, 8 * MS, 2 * MS, now), "8 ms");
	CHECK(!vb_turn_ask(&t, 8 * MS, 2 * MS, now + 2 * MS - 1), "yet");
	CHECK(!vb_turn_ask(&t, 8 * MS, 2 * MS, now - MS), "back in time");
	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now + 2 * MS), "a new turn");
	vb_turn_pay(&t, 2 * MS, now + 4 * MS);
	CHECK_EQ(t.ns, 2 * MS, "begins anew");
	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now + 6 * MS - 1), "goes on");
	CHECK_EQ(t.ns, 2 * MS, "after a gap that is too short");
	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now + 5 * MS), "back in time");
	CHECK_EQ(t.ns, 2 * MS, "is no gap");
}

/* One that runs, and whom nothing was seen to have taken, is no pause. */
static void test_turn_two(void)
{
	struct vb_turn t = { .ns = 7 * MS, .last = START };
	u64 now = START + MS;

	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now), "one");
	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now + 3 * MS / 2),
	      "another while it runs");
	CHECK_EQ(t.ns, 7 * MS, "in the same turn");
	vb_turn_pay(&t, 0, now + 7 * MS / 2);
	CHECK(vb_turn_ask(&t, 8 * MS, 2 * MS, now + 7 * MS / 2),
	      "another when the first one's time is up");
	CHECK_EQ(t.ns, 7 * MS, "in the same turn still");
	vb_turn_pay(&t, 2 * MS, now + 7 * MS / 2);
	CHECK(!vb_turn_ask(&t, 8 * MS, 2 * MS, now + 5 * MS), "enough");
}

/* The longest time that others wait, whatever is asked when. */
static void test_turn_longest(void)
{
	u64 now = START, end = START, taken = 0, longest = 0, ns;
	struct vb_turn t = {};
	int i;

	for (i = 0; i < 100000; i++) {
		now += prng_below(3 * MS);
		if (!vb_turn_ask(&t, 8 * MS, 2 * MS, now))
			continue;
		if (now - end >= 2 * MS)
			taken = 0;
		ns = 1 + prng_below(2 * MS);
		now += ns;
		end = now;
		taken += ns;
		vb_turn_pay(&t, ns, now);
		if (taken > longest)
			longest = taken;
	}
	CHECK(longest > 8 * MS && longest <= 10 * MS, "%llu",
	      (unsigned long long)longest);
}

/* Its CPU time as ticks every 4 ms tell it, from @from on. */
static u64 seen_by_ticks(u64 from, u64 *paid, u64 now)
{
	u64 tick = now - now % (4 * MS), ns = 0;

	if (tick > from && tick > *paid) {
		ns = tick - (*paid > from ? *paid : from);
		*paid = tick;
	}
	return ns;
}

/*
 * One boost after the other, each extended: the worker looks when 2 ms are over,
 * but sees what was taken until the last tick only.
 */
static void test_turn_ticks(void)
{
	u64 now = START, paid = START;
	struct vb_turn t = {};
	int i;

	for (i = 0; i < 100 && vb_turn_ask(&t, 8 * MS, 2 * MS, now); i++) {
		now += 2 * MS + 10000;
		vb_turn_pay(&t, seen_by_ticks(START, &paid, now), now);
	}
	CHECK(now - START <= 14 * MS, "%llu",
	      (unsigned long long)(now - START));
}

/*
 * After each turn others have the CPU for a pause, and no tick falls into the
 * first 2 ms of the next one: it is as long as any.
 */
static void test_turn_between_ticks(void)
{
	u64 now = START - START % (4 * MS) + 10000, begin, paid, ns;
	struct vb_turn t = { .ns = 8 * MS, .last = now - 2 * MS };
	int i, n;

	for (i = 0; i < 10; i++) {
		begin = now;
		paid = now;
		for (n = 0; vb_turn_ask(&t, 8 * MS, 2 * MS, now); n++) {
			now += 2 * MS;
			ns = seen_by_ticks(begin, &paid, now);
			vb_turn_pay(&t, ns, now);
		}
		CHECK(n >= 4, "turn %d: %d boosts", i, n);
		/* Put back: all of it is known. */
		vb_turn_pay(&t, now - paid, now);
		/* To shortly after a tick. */
		now += 6 * MS - now % (4 * MS) + 10000;
	}
}

/* An interrupt may come between the two readings of the clock. */
static void test_cycles_since(void)
{
	CHECK_EQ(vb_cycles_since(100, 100), 0, "at once");
	CHECK_EQ(vb_cycles_since(100, 101), 1, "later");
	CHECK_EQ(vb_cycles_since(101, 100), 0, "read before it was written");
	CHECK_EQ(vb_cycles_since(~0ULL, 0), 0, "never below 0");
}

static void test_holder_fresh(void)
{
	u64 at = 1000;

	CHECK(!vb_holder_is_fresh(0, 10, 100), "none");
	CHECK(vb_holder_is_fresh(at, at, 100), "just delivered");
	CHECK(vb_holder_is_fresh(at + 1, at, 100),
	      "delivered while the clock was read");
	CHECK(vb_holder_is_fresh(at, at + 99, 100), "the last cycle");
	CHECK(!vb_holder_is_fresh(at, at + 100, 100), "its time is over");
	CHECK(!vb_holder_is_fresh(at, at, 0), "no time at all");
	CHECK(!vb_holder_is_fresh(at + 1, at, 0),
	      "no time, and read before it was written");
}

static void test_holder_waited(void)
{
	CHECK(!vb_holder_waited(0, 0), "none, nor any absence before");
	CHECK(!vb_holder_waited(0, 1000), "none");
	CHECK(!vb_holder_waited(999, 1000), "it had its CPU then");
	CHECK(vb_holder_waited(1000, 1000), "as it went");
	CHECK(vb_holder_waited(1001, 1000), "it had none");
}

/*
 * A sleeper that gets its CPU at once is tried for more and more seldom, but
 * never not at all, and for each interrupt as soon as one has been of use.
 */
static void test_wake(void)
{
	u32 quick = 0, n, asked = 0, last = 0;

	for (n = 1; n <= 10000; n++) {
		if (!vb_wake_ask(n, quick))
			continue;
		CHECK(n - last <= 128, "after %u", n - last);
		last = n;
		asked++;
		quick = vb_wake_note(quick, false);
	}
	CHECK(asked > 100 && asked < 200, "asked %u times", asked);
	CHECK_EQ(vb_wake_note(quick, true), 0, "needed");
	for (n = 1; n < 100; n++)
		CHECK(vb_wake_ask(n, 0), "each");
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "a new bucket", test_first },
		{ "the reserve", test_reserve },
		{ "never above the burst", test_never_above_burst },
		{ "as the model, over any trace", test_model },
		{ "the share over a long time", test_share },
		{ "debt", test_debt },
		{ "share 0", test_percent_zero },
		{ "the clock goes back", test_clock_back },
		{ "huge times", test_huge_times },
		{ "order of the verdicts", test_order },
		{ "in a row, as CoINT counts", test_in_row },
		{ "the limit changes", test_limit_changes },
		{ "two vCPUs share a VM's bucket", test_two_vcpus },
		{ "the second vCPU", test_second_vcpu },
		{ "a CPU's turns", test_turn },
		{ "a turn of two at once", test_turn_two },
		{ "the longest turn", test_turn_longest },
		{ "looks between two ticks", test_turn_ticks },
		{ "turns between two ticks", test_turn_between_ticks },
		{ "cycles since", test_cycles_since },
		{ "a holder's time", test_holder_fresh },
		{ "an interrupt waits for a CPU", test_holder_waited },
		{ "an interrupt wakes a sleeper up", test_wake },
	};

	return ktap_main("boost", tests, ARRAY_SIZE(tests));
}
