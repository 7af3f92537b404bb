// SPDX-License-Identifier: GPL-2.0
/*
 * Boosts across cpu cgroups: libvirt gives every vCPU one of its own, and nice
 * values mean nothing between cgroups. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root, two CPUs and cgroup v2.
 *
 * The vCPU is in one cgroup, the hog in another one: first alike, but for a
 * quota; then it is moved, among groups and CPUs, while it is boosted; then its
 * group has a small weight, and it sleeps for a lock of its guest; then the least,
 * the hog's the greatest, and what the vCPU gets of the CPU it has from boosts.
 *
 *	kvm_boost_cgroup	a minute for a lock's moments, if it needs that
 *	kvm_boost_cgroup short	a third of it
 */
#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "steady.h"

#define SECONDS	2
/* Shorter than what the fair class gives anybody: a tick, mostly. */
#define TURN_MS	3
#define VCPU	"vbalance_test_vcpu"
#define HOG	"vbalance_test_hog"
#define OTHER	"vbalance_test_other"

static char root[64] = "/tmp/vbalance_cgroup.XXXXXX";

/* Of 100 of a CPU; in periods that are short beside SECONDS. */
#define QUOTA	20
#define LIMITED	35		/* half way to what it has without one */
#define PERIOD	"20000"		/* us */

static int put(const char *file, const char *fmt, long value)
{
	char path[128];
	FILE *f;
	int good;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	f = fopen(path, "w");
	good = f && fprintf(f, fmt, value) > 0;
	return f && !fclose(f) && good;
}

/* Threads of one process can be in several cgroups if these are "threaded". */
static int group_new(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (mkdir(path, 0755))
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.type", name);
	return put(path, "threaded", 0);
}

static void groups_end(void)
{
	static const char * const groups[] = { VCPU, HOG, OTHER };
	char path[128];
	size_t i;

	/* A thread that has ended is a moment in its cgroup still. */
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, groups[i]);
		AWAIT(!rmdir(path) || errno == ENOENT);
	}
	umount(root);
	rmdir(root);
}

static int groups_new(void)
{
	if (!mkdtemp(root))
		vm_must(-1, root);
	if (mount("none", root, "cgroup2", 0, NULL)) {
		rmdir(root);
		return 0;
	}
	if (put("cgroup.procs", "%ld", getpid()) &&
	    put("cgroup.subtree_control", "+cpu", 0) &&
	    group_new(VCPU) && group_new(HOG) && group_new(OTHER))
		return 1;
	groups_end();
	return 0;
}

/*
 * Of 100, what the vCPU has of the CPU time of both. With @boosted it is
 * critical, and interrupts arrive: like this it hardly ever has a CPU that it
 * could lose.
 */
static int vcpu_percent(pid_t tid, int boosted)
{
	long vcpu = cpu_ns(tid), other = cpu_ns(hog.tid);
	int i;

	guest[0].critical = boosted ? CRITICAL : VB_CRITICAL_SAID;
	for (i = 0; i < 100 * SECONDS; i++) {
		if (boosted)
			send(0);
		usleep(10000);
	}
	guest[0].critical = VB_CRITICAL_SAID;
	vcpu = cpu_ns(tid) - vcpu;
	other = cpu_ns(hog.tid) - other;
	printf("# vCPU %ld us, hog %ld us\n", vcpu / 1000, other / 1000);
	return vcpu * 100 / (vcpu + other);
}

/*
 * A quota is the administrator's: what is taken beyond it is boosted time, and
 * that is bounded. Real-time threads have none, so nothing else may come of it.
 */
