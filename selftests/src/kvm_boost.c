// SPDX-License-Identifier: GPL-2.0
/*
 * Who is boosted and who is not, and how it ends: the counters of a VM of our
 * own whose vCPU loses its CPU to a hog. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and two CPUs.
 *
 *	kvm_boost		all of it
 *	kvm_boost off		vbalance_host was loaded with observe=1
 *	kvm_boost third		of three vCPUs one runs all the time; needs three
 *				CPUs
 *	kvm_boost aside		where the worker goes; of three CPUs one is isolated
 *
 * That something does not happen is claimed only after many chances for it:
 * preemptions that the host has counted.
 */
#define _GNU_SOURCE
#include "boosttest.h"
#include "../core/redirect.h"

#define TRIES	200

/* @grows: a counter that has to; NULL: no boost may begin. */
static void hint(__u32 word, const char *grows, const char *name)
{
	long before = begun(), was = grows ? count(grows) : 0;
	int good;

	guest[0].critical = word;
	if (grows)
		good = AWAIT(count(grows) > was);
	else
		good = more_preemptions(0) && begun() == before;
	guest[0].critical = VB_CRITICAL_SAID;
	report(good && at_rest(), name);
}

static void hints(void)
{
	generous("500");
	set_parameter("holder_us", "0");
	hog_start(HOG_FAIR);
	hint(CRITICAL, "hint", "critical, an interrupt: boosted");
	hint(VB_CRITICAL_SAID | VB_CRITICAL_MOVE, "hint",
	     "critical, a move: boosted");
	hint(VB_CRITICAL_SAID | VB_CRITICAL_TASK, "task",
	     "critical, a process: boosted");
	hint(VB_CRITICAL_SAID, NULL, "not critical: not boosted");
	hint(0, NULL, "says nothing, no interrupt: not boosted");
	hint(VB_CRITICAL_ANY, NULL,
	     "critical, but does not say that it says: not boosted");
	hint(VB_CRITICAL_SAID | ~(__u32)VB_CRITICAL_ANY, NULL,
	     "unknown bits only: not boosted");
	set_parameter("boost", "0");
	hint(CRITICAL, NULL, "boost=0: not boosted");
	set_parameter("boost", "1");
	hint(CRITICAL, "hint", "boost=1 again: boosted");
	set_parameter("boost_share", "0");
	hint(CRITICAL, NULL, "boost_share=0: not boosted");
	report(count("no_vm_tokens") > 0, "boost_share=0: for lack of tokens");
	set_parameter("boost_share", "50");
	set_parameter("boost_vcpu_share", "0");
	hint(CRITICAL, NULL, "boost_vcpu_share=0: not boosted");
	report(count("no_vcpu_tokens") > 0,
	       "boost_vcpu_share=0: for lack of tokens");
	set_parameter("boost_vcpu_share", "50");
	set_parameter("boost_cpu_share", "0");
	hint(CRITICAL, NULL, "boost_cpu_share=0: not boosted");
	report(count("no_cpu_tokens") > 0,
	       "boost_cpu_share=0: for lack of tokens");
	hog_stop();
	defaults();
}

/*
 * What is refused for want of a CPU's time does not cost that CPU any: others
 * would have to pay for it. Interrupts while nobody runs, each of which may ask,
 * until a counter has grown.
 */
static int asked_until(const char *counter, long by)
{
	long n = count(counter);
	int i;

	for (i = 0; i < 50000 * slowness() && count(counter) < n + by; i++) {
		send(0);
		usleep(200);
	}
	return count(counter) >= n + by;
}

static void refusals(void)
{
	long n = begun();
	int many;

	generous("100");
	set_parameter("boost_cpu_share", "0");
	hog_start(HOG_FIFO);
	AWAIT(in_state(0, "preempted"));
	/* As much as a share of 1 % gets in ten seconds. */
	many = asked_until("no_cpu_tokens", 4000);
	report(many && at_rest() && begun() == n,
	       "boost_cpu_share=0: many are refused");
	set_parameter("boost_cpu_share", "1");
	report(asked_until("fast_path", 1) && at_rest(),
	       "boost_cpu_share=1 after that: boosted");
	hog_stop();
	defaults();
}

/* What is paid for, and how often in a row. */
static void rows(int row)
{
	struct given was = given_now();
	long rows, more, no, other;
	/*
	 * A slow machine takes 0.5 ms of each row to make a thread real-time, at
	 * times 1.3, one with more to do half of that: much of a row that is one
	 * boost. A long row must not use up all time.
	 */
	long us = slowness() > 1 ? (row == 1 ? 5000 : 2000) :
				   (row == 1 ? 2000 : 500);
	char text[16], name[64];

	snprintf(text, sizeof(text), "%ld", us);
	generous(text);
	snprintf(text, sizeof(text), "%d", row);
	set_parameter("boost_row", text);
	hog_start(HOG_FAIR);
	no = count("in_row");
	other = no_time();
	rows = begun();
	more = count("extended");
	guest[0].critical = CRITICAL;
	snprintf(name, sizeof(name), "boost_row=%d: refused, then again", row);
	/* Where ends are late a long row has used up all time, and is not whole. */
	report(AWAIT(count("in_row") > no + 5 ||
		     (row > 1 && no_time() > other + 50)), name);
	guest[0].critical = VB_CRITICAL_SAID;
	hog_stop();
	snprintf(name, sizeof(name), "boost_row=%d: at rest", row);
	report(at_rest(), name);
	no = count("in_row") - no;
	rows = begun() - rows;
	more = count("extended") - more;
	/* Rows can also end for another reason. */
	printf("# %ld begun, %ld extended, %ld refused\n", rows, more, no);
	snprintf(name, sizeof(name), "boost_row=%d: just so many in a row", row);
	if (no)
		report(no <= rows && more <= rows * (row - 1) &&
		       more >= no * (row - 1), name);
	else
		skip(name, "this machine is too slow for a whole row");
	snprintf(name, sizeof(name), "boost_row=%d: they had the CPU", row);
	report(have_given(was, us, 50), name);
	defaults();
}

