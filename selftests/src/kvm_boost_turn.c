// SPDX-License-Identifier: GPL-2.0
/*
 * What boosts leave to others, as an ordinary thread on that CPU sees it: it
 * never waits for boosts longer than boost_row and boost_us say, however many
 * vCPUs there are; and it has the CPU at once when a guest says that it is
 * done. Prints KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs.
 *
 *	kvm_boost_turn DIR	of tracefs, where vb_host_boost,
 *				vb_host_boost_end and sched_switch are recorded
 */
#define _GNU_SOURCE
#include "boosttrace.h"

#define BOUND_US	2000
#define TURNS		60	/* are waited for, but so many need not come */
#define DONES		60

/* Only these of the scheduler's switches are recorded. */
static void switches(const char *field, pid_t tid)
{
	FILE *f = trace_open("events/sched/sched_switch/filter", "w");

	if (fprintf(f, "%s == %d", field, tid) < 0 || fclose(f))
		vm_must(-1, "filter");
}

/* A CPU notes at each how far its thread has come, ns. */
static long tick_ns(void)
{
	struct timespec t;

	vm_must(clock_getres(CLOCK_MONOTONIC_COARSE, &t), "clock_getres");
	return t.tv_nsec;
}

/* ---- how long others wait ---- */

struct turns {
	long all, of_several;	/* boosts */
	long too_long, longest;	/* ns */
};

static void turn_ends(struct turns *t, long ns, int boosts, long limit)
{
	t->all += boosts > 0;
	t->of_several += boosts > 1;
	t->too_long += ns > limit;
	if (ns > t->longest)
		t->longest = ns;
}

/*
 * What boosts took between two moments at which @tid was given the CPU. A boost
 * belongs to where it began: that it is over may be recorded a little after
 * somebody else has the CPU, but the next one of that vCPU begins later still.
 */
static struct turns turns_of(pid_t tid, long limit)
{
	FILE *f = trace_open("trace", "r");
	struct { long nr, ns; int boosts; } now = { }, last = { };
	struct turns t = { };
	long begun[NR] = { };
	struct boost_event e;

	while (trace_next(f, &e)) {
		if (e.kind == SWITCH && e.next == tid) {
			turn_ends(&t, last.ns, last.boosts, limit);
			last = now;
			now.nr++;
			now.ns = 0;
			now.boosts = 0;
		} else if (e.kind == BOOST_BEGINS && e.vcpu < NR) {
			begun[e.vcpu] = now.nr;
			now.boosts++;
		} else if (e.kind == BOOST_ENDS && e.vcpu < NR) {
			e.ns -= VB_BOOST_FEE_NS;
			if (begun[e.vcpu] == now.nr)
				now.ns += e.ns;
			else
				last.ns += e.ns;
		}
	}
	fclose(f);
	turn_ends(&t, last.ns, last.boosts, limit);
	turn_ends(&t, now.ns, now.boosts, limit);
	return t;
}

static void least_weight(int i)
{
	vm_must(set_attr(thread[i].tid, (struct attr){ .nice = 19 }),
		"sched_setattr");
}

/*
 * Both vCPUs are critical all the time, and without boosts they have next to
 * nothing of the CPU. Interrupts for them ask again and again.
 */
