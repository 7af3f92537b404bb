// SPDX-License-Identifier: GPL-2.0
/*
 * A boosted thread that is moved to another CPU, by somebody or, as its CPU has
 * another one that is real-time, by the scheduler: on one that has time for
 * boosts it goes on, on one that has none it ends as soon as the worker looks.
 * Prints KTAP. Needs /dev/kvm, vbalance_host, root and three CPUs: nothing is
 * moved to that of the worker, which is real-time as well.
 *
 * Whoever had the CPU that a boost was to empty (a machine that stands still)
 * leaves it with time for others, and a boost that is moved there goes on, as it
 * should. So what was tried is repeated until it has been seen.
 *
 *	kvm_boost_stray DIR	of tracefs, where vb_host_boost_end is recorded
 */
#define _GNU_SOURCE
#include "boosttrace.h"

#define ROUNDS		200
#define FAILURES	10
#define TIMES		3
#define BOOST_US	4000
#define DEBT_NS		20000000ULL	/* about what is drained */
#define PERCENT		1
#define PERCENT_BACK	10

/* One boost of a vCPU. It may be over before we have a CPU again. */
static int boosted(int vcpu)
{
	long n = begun(), over = ended();
	int good;

	guest[vcpu].critical = CRITICAL;
	good = CATCH(begun() > n) && CATCH(ended() > over);
	guest[vcpu].critical = VB_CRITICAL_SAID;
	return good;
}

/*
 * @there has a good deal of time again: a CPU that is asked gets what has come
 * since by the share that is set then. @here is not asked.
 */
static int fill_there(void)
{
	int good = 1, late = 1, i;
	long ns;

	generous("100");
	may_run(thread[1].tid, there, there);
	for (i = 0; i < FAILURES && good && late; i++) {
		usleep(2 * DEBT_NS / 1000);
		ns = count("boosted_ns");
		good = boosted(0) && at_rest();
		/* It is this one that has had it. */
		late = count("boosted_ns") - ns > (long)DEBT_NS / 2;
	}
	percent("boost_cpu_share", PERCENT);
	return good && !late;
}

/*
 * vCPU 1 takes all that our CPU has, beside us: who is refused, and is boosted
 * once more, gets DEBT_NS for next to nothing. Return: until when at least the
 * CPU has none, ns, if they got it; 0: not as it should be.
 */
static __u64 drain(void)
{
	long no, n, over;
	__u64 until;
	int good;

	generous("20000");
	percent("boost_row", 1);
	may_run(thread[1].tid, here, here);
	good = boosted(1);
	percent("boost_cpu_share", PERCENT);
	no = count("no_cpu_tokens");
	guest[1].critical = CRITICAL;
	good = good && CATCH(count("no_cpu_tokens") > no);
	n = begun();
	over = ended();
	percent("boost_cpu_share", PERCENT_BACK);
	good = good && CATCH(begun() > n);
	percent("boost_cpu_share", PERCENT);
	good = good && CATCH(ended() > over);
	guest[1].critical = VB_CRITICAL_SAID;
	/* A part of it is left to what it takes to get here. */
	until = now_ns() + DEBT_NS * 100 / PERCENT * 3 / 4;
	return good && at_rest() ? until : 0;
}

struct move {
	int on;			/* in a boost */
	int only;		/* and there was no other one */
	long extended, moved;	/* what came of that */
	int paused;		/* back on its CPU it was let wait */
};

/* vCPU 1 is boosted and moved from @there to @here, by us from CPU @third. */
static struct move move(int third)
{
	long n = begun(), no = no_time(), moved = count("ended_moved");
	long extended, pause;
	struct move is = { };

	vm_pin(third);
	set_parameter("boost_us", "20000");
	may_run(thread[1].tid, there, there);
	guest[1].critical = CRITICAL;
	/* A boost that ended late has left @there without. */
	CATCH(host[1].boosted || no_time() > no);
	may_run(thread[1].tid, here, here);
	is.on = host[1].boosted;
	/* Alone there it asks for no other one. */
	extended = count("extended");
	pause = count("pause");
	CATCH(!host[1].boosted || count("extended") > extended);
	is.extended = count("extended") - extended;
	if (is.on && !is.extended) {
		no = no_time();
		may_run(thread[1].tid, there, there);
		CATCH(count("pause") > pause || begun() > n + 1 ||
		      no_time() > no);
		is.paused = count("pause") > pause && no_time() == no;
	}
	guest[1].critical = VB_CRITICAL_SAID;
	is.only = at_rest() && is.on && begun() == n + 1;
	is.moved = count("ended_moved") - moved;
	vm_pin(here);
	return is;
}