static void quota(pid_t tid)
{
	long boosted, vcpu, n, limit;
	struct looks looks;
	int percent;
	__u64 t;

	report(put(VCPU "/cpu.max", "%ld " PERIOD, QUOTA * 200), "a quota");
	percent = vcpu_percent(tid, 0);
	report(percent < LIMITED, "a quota: it limits");
	steady_start();
	looks = looks_now();
	defaults();
	n = begun();
	boosted = count("boosted_ns");
	vcpu = cpu_ns(tid);
	t = now_ns();
	vcpu_percent(tid, 1);
	report(at_rest(), "a quota: at rest");
	vcpu = cpu_ns(tid) - vcpu;
	t = now_ns() - t;
	boosted = count("boosted_ns") - boosted;
	looks = looks_since(looks);
	steady_stop();
	printf("# vCPU %ld us of %llu us, boosted %ld us; late %ld ms\n",
	       vcpu / 1000, t / 1000, boosted / 1000, looks.ns / 1000000);
	report(begun() > n, "a quota: boosted");
	/* As exactly as it limits without them. */
	limit = (long)(t / 100) * (percent + 3);
	report_if(vcpu - boosted - looks.ns > limit, vcpu - boosted <= limit,
		  &looks, "a quota: only boosts go beyond it");
	report(put(VCPU "/cpu.max", "max " PERIOD, 0) &&
	       vcpu_percent(tid, 0) > LIMITED,
	       "without a quota: it does not limit");
}

/* How many periods of its quota have begun; -1: nobody counts. */
static long periods(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s/cpu.stat", root, VCPU);
	return value_of(path, "nr_periods");
}

/* Return: threads say that their quota is used up (task_struct.throttled). */
static int threads_say(void)
{
	struct utsname u;
	int major, minor;

	vm_must(uname(&u), "uname");
	return sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 18));
}

/* Until the next period begins the thread is left alone, however critical. */
static void used_up(pid_t tid)
{
	static const char name[] = "a quota that is used up: not boosted";
	long n, taken, period, tries;
	int i;

	if (!threads_say()) {
		skip(name, "threads do not say so before 6.18");
		return;
	}
	generous("20000");
	report(put(VCPU "/cpu.max", "%ld 1000000", 1000), "a small quota");
	for (tries = 0; tries < 20; tries++) {
		period = periods();
		taken = cpu_ns(tid);
		usleep(100000);
		/* It has nothing to run with, and that for a while. */
		if (cpu_ns(tid) != taken || periods() != period)
			continue;
		n = begun();
		guest[0].critical = CRITICAL;
		for (i = 0; i < 10; i++) {
			send(0);
			usleep(10000);
		}
		guest[0].critical = VB_CRITICAL_SAID;
		taken = cpu_ns(tid) - taken;
		n = begun() - n;
		if (periods() == period)
			break;
	}
	if (tries < 20) {
		printf("# %ld boosts, %ld us\n", n, taken / 1000);
		report(!n && !taken, name);
	} else {
		skip(name, "no such moment on this machine");
	}
	report(put(VCPU "/cpu.max", "max " PERIOD, 0), "and has none again");
	at_rest();
	defaults();
}

/* ---- changes of a boosted thread's group ---- */

#define CHANGES	5
#define TRIES	100

static int is_in(pid_t tid, const char *name)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/cgroup", tid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::", 3))
		;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return !strncmp(line, "0::/", 4) && !strcmp(line + 4, name);
}

static int is_fifo(pid_t tid)
{
	return attributes_of(tid).a.policy == SCHED_FIFO;
}

/* Each is made with @on 1, and undone with 0. */
static int moved(pid_t tid, int on)
{
	return put(on ? OTHER "/cgroup.threads" : VCPU "/cgroup.threads", "%ld",
		   tid);
}

static int limited(pid_t tid, int on)
{
	(void)tid;
	return on ? put(VCPU "/cpu.max", "%ld " PERIOD, QUOTA * 200) :
		    put(VCPU "/cpu.max", "max " PERIOD, 0);
}

static int in_cpuset(pid_t tid, int on)
{
	(void)tid;
	return put(VCPU "/cpuset.cpus", "%ld", on ? here : there);
}

static int pinned(pid_t tid, int on)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(on ? here : there, &one);
	return !sched_setaffinity(tid, sizeof(one), &one);
}

/*
 * Boosted for as long as it has tokens. We are to see it, also where it comes to
 * our CPU: as a real-time thread between it and the worker. Return: it was made
 * during a boost; -1: nobody may do that to a real-time thread
 * (CONFIG_RT_GROUP_SCHED).
 */