static void turns(int row)
{
	/*
	 * As Documentation/boost.md has it; and half as long again as is
	 * allowed before an end counts as late.
	 */
	long limit = row * BOUND_US * 1000L + BOUND_US * 1500L + tick_ns();
	long late, n, cut;
	char what[32], text[128];
	struct turns t;
	__u64 end;

	snprintf(what, sizeof(what), "boost_row=%d", row);
	generous("2000");
	percent("boost_row", row);
	hog_start(HOG_FAIR);
	switches("next_pid", hog.tid);
	late = count("late_ends");
	cut = count("cpu_turn");
	n = begun();
	trace_empty();
	guest[0].critical = CRITICAL;
	guest[1].critical = CRITICAL;
	end = now_ns() + 30000000000ULL * slowness();
	while (now_ns() < end && (count("cpu_turn") < cut + TURNS ||
				  begun() < n + 2 * TURNS)) {
		send(0);
		send(1);
		usleep(500);
	}
	guest[0].critical = VB_CRITICAL_SAID;
	guest[1].critical = VB_CRITICAL_SAID;
	snprintf(text, sizeof(text), "%s: at rest", what);
	report(at_rest(), text);
	late = count("late_ends") - late;
	cut = count("cpu_turn") - cut;
	n = begun() - n;
	t = turns_of(hog.tid, limit);
	hog_stop();
	printf("# %s: %ld boosts in %ld turns, %ld of several, %ld more refused; longest %ld us, %ld above %ld us, %ld late ends\n",
	       what, n, t.all, t.of_several, cut, t.longest / 1000, t.too_long,
	       limit / 1000, late);
	snprintf(text, sizeof(text), "%s: boosts of both follow each other",
		 what);
	report(t.of_several > 0, text);
	snprintf(text, sizeof(text), "%s: until the turn is over", what);
	report(cut > 0, text);
	snprintf(text, sizeof(text), "%s: nobody waits longer than that", what);
	report(t.too_long <= late, text);
	defaults();
}

/* ---- the CPU is given up at once ---- */

static int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

/*
 * From each end by VB_OP_DONE until the vCPU has lost its CPU, us: the median.
 * -1: there are not enough of them.
 */
static long lasts_us(int *n)
{
	FILE *f = trace_open("trace", "r");
	long us[2 * DONES], off = -1, done = -1;
	struct boost_event e;

	*n = 0;
	while (trace_next(f, &e) && *n < 2 * DONES) {
		if (e.kind == BOOST_BEGINS) {
			off = -1;
			done = -1;
		} else if (e.kind == BOOST_ENDS && !strcmp(e.why, "done")) {
			/* Recorded when the thread is back: it may be gone. */
			done = e.us;
			if (off >= 0)
				us[(*n)++] = 0;
		} else if (e.kind == SWITCH) {
			if (done >= 0 && off < 0)
				us[(*n)++] = e.us - done;
			off = e.us;
		}
	}
	fclose(f);
	if (*n < DONES)
		return -1;
	qsort(us, *n, sizeof(us[0]), by_value);
	return us[*n / 2];
}

static void hands_over(int repay)
{
	long n = count("ended_done"), us, tick_us = tick_ns() / 1000;
	char text[128];
	int i, ends;

	generous("20000");
	percent("boost_repay", repay);
	hog_start(HOG_FAIR);
	switches("prev_pid", thread[0].tid);
	trace_empty();
	for (i = 0; i < 20 * DONES && count("ended_done") < n + DONES * 3 / 2;
	     i++) {
		guest[0].critical = CRITICAL;
		CATCH(host[0].boosted);
		guest[0].critical = VB_CRITICAL_SAID;
		vm_command(&thread[0], VM_CMD_DONE);
		if (!AWAIT(!vm_box(&m, 0)->command))
			break;
	}
	snprintf(text, sizeof(text), "done, boost_repay=%d: at rest", repay);
	report(at_rest(), text);
	us = lasts_us(&ends);
	hog_stop();
	printf("# boost_repay=%d: %d times done, then the CPU was kept for %ld us (median; a tick: %ld us)\n",
	       repay, ends, us, tick_us);
	/* Not given up it would be kept until a tick comes, at least. */
	snprintf(text, sizeof(text),
		 "done, boost_repay=%d: somebody else has the CPU before a tick could come",
		 repay);
	report(us >= 0 && us < tick_us / 4, text);
	defaults();
}

int main(int argc, char **argv)
{
	struct attributes before;
	pid_t tid;

	if (argc != 2) {
		fprintf(stderr, "kvm_boost_turn DIR\n");
		return 2;
	}
	trace = argv[1];
	if (!set_up_guest())
		return 4;
	guest[1].critical = VB_CRITICAL_SAID;
	tid = start(0);
	before = attributes_of(tid);
	hands_over(1);
	hands_over(0);
	start(1);
	least_weight(0);
	least_weight(1);
	before.a.nice = 19;
	turns(1);
	turns(4);
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	report(becomes(tid, &before), "the thread is as it was");
	report(!vm_join(&thread[0]), "the vCPU ends well");
	report(!vm_join(&thread[1]), "the other vCPU ends well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
