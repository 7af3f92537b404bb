// SPDX-License-Identifier: GPL-2.0
/*
 * What boosts leave to others, as an ordinary thread on that CPU sees it: it
 * never waits for boosts longer than boost_row and boost_us say, however many
 * vCPUs there are, whether it is busy or wakes up; and it has the CPU at once when
 * a guest says that it is done. Prints KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs.
 *
 *	kvm_boost_turn DIR	of tracefs, where vb_host_boost,
 *				vb_host_boost_end, sched_switch and sched_wakeup
 *				are recorded
 */
#define _GNU_SOURCE
#define NR	3
#include "boosttrace.h"
#include "steady.h"

#define BOUND_US	2000
#define TURNS		180	/* are waited for, but so many need not come */
#define DONES		60
/* One in so many may be late, and takes longer: machines stand still. */
#define FEW		20
/*
 * Of ends more: an emulator that stands still for a few ms makes all late that
 * are under way, 1 in 25 on a quiet machine, and looks see but some of it.
 */
#define FEW_LATE	10
/* For saying something about them. */
#define ENOUGH		20

/* ---- how long others wait ---- */

struct turn {
	long nr, ns;
	int boosts;
	int disturbed;		/* the machine stood still */
};

struct turns {
	long all, of_several;	/* boosts */
	long steady, too_long;	/* of these */
	long longest;		/* ns */
};

static void turn_ends(struct turns *t, const struct turn *turn, long limit)
{
	if (!turn->boosts)
		return;
	t->all++;
	t->of_several += turn->boosts > 1;
	if (turn->ns > t->longest)
		t->longest = turn->ns;
	if (turn->disturbed)
		return;
	t->steady++;
	t->too_long += turn->ns > limit;
}

/* Next to none; that the machine stood still is not always seen. */
static void report_turns(const struct turns *t, const struct looks *l,
			 const char *name)
{
	report_if(t->steady >= ENOUGH,
		  t->steady >= ENOUGH && t->too_long * FEW <= t->steady, l,
		  name);
}

/*
 * What boosts took between two moments at which @tid was given the CPU. A boost
 * belongs to where it began: that it is over may be recorded a little after
 * somebody else has the CPU, but the next one of that vCPU begins later still.
 */
static struct turns turns_of(pid_t tid, long limit)
{
	FILE *f = trace_read();
	struct turn now = { }, last = { };
	struct turns t = { };
	long begun[NR] = { };
	struct boost_event e;

	while (trace_next(f, &e)) {
		if (e.kind == SWITCH && e.next == tid) {
			turn_ends(&t, &last, limit);
			last = now;
			now = (struct turn){ .nr = last.nr + 1 };
		} else if (e.kind == MARK) {
			last.disturbed = 1;
			now.disturbed = 1;
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
	turn_ends(&t, &last, limit);
	turn_ends(&t, &now, limit);
	return t;
}

/*
 * As Documentation/boost.md has it; and half as long again as is allowed before
 * an end counts as late.
 */
static long limit_ns(int row)
{
	return row * BOUND_US * 1000L + BOUND_US * 1500L + tick_ns();
}

static void all_critical(__u32 word)
{
	int i;

	for (i = 0; i < NR; i++)
		guest[i].critical = word;
}

/*
 * One vCPU after the other, so that some boost is always about to begin as
 * another one goes on; now and then all at once, as a row of one leaves no room
 * for a second one later.
 */
static void ask_in_turn(void)
{
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < NR; i++)
		if (next % NR == i || next % 4 == 0)
			send(i);
	next++;
	usleep(1000);
}

/*
 * All vCPUs are critical all the time, and without boosts they have next to
 * nothing of the CPU. Interrupts for them ask again and again.
 */
static void turns(int row)
{
	long limit = limit_ns(row), late, n, cut, bounds;
	char what[32], text[128];
	struct looks looks;
	struct turns t;
	__u64 end;

	snprintf(what, sizeof(what), "boost_row=%d", row);
	generous("2000");
	percent("boost_row", row);
	hog_start(HOG_FAIR);
	trace_filter("sched_switch", "next_pid == %d", hog.tid);
	late = count("late_ends");
	cut = count("cpu_turn");
	n = begun();
	bounds = n + count("extended");
	trace_empty();
	looks = looks_now();
	all_critical(CRITICAL);
	end = now_ns() + 30000000000ULL * slowness();
	while (now_ns() < end && (count("cpu_turn") < cut + TURNS ||
				  begun() < n + 2 * TURNS))
		ask_in_turn();
	all_critical(VB_CRITICAL_SAID);
	looks = looks_since(looks);
	snprintf(text, sizeof(text), "%s: at rest", what);
	report(at_rest(), text);
	late = count("late_ends") - late;
	cut = count("cpu_turn") - cut;
	n = begun() - n;
	bounds = begun() + count("extended") - bounds;
	t = turns_of(hog.tid, limit);
	hog_stop();
	printf("# %s: %ld boosts in %ld turns, %ld of several, %ld more refused; longest %ld us; of %ld undisturbed %ld above %ld us; %ld of %ld bounds kept late, %ld of %ld looks\n",
	       what, n, t.all, t.of_several, cut, t.longest / 1000, t.steady,
	       t.too_long, limit / 1000, late, bounds, looks.late, looks.all);
	snprintf(text, sizeof(text), "%s: boosts of both follow each other",
		 what);
	report(t.of_several > 0, text);
	snprintf(text, sizeof(text), "%s: until the turn is over", what);
	report(cut > 0, text);
	snprintf(text, sizeof(text), "%s: nobody waits longer than that", what);
	report_turns(&t, &looks, text);
	/*
	 * But for a machine on which every timer is: with a debug kernel a bound,
	 * which the worker wakes up for, is late up to 4.3 times as often as a
	 * look. A boost that is extended has several bounds, and each can be late.
	 */
	snprintf(text, sizeof(text), "%s: few ends are late", what);
	report_if(late * looks.all > (slowness() > 1 ? 8 : 4) * looks.late * bounds,
		  late * FEW_LATE <= bounds, &looks, text);
	defaults();
}

/* ---- how long who wakes up waits ---- */

#define WAITS	50

static struct {
	pthread_t thread;
	volatile int stop;
	volatile pid_t tid;
} waker;

/* As a kernel thread that has little to do now and then. */
static void *waker_fn(void *unused)
{
	vm_pin(there);
	waker.tid = gettid();
	while (!waker.stop)
		usleep(5000);
	return unused;
}

static int is_boosted_vcpu(const struct boost_event *e)
{
	int i, is = 0;

	for (i = 0; i < NR; i++)
		is |= e->next == thread[i].tid;
	return is && e->next_prio < 100;
}

/*
 * From each wake-up until it has the CPU, how long had boosted vCPUs that? By the
 * clock; what others had is none of it.
 */
static struct turns waits_of(long limit)
{
	FILE *f = trace_read();
	struct turn wait = { };
	struct turns t = { };
	struct boost_event e;
	long since = -1;