/* To a CPU that has time. */
static void goes_on(int third)
{
	long on = 0, ended = 0;
	struct move is;
	int i;

	for (i = 0; i < ROUNDS && on < TIMES && !ended; i++) {
		generous("20000");
		usleep(2 * DEBT_NS / 1000);
		is = move(third);
		on += is.only && is.extended;
		ended += is.only && is.moved;
	}
	printf("# %ld went on in %d rounds, %ld ended\n", on, i, ended);
	report(on >= TIMES && !ended,
	       "a boost goes on that we move to a CPU with time");
}

/*
 * Ends of boosts of vCPU 1 as it was moved: all, and those with little CPU time.
 * It gets little also if somebody else had its CPU for the rest of its time.
 */
static void look(long *all, long *soon)
{
	struct boost_event e;
	FILE *f = trace_read();

	while (trace_next(f, &e)) {
		if (e.kind != BOOST_ENDS || e.vcpu != 1 ||
		    strcmp(e.why, "moved"))
			continue;
		*all += 1;
		*soon += e.ns < BOOST_US * 1000 / 2;
	}
	fclose(f);
}

/* Both compete for @there; the one that is boosted is in the other's way. */
static void compete(__u64 until)
{
	char us[16];
	long n;

	snprintf(us, sizeof(us), "%d", BOOST_US);
	set_parameter("boost_us", us);
	while (now_ns() < until) {
		n = ended();
		may_run(thread[1].tid, there, there);
		may_run(thread[1].tid, there, here);
		guest[0].critical = CRITICAL;
		guest[1].critical = CRITICAL;
		CATCH(ended() > n || now_ns() > until);
		guest[0].critical = VB_CRITICAL_SAID;
		guest[1].critical = VB_CRITICAL_SAID;
		at_rest();
	}
}

/* Most of them, and some at least. */
static int most(long all, long soon)
{
	return soon >= TIMES && 2 * soon > all;
}

/* To one that has none. */
static void none(int third)
{
	long by_us = 0, paused = 0, by_scheduler = 0, soon = 0;
	/* For boost_us: a slow machine takes longer to be back. */
	int let_wait = slowness() > 1 ? 0 : TIMES;
	int i, failures = 0;
	struct move is;
	__u64 until;

	for (i = 0; i < ROUNDS && failures < FAILURES &&
	     (!by_us || paused < let_wait || !most(by_scheduler, soon));
	     i++) {
		until = drain();
		if (!until || !fill_there()) {
			failures++;
		} else if (i % 2) {
			is = move(third);
			by_us += is.on && is.moved;
			paused += is.only && is.moved && is.paused;
		} else {
			trace_empty();
			compete(until);
			look(&by_scheduler, &soon);
		}
	}
	printf("# %ld by us, %ld let wait; %ld by the scheduler, %ld soon; in %d rounds, %d failed\n",
	       by_us, paused, by_scheduler, soon, i, failures);
	report(failures < FAILURES, "boosts that take what our CPU has");
	report(by_us, "a boost ends that we move there");
	if (let_wait)
		report(paused >= let_wait, "and there is none for a while");
	else
		skip("and there is none for a while", "slow machine");
	report(most(by_scheduler, soon),
	       "one that the scheduler moves there does as another one begins");
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv), third;
	struct attributes before;
	pid_t tid, boosts;
	cpu_set_t was;

	if (status)
		return status;
	third = third_cpu();
	if (third < 0) {
		skip("boosted threads that are moved", "needs three CPUs");
		vm_destroy(&m);
		return end();
	}
	boosts = worker_pin(third, &was);
	report(boosts, "the worker is there");
	tid = start(0);
	before = attributes_of(tid);
	start(1);
	guest[1].critical = VB_CRITICAL_SAID;
	goes_on(third);
	none(third);
	may_run(thread[1].tid, there, there);
	if (boosts)
		sched_setaffinity(boosts, sizeof(was), &was);
	defaults();
	return trace_end(tid, &before);
}
