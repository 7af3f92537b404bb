// SPDX-License-Identifier: GPL-2.0
/*
 * core/algorithm1.h against the paper's pseudo-code (paper.h), exhaustively for
 * few vCPUs and at random for many; and what the paper leaves open: ties, a
 * restriction to some vCPUs, nobody online, limits.
 */
#include <string.h>

#include <vbalance/abi.h>
#include "core/algorithm1.h"

#include "ktap.h"
#include "paper.h"
#include "prng.h"

/* One VM for both implementations; calls are counted. */
static struct {
	struct paper_vm vm;
	bool eligible[PAPER_MAX];
	unsigned int asked_load[PAPER_MAX], asked_present[PAPER_MAX];
	unsigned int asked_online[PAPER_MAX], asked_eligible[PAPER_MAX];
} t;

static u64 get_load(const void *ctx, int vcpu)
{
	const struct paper_vm *vm = ctx;

	t.asked_load[vcpu]++;
	return vm->ld[vcpu];
}

static bool get_present(const void *ctx, int vcpu)
{
	const struct paper_vm *vm = ctx;

	t.asked_present[vcpu]++;
	return vm->exists[vcpu];
}

static bool get_online(const void *ctx, int vcpu)
{
	const struct paper_vm *vm = ctx;

	t.asked_online[vcpu]++;
	return vm->online[vcpu];
}

static bool get_eligible(const void *ctx, int vcpu)
{
	(void)ctx;
	t.asked_eligible[vcpu]++;
	return t.eligible[vcpu];
}

static struct vb_a1_result decide(int prev, u32 threshold, int prefer,
				  bool restricted)
{
	struct vb_a1_view view = {
		.nr = t.vm.n,
		.load = get_load,
		.present = get_present,
		.online = get_online,
		.eligible = restricted ? get_eligible : NULL,
		.ctx = &t.vm,
	};

	return vb_algorithm1(&view, prev, threshold, prefer);
}

/* Text of a case for messages. */
static const char *show(int prev, u32 threshold, int prefer, int next)
{
	static char buf[512];
	int i, len;

	len = snprintf(buf, sizeof(buf), "prev %d prefer %d threshold %u next %d:",
		       prev, prefer, threshold, next);
	for (i = 0; i < t.vm.n && len < (int)sizeof(buf) - 40; i++)
		len += snprintf(buf + len, sizeof(buf) - len, " %s%s%llu",
				t.vm.exists[i] ? "" : "absent:",
				t.vm.online[i] ? "" : "off:",
				(unsigned long long)t.vm.ld[i]);
	return buf;
}

/* The holder if it is a minimum, else the first minimum from @prefer on. */
static int tie_winner(const bool *set, int n, int prev, int prefer)
{
	int i;

	if (set[prev])
		return prev;
	for (i = prefer; i < n; i++)
		if (set[i])
			return i;
	for (i = 0; i < prefer; i++)
		if (set[i])
			return i;
	return -1;
}

static void expect(const struct paper_result *p, int prev, int prefer,
		   int *next, enum vb_a1_reason *reason)
{
	*next = prev;
	if (!p->k) {
		*reason = VB_A1_STAY_NONE_ONLINE;
	} else if (p->remap) {
		*next = tie_winner(p->next_vc, t.vm.n, prev, prefer);
		if (!p->prev_online)
			*reason = VB_A1_MOVE_OFFLINE;
		else
			*reason = *next == prev ? VB_A1_STAY_MINIMUM :
						  VB_A1_MOVE_IMBALANCE;
	} else {
		*reason = p->prev_high ? VB_A1_STAY_BALANCED : VB_A1_STAY_LOW;
	}
}

