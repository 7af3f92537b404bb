// SPDX-License-Identifier: GPL-2.0
/*
 * Each boost pays back what the one before has taken (boost_repay). Prints
 * KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs.
 *
 * vCPU 0 is boosted, vCPU 1 is who gains by it. With a long slice vCPU 0 can
 * owe whatever a boost takes, also one that ends late.
 */
#define _GNU_SOURCE
#include "boosttest.h"

#define PAYING		10
#define LONG_SLICE	100000000L	/* ns */
/* Nobody owes more (vb_task_charge()). */
#define MOST		(2 * LONG_SLICE)
/* Who was not boosted for so long owes nothing (vbh_boost_debt()), ns. */
#define DEBT_KEPT	100000000ULL

struct sums {
	long begun, ended, refused, ns, repaid;
};

/* By one look: it is the time between two boosts that counts. */
static struct sums sums(void)
{
	static const struct {
		const char *name;
		size_t to;
	} of[] = {
		{ "hint", offsetof(struct sums, begun) },
		{ "ended_done", offsetof(struct sums, ended) },
		{ "ended_off_cpu", offsetof(struct sums, ended) },
		{ "ended_bound", offsetof(struct sums, ended) },
		{ "ended_moved", offsetof(struct sums, ended) },
		/* These pay the fee as well. */
		{ "not_needed", offsetof(struct sums, refused) },
		{ "no_cpu_tokens", offsetof(struct sums, refused) },
		{ "cpu_turn", offsetof(struct sums, refused) },
		{ "other_policy", offsetof(struct sums, refused) },
		{ "boosted_ns", offsetof(struct sums, ns) },
		{ "repaid_ns", offsetof(struct sums, repaid) },
	};
	FILE *f = fopen(vm_file(&m, "boost"), "r");
	struct sums s = { };
	char word[64];
	long value;
	size_t i;

	while (f && fscanf(f, "%63s %ld", word, &value) == 2)
		for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
			if (!strcmp(word, of[i].name))
				*(long *)((char *)&s + of[i].to) += value;
	if (f)
		fclose(f);
	return s;
}

static int at_end(struct sums *s)
{
	*s = sums();
	return s->begun == s->ended;
}

struct taken {
	int one;		/* there was one boost, and no more */
	long ns, repaid;
	__u64 on, off;		/* between them it ended */
};

static struct taken take(void)
{
	struct sums was = sums(), is = was;
	struct taken t = { };
	__u64 now;
	int good;

	guest[0].critical = CRITICAL;
	good = CATCH(host[0].boosted);
	guest[0].critical = VB_CRITICAL_SAID;
	/* Still on: there is no other one in the works. */
	do {
		now = now_ns();
		if (host[0].boosted)
			t.on = now;
	} while (t.on == now);
	good &= CATCH(!host[0].boosted);
	t.off = now_ns();
	good &= CATCH(at_end(&is));
	t.ns = is.ns - was.ns - VB_BOOST_FEE_NS;
	t.repaid = is.repaid - was.repaid;
	t.one = good && t.on && is.begun == was.begun + 1 &&
		is.refused == was.refused;
	return t;
}

static void pays(void)
{
	struct taken last = { }, t;
	long want, wrong = 0;
	int i, paid = 0;

	for (i = 0; i < 100 * PAYING && paid < PAYING; i++, last = t) {
		t = take();
		if (!last.one || !t.one || t.off - last.on >= DEBT_KEPT)
			continue;
		want = last.ns < MOST ? last.ns : MOST;
		if (t.repaid != want && !wrong++)
			printf("# paid back %ld ns, expected %ld\n", t.repaid,
			       want);
		paid++;
	}
	printf("# %d pairs of %d boosts\n", paid, i);
	expect(paid, PAYING, "boosts shortly after one another");
	expect(wrong, 0, "each pays for the one before, and all of it");
}

/* Not when that is switched off. */
static void pays_not(void)
{
	struct sums was = sums(), is;

	guest[0].critical = CRITICAL;
	report(AWAIT(begun() > was.begun + PAYING), "off: boosted");
	guest[0].critical = VB_CRITICAL_SAID;
	report(at_rest(), "off: at rest");
	is = sums();
	expect(is.repaid, was.repaid, "off: nobody pays");
}

/* off: it is switched off by what the module takes for granted. */
int main(int argc, char **argv)
{
	int off = argc > 1 && !strcmp(argv[1], "off");
	pid_t tid;

	begin();
	if (off) {
		report(!feature_is_on("boost_repay"), "off with this module");
	} else if (!feature_is_on("boost_repay")) {
		printf("1..0 # SKIP not with this kernel\n");
		return 4;
	}
	if (!set_up_guest())
		return 4;
	tid = start(0);
	start(1);
	vm_must(set_attr(tid, (struct attr){ .runtime = LONG_SLICE }),
		"sched_setattr");
	/* On a slow machine such short ones follow each other before they are seen. */
	generous(slowness() > 1 ? "2000" : "50");
	hog_start(HOG_PULSES);
	if (!off) {
		if (attributes_of(tid).a.runtime == LONG_SLICE)
			pays();
		else
			skip("each pays for the one before",
			     "needs a kernel from 6.12");
		set_parameter("boost_repay", "0");
	}
	pays_not();
	hog_stop();
	print_counts();
	defaults();
	report(!vm_join(&thread[0]) && !vm_join(&thread[1]),
	       "the vCPUs end well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