/*
 * Two vCPUs that want the same CPU, one boost each: when one has had its turn
 * the other one is refused, until somebody else had the CPU. Without boosts they
 * have next to nothing of it, so interrupts have to ask.
 */
static void turns(void)
{
	long turns = count("cpu_turn"), n = begun(), ns, hog_ns;
	int i, percent;

	start(1);
	least_weight(0);
	least_weight(1);
	/* Longer than a slice: the other one loses its CPU in the pause. */
	generous("20000");
	set_parameter("boost_row", "1");
	hog_start(HOG_FAIR);
	guest[0].critical = CRITICAL;
	guest[1].critical = CRITICAL;
	hog_ns = cpu_ns(hog.tid);
	ns = cpu_ns(thread[0].tid) + cpu_ns(thread[1].tid);
	for (i = 0; i < 5000 * slowness(); i++) {
		if (count("cpu_turn") > turns + 5 && begun() > n + 10)
			break;
		send(i % 2);
		usleep(2000);
	}
	ns = cpu_ns(thread[0].tid) + cpu_ns(thread[1].tid) - ns;
	hog_ns = cpu_ns(hog.tid) - hog_ns;
	guest[0].critical = VB_CRITICAL_SAID;
	guest[1].critical = VB_CRITICAL_SAID;
	report(count("cpu_turn") > turns + 5,
	       "two critical vCPUs on one CPU: its turns end");
	hog_stop();
	report(at_rest() && begun() > n + 10,
	       "two critical vCPUs on one CPU: and begin again");
	percent = ns * 100 / (ns + hog_ns);
	printf("# vCPUs %ld us, hog %ld us\n", ns / 1000, hog_ns / 1000);
	/* By weight it would be 3. */
	report(percent >= 10, "two critical vCPUs on one CPU: they have it");
	vm_must(set_attr(thread[0].tid, (struct attr){ }), "sched_setattr");
	report(!vm_join(&thread[1]), "the other vCPU ends well");
	defaults();
}

static int is_boosted(pid_t tid)
{
	struct attributes x = attributes_of(tid);

	return x.a.policy == SCHED_FIFO && x.a.priority == 1;
}

/* Seen from outside: the thread, and the word for the guest. */
static void seen(pid_t tid)
{
	generous("20000");
	hog_start(HOG_FAIR);
	guest[0].critical = CRITICAL;
	report(CATCH(is_boosted(tid)), "a boosted thread is SCHED_FIFO");
	report(CATCH(host[0].boosted), "the guest is told");
	report(!host[1].boosted, "not about another vCPU");
	guest[0].critical = VB_CRITICAL_SAID;
	report(at_rest() && !is_boosted(tid), "and then it is not");
	hog_stop();
	defaults();
}

/* Where a thread is, or was last: field 39 of proc(5)'s stat. */
static int last_cpu(pid_t tid)
{
	char path[64], line[1024], *p;
	FILE *f;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		vm_must(-1, path);
	fclose(f);
	p = strrchr(line, ')');
	for (i = 2; p && i < 39; i++)
		p = strchr(p + 1, ' ');
	if (!p)
		vm_must(-1, path);
	return atoi(p + 1);
}

/*
 * The worker is on the CPU of a vCPU whose thread may run elsewhere: it goes
 * away, and may come back. @isolated: a CPU to which the scheduler moves no
 * thread by itself; -1: none. Return: how often the worker went there.
 */
static int aside(pid_t tid, int isolated)
{
	cpu_set_t all, was, both, now;
	pid_t pid = worker();
	int i, good = pid, same = pid, rested = 1, went = 0;
	long n;

	vm_must(sched_getaffinity(tid, sizeof(was), &was), "sched_getaffinity");
	CPU_ZERO(&both);
	CPU_SET(isolated < 0 ? here : isolated, &both);
	CPU_SET(there, &both);
	vm_must(sched_setaffinity(tid, sizeof(both), &both),
		"sched_setaffinity");
	generous("500");
	hog_start(HOG_FAIR);
	for (i = 0; i < 10 && good; i++) {
		/*
		 * It moves when it is woken up, and with another CPU to go to
		 * it may have left before it is seen there.
		 */
		good = worker_pin(there, &all) == pid;
		n = begun();
		guest[0].critical = CRITICAL;
		good = good && AWAIT(last_cpu(pid) == there || begun() > n);
		good = !sched_setaffinity(pid, sizeof(all), &all) && good;
		n = begun();
		good = good && AWAIT(begun() > n + 10);
		guest[0].critical = VB_CRITICAL_SAID;
		rested = at_rest();
		went += last_cpu(pid) == isolated;
		if (!good || !rested)
			printf("# round %d: the worker was on %d, %ld boosts, %s\n",
			       i, last_cpu(pid), begun() - n,
			       rested ? "at rest" : "not at rest");
		good &= rested;
		CPU_ZERO(&now);
		same = same && !sched_getaffinity(pid, sizeof(now), &now) &&
			CPU_EQUAL(&now, &all);
	}
	hog_stop();
	report(good, "the worker begins on the CPU of one that may go elsewhere");
	report(same, "it may run everywhere afterwards");
	vm_must(sched_setaffinity(tid, sizeof(was), &was), "sched_setaffinity");
	defaults();
	return went;
}