/* Compare the two for the VM in t; loads must not exceed VB_LOAD_MAX. */
static void compare(int prev, u32 threshold, int prefer)
{
	static struct paper_result p;
	struct vb_a1_result r = decide(prev, threshold, prefer, false);
	enum vb_a1_reason reason;
	int next;

	paper_algorithm1(&t.vm, prev, threshold, &p);
	/* The paper's own demand first: any minimum will do. */
	CHECK(r.next >= 0 && r.next < t.vm.n &&
	      (p.remap ? p.next_vc[r.next] : r.next == prev),
	      "%s", show(prev, threshold, prefer, r.next));
	expect(&p, prev, prefer, &next, &reason);
	CHECK(r.next == next, "not %d: %s", next,
	      show(prev, threshold, prefer, r.next));
	CHECK(r.reason == reason, "reason %d, not %d: %s", r.reason, reason,
	      show(prev, threshold, prefer, r.next));
	CHECK(r.avg == (p.nr_vc ? (u64)(p.ldsum / p.nr_vc) : 0) &&
	      r.max == p.ldmax && r.min == p.ldmin && r.nr_online == p.k,
	      "avg %llu min %llu max %llu online %d: %s",
	      (unsigned long long)r.avg, (unsigned long long)r.min,
	      (unsigned long long)r.max, r.nr_online,
	      show(prev, threshold, prefer, r.next));
}

/* Few vCPUs only: a bit for each. */
static void set_mask(bool *where, unsigned int mask)
{
	int i;

	for (i = 0; i < t.vm.n; i++)
		where[i] = mask >> i & 1;
}

/* Next tuple of digits below @base in t.vm.ld; false after the last. */
static bool next_loads(u64 base)
{
	int i;

	for (i = 0; i < t.vm.n; i++) {
		if (++t.vm.ld[i] < base)
			return true;
		t.vm.ld[i] = 0;
	}
	return false;
}

static void start_loads(int n)
{
	memset(&t, 0, sizeof(t));
	t.vm.n = n;
	memset(t.vm.exists, true, sizeof(t.vm.exists));
	memset(t.vm.online, true, sizeof(t.vm.online));
}

static void compare_all_roles(const u32 *thresholds, int nr)
{
	int prev, prefer, i;

	for (prev = 0; prev < t.vm.n; prev++)
		for (prefer = 0; prefer < t.vm.n; prefer++)
			for (i = 0; i < nr; i++)
				compare(prev, thresholds[i], prefer);
}

static void exhaust(int n, u64 base, const u32 *thresholds, int nr)
{
	unsigned int online;

	start_loads(n);
	do {
		for (online = 0; online < 1U << n; online++) {
			set_mask(t.vm.online, online);
			compare_all_roles(thresholds, nr);
		}
	} while (next_loads(base));
}

static void test_exhaustive_4(void)
{
	static const u32 thresholds[] = { 100, 101, 149, 150, 151, 200, 300,
					  10000 };
	int n;

	for (n = 1; n <= 4; n++)
		exhaust(n, n < 4 ? 7 : 5, thresholds, ARRAY_SIZE(thresholds));
}

static void test_exhaustive_5(void)
{
	static const u32 thresholds[] = { 100, 150 };

	exhaust(5, 5, thresholds, ARRAY_SIZE(thresholds));
}

/* Every set of vCPUs that exist: the rest counts for nothing. */
static void test_exhaustive_absent(void)
{
	static const u32 thresholds[] = { 150 };
	unsigned int mask;

	start_loads(4);
	do {
		for (mask = 0; mask < 1U << 8; mask++) {
			set_mask(t.vm.online, mask & 15);
			set_mask(t.vm.exists, mask >> 4);
			compare_all_roles(thresholds, 1);
		}
	} while (next_loads(4));
}

/* Loads of every size and with many ties, none above the cap. */
static void random_loads(void)
{
	unsigned int kind = prng_below(5), i;
	u64 common = prng_log(48);

	for (i = 0; i < (unsigned int)t.vm.n; i++) {
		u64 ld;

		switch (kind) {
		case 0:
			ld = prng_below(4);
			break;
		case 1:
			ld = prng_below(1000000);
			break;
		case 2:
			ld = prng_below(2) ? common : prng_log(48);
			break;
		case 3:
			ld = VB_LOAD_MAX - prng_below(3);
			break;
		default:
			ld = prng_log(49);
			break;
		}
		t.vm.ld[i] = ld < VB_LOAD_MAX ? ld : VB_LOAD_MAX;
		t.vm.exists[i] = prng_below(16) != 0;
		t.vm.online[i] = prng_below(kind + 1) == 0;
	}
}

