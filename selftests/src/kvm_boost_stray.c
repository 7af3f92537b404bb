// SPDX-License-Identifier: GPL-2.0
/*
 * A boosted thread that may run elsewhere: the scheduler moves it there when its
 * CPU has another one that is real-time. A CPU that has no time left for boosts
 * gives it none. Prints KTAP. Needs /dev/kvm, vbalance_host, root and three CPUs:
 * nothing is moved to that of the worker, which is real-time as well.
 *
 *	kvm_boost_stray DIR	of tracefs, where vb_host_boost, vb_host_boost_end
 *				and sched_switch are recorded
 */
#define _GNU_SOURCE
#include "boosttrace.h"

#define ROUNDS		100
#define STRAYS		3
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
 * vCPU 1 takes all that our CPU has, beside us: who is refused, and is boosted
 * once more, gets DEBT_NS for next to nothing. Return: until when at least the
 * CPU has none, ns; 0: not as it should be.
 */
static __u64 drain(void)
{
	long no, n, over;
	int good;

	/* A boost that ended late took more: both CPUs get that back first. */
	generous("20000");
	percent("boost_row", 1);
	may_run(thread[1].tid, there, there);
	good = boosted(0);
	may_run(thread[1].tid, here, here);
	good = good && boosted(1);
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
	return good && at_rest() ? now_ns() + DEBT_NS * 100 / PERCENT / 2 : 0;
}

struct strays {
	long all;
	long longest;			/* ns */
};

/* Boosts of vCPU 1 that got their first CPU time on our CPU. */
static void look(struct strays *s)
{
	int begun = 0, strayed = 0;
	struct boost_event e;
	FILE *f = trace_read();

	while (trace_next(f, &e)) {
		if (e.kind == BOOST_BEGINS && e.vcpu == 1) {
			begun = 1;
			strayed = 0;
		} else if (e.kind == SWITCH && begun &&
			   e.next == thread[1].tid && e.next_prio < 100) {
			strayed = e.cpu == here;
			begun = 0;
		} else if (e.kind == BOOST_ENDS && e.vcpu == 1) {
			if (strayed && e.ns > s->longest)
				s->longest = e.ns;
			s->all += strayed;
			strayed = 0;
		}
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
		usleep(20000);
	}
	at_rest();
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv), i, good = 1, third;
	struct attributes before;
	struct strays s = { };
	cpu_set_t was;
	pid_t tid, boosts;
	__u64 until;

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
	trace_filter("sched_switch", "next_pid == %d", thread[1].tid);
	guest[1].critical = VB_CRITICAL_SAID;
	for (i = 0; i < ROUNDS && good && s.all < STRAYS; i++) {
		until = drain();
		good = until != 0;
		trace_empty();
		if (good)
			compete(until);
		look(&s);
	}
	may_run(thread[1].tid, there, there);
	report(good, "our CPU has no time for boosts");
	report(s.all >= STRAYS, "boosted threads were moved to our CPU");
	printf("# %ld in %d rounds, the longest %ld us\n", s.all, i,
	       s.longest / 1000);
	report(s.longest < BOOST_US * 1000 / 2, "and got no time there");
	if (boosts)
		sched_setaffinity(boosts, sizeof(was), &was);
	defaults();
	return trace_end(tid, &before);
}