static int not_to_isolated(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/isolated", "r");
	int isolated = -1;
	pid_t tid;

	if (f && (fscanf(f, "%d", &isolated) != 1 || fgetc(f) != '\n'))
		isolated = -1;
	if (f)
		fclose(f);
	if (isolated < 0 || isolated != third_cpu()) {
		skip("isolated CPUs", "needs three, of which just that one is");
		vm_destroy(&m);
		return end();
	}
	defaults();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	tid = start(0);
	guest[0].critical = VB_CRITICAL_SAID;
	expect(aside(tid, isolated), 0, "it did not go to an isolated CPU");
	print_counts();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	vm_destroy(&m);
	return end();
}

/* ---- how it ends ---- */

static int back_from(__u64 command)
{
	if (!AWAIT(!vm_box(&m, 0)->command))
		return 0;
	if (command == VM_CMD_LEAVE) {
		if (!AWAIT(thread[0].waits))
			return 0;
		vm_resume(&thread[0]);
	} else if (command == VM_CMD_HALT) {
		if (!AWAIT(in_state(0, "halted")))
			return 0;
		vm_nmi(&m, 0);
	}
	return 1;
}

/* The boost may be over before the guest sees the command: again then. */
static void ends(__u64 command, const char *counter, const char *name)
{
	long before = count(counter);
	int i, good = 1;

	guest[0].critical = CRITICAL;
	for (i = 0; i < TRIES && good && count(counter) == before; i++) {
		good = CATCH(host[0].boosted);
		vm_command(&thread[0], command);
		good = good && back_from(command);
	}
	good = good && AWAIT(count(counter) > before);
	guest[0].critical = VB_CRITICAL_SAID;
	report(good && at_rest(), name);
}

static void endings(void)
{
	long n;

	generous("20000");
	hog_start(HOG_FAIR);
	ends(VM_CMD_DONE, "ended_done", "VB_OP_DONE ends it");
	ends(VM_CMD_HALT, "ended_off_cpu", "a halt ends it");
	ends(VM_CMD_LEAVE, "ended_off_cpu", "an exit to user space ends it");
	set_parameter("boost_us", "500");
	n = count("ended_bound");
	guest[0].critical = CRITICAL;
	report(AWAIT(count("ended_bound") > n + 20), "time ends it");
	guest[0].critical = VB_CRITICAL_SAID;
	report(at_rest(), "all have ended");
	hog_stop();

	n = count("ended_done");
	vm_command(&thread[0], VM_CMD_DONE);
	report(AWAIT(!vm_box(&m, 0)->command) && count("ended_done") == n,
	       "VB_OP_DONE without a boost: nothing");
	expect(vm_call(&m, 1, VB_HYPERCALL, VB_OP_DONE, 0, 0, 0), 0,
	       "VB_OP_DONE without a boost: result");
	defaults();
}

/* ---- a guest that does not say ---- */

/* Interrupts, and preemptions soon after: it becomes holder, or it does not. */
static void holder_by(__u32 address, __u32 data, int becomes_it,
		      const char *name)
{
	long before = count("holder"), n = vm_preempted(&m, 0);
	int i, good;

	for (i = 0; i < 60000; i++) {
		send_msi(address, data);
		usleep(1000);
		if (becomes_it ? count("holder") > before :
				 vm_preempted(&m, 0) > n + PREEMPTIONS)
			break;
	}
	good = becomes_it ? count("holder") > before :
		vm_preempted(&m, 0) > n + PREEMPTIONS &&
		count("holder") == before;
	report(good && at_rest(), name);
}

static void holder(int becomes_it, const char *name)
{
	holder_by(MSI_TO(0), 0, becomes_it, name);
}

/* What older kernels and other systems have their devices send. */
static void kinds(void)
{
	generous("500");
	set_parameter("holder_us", "2000");
	hog_start(HOG_FAIR);
	holder_by(MSI_TO(0), MSI_LOWEST, 1, "lowest priority: holder");
	holder_by(MSI_TO(1) | MSI_LOGICAL, MSI_LOWEST, 1,
		  "lowest priority, one logical destination: holder");
	holder_by(MSI_TO(0), MSI_LEVEL, 1, "level-triggered: holder");
	holder_by(MSI_TO(3) | MSI_LOGICAL, MSI_LOWEST, 0,
		  "lowest priority, two destinations: no holder");
	holder_by(MSI_TO(1), 0, 0, "for another vCPU: no holder");
	hog_stop();
	defaults();
}

/*
 * One interrupt is enough for holder_us. Whatever wall-clock time a loaded
 * machine takes: by then the vCPU itself has run for longer.
 */
static void holder_expires(const char *who)
{
	pid_t tid = thread[0].tid;
	long before, ran;
	char name[96];
	int good;

	set_parameter("holder_us", "2000");
	send(0);
	ran = cpu_ns(tid);
	good = AWAIT(cpu_ns(tid) - ran > 50000000) && at_rest();
	before = count("holder");
	good &= more_preemptions(0) && count("holder") == before;
	snprintf(name, sizeof(name), "%s, an interrupt long ago: no holder",
		 who);
	report(good, name);
}

#define LATE_US	50000

/* Return: the vCPU had no CPU from before an interrupt until long after it. */
static int interrupt_waits(void)
{
	long n;

	hog_start(HOG_FIFO);
	AWAIT(in_state(0, "preempted"));
	n = vm_preempted(&m, 0);
	send(0);
	usleep(2 * LATE_US);
	return in_state(0, "preempted") && vm_preempted(&m, 0) == n;
}

/*
 * It is injected when its vCPU has a CPU again, and only then the guest begins
 * to work on it. Real-time threads let others run at times: again then.
 */
