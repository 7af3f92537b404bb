// SPDX-License-Identifier: GPL-2.0
/*
 * Boosts that cannot be ended in time, as something more important has the
 * worker's CPU: such a one counts as late, and as long as it was; and it ends
 * as soon as it can. Prints KTAP. Needs /dev/kvm, vbalance_host, root and two
 * CPUs.
 *
 *	kvm_boost_late		the worker is kept off until the vCPU has had a
 *				certain CPU time, or its thread or its VM has
 *				gone: nothing depends on how fast anything is
 *	kvm_boost_late unload	until vbalance_host begins to go; it has gone at
 *				the end
 *	kvm_boost_late unload-asleep	the same, and the vCPU has been woken up
 *				from a halt and got no CPU yet
 */
#define _GNU_SOURCE
#include "boosttest.h"

#define TRIES		200
#define BOOST_US	"20000"
#define SHORT_US	"4000"
#define SHORT_NS	4000000L
#define BOOST_NS	20000000L

static pid_t tid;

/* Above the worker, on the only CPU that it may use. */
static void keep_off(int on)
{
	struct sched_param p = { .sched_priority = on ? 99 : 0 };

	vm_must(sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p),
		"sched_setscheduler");
}

static int is_fifo(void)
{
	return attributes_of(tid).a.policy == SCHED_FIFO;
}

/*
 * A boost is on, and the worker can do nothing about it. @then: what the guest
 * says from there on.
 */
static int catch_boost(__u32 then)
{
	guest[0].critical = CRITICAL;
	CATCH(host[0].boosted);
	keep_off(1);
	guest[0].critical = then;
	if (host[0].boosted && is_fifo())
		return 1;
	keep_off(0);
	guest[0].critical = VB_CRITICAL_SAID;
	at_rest();
	return 0;
}

struct held {
	long late, ended, longest;	/* before the end */
	long whole;			/* CPU time, begins before the boost */
	long kept;			/* CPU time while the worker was kept */
};

/* @command: what the vCPU does meanwhile; 0: nothing. */
static int hold(struct held *h, __u64 command, const char *counter)
{
	int i, caught = 0, taken = 1;
	long from, enough;

	for (i = 0; i < TRIES && !caught; i++) {
		h->whole = cpu_ns(tid);
		caught = catch_boost(VB_CRITICAL_SAID);
	}
	if (!caught)
		return 0;
	h->late = count("late_ends");
	h->longest = count("longest_ns");
	h->ended = count(counter);
	if (command) {
		vm_command(&thread[0], command);
		taken = CATCH(!vm_box(&m, 0)->command);
	}
	/* Late for sure, and the longest up to now. */
	enough = 2 * BOOST_NS + h->longest;
	from = cpu_ns(tid);
	CATCH(cpu_ns(tid) - from >= enough);
	h->kept = cpu_ns(tid) - from;
	caught = taken && host[0].boosted && is_fifo() &&
		count("late_ends") == h->late;
	keep_off(0);
	return caught && h->kept >= enough;
}

static void late(__u64 command, const char *counter, const char *name)
{
	struct held h = { };
	char text[96];
	long longest;
	int good = hold(&h, command, counter);

	snprintf(text, sizeof(text), "%s: the worker is kept off", name);
	report(good, text);
	snprintf(text, sizeof(text), "%s: then it ends", name);
	report(at_rest() && !is_fifo() && count(counter) == h.ended + 1, text);
	h.whole = cpu_ns(tid) - h.whole;
	snprintf(text, sizeof(text), "%s: a late end", name);
	expect(count("late_ends"), h.late + 1, text);

	longest = count("longest_ns");
	printf("# longest %ld us, before %ld us; kept off for %ld us, all %ld us\n",
	       longest / 1000, h.longest / 1000, h.kept / 1000,
	       h.whole / 1000);
	snprintf(text, sizeof(text), "%s: as long as it was", name);
	report(longest >= h.kept + VB_BOOST_FEE_NS &&
	       longest <= h.whole + VB_BOOST_FEE_NS, text);
}

/*
 * Late, and extended, as it is critical still and has paid for what it got. By
 * ticks that can be more than there was: again then, with full buckets.
 */
