// SPDX-License-Identifier: GPL-2.0
/*
 * Boosts across cpu cgroups: libvirt gives every vCPU one of its own, and nice
 * values mean nothing between cgroups. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root, two CPUs and cgroup v2.
 *
 * The vCPU is in one cgroup, the hog in another one: first alike, but for a
 * quota; then the vCPU's has a small weight, and sleeps for a lock of its guest;
 * then the least, the hog's the greatest, and what the vCPU gets of the CPU it has
 * from boosts.
 */
#define _GNU_SOURCE
#include <sys/mount.h>
#include <sys/stat.h>

#include "boosttest.h"

#define SECONDS	2
/* Shorter than what the fair class gives anybody: a tick, mostly. */
#define TURN_MS	3
#define VCPU	"vbalance_test_vcpu"
#define HOG	"vbalance_test_hog"

static char root[64] = "/tmp/vbalance_cgroup.XXXXXX";

/* Of 100 of a CPU; in periods that are short beside SECONDS. */
#define QUOTA	20
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
	char path[128];

	/* A thread that has ended is a moment in its cgroup still. */
	snprintf(path, sizeof(path), "%s/" VCPU, root);
	AWAIT(!rmdir(path) || errno == ENOENT);
	snprintf(path, sizeof(path), "%s/" HOG, root);
	AWAIT(!rmdir(path) || errno == ENOENT);
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
	    group_new(VCPU) && group_new(HOG))
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
	long boosted, vcpu, n;
	int percent;
	__u64 t;

	report(put(VCPU "/cpu.max", "%ld " PERIOD, QUOTA * 200), "a quota");
	percent = vcpu_percent(tid, 0);
	report(percent <= QUOTA + 2, "a quota: it limits");
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
	printf("# vCPU %ld us of %llu us, boosted %ld us\n", vcpu / 1000,
	       t / 1000, boosted / 1000);
	report(begun() > n, "a quota: boosted");
	/* As exactly as it limits without them. */
	report((vcpu - boosted) * 100 <= (long)t * (percent + 3),
	       "a quota: only boosts go beyond it");
	report(put(VCPU "/cpu.max", "max " PERIOD, 0) &&
	       vcpu_percent(tid, 0) > QUOTA + 2,
	       "without a quota: it does not limit");
}

/* It sleeps, and has had more than its share just before: a part of a turn. */
static int to_sleep_after_a_turn(void)
{
	long n;

	for (;;) {
		n = vm_preempted(&m, 0);
		if (!AWAIT(in_state(0, "running")))
			return 0;
		usleep(2000);
		if (!to_sleep())
			return 0;
		if (vm_preempted(&m, 0) == n)
			return 1;
		if (!wake_up())
			return 0;
	}
}

/*
 * vCPU 0 sleeps and is critical, as one that waits for a lock of the guest, and
 * vCPU 1 wakes it up by a hypercall, in which KVM gives the CPU to whom the fair
 * class prefers: the hog (vCPU 0 has had its turn) or vCPU 1 itself. Return: 1 if
 * vCPU 0 ran before the hypercall was over, else 0; -1: vCPU 1 did not lose its
 * CPU in it, for @turn of the TSC; -2: not as it should be.
 */
static int unlocked(__u64 turn)
{
	const volatile struct vm_box *waker = vm_box(&m, 1), *asleep = vm_box(&m, 0);
	__u64 wakes, called;

	if (!to_sleep_after_a_turn())
		return -2;
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

static void locks(void)
{
	__u64 turn = TURN_MS * (__u64)vm_must(ioctl(m.vm, KVM_GET_TSC_KHZ, 0),
					      "KVM_GET_TSC_KHZ");
	int i, got, away = 0, first = 0;

	start(1);
	report(put(VCPU "/cpu.weight", "%ld", 10), "a small weight");
	generous("2000");
	/* Who has to pay back a boost with such a weight waits for seconds. */
	set_parameter("boost_repay", "0");
	for (i = 0; i < 400 && away < AWAY; i++) {
		got = unlocked(turn);
		if (got == -2)
			break;
		away += got >= 0;
		first += got > 0;
	}
	printf("# %d of %d before the hypercall was over, of %d\n", first, away, i);
	/* The fair class alone has it so in every other one. */
	report(away == AWAY && first * 4 > AWAY * 3,
	       "woken up by one that loses its CPU: boosted at once");
	defaults();
	report(!vm_join(&thread[1]), "vCPU 1 ends well");
}

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

int main(void)
{
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
	report(becomes(tid, &before), "a quota: the thread is as it was");

	locks();
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