static void holder_late(const char *who)
{
	long before, n;
	char name[96];
	int i, good = 0;

	percent("holder_us", LATE_US);
	for (i = 0; i < 20 && !good; i++) {
		if (!interrupt_waits())
			continue;
		before = count("holder");
		n = vm_preempted(&m, 0);
		hog_start(HOG_FAIR);
		AWAIT(count("holder") > before || vm_preempted(&m, 0) > n + 20);
		good = count("holder") > before;
	}
	snprintf(name, sizeof(name), "%s, an interrupt waits for a CPU: holder",
		 who);
	report(good && at_rest(), name);
	hog_start(HOG_FAIR);
}

static void holders(const char *who)
{
	char name[96];
	long before, n;
	int i, good = 1;

	generous("500");
	hog_start(HOG_FAIR);
	set_parameter("holder_us", "0");
	snprintf(name, sizeof(name), "%s, holder_us=0: no holder", who);
	holder(0, name);
	holder_expires(who);
	holder_late(who);
	set_parameter("holder_us", "100000");
	snprintf(name, sizeof(name), "%s, an interrupt: holder", who);
	holder(1, name);

	/* What was delivered before a halt is done after it. */
	for (i = 0; i < 5 && good; i++) {
		send(0);
		vm_command(&thread[0], VM_CMD_HALT);
		good = AWAIT(in_state(0, "halted"));
		before = begun();
		n = vm_preempted(&m, 0);
		vm_nmi(&m, 0);
		good &= AWAIT(vm_preempted(&m, 0) > n + 3);
		good &= begun() == before;
	}
	snprintf(name, sizeof(name), "%s, after a halt: no holder", who);
	report(good && at_rest(), name);
	hog_stop();
	defaults();
}

/* ---- fast path ---- */

/*
 * vCPU 0 has lost its CPU to a real-time hog, or to vCPU 1, and nobody changes
 * his state while the MSI is sent. Returns how many boosts of that kind it
 * made, -1: there was no such moment.
 */
static long sent_to_preempted(int other, const char *counter, int awaited)
{
	long n[2], before, no, got;
	int i, good;

	for (i = 0; i < TRIES; i++) {
		if (!AWAIT(in_state(0, "preempted") &&
			   (!other || in_state(1, "running"))))
			return -1;
		n[0] = vm_preempted(&m, 0);
		/* Who has just lost its CPU is asked for, not being served. */
		if (hog.kind == HOG_FIFO &&
		    (!at_rest() || n[0] != vm_preempted(&m, 0)))
			continue;
		n[1] = vm_preempted(&m, 1);
		before = count(counter);
		no = refused();
		good = in_state(0, "preempted") &&
			(!other || in_state(1, "running"));
		send(0);
		good &= in_state(0, "preempted") &&
			(!other || in_state(1, "running")) &&
			n[0] == vm_preempted(&m, 0) &&
			n[1] == vm_preempted(&m, 1);
		if (awaited && good)
			AWAIT(count(counter) > before || refused() > no ||
			      n[0] != vm_preempted(&m, 0));
		if (!at_rest())
			return -1;
		got = count(counter) - before;
		/*
		 * Who is before vCPU 0 is throttled at times: then it runs, loses
		 * its CPU and waits again; or vCPU 1 goes.
		 */
		if (hog.kind == HOG_FIFO)
			good &= in_state(0, "preempted") &&
				n[0] == vm_preempted(&m, 0);
		if (other)
			good &= in_state(1, "running") &&
				n[1] == vm_preempted(&m, 1);
		/* The last one was a long one: it has to pause, or to pay. */
		if (refused() > no)
			usleep(20000);
		else if (good)
			return got;
	}
	return -1;
}

static long fast_path(int other)
{
	return sent_to_preempted(other, "fast_path", !other);
}

/* Another vCPU runs: nobody but the target can serve what has come for it. */
static void waiting(const char *who, int says)
{
	char name[96];

	generous("2000");
	set_parameter("holder_us", "3000");
	snprintf(name, sizeof(name), "%s, another one runs: %s", who,
		 says ? "no boost for what waits" : "boosted for what waits");
	expect(sent_to_preempted(1, "waiting", !says), !says, name);
	set_parameter("boost_waiting", "0");
	snprintf(name, sizeof(name), "%s, boost_waiting=0: not for what waits",
		 who);
	expect(sent_to_preempted(1, "waiting", 0), 0, name);
	set_parameter("boost_waiting", "1");
	set_parameter("holder_us", "0");
	snprintf(name, sizeof(name), "%s, holder_us=0: not for what waits", who);
	expect(sent_to_preempted(1, "waiting", 0), 0, name);
}

static void interrupt(void)
{
	send(0);
}

/* What has been posted is taken, as by a guest. */
static void take(void)
{
	struct vb_pending *p = (struct vb_pending *)
		((char *)h + h->pending_page * VB_PAGE_SIZE);

	vm_redirect(h)->pending_slots[0] = 0;
	memset(p, 0, NR * sizeof(*p));
}

enum goes { GOES_OFF, GOES_TO_SLEEP };

/* Real-time priorities of vCPU 1: the hog on its CPU has 50. */
#define BEFORE_HOG	60
#define BEHIND_HOG	40

/* vCPU 1 runs, vCPU 0 waits for its CPU, where nobody else will run after it. */
static int first_runs(void)
{
	hog_start(HOG_FIFO);
	rank(BEFORE_HOG);
	return AWAIT(in_state(1, "running") && in_state(0, "preempted"));
}

/* Each had the CPU: nothing waits any more. */
static int all_have_run(void)
{
	long n = vm_preempted(&m, 0);

	rank(0);
	hog_stop();
	return AWAIT(vm_preempted(&m, 0) > n) && at_rest();
}

static long lost_cpu(void)
{
	return vm_preempted(&m, 0) + vm_preempted(&m, 1);
}

/*
 * Where real-time threads are throttled for a while vCPU 0 runs, and takes what
 * has come: such a moment shows nothing, and is not judged.
 */