static int change_once(pid_t tid, int (*make)(pid_t tid, int on))
{
	struct sched_param p = { .sched_priority = 10 };
	int good, refused = 0;

	vm_must(sched_setscheduler(0, SCHED_FIFO, &p), "sched_setscheduler");
	guest[0].critical = CRITICAL;
	good = CATCH(is_fifo(tid));
	if (good && !make(tid, 1))
		refused = errno == EINVAL;
	good = good && is_fifo(tid);
	guest[0].critical = VB_CRITICAL_SAID;
	p.sched_priority = 0;
	vm_must(sched_setscheduler(0, SCHED_OTHER, &p), "sched_setscheduler");
	return refused ? -1 : good;
}

/* @want: what the thread is then. @group: where it is. */
static void change(pid_t tid, int (*make)(pid_t tid, int on),
		   const struct attributes *want, const char *group,
		   const char *what)
{
	struct attributes before = attributes_of(tid);
	int i, got, seen = 0, same = 1, undone = 1;
	char text[128];

	generous("20000");
	percent("boost_row", 100);
	for (i = 0; i < TRIES && seen < CHANGES && same && undone; i++) {
		got = change_once(tid, make);
		if (got < 0) {
			at_rest();
			break;
		}
		seen += got;
		/* Whether it was in time or not. */
		same = becomes(tid, want) && is_in(tid, group);
		undone = make(tid, 0) && becomes(tid, &before);
	}
	printf("# %s: %d of %d while it was boosted\n", what, seen, i);
	snprintf(text, sizeof(text), "boosted, %s", what);
	if (got < 0)
		skip(text, "no real-time thread may, with this kernel");
	else
		report(seen == CHANGES, text);
	snprintf(text, sizeof(text),
		 "boosted, %s: that counts, the rest is as it was", what);
	report(same, text);
	snprintf(text, sizeof(text), "boosted, %s: and is undone", what);
	report(undone && is_in(tid, VCPU), text);
	snprintf(text, sizeof(text), "boosted, %s: each boost has ended once",
		 what);
	expect(begun(), ended(), text);
	defaults();
}

/* As much as the hog: neither owes it anything, nor is it owed. */
static void fair_share(pid_t tid, const char *what)
{
	int percent = vcpu_percent(tid, 0);
	char text[96];

	snprintf(text, sizeof(text), "%s: it has its share", what);
	report(percent >= 35 && percent <= 65, text);
}

static void changes(pid_t tid)
{
	struct attributes was = attributes_of(tid), it = make_unusual(tid),
			  moved_there = it;

	CPU_ZERO(&moved_there.cpus);
	CPU_SET(here, &moved_there.cpus);
	change(tid, moved, &it, OTHER, "moved to another cgroup");
	report(moved(tid, 1), "moved once more");
	fair_share(tid, "moved to another cgroup");
	report(moved(tid, 0), "moved back");
	change(tid, limited, &it, VCPU, "given a quota");
	change(tid, pinned, &moved_there, VCPU, "moved to another CPU");
	if (put("cgroup.subtree_control", "+cpuset", 0) && in_cpuset(tid, 0)) {
		/* Before 6.2 all of the groups go where their cpuset does. */
		report(pinned(hog.tid, 0), "its cpuset: the hog stays pinned");
		change(tid, in_cpuset, &moved_there, VCPU, "its cpuset changed");
	} else {
		skip("boosted, its cpuset changed", "no cpuset controller");
	}
	fair_share(tid, "all changes undone");
	vm_must(set_attr(tid, (struct attr){ }), "sched_setattr");
	set_slack(tid, was.slack);
	report(is_same(tid, &was), "the thread is what it was first");
}

/* ---- a lock of its guest ---- */

/*
 * It sleeps, and has had more than its share just before: a part of a turn.
 * Return: 1, or 0 if it was preempted in each of some tries (on a 7.2 it needed
 * up to 135 at times); -1: it does not come to run, or to sleep.
 */
static int to_sleep_after_a_turn(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		long n = vm_preempted(&m, 0);

		if (!AWAIT(in_state(0, "running")))
			return -1;
		usleep(2000);
		if (!to_sleep())
			return -1;
		if (vm_preempted(&m, 0) == n)
			return 1;
		if (!wake_up())
			return -1;
	}
	return 0;
}

/*
 * vCPU 0 sleeps and is critical, as one that waits for a lock of the guest, and
 * vCPU 1 wakes it up by a hypercall, in which KVM gives the CPU to whom the fair
 * class prefers: the hog (vCPU 0 has had its turn) or vCPU 1 itself. Return: 1 if
 * vCPU 0 ran before the hypercall was over, else 0; -1: vCPU 0 had no turn, or
 * vCPU 1 did not lose its CPU in it, for @turn of the TSC; -2: not as it should
 * be.
 */
