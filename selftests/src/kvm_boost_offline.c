// SPDX-License-Identifier: GPL-2.0
/*
 * The CPU of vCPUs that are boosted again and again goes offline, and comes
 * back: its threads are moved, boosted or not, and boosts go on where they are.
 * Prints KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs, of which one can
 * go.
 *
 *	kvm_boost_offline DIR	of tracefs, where vb_host_boost, vb_host_boost_end
 *				and sched_switch are recorded
 */
#define _GNU_SOURCE
#include "boosttrace.h"

#define ROUNDS	20

static char online_file[64];

/* Return: done. */
static int online(int on)
{
	FILE *f = fopen(online_file, "w");

	return f && fprintf(f, "%d", on) > 0 && !fclose(f);
}

/* How often was vCPU 0's thread moved in a boost? */
static long moved_boosted(pid_t tid)
{
	struct boost_event e;
	FILE *f = trace_read();
	int was_there = 0;
	long n = 0;

	while (trace_next(f, &e)) {
		if (e.kind == BOOST_ENDS) {
			was_there = 0;
		} else if (e.kind == SWITCH && e.next == tid &&
			   e.next_prio < 100) {
			n += was_there && e.cpu != there;
			was_there = e.cpu == there;
		}
	}
	fclose(f);
	return n;
}

struct rounds {
	long going, moved;	/* boosts */
	int gone, back;		/* the CPU */
	int away;		/* boosts meanwhile */
};

static void go_and_come_back(struct rounds *r, pid_t tid)
{
	__u64 beats;
	long n;

	trace_empty();
	guest[0].critical = CRITICAL;
	AWAIT(host[0].boosted);
	n = begun();
	r->gone += online(0);
	r->going += begun() - n;
	beats = vm_box(&m, 0)->beats;
	AWAIT(vm_box(&m, 0)->beats > beats);
	/* Not each on a CPU of its own. */
	may_run(tid, here, here);
	may_run(hog.tid, here, here);
	n = begun();
	r->away += AWAIT(begun() > n);
	r->back += online(1);
	guest[0].critical = VB_CRITICAL_SAID;
	at_rest();
	r->moved += moved_boosted(tid);
	/* They may run everywhere now. */
	may_run(tid, there, there);
	may_run(hog.tid, there, there);
}

int main(int argc, char **argv)
{
	int status = trace_set_up(argc, argv), i;
	struct attributes before;
	struct rounds r = { };
	pid_t tid;
	long n;

	if (status)
		return status;
	snprintf(online_file, sizeof(online_file),
		 "/sys/devices/system/cpu/cpu%d/online", there);
	if (access(online_file, W_OK)) {
		skip("boosts on a CPU that goes", "it cannot be taken offline");
		vm_destroy(&m);
		return end();
	}
	tid = start(0);
	before = attributes_of(tid);
	generous("4000");
	hog_start(HOG_FAIR);
	trace_filter("sched_switch", "next_pid == %d", tid);
	for (i = 0; i < ROUNDS; i++)
		go_and_come_back(&r, tid);
	expect(r.gone, ROUNDS, "the CPU goes");
	expect(r.back, ROUNDS, "and comes back");
	printf("# %ld boosts while it went, %ld with a thread that was moved\n",
	       r.going, r.moved);
	report(r.going > 0, "there are boosts while it goes");
	expect(r.away, ROUNDS, "and where they are when it has gone");
	n = begun();
	guest[0].critical = CRITICAL;
	report(AWAIT(begun() > n), "and afterwards");
	guest[0].critical = VB_CRITICAL_SAID;
	report(at_rest(), "at rest");
	hog_stop();
	defaults();
	return trace_end(tid, &before);
}