#define NO_MOMENT	-1
#define FAILED		-2

static int no_moment(int failed)
{
	take();
	return all_have_run() && !failed ? NO_MOMENT : FAILED;
}

/* Return: fast paths as vCPU 1 goes, NO_MOMENT or FAILED. */
static long goes_once(enum goes how, int taken)
{
	long n, no, lost, lost_first;
	int thought, runs;
	__u64 wakes;

	if (!first_runs())
		return no_moment(0);
	no = refused();
	lost = vm_preempted(&m, 0);
	lost_first = vm_preempted(&m, 1);
	wakes = vm_box(&m, 1)->wakes;
	n = count("fast_path");
	take();
	send(0);
	if (taken)
		take();
	if (!at_rest())
		return FAILED;
	/* It is thought of when vCPU 1 loses its CPU for a moment. */
	thought = count("fast_path") != n;
	if (vm_preempted(&m, 1) != lost_first)
		return no_moment(0);
	if (thought)
		return FAILED;
	if (how == GOES_OFF)
		rank(BEHIND_HOG);
	else
		vm_command(&thread[1], VM_CMD_HALT);
	if (!AWAIT(!in_state(1, "running")) || !at_rest())
		return FAILED;
	n = count("fast_path") - n;
	take();
	if (how == GOES_TO_SLEEP) {
		vm_nmi(&m, 1);
		if (!AWAIT(vm_box(&m, 1)->wakes > wakes))
			return FAILED;
	}
	/* In this order: it may be on its CPU still, or not any more. */
	runs = in_state(0, "running");
	if (!n && (refused() > no || runs || vm_preempted(&m, 0) > lost))
		return no_moment(0);
	return all_have_run() ? n : FAILED;
}

/* Who waits is asked for again when the next one goes. */
static long goes_twice(void)
{
	long no = refused(), n, lost, lost_first;
	int thought;

	if (!first_runs())
		return no_moment(0);
	lost = vm_preempted(&m, 0);
	n = count("no_vcpu_tokens");
	set_parameter("boost_vcpu_share", "0");
	send(0);
	rank(BEHIND_HOG);
	AWAIT(refused() > no || vm_preempted(&m, 0) > lost);
	generous("2000");
	if (!at_rest())
		return FAILED;
	if (count("no_vcpu_tokens") == n)
		return no_moment(0);
	no = refused();
	n = count("fast_path");
	lost_first = vm_preempted(&m, 1);
	rank(BEFORE_HOG);
	if (!AWAIT(in_state(1, "running")))
		return no_moment(0);
	thought = count("fast_path") != n;
	if (vm_preempted(&m, 0) > lost || vm_preempted(&m, 1) > lost_first)
		return no_moment(0);
	if (thought)
		return no_moment(1);
	rank(BEHIND_HOG);
	AWAIT(count("fast_path") > n || refused() > no ||
	      vm_preempted(&m, 0) > lost);
	n = count("fast_path") - n;
	if (!n)
		return no_moment(0);
	take();
	return at_rest() && all_have_run() ? n : FAILED;
}

/* A vCPU that has its CPU all the time, or it is no such moment; 0: none. */
static int runs_on;

/*
 * vCPU 0 is sent an interrupt while vCPU 1 runs, which does not serve it and
 * then goes; @twice: and it is refused a boost then, and vCPU 1 goes again.
 * @taken: what was posted has been taken from the area before.
 * Return: fast paths in @moments of that kind; -1: it was not as it should be.
 */
static long last_goes(enum goes how, int twice, int taken, int moments)
{
	long n, lost = 0, gone = 0;
	int i, good = 0;

	for (i = 0; i < TRIES / 5 * slowness() && good < moments; i++) {
		/* In this order: a loss that goes on has been counted. */
		if (runs_on) {
			lost = vm_preempted(&m, runs_on);
			if (!AWAIT(in_state(runs_on, "running")))
				return -1;
		}
		n = twice ? goes_twice() : goes_once(how, taken);
		if (n == FAILED)
			return -1;
		/* Who was boosted has to pause. */
		usleep(20000);
		if (n == NO_MOMENT ||
		    (runs_on && vm_preempted(&m, runs_on) != lost))
			continue;
		gone += n;
		good++;
	}
	if (i > good)
		printf("# %d of %d moments were none\n", i - good, i);
	return good == moments ? gone : -1;
}

/* Read at once: on a slow machine a boost is over before ten files are read. */
struct said {
	long hint, extended, fast_path, not_needed;
};

static struct said said_now(void)
{
	struct said s = { -1, -1, -1, -1 };
	char line[64], name[32];
	FILE *f = fopen(vm_file(&m, "boost"), "r");
	long n;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %ld", name, &n) != 2)
			continue;
		if (!strcmp(name, "hint"))
			s.hint = n;
		else if (!strcmp(name, "extended"))
			s.extended = n;
		else if (!strcmp(name, "fast_path"))
			s.fast_path = n;
		else if (!strcmp(name, "not_needed"))
			s.not_needed = n;
	}
	if (f)
		fclose(f);
	return s;
}

/* Return: vCPU 1 is; 0: nothing came of it for some boosts' time. */
static int first_is_boosted(void)
{
	__u64 end = now_ns() + 100000000ULL * slowness();

	guest[1].critical = CRITICAL;
	hog_start(HOG_FIFO);
	while (!host[1].boosted && now_ns() < end)
		;
	return host[1].boosted;
}

/*
 * vCPU 0 is sent an interrupt while vCPU 1 is boosted, which never gets the CPU
 * and is given up. Return: was vCPU 0 thought of then? -1: there was no such
 * moment; -2: it was while that boost went on.
 */