static int unlocked(__u64 turn)
{
	const volatile struct vm_box *waker = vm_box(&m, 1), *asleep = vm_box(&m, 0);
	__u64 wakes, called;
	int got = to_sleep_after_a_turn();

	if (got <= 0)
		return got ? -2 : -1;
	wakes = asleep->wakes;
	called = waker->called;
	guest[0].critical = CRITICAL;
	vm_command(&thread[1], VM_CMD_KICK);
	if (!AWAIT(waker->called != called && asleep->wakes != wakes))
		return -2;
	guest[0].critical = VB_CRITICAL_SAID;
	if (!at_rest())
		return -2;
	/* Who was boosted has to pause. */
	usleep(20000);
	if (waker->called - waker->calls < turn)
		return -1;
	return asleep->woke < waker->called;
}

#define AWAY	20
/* As with ticks of 4 ms: 7.x ends slices when they are over. */
#define SLICE_NS	4000000

static void locks(long seconds)
{
	static const char name[] =
		"woken up by one that loses its CPU: boosted at once";
	__u64 turn = TURN_MS * (__u64)vm_must(ioctl(m.vm, KVM_GET_TSC_KHZ, 0),
					      "KVM_GET_TSC_KHZ");
	__u64 end = now_ns() + 1000000000ULL * seconds * slowness();
	int i, got = 0, away = 0, first = 0;
	long base = base_slice(SLICE_NS);

	start(1);
	report(put(VCPU "/cpu.weight", "%ld", 10), "a small weight");
	generous("2000");
	/* Who has to pay back a boost with such a weight waits for seconds. */
	set_parameter("boost_repay", "0");
	for (i = 0; away < AWAY && now_ns() < end; i++) {
		got = unlocked(turn);
		if (got == -2)
			break;
		away += got >= 0;
		first += got > 0;
	}
	printf("# %d of %d before the hypercall was over, of %d\n", first, away, i);
	/* The fair class alone has it so in every other one. */
	if (got != -2 && away < AWAY / 4 && now_ns() >= end)
		skip(name, "too few such moments on this machine");
	else
		report(got != -2 && (away == AWAY || now_ns() >= end) &&
		       first * 4 > away * 3, name);
	if (base >= 0)
		base_slice(base);
	defaults();
	report(!vm_join(&thread[1]), "vCPU 1 ends well");
}

int main(int argc, char **argv)
{
	int is_short = argc > 1 && !strcmp(argv[1], "short");
	struct attributes before;
	pid_t tid;
	long n;

	if (!set_up())
		return 4;
	if (!groups_new()) {
		printf("1..0 # SKIP no cgroup v2 with the cpu controller\n");
		return 4;
	}
	atexit(groups_end);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	tid = start(0);
	before = attributes_of(tid);
	hog_start(HOG_FAIR);
	report(put(VCPU "/cgroup.threads", "%ld", tid) &&
	       put(HOG "/cgroup.threads", "%ld", hog.tid),
	       "each in a cgroup of its own");
	/* First: what ran with a weight of 1 waits long for its next turn. */
	quota(tid);
	used_up(tid);
	report(becomes(tid, &before), "a quota: the thread is as it was");
	changes(tid);

	locks(is_short ? 20 : 60);
	report(put(VCPU "/cpu.weight", "%ld", 1) &&
	       put(HOG "/cpu.weight", "%ld", 10000), "weights");
	generous("2000");
	report(vcpu_percent(tid, 0) < 5, "without boosts: weights count");
	n = begun();
	report(vcpu_percent(tid, 1) >= 15, "boosted: weights do not");
	report(begun() > n, "boosted: by boosts");
	report(becomes(tid, &before), "the thread is as it was");
	report(is_in(tid, VCPU) && is_in(hog.tid, HOG),
	       "each is in its cgroup still");
	report(vcpu_percent(tid, 0) < 5, "afterwards: weights count");

	hog_stop();
	defaults();
	print_counts();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregistered");
	vm_destroy(&m);
	return end();
}