static void late_extension(void)
{
	long late = 0, extended, ends, from;
	int i, good = 0;

	generous(SHORT_US);
	set_parameter("boost_row", "100");
	for (i = 0; i < TRIES && !good; i++) {
		usleep(200000);
		if (!catch_boost(CRITICAL))
			continue;
		late = count("late_ends");
		extended = count("extended");
		ends = ended();
		from = cpu_ns(tid);
		CATCH(cpu_ns(tid) - from >= 2 * SHORT_NS);
		keep_off(0);
		good = AWAIT(count("extended") > extended || ended() > ends);
		late = count("late_ends") - late;
		/* No end that could be late by itself. */
		good = good && ended() == ends;
		guest[0].critical = VB_CRITICAL_SAID;
		at_rest();
	}
	report(good, "it is critical still: extended");
	report(late > 0, "it is critical still: extended late");
	generous(BOOST_US);
	set_parameter("boost_row", "4");
}

static void both_ends(void)
{
	struct attributes before = make_unusual(tid);

	late(0, "ended_bound", "its time is up");
	late(VM_CMD_DONE, "ended_done", "it is done");
	late_extension();
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	report(becomes(tid, &before), "the thread is as it was");
}

/* ---- somebody who does what sleeps, while we keep the worker off ---- */

static struct {
	void (*what)(void);
	pthread_t thread;
	int go[2];			/* a pipe */
	volatile pid_t tid;
} helper;

/* Behind the boosted vCPU it would never have its turn. */
static void *helper_fn(void *unused)
{
	struct sched_param p = { .sched_priority = 50 };
	char word;

	vm_pin(there);
	vm_must(sched_setscheduler(0, SCHED_FIFO, &p), "sched_setscheduler");
	helper.tid = gettid();
	if (read(helper.go[0], &word, 1) == 1)
		helper.what();
	return unused;
}

static void helper_start(void (*what)(void))
{
	helper.what = what;
	helper.tid = 0;
	vm_must(pipe(helper.go), "pipe");
	vm_pthread(&helper.thread, helper_fn, NULL);
	AWAIT(helper.tid);
}

static void helper_go(void)
{
	vm_must(write(helper.go[1], "", 1), "write");
}

static void helper_end(void)
{
	pthread_join(helper.thread, NULL);
	close(helper.go[0]);
	close(helper.go[1]);
}

/* ---- the thread ends, the VM goes ---- */

/* No look at a file: to wait for a folder's lock would be sleep. */
static int is_gone(void)
{
	return syscall(SYS_tgkill, getpid(), tid, 0);
}

static void end_thread(void)
{
	vm_join(&thread[0]);
}

static void end_vm(void)
{
	vm_join(&thread[0]);
	vm_destroy(&m);
}

/*
 * While it is boosted; the worker finds out afterwards. @over: it has come so
 * far. Without sleep until then, or the worker would come.
 */
static void goes(pid_t boosts, void (*what)(void), int (*over)(void),
		 const char *name)
{
	int i, caught = 0, good;
	char text[96];
	long ran;

	helper_start(what);
	for (i = 0; i < TRIES && !caught; i++)
		caught = catch_boost(VB_CRITICAL_SAID);
	ran = cpu_ns(boosts);
	helper_go();
	good = CATCH(over());
	snprintf(text, sizeof(text), "%s while it is boosted", name);
	report(caught && good && cpu_ns(boosts) == ran, text);
	keep_off(0);
	helper_end();
	snprintf(text, sizeof(text), "%s: the worker sees to it", name);
	report(AWAIT(cpu_ns(boosts) > ran), text);
	snprintf(text, sizeof(text), "%s: the vCPU ends well", name);
	report(!thread[0].error, text);
}

static int has_no_area(void)
{
	return !pages_held();
}

/* ---- the VM goes, and its thread stays ---- */

static int was_fifo;		/* just before */

/* Out of the guest first. */
static void destroy_vm(void)
{
	vm_stop(&thread[0]);
	AWAIT(thread[0].waits);
	was_fifo = is_fifo();
	vm_destroy(&m);
}

/*
 * From under a vCPU that is in the guest: its own thread has the last file of
 * the VM, and comes to its end as it leaves. What it writes to then is not
 * KVM's any more.
 */