static int boost_ends(void)
{
	struct said was, is;
	int i, same, gone;
	long lost;

	for (i = 0; i < TRIES; i++) {
		same = first_is_boosted();
		was = said_now();
		lost = lost_cpu();
		send(0);
		AWAIT((is = said_now()).not_needed > was.not_needed ||
		      is.fast_path > was.fast_path || !same ||
		      lost_cpu() > lost);
		gone = is.fast_path > was.fast_path;
		same &= host[1].boosted && in_state(1, "preempted");
		guest[1].critical = VB_CRITICAL_SAID;
		AWAIT((is = said_now()).fast_path > was.fast_path || !same ||
		      lost_cpu() > lost);
		/* The hog is throttled at times: then they run, and go. */
		same &= lost_cpu() == lost;
		if (!at_rest())
			break;
		is = said_now();
		/* One that is about to end or to be extended does not count. */
		same &= is.hint == was.hint && is.extended == was.extended;
		take();
		if (!all_have_run())
			break;
		if (same)
			return gone ? -2 : is.fast_path > was.fast_path;
		/* Who was boosted has to pause. */
		usleep(20000);
	}
	printf("# after %d tries\n", i);
	return -1;
}

/*
 * vCPU 0 is refused a boost for what waits, and vCPU 1, which ran, goes.
 * Return: was one asked for again then? NO_MOMENT or FAILED.
 */
static long asked_again(void)
{
	long no, n, lost, lost_first;

	if (!first_runs())
		return no_moment(0);
	lost = vm_preempted(&m, 0);
	lost_first = vm_preempted(&m, 1);
	no = count("no_vcpu_tokens");
	set_parameter("boost_vcpu_share", "0");
	send(0);
	n = count("no_vcpu_tokens") - no;
	generous("2000");
	if (n != 1 || vm_preempted(&m, 1) != lost_first)
		return no_moment(0);
	n = thought_of();
	rank(BEHIND_HOG);
	if (!AWAIT(!in_state(1, "running")) || !at_rest())
		return FAILED;
	n = thought_of() - n;
	if (vm_preempted(&m, 0) > lost)
		return no_moment(0);
	return all_have_run() ? n : FAILED;
}

/* Whose interrupts are asked for as they come (boost_waiting). */
static void not_again(const char *who)
{
	char name[96];
	long n, sum = 0;
	int i, moments = 0;

	set_parameter("holder_us", "3000");
	for (i = 0; i < TRIES / 10 && moments < 5; i++) {
		n = asked_again();
		if (n == FAILED)
			break;
		/* Who was boosted has to pause. */
		usleep(20000);
		if (n == NO_MOMENT)
			continue;
		sum += n;
		moments++;
	}
	set_parameter("holder_us", "0");
	snprintf(name, sizeof(name),
		 "%s, what waits is refused, another one goes: not asked again",
		 who);
	expect(moments == 5 ? sum : -1, 0, name);
}

static void goes(const char *who)
{
	char name[96];

	generous("2000");
	set_parameter("holder_us", "0");
	snprintf(name, sizeof(name), "%s, another one runs and goes: fast path",
		 who);
	expect(last_goes(GOES_OFF, 0, 0, 1), 1, name);
	snprintf(name, sizeof(name), "%s, another one runs and sleeps: fast path",
		 who);
	expect(last_goes(GOES_TO_SLEEP, 0, 0, 1), 1, name);
	snprintf(name, sizeof(name), "%s, refused, another one goes: fast path",
		 who);
	expect(last_goes(GOES_OFF, 1, 0, 1), 1, name);
}

/* vCPU 0 sleeps, and vCPU 1 runs where it went to sleep. */
static void sleeper(const char *who, int says)
{
	char name[96];
	int slept;

	generous("2000");
	set_parameter("holder_us", "3000");
	slept = to_sleep();
	snprintf(name, sizeof(name), "%s, it sleeps, another one runs: %s", who,
		 says ? "that one serves" : "thought of");
	report(says ? !thought_of_sleeper(interrupt) :
	       sleeper_is_thought_of(interrupt), name);
	set_parameter("boost_waiting", "0");
	snprintf(name, sizeof(name), "%s, it sleeps, boost_waiting=0: left alone",
		 who);
	expect(thought_of_sleeper(interrupt), 0, name);
	set_parameter("boost_waiting", "1");
	set_parameter("holder_us", "0");
	snprintf(name, sizeof(name), "%s, it sleeps, holder_us=0: left alone", who);
	expect(thought_of_sleeper(interrupt), 0, name);
	snprintf(name, sizeof(name), "%s, it slept all the time", who);
	report(slept && wake_up(), name);
}

static void fast_paths(const char *who, int says)
{
	struct sched_param fifo = { .sched_priority = 50 };
	char name[96];
	struct given was;
	long n;
	int i;

	generous("2000");
	set_parameter("holder_us", "0");
	hog_start(HOG_FIFO);
	snprintf(name, sizeof(name), "%s, nobody runs: fast path", who);
	expect(fast_path(0), 1, name);
	hog_start(HOG_FAIR);
	was = given_now();
	n = count("fast_path");
	for (i = 0; i < 5000 && count("fast_path") < n + 20; i++) {
		send(0);
		usleep(1000);
	}
	snprintf(name, sizeof(name), "%s, fast path: it has the CPU", who);
	report(at_rest() && have_given(was, 2000, 50), name);
	hog_stop();

	start(1);
	goes(who);
	if (!says)
		not_again(who);
	sleeper(who, says);
	sched_setscheduler(thread[1].tid, SCHED_FIFO, &fifo);
	snprintf(name, sizeof(name), "%s, another one runs: no fast path", who);
	expect(fast_path(1), 0, name);
	waiting(who, says);
	vm_join(&thread[1]);
	vm_mp_state(&m, 1, KVM_MP_STATE_RUNNABLE);

	hog_start(HOG_FIFO);
	set_parameter("boost", "0");
	AWAIT(in_state(0, "preempted"));
	n = begun();
	for (i = 0; i < 20; i++)
		send(0);
	snprintf(name, sizeof(name), "%s, boost=0: no fast path", who);
	report(at_rest() && begun() == n, name);
	hog_stop();
	defaults();
}