static u32 random_threshold(void)
{
	switch (prng_below(4)) {
	case 0: return 100;
	case 1: return 150;
	case 2: return 10000;
	default: return 100 + prng_below(9901);
	}
}

static void test_random_64(void)
{
	int i;

	prng_seed(0x76424c10);
	memset(&t, 0, sizeof(t));
	for (i = 0; i < 200000; i++) {
		t.vm.n = 1 + prng_below(64);
		random_loads();
		compare(prng_below(t.vm.n), random_threshold(),
			prng_below(t.vm.n));
	}
}

/* As many vCPUs as the ABI allows, loads and threshold at their limits. */
static void test_largest(void)
{
	int i, round;

	prng_seed(0x76424c11);
	start_loads(0);
	t.vm.n = VB_MAX_SLOTS;
	for (round = 0; round < 4; round++) {
		for (i = 0; i < t.vm.n; i++) {
			t.vm.online[i] = round != 1 || i % 3;
			t.vm.ld[i] = VB_LOAD_MAX;
			if (round == 2)
				t.vm.ld[i] -= prng_below(1000);
		}
		if (round == 3)
			t.vm.ld[77] = VB_LOAD_MAX / 100;
		compare(0, VB_THRESHOLD_MAX, 4000);
		compare(0, VB_THRESHOLD_MIN, 4095);
		compare(4095, VB_THRESHOLD_MAX, 0);
		compare(4095, VB_THRESHOLD_DEFAULT, 78);
	}
	/* max / min is exactly 100 = the largest threshold; then above it. */
	t.vm.ld[77]--;
	compare(0, VB_THRESHOLD_MAX, 4000);
	CHECK(decide(0, VB_THRESHOLD_MAX, 1, false).next == 77, "beyond");
}

static void test_limits(void)
{
	CHECK_EQ(VB_THRESHOLD_DEFAULT, 150, "the paper's 1.5");
	CHECK_EQ(VB_THRESHOLD_MIN, 100, "ratio 1");
	CHECK_EQ(VB_THRESHOLD_MAX, 10000, "ratio 100");
	CHECK((paper_num)VB_LOAD_MAX * VB_THRESHOLD_MAX <= ~0ULL, "load * threshold");
	CHECK((paper_num)VB_LOAD_MAX * VB_MAX_SLOTS <= ~0ULL, "load * vCPUs");
	/* Three days of nothing but interrupts. */
	CHECK(VB_LOAD_MAX >= 3ULL * 86400 * 1000000000, "cap too low");
}

/* Loads beyond the cap are all alike, and still the largest. */
static void test_cap(void)
{
	static const u64 beyond[] = { VB_LOAD_MAX + 1, VB_LOAD_MAX * 2,
				      1ULL << 63, ~0ULL };
	struct vb_a1_result r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		start_loads(4);
		t.vm.ld[0] = beyond[i];
		t.vm.ld[1] = VB_LOAD_MAX;
		t.vm.ld[2] = beyond[i];
		t.vm.ld[3] = VB_LOAD_MAX;
		r = decide(0, 100, 1, false);
		CHECK(r.next == 0 && r.reason == VB_A1_STAY_LOW, "case %zu", i);
		CHECK_EQ(r.avg, VB_LOAD_MAX, "avg, case %zu", i);
		CHECK_EQ(r.min, VB_LOAD_MAX, "min, case %zu", i);
		CHECK_EQ(r.max, VB_LOAD_MAX, "max, case %zu", i);
		t.vm.ld[3] = VB_LOAD_MAX - 1;
		r = decide(0, 100, 1, false);
		CHECK(r.next == 3 && r.reason == VB_A1_MOVE_IMBALANCE,
		      "case %zu", i);
	}
}

/* A holder with @max and another vCPU with @min: does it move? */
static bool moves(u64 min, u64 max, u32 threshold)
{
	start_loads(2);
	t.vm.ld[0] = max;
	t.vm.ld[1] = min;
	compare(0, threshold, 0);
	return decide(0, threshold, 0, false).next == 1;
}