static void close_vm(void)
{
	int i;

	for (i = 0; i < m.nr_vcpus; i++) {
		if (mmap(m.run[i], getpagesize(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		    MAP_FAILED)
			vm_must(-1, "mmap over a vCPU");
		munmap((char *)m.run[i] + getpagesize(),
		       vm_map_size(&m) - getpagesize());
		close(m.vcpu[i]);
	}
	close(m.vm);
	was_fifo = is_fifo();
	vm_stop(&thread[0]);
}

static void thread_stays(pid_t boosts, void (*what)(void), const char *name)
{
	struct attributes before = make_unusual(tid);
	char text[96];

	was_fifo = 0;
	goes(boosts, what, has_no_area, name);
	snprintf(text, sizeof(text), "%s: its thread was boosted until then",
		 name);
	report(was_fifo, text);
	snprintf(text, sizeof(text), "%s: and is what it was", name);
	AWAIT(same_now(tid, &before));
	report(is_same(tid, &before), text);
	snprintf(text, sizeof(text), "%s: its thread waits", name);
	report(AWAIT(thread[0].waits), text);
	vm_quit(&thread[0]);
	snprintf(text, sizeof(text), "%s: a new one", name);
	report(vm_anew(), text);
	tid = start(0);
}

static void both_go(pid_t boosts)
{
	long n;

	n = count("ended_off_cpu");
	goes(boosts, end_thread, is_gone, "the thread ends");
	report(at_rest(), "the thread ends: so does its boost");
	expect(begun(), ended(), "the thread ends: and each has ended once");
	expect(count("ended_off_cpu"), n + 1, "the thread ends: it had left");

	tid = start(0);
	thread_stays(boosts, destroy_vm, "the VM is destroyed");
	thread_stays(boosts, close_vm, "the VM is closed under its vCPU");
	goes(boosts, end_vm, has_no_area, "the VM goes");
	report(AWAIT(access(vm_file(&m, "boost"), F_OK)),
	       "the VM goes: nothing is left");
}

/* ---- the module goes ---- */

#define BEHIND_HELPER	40

/* As catch_boost(). vCPU 1 keeps the CPU on which vCPU 0 is woken up. */
static int catch_sleeper(void)
{
	if (to_sleep()) {
		guest[0].critical = CRITICAL;
		rank(BEHIND_HELPER);
		vm_command(&thread[1], VM_CMD_KICK);
		CATCH(host[0].boosted);
		keep_off(1);
		if (host[0].boosted && is_fifo() &&
		    host[0].state == VB_VCPU_HALTED)
			return 1;
		keep_off(0);
		rank(0);
	}
	guest[0].critical = VB_CRITICAL_SAID;
	AWAIT(!in_state(0, "halted"));
	at_rest();
	return 0;
}

static volatile int unloaded;		/* 1: it is; else an error, negative */

static void unload_module(void)
{
	unloaded = syscall(SYS_delete_module, "vbalance_host", O_NONBLOCK) ?
		-errno : 1;
}

/* It is in its exit function, or nearly. */
static int is_going(void)
{
	char word[16] = "";
	FILE *f = fopen("/sys/module/vbalance_host/initstate", "r");

	if (f) {
		if (fscanf(f, "%15s", word) != 1)
			word[0] = 0;
		fclose(f);
	}
	return !strcmp(word, "going");
}

static void unload(int asleep)
{
	struct attributes before = make_unusual(tid);
	int i, caught = 0, going;

	helper_start(unload_module);
	for (i = 0; i < TRIES && !caught; i++)
		caught = asleep ? catch_sleeper() :
				  catch_boost(VB_CRITICAL_SAID);
	helper_go();
	/*
	 * No sleep from here on: the worker would come. It goes no further than
	 * to its hooks: to take them off all tasks have to be waited for, also
	 * a vCPU that does not let go of its CPU.
	 */
	going = CATCH(unloaded || is_going());
	report(caught && going && !unloaded && is_fifo(),
	       "boosted while the module goes");
	keep_off(0);
	if (asleep)
		rank(0);
	helper_end();
	expect(unloaded, 1, "the module has gone");
	report(is_same(tid, &before), "the thread is as it was");
}

int main(int argc, char **argv)
{
	int asleep = argc > 1 && !strcmp(argv[1], "unload-asleep");
	int unloads = asleep || (argc > 1 && !strcmp(argv[1], "unload"));
	cpu_set_t was;
	pid_t boosts;

	if (!set_up_guest())
		return 4;
	tid = start(0);
	boosts = worker_pin(here, &was);
	report(boosts, "the worker is there");
	if (!boosts)
		return end();
	generous(BOOST_US);
	if (asleep)
		start(1);
	else
		hog_start(HOG_FAIR);
	if (unloads) {
		unload(asleep);
		hog_stop();
		if (asleep)
			vm_join(&thread[1]);
		report(!vm_join(&thread[0]), "the vCPU ends well");
		vm_destroy(&m);
	} else {
		both_ends();
		both_go(boosts);
		hog_stop();
		sched_setaffinity(boosts, sizeof(was), &was);
		defaults();
	}
	return end();
}