/* Number of what the guest has listed as one of a transmit queue. */
static void transmit(int n)
{
	struct vb_redirect *r = vm_redirect(h);
	long before, boosted = 0;
	int i;

	generous("2000");
	set_parameter("holder_us", "0");
	hog_start(HOG_FIFO);
	r->key[n] = vb_key_make(MSI_VECTOR, false, 0, 0);
	r->nr_keys = n + 1;
	before = count("transmit");
	expect(fast_path(0), 1, "listed, nobody runs: fast path");
	r->transmit[n / 64] = ~(1ULL << n % 64);
	expect(fast_path(0), 1, "all others are of transmit queues: fast path");
	expect(count("transmit"), before, "none was");
	take();
	r->transmit[n / 64] = 1ULL << n % 64;
	for (i = 0; i < 20 && !boosted; i++)
		boosted = sent_to_preempted(0, "fast_path", 0);
	expect(boosted, 0, "of a transmit queue: no fast path");
	report(count("transmit") >= before + 20, "which is counted");
	r->transmit[n / 64] = 0;
	expect(fast_path(0), 1, "not any more: fast path");
	r->transmit[n / 64] = 1ULL << n % 64;
	r->key[n] = 0;
	expect(fast_path(0), 1, "no key: fast path");
	r->nr_keys = 0;
	r->transmit[n / 64] = 0;
	take();
	hog_stop();
	defaults();
}

/* To vCPU 1, which runs, and loses its CPU before it has looked. */
static int diverted(void)
{
	struct vb_redirect *r = vm_redirect(h);
	long before;
	int i, gone;

	guest[1].redirect_vector = 0xf7;
	take();
	for (i = 0; i < TRIES && !(r->pending_slots[0] & 2); i++) {
		if (!AWAIT(in_state(0, "preempted") && in_state(1, "running")))
			return -1;
		send(0);
	}
	before = count("fast_path");
	hog_start(HOG_FIFO);
	/* Once or, on a busy machine, again before that is seen. */
	gone = AWAIT(count("fast_path") > before);
	guest[1].redirect_vector = 0;
	take();
	/* Not to change what it is while it is boosted. */
	if (!at_rest())
		return -1;
	return all_have_run() ? gone : -1;
}

/* It waits in the area, for its owner or whoever has a CPU first. */
static void posted(int n)
{
	struct vb_redirect *r = vm_redirect(h);

	start(1);
	r->key[n] = vb_key_make(MSI_VECTOR, false, 0, 0);
	r->nr_keys = n + 1;
	goes("posted");
	generous("20000");
	guest[1].critical = VB_CRITICAL_SAID;
	expect(boost_ends(), 1,
	       "posted, another one's boost goes on and ends: fast path");
	generous("2000");
	expect(last_goes(GOES_OFF, 0, 1, 10), 0,
	       "taken before another one goes: no fast path");
	expect(diverted(), 1, "diverted to one that goes: fast path");
	r->transmit[n / 64] = 1ULL << n % 64;
	expect(last_goes(GOES_OFF, 0, 0, 10), 0,
	       "posted, of a transmit queue, another one goes: no fast path");
	r->transmit[n / 64] = 0;
	r->nr_keys = 0;
	r->key[n] = 0;
	expect(last_goes(GOES_OFF, 0, 1, 1), 1,
	       "not listed, another one goes: fast path");
	vm_join(&thread[1]);
	vm_mp_state(&m, 1, KVM_MP_STATE_RUNNABLE);
	defaults();
}

/*
 * vCPU 0 sleeps, critical or not as @word says, as if it waited for a lock of
 * the guest, and vCPU 1 wakes it up and keeps the CPU. @is_boosted: to be waited
 * for. Return: boosts in @tries; -1: not as it should be.
 */
static long unlocked(__u32 word, int tries, int is_boosted)
{
	long before = count("hint"), no = refused();
	__u64 wakes;
	int i;

	for (i = 0; i < tries; i++) {
		wakes = vm_box(&m, 0)->wakes;
		if (!to_sleep())
			return -1;
		rank(BEFORE_HOG);
		guest[0].critical = word;
		vm_command(&thread[1], VM_CMD_KICK);
		if (!AWAIT(!vm_box(&m, 1)->command))
			return -1;
		if (is_boosted)
			AWAIT(count("hint") > before + i);
		else
			usleep(20000);
		guest[0].critical = VB_CRITICAL_SAID;
		rank(0);
		if (!at_rest() || !AWAIT(vm_box(&m, 0)->wakes > wakes))
			return -1;
	}
	return refused() == no ? count("hint") - before : -1;
}

/* A kernel's spin lock that lets waiters sleep (KVM_HC_KICK_CPU). */
static void locks(void)
{
	generous("2000");
	start(1);
	expect(unlocked(CRITICAL, 1, 1), 1,
	       "critical, woken up by another one: boosted");
	expect(unlocked(VB_CRITICAL_SAID, 10, 0), 0,
	       "not critical, woken up by another one: not boosted");
	set_parameter("boost", "0");
	expect(unlocked(CRITICAL, 10, 0), 0,
	       "boost=0, woken up by another one: not boosted");
	set_parameter("boost", "1");
	expect(unlocked(CRITICAL, 1, 1), 1,
	       "boost=1, woken up by another one: boosted");
	vm_join(&thread[1]);
	vm_mp_state(&m, 1, KVM_MP_STATE_RUNNABLE);
	defaults();
}