/* max = min * threshold stays, one more moves; fractions are not cut off. */
static void test_threshold(void)
{
	u32 threshold;
	int i;

	CHECK(!moves(2, 3, 150), "exactly 1.5");
	CHECK(moves(2, 4, 150), "2");
	CHECK(!moves(200, 300, 150), "exactly 1.5");
	CHECK(moves(200, 301, 150), "1.505");
	CHECK(!moves(3, 4, 150), "1.33");
	CHECK(moves(3, 5, 150), "1.67");
	CHECK(!moves(0, 0, 150), "idle");
	CHECK(moves(0, 1, 10000), "infinite");
	CHECK(!moves(7, 7, 100), "alike");
	CHECK(moves(7, 8, 100), "1.14 of 1");
	prng_seed(0x76424c12);
	for (threshold = 100; threshold <= 10000; threshold++)
		for (i = 0; i < 4; i++) {
			u64 min = 1 + prng_log(i < 3 ? 40 : 10);
			u64 limit = min * threshold / 100;

			CHECK(!moves(min, limit, threshold), "%llu %u",
			      (unsigned long long)min, threshold);
			CHECK(moves(min, limit + 1, threshold), "%llu %u",
			      (unsigned long long)min, threshold);
		}
}

/* vCPUs that are not running count in the average, not in max and min. */
static void test_offline_loads(void)
{
	struct vb_a1_result r;

	/* An idle vCPU that is away is no reason to move. */
	start_loads(3);
	t.vm.ld[0] = 30;
	t.vm.ld[1] = 25;
	t.vm.online[2] = false;
	r = decide(0, 150, 0, false);
	CHECK(r.next == 0 && r.reason == VB_A1_STAY_BALANCED, "reason %d",
	      r.reason);
	/* A busy one that is away lifts the average above the holder. */
	t.vm.ld[1] = 1;
	t.vm.ld[2] = 1000;
	r = decide(0, 150, 0, false);
	CHECK(r.next == 0 && r.reason == VB_A1_STAY_LOW, "reason %d", r.reason);
	/* Idle ones that are away make HIGH even who is the minimum. */
	start_loads(4);
	t.vm.ld[0] = 2;
	t.vm.ld[1] = 4;
	t.vm.online[2] = false;
	t.vm.online[3] = false;
	r = decide(0, 150, 1, false);
	CHECK(r.next == 0 && r.reason == VB_A1_STAY_MINIMUM, "reason %d",
	      r.reason);
}

/* Several minima: the holder, else the first from prefer on, round the end. */
static void test_ties(void)
{
	int prefer, away;

	start_loads(5);
	for (prefer = 0; prefer < 5; prefer++) {
		CHECK(decide(3, 150, prefer, false).next == 3, "%d", prefer);
		t.vm.online[3] = false;
		CHECK(decide(3, 150, prefer, false).next ==
		      (prefer == 3 ? 4 : prefer), "prefer %d", prefer);
		for (away = 0; away < 5; away++) {
			if (away == 3)
				continue;
			t.vm.online[away] = false;
			CHECK(decide(3, 150, away, false).next ==
			      (away == 2 ? 4 : (away + 1) % 5),
			      "prefer %d, which is away", away);
			t.vm.online[away] = true;
		}
		t.vm.online[3] = true;
	}
	/* A smaller load beats prefer. */
	start_loads(4);
	t.vm.ld[0] = 9;
	t.vm.ld[1] = 2;
	t.vm.ld[2] = 1;
	t.vm.ld[3] = 2;
	for (prefer = 0; prefer < 4; prefer++)
		CHECK(decide(0, 150, prefer, false).next == 2, "%d", prefer);
}

static void test_none_online(void)
{
	struct vb_a1_result r;
	int prev;

	start_loads(4);
	set_mask(t.vm.online, 0);
	t.vm.ld[1] = 5;
	for (prev = 0; prev < 4; prev++) {
		r = decide(prev, 150, 0, false);
		CHECK(r.next == prev && r.reason == VB_A1_STAY_NONE_ONLINE,
		      "holder %d", prev);
		CHECK(r.nr_online == 0 && r.min == 0 && r.max == 0 &&
		      r.avg == 1, "holder %d", prev);
	}
	set_mask(t.vm.exists, 0);
	set_mask(t.vm.online, 15);
	r = decide(2, 150, 0, false);
	CHECK(r.next == 2 && r.reason == VB_A1_STAY_NONE_ONLINE && !r.avg,
	      "no vCPU at all: reason %d", r.reason);
}