	while (trace_next(f, &e)) {
		if (e.kind == WAKEUP) {
			wait = (struct turn){ .boosts = since >= 0 };
			if (since >= 0)
				since = e.us;
		} else if (e.kind == MARK) {
			wait.disturbed = 1;
		} else if (e.kind == SWITCH) {
			if (since >= 0)
				wait.ns += (e.us - since) * 1000;
			since = is_boosted_vcpu(&e) ? e.us : -1;
			if (e.next == waker.tid) {
				turn_ends(&t, &wait, limit);
				wait = (struct turn){ };
			}
		}
	}
	fclose(f);
	return t;
}

static void waits(int row)
{
	long limit = limit_ns(row);
	struct looks looks;
	struct turns t;
	char text[128];
	__u64 end;

	generous("2000");
	percent("boost_row", row);
	waker.stop = 0;
	waker.tid = 0;
	vm_pthread(&waker.thread, waker_fn, NULL);
	AWAIT(waker.tid);
	trace_filter("sched_switch", "CPU == %d", there);
	trace_filter("sched_wakeup", "pid == %d", waker.tid);
	trace_empty();
	looks = looks_now();
	all_critical(CRITICAL);
	end = now_ns() + 5000000000ULL * slowness();
	while (now_ns() < end)
		ask_in_turn();
	all_critical(VB_CRITICAL_SAID);
	looks = looks_since(looks);
	report(at_rest(), "who wakes up: at rest");
	waker.stop = 1;
	pthread_join(waker.thread, NULL);
	t = waits_of(limit);
	trace_filter("sched_wakeup", "pid == %d", 0);
	printf("# boost_row=%d: %ld waits for boosts; longest %ld us; of %ld undisturbed %ld above %ld us\n",
	       row, t.all, t.longest / 1000, t.steady, t.too_long, limit / 1000);
	snprintf(text, sizeof(text), "boost_row=%d: who wakes up waits for boosts",
		 row);
	report_if(was_steady(&looks), t.all >= WAITS, &looks, text);
	snprintf(text, sizeof(text),
		 "boost_row=%d: and no longer than for one turn", row);
	report_turns(&t, &looks, text);
	defaults();
}

static void disturbed(void)
{
	trace_mark(0);
}

/* ---- the CPU is given up at once ---- */

/*
 * From each end by VB_OP_DONE until the vCPU has lost its CPU, us: the median.
 * -1: there are not enough of them.
 */
static long lasts_us(int *n)
{
	FILE *f = trace_read();
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
	return median(us, *n, DONES);
}

static void hands_over(int repay)
{
	long n = count("ended_done"), us, tick_us = tick_ns() / 1000;
	struct looks looks = looks_now();
	char text[128];
	int i, ends;

	generous("20000");
	percent("boost_repay", repay);
	hog_start(HOG_FAIR);
	trace_filter("sched_switch", "prev_pid == %d", thread[0].tid);
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
	looks = looks_since(looks);
	hog_stop();
	printf("# boost_repay=%d: %d times done, then the CPU was kept for %ld us (median; a tick: %ld us)\n",
	       repay, ends, us, tick_us);
	/* Not given up it would be kept until a tick comes, at least. */
	snprintf(text, sizeof(text),
		 "done, boost_repay=%d: somebody else has the CPU before a tick could come",
		 repay);
	report_if(was_steady(&looks), us >= 0 && us < tick_us / 4, &looks, text);
	defaults();
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv);
	struct attributes before;
	pid_t tid;
	int i;

	if (status)
		return status;
	all_critical(VB_CRITICAL_SAID);
	trace_filter("sched_wakeup", "pid == %d", 0);
	tid = start(0);
	before = attributes_of(tid);
	disturbed();
	steady_tells = disturbed;
	steady_start();
	hands_over(1);
	hands_over(0);
	for (i = 1; i < NR; i++)
		start(i);
	for (i = 0; i < NR; i++)
		least_weight(i);
	before.a.nice = 19;
	turns(1);
	turns(4);
	waits(4);
	steady_stop();
	return trace_end(tid, &before);
}