/* Of three vCPUs one runs on a CPU of its own. */
static int third(void)
{
	/* Not even for a moment is its CPU anybody else's. */
	struct sched_param before_others = { .sched_priority = 1 };
	struct vm_thread runs;
	cpu_set_t was;
	pid_t boosts;
	int cpu, i;

	cpu = third_cpu();
	if (cpu < 0) {
		skip("a third vCPU", "needs three CPUs");
		vm_destroy(&m);
		return end();
	}
	defaults();
	generous("2000");
	set_parameter("holder_us", "0");
	i = m.nr_vcpus;
	vm_add_vcpu(&m);
	vm_mode(&m, i, 0);
	vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
	boosts = worker_pin(here, &was);
	report(boosts, "the worker is there");
	start(0);
	start(1);
	vm_start(&runs, &m, i, cpu, VM_AREA);
	report(AWAIT(in_state(i, "running")), "a third one runs");
	vm_must(sched_setscheduler(runs.tid, SCHED_FIFO, &before_others),
		"sched_setscheduler");
	runs_on = i;
	expect(last_goes(GOES_OFF, 0, 0, 10), 0,
	       "a third one runs, another one goes: no fast path");
	/* Had that failed. */
	rank(0);
	hog_stop();
	expect(last_goes(GOES_TO_SLEEP, 0, 0, 10), 0,
	       "a third one runs, another one sleeps: no fast path");
	runs_on = 0;
	vm_command(&runs, VM_CMD_HALT);
	report(AWAIT(in_state(i, "halted")), "the third one sleeps");
	expect(last_goes(GOES_OFF, 0, 0, 1), 1,
	       "the third one sleeps, another one goes: fast path");
	rank(0);
	hog_stop();
	report(!vm_join(&runs) && !vm_join(&thread[1]) &&
	       !vm_join(&thread[0]), "the vCPUs end well");
	if (boosts)
		sched_setaffinity(boosts, sizeof(was), &was);
	defaults();
	vm_destroy(&m);
	return end();
}

static int off(void)
{
	start(0);
	hog_start(HOG_FAIR);
	report(more_preemptions(0), "observe=1: it loses its CPU");
	holder(0, "observe=1: no holder");
	hog_start(HOG_FIFO);
	report(AWAIT(in_state(0, "preempted")), "observe=1: nobody runs");
	send(0);
	report(at_rest() && !begun(), "observe=1: no boost at all");
	expect(count("other_policy") + count("not_needed") +
	       count("no_vm_tokens") + count("in_row"), 0,
	       "observe=1: none was thought of");
	hog_stop();
	report(!vm_join(&thread[0]), "observe=1: the vCPU ends well");
	vm_destroy(&m);
	return end();
}

static void kprobes(int on)
{
	static const char path[] = "/sys/kernel/debug/kprobes/enabled";
	FILE *f = fopen(path, "w");

	if (!f || fputs(on ? "1" : "0", f) < 0 || fclose(f))
		vm_must(-1, path);
}

static void kprobes_on(void)
{
	kprobes(1);
}

/*
 * Nobody would see what others change of a boosted thread. With hooks that are
 * kprobes nothing else would work either.
 */
static void unwatched(pid_t tid, const struct attributes *before)
{
	long n, not = count("unwatched");
	int same = 1, i;

	if (!feature_is_on_by("run_state", "(ftrace)")) {
		skip("kprobes are switched off", "the hooks are kprobes");
		return;
	}
	generous("2000");
	hog_start(HOG_FAIR);
	at_rest();
	n = begun();
	atexit(kprobes_on);
	kprobes(0);
	guest[0].critical = CRITICAL;
	for (i = 0; i < 5 && same; i++) {
		same = AWAIT(count("unwatched") > not + i);
		same = same && is_same(tid, before);
	}
	report(same, "kprobes are switched off: it is left alone");
	expect(begun(), n, "kprobes are switched off: no boost");
	kprobes(1);
	report(AWAIT(begun() > n), "kprobes are switched on: boosted");
	guest[0].critical = VB_CRITICAL_SAID;
	report(at_rest(), "kprobes are switched on: and it ends");
	hog_stop();
	defaults();
}

int main(int argc, char **argv)
{
	struct attributes before;
	pid_t tid;

	if (!set_up())
		return 4;
	if (argc > 1 && !strcmp(argv[1], "off"))
		return off();
	if (argc > 1 && !strcmp(argv[1], "third"))
		return third();
	if (argc > 1 && !strcmp(argv[1], "aside"))
		return not_to_isolated();
	defaults();
	/* Without an area. */
	tid = start(0);
	before = attributes_of(tid);
	holders("no area");
	kinds();
	fast_paths("no area", 0);
	report(!vm_join(&thread[0]), "the vCPU ends well");

	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	report(h->host_features & VB_HF_BOOST,
	       "the area says that vCPUs are boosted");
	tid = start(0);
	holders("says nothing");
	guest[0].critical = VB_CRITICAL_SAID;
	fast_paths("says that it is not critical", 1);
	transmit(0);
	transmit(VB_MAX_KEYS - 1);
	posted(0);
	locks();
	hog_start(HOG_FAIR);
	set_parameter("holder_us", "100000");
	holder(0, "says that it is not critical, an interrupt: no holder");
	defaults();
	hog_stop();
	hints();
	refusals();
	rows(1);
	rows(4);
	rows(7);
	turns();
	seen(tid);
	unwatched(tid, &before);
	aside(tid, -1);
	endings();
	report(becomes(tid, &before), "the thread is as it was");
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	expect(count("other_policy") + count("user_changed") +
	       count("ended_gone"), 0, "nobody else had a hand in it");
	report(!vm_join(&thread[0]), "the vCPU ends well once more");
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregistered");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