/* The smallest load that is online and eligible; false: there is none. */
static bool eligible_min(u64 *min)
{
	bool found = false;
	int i;

	for (i = 0; i < t.vm.n; i++) {
		if (!t.vm.exists[i] || !t.vm.online[i] || !t.eligible[i])
			continue;
		if (!found || t.vm.ld[i] < *min)
			*min = t.vm.ld[i];
		found = true;
	}
	return found;
}

static bool target_fits(int vcpu)
{
	return t.vm.exists[vcpu] && t.vm.online[vcpu] && t.eligible[vcpu];
}

/* What must hold whatever the restriction is. */
static void check_restricted(int prev, u32 threshold, int prefer)
{
	static struct paper_result p;
	struct vb_a1_result r = decide(prev, threshold, prefer, true);
	const char *text = NULL;
	u64 min = 0;
	bool any = eligible_min(&min);

	paper_algorithm1(&t.vm, prev, threshold, &p);
	if (r.next != prev && !target_fits(r.next))
		text = "target offline or not eligible";
	else if (r.next != prev && t.vm.ld[r.next] != min)
		text = "target is not the minimum";
	else if (!any && r.next != prev)
		text = "moved with nobody eligible";
	else if (!any && r.reason != VB_A1_STAY_NONE_ONLINE)
		text = "reason is not: nobody";
	else if (any && p.k && !p.prev_online && r.next == prev)
		text = "stays on an offline vCPU";
	else if (p.prev_online && !p.remap && r.next != prev)
		text = "moves although the paper does not";
	else if (target_fits(prev) && r.next != prev &&
		 t.vm.ld[r.next] >= t.vm.ld[prev])
		text = "moves to where the load is no smaller";
	else if ((r.next != prev) != (r.reason == VB_A1_MOVE_OFFLINE ||
				      r.reason == VB_A1_MOVE_IMBALANCE))
		text = "reason does not fit";
	CHECK(!text, "%s: %s", text, show(prev, threshold, prefer, r.next));
}

static void test_exhaustive_restricted(void)
{
	unsigned int mask;
	int prev, prefer;

	start_loads(4);
	do {
		for (mask = 0; mask < 1U << 8; mask++) {
			set_mask(t.vm.online, mask & 15);
			set_mask(t.eligible, mask >> 4);
			for (prev = 0; prev < 4; prev++)
				for (prefer = 0; prefer < 4; prefer += 3)
					check_restricted(prev, 150, prefer);
		}
	} while (next_loads(4));
}

static void test_random_restricted(void)
{
	int i, j;

	prng_seed(0x76424c13);
	memset(&t, 0, sizeof(t));
	for (i = 0; i < 100000; i++) {
		t.vm.n = 1 + prng_below(64);
		random_loads();
		for (j = 0; j < t.vm.n; j++)
			t.eligible[j] = prng_below(2);
		check_restricted(prng_below(t.vm.n), random_threshold(),
				 prng_below(t.vm.n));
	}
}

/* Nobody restricted is the same as no callback. */
static void test_unrestricted(void)
{
	int i;

	prng_seed(0x76424c14);
	memset(&t, 0, sizeof(t));
	memset(t.eligible, true, sizeof(t.eligible));
	for (i = 0; i < 50000; i++) {
		u32 threshold = random_threshold();
		struct vb_a1_result a, b;
		int prev, prefer;

		t.vm.n = 1 + prng_below(64);
		prev = prng_below(t.vm.n);
		prefer = prng_below(t.vm.n);
		random_loads();
		a = decide(prev, threshold, prefer, false);
		b = decide(prev, threshold, prefer, true);
		CHECK(a.next == b.next && a.reason == b.reason, "%s",
		      show(prev, threshold, prefer, b.next));
	}
}

