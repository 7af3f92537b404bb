// SPDX-License-Identifier: GPL-2.0
/*
 * A boosted thread that is moved to another CPU, by somebody or, as its CPU has
 * another one that is real-time, by the scheduler: one that has time for boosts
 * goes on with it, one that has none gives it none. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and three CPUs: nothing is moved to that of the worker,
 * which is real-time as well.
 *
 * Whoever had the CPU that a boost was to empty (a machine that stands still)
 * leaves it with time for others, and a boost that is moved there goes on, as it
 * should. So it is how a boost ends that counts, and what was tried is repeated.
 */
#define _GNU_SOURCE
#include "boosttest.h"

#define ROUNDS		100
#define TIMES		3
#define DEBT_NS		20000000ULL	/* about what is drained */
#define PERCENT		1
#define PERCENT_BACK	10

static long moved(void)
{
	return count("ended_moved");
}

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
 * @there has all the time again that a CPU can have: a CPU that is asked gets
 * what has come since by the share that is set then. @here is not asked.
 */
static int fill_there(void)
{
	int good;

	generous("100");
	may_run(thread[1].tid, there, there);
	usleep(2 * DEBT_NS / 1000);
	good = boosted(0) && at_rest();
	percent("boost_cpu_share", PERCENT);
	return good;
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
	until = now_ns() + DEBT_NS * 100 / PERCENT / 2;
	return good && at_rest() ? until : 0;
}

/*
 * vCPU 1 is boosted and moved from @there to @here, by us from a third CPU.
 * Return: how many of its boosts ended for that; -1: it was not boosted any more.
 */
static long move(void)
{
	long n = begun(), before = moved();
	int on;

	set_parameter("boost_us", "20000");
	may_run(thread[1].tid, there, there);
	guest[1].critical = CRITICAL;
	on = CATCH(host[1].boosted);
	may_run(thread[1].tid, here, here);
	on = on && host[1].boosted;
	guest[1].critical = VB_CRITICAL_SAID;
	return at_rest() && on && begun() == n + 1 ? moved() - before : -1;
}

/* To a CPU that has time. Return: TIMES of them went on, and none ended. */
static int goes_on(int third)
{
	long n, on = 0, ended = 0;
	int i;

	vm_pin(third);
	for (i = 0; i < ROUNDS && on < TIMES && !ended; i++) {
		generous("20000");
		usleep(2 * DEBT_NS / 1000);
		n = move();
		on += !n;
		ended += n > 0;
	}
	vm_pin(here);
	printf("# %ld in %d rounds went on, %ld ended\n", on, i, ended);
	return on >= TIMES && !ended;
}

/* Both compete for @there; the one that is boosted is in the other's way. */
static void compete(__u64 until)
{
	long n;

	set_parameter("boost_us", "2000");
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

/* To one that has none. */
static void none(int third)
{
	long n, by_us = 0, by_scheduler = 0;
	int i, good = 1;
	__u64 until;

	for (i = 0; i < ROUNDS && (by_us < TIMES || by_scheduler < TIMES); i++) {
		until = drain();
		good = until && fill_there();
		if (!good)
			break;
		vm_pin(third);
		by_us += move() > 0;
		vm_pin(here);
		good = fill_there();
		if (!good)
			break;
		n = moved();
		compete(until);
		by_scheduler += moved() - n;
	}
	printf("# %ld by us, %ld by the scheduler, in %d rounds\n", by_us,
	       by_scheduler, i);
	report(good, "our CPU has no time for boosts");
	report(by_us >= TIMES, "a boost ends that we move there");
	report(by_scheduler >= TIMES, "and one that the scheduler moves there");
}

int main(void)
{
	struct attributes before;
	pid_t tid, boosts;
	cpu_set_t was;
	int i, third;

	if (!set_up_guest())
		return 4;
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
	report(goes_on(third), "a boost goes on that we move to a CPU with time");
	none(third);
	may_run(thread[1].tid, there, there);
	if (boosts)
		sched_setaffinity(boosts, sizeof(was), &was);
	defaults();
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	report(becomes(tid, &before), "the thread is as it was");
	for (i = 0; i < 2; i++)
		report(!vm_join(&thread[i]), "the vCPU ends well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