/* States change while we look: who asks twice may get two answers. */
static void test_asked_once(void)
{
	int i;

	start_loads(64);
	for (i = 0; i < 64; i++) {
		t.vm.ld[i] = i * 7 % 5;
		t.vm.exists[i] = i % 7 != 0;
		t.vm.online[i] = i % 3 != 0;
		t.eligible[i] = i % 2;
	}
	decide(5, 150, 40, true);
	for (i = 0; i < 64; i++) {
		CHECK_EQ(t.asked_present[i], 1, "present(%d)", i);
		CHECK(t.asked_load[i] <= 1, "load(%d)", i);
		CHECK(t.asked_online[i] <= 1, "online(%d)", i);
		CHECK(t.asked_eligible[i] <= 1, "eligible(%d)", i);
		/* Nothing is known of a vCPU that does not exist. */
		CHECK(t.vm.exists[i] ||
		      (!t.asked_load[i] && !t.asked_online[i] &&
		       !t.asked_eligible[i]), "absent %d", i);
	}
}

/* The state that is shown is the one that is decided by. */
static void test_states(void)
{
	static struct paper_result p;
	int i, vc;

	CHECK_EQ(vb_a1_state(false, false, 9, 1), VB_A1_OFFLINE, "offline");
	CHECK_EQ(vb_a1_state(false, true, 9, 1), VB_A1_OFFLINE, "off, holder");
	CHECK_EQ(vb_a1_state(true, true, 9, 1), VB_A1_HOLD, "holder, high");
	CHECK_EQ(vb_a1_state(true, true, 0, 1), VB_A1_HOLD, "holder, low");
	CHECK_EQ(vb_a1_state(true, false, 2, 1), VB_A1_HIGH, "above");
	CHECK_EQ(vb_a1_state(true, false, 1, 1), VB_A1_LOW, "average");
	CHECK_EQ(vb_a1_state(true, false, 0, 1), VB_A1_LOW, "below");
	CHECK(!strcmp(vb_a1_state_name(VB_A1_OFFLINE), "offline"), "name");
	CHECK(!strcmp(vb_a1_state_name(VB_A1_LOW), "LOW"), "name");
	CHECK(!strcmp(vb_a1_state_name(VB_A1_HIGH), "HIGH"), "name");
	CHECK(!strcmp(vb_a1_state_name(VB_A1_HOLD), "HOLD"), "name");

	prng_seed(0x76424c15);
	memset(&t, 0, sizeof(t));
	for (i = 0; i < 20000; i++) {
		struct vb_a1_result r;

		t.vm.n = 1 + prng_below(8);
		random_loads();
		r = decide(0, 150, 0, false);
		paper_algorithm1(&t.vm, 0, 150, &p);
		for (vc = 0; vc < t.vm.n; vc++) {
			if (!t.vm.exists[vc] || !t.vm.online[vc])
				continue;
			CHECK(vb_a1_state(true, false, t.vm.ld[vc], r.avg) ==
			      (p.state[vc] == PAPER_HIGH ? VB_A1_HIGH :
							   VB_A1_LOW),
			      "vCPU %d: %s", vc, show(0, 150, 0, r.next));
		}
	}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "as the paper, all cases of 1 to 4 vCPUs", test_exhaustive_4 },
		{ "as the paper, all cases of 5 vCPUs", test_exhaustive_5 },
		{ "as the paper, all sets of absent vCPUs",
		  test_exhaustive_absent },
		{ "as the paper, random cases of up to 64 vCPUs",
		  test_random_64 },
		{ "as the paper, 4096 vCPUs at the limits", test_largest },
		{ "limits leave room in 64 bits", test_limits },
		{ "loads beyond the cap", test_cap },
		{ "threshold boundary", test_threshold },
		{ "loads of offline vCPUs", test_offline_loads },
		{ "ties: holder, then from prefer on", test_ties },
		{ "nobody online", test_none_online },
		{ "restricted, all cases of 4 vCPUs",
		  test_exhaustive_restricted },
		{ "restricted, random cases of up to 64 vCPUs",
		  test_random_restricted },
		{ "not restricted with a callback", test_unrestricted },
		{ "each vCPU is asked once", test_asked_once },
		{ "states LOW, HIGH, HOLD, offline", test_states },
	};

	return ktap_main("algorithm1", tests, ARRAY_SIZE(tests));
}
