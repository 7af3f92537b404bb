/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A VM whose vCPUs compete for one CPU with a hog, what its counters of boosts
 * say, and everything about a thread that a boost has to put back.
 */
#ifndef _VB_BOOSTTEST_H
#define _VB_BOOSTTEST_H

#include <sys/syscall.h>

#include "vmthread.h"
#include "hosttest.h"
#include "../core/boost.h"

#define COOKIE	0x1122334455667788ULL
#ifndef NR
#define NR	2		/* vCPUs */
#endif
#define CRITICAL	(VB_CRITICAL_SAID | VB_CRITICAL_IRQ)
#define PREEMPTIONS	50	/* chances for a boost that must not be */

static struct minivm m;
static struct vm_thread thread[NR];
static struct vb_header *h;
static volatile struct vb_vcpu_host *host;
static volatile struct vb_vcpu_guest *guest;
static int here, there;		/* CPUs: ours, the vCPUs' */

/* As AWAIT(), without sleep: for what passes quickly. */
#define CATCH(cond)							\
	({								\
		__u64 catch_end = now_ns() + 10000000000ULL * slowness(); \
		int catch_good;						\
									\
		while (!(catch_good = !!(cond)) && now_ns() < catch_end)	\
			;						\
		catch_good;						\
	})

/* ---- counters ---- */

static inline long count(const char *name)
{
	return value_of(vm_file(&m, "boost"), name);
}

static inline long begun(void)
{
	return count("hint") + count("task") + count("holder") +
		count("waiting") + count("fast_path");
}

static inline long ended(void)
{
	return count("ended_done") + count("ended_off_cpu") +
		count("ended_bound") + count("ended_gone") +
		count("ended_moved");
}

/* For want of CPU time that the VM, the vCPU or the CPU has left. */
static inline long no_time(void)
{
	return count("no_vm_tokens") + count("no_vcpu_tokens") +
		count("no_cpu_tokens") + count("cpu_turn");
}

/* For another reason than that there was none to want it. */
static inline long refused(void)
{
	return count("pause") + no_time() + count("in_row") +
		count("not_needed");
}

/* Of vCPUs that an interrupt waits for: thought of, whatever came of it. */
static inline long thought_of(void)
{
	return count("waiting") + count("fast_path") + refused();
}

/* Of the VM of another process, whatever its number; -1: it has none. */
static inline long count_of(pid_t pid, const char *name)
{
	DIR *d = opendir(HOST);
	struct dirent *e;
	char path[512];
	long n = -1;
	int p;

	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, "%d-", &p) != 1 || p != pid)
			continue;
		snprintf(path, sizeof(path), HOST "/%s/boost", e->d_name);
		n = value_of(path, name);
	}
	if (d)
		closedir(d);
	return n;
}

static inline int any_boosted(void)
{
	int i, any = 0;

	for (i = 0; i < NR; i++)
		any |= host[i].boosted;
	return any;
}

/* Nothing is under way, nor comes any more. Nobody may be critical. */
static inline int at_rest(void)
{
	long n;
	int i;

	for (i = 0; i < 500; i++) {
		n = begun();
		usleep(20000);
		if (n == ended() && n == begun() && !any_boosted())
			return 1;
	}
	return 0;
}

/*
 * What boosts gave. The fee is not CPU time, and is paid before it is known
 * whether a boost is needed; what refused extensions have not paid is taken off
 * too: rather too little than too much.
 */
struct given {
	long ns, boosts;	/* each extension is one more */
};

static inline struct given given_now(void)
{
	long asked = begun() + count("not_needed") + count("no_cpu_tokens") +
		count("cpu_turn");

	return (struct given){
		.ns = count("boosted_ns") - asked * VB_BOOST_FEE_NS,
		.boosts = begun() + count("extended"),
	};
}

/*
 * Have they given what they were to, since @was? A vCPU that is but said to be
 * boosted has some CPU time meanwhile as well, but its neighbour has just begun
 * a turn, which lasts for a tick at least. @us: of each; @percent: of that.
 */
static inline int have_given(struct given was, long us, int percent)
{
	struct given is = given_now();

	is.ns -= was.ns;
	is.boosts -= was.boosts;
	printf("# %ld us in %ld boosts of %ld us\n", is.ns / 1000, is.boosts,
	       us);
	return is.boosts > 0 && is.ns / (10 * us) >= is.boosts * percent;
}

static inline void print_counts(void)
{
	char line[128];
	FILE *f = fopen(vm_file(&m, "boost"), "r");

	printf("#");
	while (f && fgets(line, sizeof(line), f))
		printf(" %.*s;", (int)strcspn(line, "\n"), line);
	printf("\n");
	if (f)
		fclose(f);
}

static inline void percent(const char *parameter, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	set_parameter(parameter, text);
}

/* Room for one boost after the other. */
static inline void generous(const char *us)
{
	set_parameter("boost_us", us);
	set_parameter("boost_share", "50");
	set_parameter("boost_vcpu_share", "50");
	set_parameter("boost_cpu_share", "50");
}

static inline void defaults(void)
{
	set_parameter("boost", "1");
	set_parameter("boost_us", "2000");
	set_parameter("boost_share", "5");
	set_parameter("boost_vcpu_share", "4");
	set_parameter("boost_cpu_share", "10");
	set_parameter("boost_row", "4");
	set_parameter("boost_repay", "1");
	set_parameter("holder_us", "3000");
	set_parameter("boost_waiting", "1");
}

/*
 * The scheduler's, of threads that have none of their own, ns. Return: what it
 * was; -1: this kernel has none.
 */
#define BASE_SLICE	"/sys/kernel/debug/sched/base_slice_ns"

static inline long base_slice(long ns)
{
	FILE *f = fopen(BASE_SLICE, "r");
	long was = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &was) != 1)
		vm_must(-1, BASE_SLICE);
	fclose(f);
	/* It cannot be sought in: opened anew. */
	f = fopen(BASE_SLICE, "w");
	if (!f || fprintf(f, "%ld", ns) < 0 || fclose(f))
		vm_must(-1, BASE_SLICE);
	return was;
}

/* ---- the VM ---- */

static inline void vm_set_up(void)
{
	struct kvm_lapic_state lapic;
	int i;

	vm_new(&m, vm_memory_new(), 1);
	for (i = 0; i < NR; i++) {
		vm_add_vcpu(&m);
		vm_mode(&m, i, 0);
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
	}
	/* The last one is not sent anything before an APIC changes. */
	vm_must(ioctl(m.vcpu[0], KVM_GET_LAPIC, &lapic), "KVM_GET_LAPIC");
	vm_must(ioctl(m.vcpu[0], KVM_SET_LAPIC, &lapic), "KVM_SET_LAPIC");
	h = vm_header(&m, VM_AREA, NR, COOKIE);
	host = vm_host_table(h);
	guest = (struct vb_vcpu_guest *)((char *)h + h->guest_table_page *
					 VB_PAGE_SIZE);
}

/* Instead of one that has gone. */
static inline int vm_anew(void)
{
	vm_set_up();
	if (vm_register(&m, VM_AREA, COOKIE))
		return 0;
	guest[0].critical = VB_CRITICAL_SAID;
	return 1;
}

static inline int set_up(void)
{
	begin();
	if (!vm_two_cpus(&here, &there)) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 0;
	}
	vm_set_up();
	return 1;
}

/* And the VM is registered, as one whose guest has said that it gives hints. */
static inline int set_up_guest(void)
{
	if (!set_up())
		return 0;
	defaults();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	return 1;
}

/* vCPU @i spins on its CPU. */
static inline pid_t start(int i)
{
	vm_start(&thread[i], &m, i, there, VM_AREA);
	AWAIT(vm_box(&m, i)->beats);
	return thread[i].tid;
}

/* vCPU 1's thread is real-time with this priority from now on; 0: it is not. */
static inline void rank(int priority)
{
	struct sched_param p = { .sched_priority = priority };

	vm_must(sched_setscheduler(thread[1].tid, priority ? SCHED_FIFO :
				   SCHED_OTHER, &p), "sched_setscheduler");
}

/* A CPU besides ours and the vCPUs'; -1: there is none. */
static inline int third_cpu(void)
{
	int i, found = -1;

	for (i = 0; i < CPU_SETSIZE && found < 0; i++)
		if (i != here && i != there && vm_pin(i))
			found = i;
	vm_pin(here);
	return found;
}

/* On these two alone, or on one. */
static inline void may_run(pid_t tid, int cpu, int other)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CPU_SET(other, &set);
	vm_must(sched_setaffinity(tid, sizeof(set), &set), "sched_setaffinity");
}

/* The fields of an MSI (Intel SDM 3, 11.11). */
#define MSI_LOGICAL	0x4U		/* of the address */
#define MSI_TO(dest)	((dest) << 12)
#define MSI_LOWEST	0x100U		/* of the data */
#define MSI_NMI		0x400U
#define MSI_LEVEL	0xc000U		/* and asserted */
#define MSI_VECTOR	0x41U

static inline void send_msi(__u32 address, __u32 data)
{
	struct kvm_msi msi = { .address_lo = 0xfee00000U | address,
			       .data = data | MSI_VECTOR };

	/* EPERM: nobody takes it, as our APICs are off; seen on 6.1. */
	if (ioctl(m.vm, KVM_SIGNAL_MSI, &msi) < 0 && errno != EPERM)
		vm_must(-1, "KVM_SIGNAL_MSI");
}

static inline void send(int i)
{
	send_msi(MSI_TO(i), 0);
}

static inline int in_state(int i, const char *state)
{
	char s[16];

	return vm_state(&m, i, s) >= 0 && !strcmp(s, state);
}

/* It loses its CPU again and again. */
static inline int more_preemptions(int i)
{
	long n = vm_preempted(&m, i);

	return AWAIT(vm_preempted(&m, i) > n + PREEMPTIONS);
}

/*
 * vCPU 0 sleeps from now on. It is not woken by what is sent to it, as its APIC
 * is off: a boost for that is asked for, and is found not to be needed.
 */
static inline int to_sleep(void)
{
	vm_command(&thread[0], VM_CMD_HALT);
	return AWAIT(in_state(0, "halted"));
}

/* Return: how often it was, with 20 interrupts; -1: something else goes on. */
static inline long thought_of_sleeper(void (*interrupt)(void))
{
	long n = thought_of();
	int i;

	for (i = 0; i < 20; i++) {
		interrupt();
		usleep(3000);
	}
	return at_rest() ? thought_of() - n : -1;
}

/* Who runs where it went to sleep may not just then: again then. */
static inline int sleeper_is_thought_of(void (*interrupt)(void))
{
	long n = 0;
	int i;

	for (i = 0; i < 50 && !n; i++)
		n = thought_of_sleeper(interrupt);
	return n > 0;
}

/* Return: it has slept until now. */
static inline int wake_up(void)
{
	int slept = in_state(0, "halted");

	vm_nmi(&m, 0);
	return slept && AWAIT(!vm_box(&m, 0)->command);
}

/* ---- the hog on the vCPUs' CPU ---- */

/*
 * HOG_FAIR spins, an equal among equals. HOG_FIFO spins before everybody.
 * HOG_PULSES wakes up before everybody, stays until vCPU 0 is boosted (or for
 * a while), and leaves until it is not: as many boosts as the machine can do.
 */
enum hog { HOG_NONE, HOG_FAIR, HOG_FIFO, HOG_PULSES };

#define PULSE_NS	3000000

static struct {
	pthread_t thread;
	enum hog kind;
	volatile int stop;
	volatile pid_t tid;
} hog;

static inline void hog_pulse(void)
{
	__u64 start = now_ns();

	while (!hog.stop && !host[0].boosted && now_ns() - start < PULSE_NS)
		;
	start = now_ns();
	do {
		usleep(50);
	} while (!hog.stop && host[0].boosted && now_ns() - start < PULSE_NS);
}

static void *hog_fn(void *unused)
{
	struct sched_param p = { .sched_priority = 50 };

	vm_pin(there);
	if (hog.kind != HOG_FAIR && sched_setscheduler(0, SCHED_FIFO, &p))
		vm_must(-1, "SCHED_FIFO");
	hog.tid = gettid();
	while (!hog.stop)
		if (hog.kind == HOG_PULSES)
			hog_pulse();
	return unused;
}

static inline void hog_stop(void)
{
	if (hog.kind == HOG_NONE)
		return;
	hog.stop = 1;
	pthread_join(hog.thread, NULL);
	hog.kind = HOG_NONE;
}

static inline void hog_start(enum hog kind)
{
	hog_stop();
	hog.kind = kind;
	hog.stop = 0;
	hog.tid = 0;
	vm_pthread(&hog.thread, hog_fn, NULL);
	AWAIT(hog.tid);
}

/* ---- the worker of the boosts ---- */

/* 0: there is none. */
static inline pid_t worker(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		char path[512], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = atoi(e->d_name) ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%31s", name) == 1 && !strcmp(name, "vbalance_boost"))
			found = atoi(e->d_name);
		fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

/* On that CPU alone; @was: where it was. Return: its id, or 0. */
static inline pid_t worker_pin(int cpu, cpu_set_t *was)
{
	pid_t pid = worker();
	cpu_set_t one;

	if (!pid)
		return 0;
	vm_must(sched_getaffinity(pid, sizeof(*was), was),
		"sched_getaffinity");
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	vm_must(sched_setaffinity(pid, sizeof(one), &one),
		"sched_setaffinity");
	return pid;
}

/* ---- what a thread is ---- */

/* <sched.h> has it or not, and <linux/sched/types.h> does not go with it. */
struct attr {
	__u32	size, policy;
	__u64	flags;
	__s32	nice;
	__u32	priority;
	__u64	runtime, deadline, period;
	__u32	util_min, util_max;
};

#define ATTR_RESET_ON_FORK	0x01
#define ATTR_KEEP_POLICY	0x08
#define ATTR_KEEP_PARAMS	0x10
#define ATTR_CLAMP_MIN		0x20
#define ATTR_CLAMP_MAX		0x40

struct attributes {
	struct attr a;
	long slack;
	cpu_set_t cpus;
};

static inline int slack_file(pid_t tid, const char *mode, long *slack)
{
	char path[64];
	FILE *f;
	int good;

	snprintf(path, sizeof(path), "/proc/%d/timerslack_ns", tid);
	f = fopen(path, mode);
	good = f && (*mode == 'r' ? fscanf(f, "%ld", slack) == 1 :
				    fprintf(f, "%ld", *slack) > 0);
	return f && !fclose(f) && good;
}

static inline struct attributes attributes_of(pid_t tid)
{
	struct attributes x;

	memset(&x, 0, sizeof(x));
	vm_must(syscall(SYS_sched_getattr, tid, &x.a, sizeof(x.a), 0),
		"sched_getattr");
	if (!slack_file(tid, "r", &x.slack))
		vm_must(-1, "timerslack_ns");
	vm_must(sched_getaffinity(tid, sizeof(x.cpus), &x.cpus),
		"sched_getaffinity");
	return x;
}

static inline int set_attr(pid_t tid, struct attr a)
{
	a.size = sizeof(a);
	/* Clamps without their flags are ignored. */
	return syscall(SYS_sched_setattr, tid, &a, 0);
}

static inline void set_slack(pid_t tid, long slack)
{
	if (!slack_file(tid, "w", &slack))
		vm_must(-1, "timerslack_ns");
}

static inline void least_weight(int i)
{
	vm_must(set_attr(thread[i].tid, (struct attr){ .nice = 19 }),
		"sched_setattr");
}

/* None of it is what a new thread has. Return: all that it is. */
static inline struct attributes make_unusual(pid_t tid)
{
	static const struct attr unusual = {
		.policy = SCHED_BATCH, .nice = 4, .flags = ATTR_RESET_ON_FORK,
	};

	vm_must(set_attr(tid, unusual), "sched_setattr");
	set_slack(tid, 123456);
	return attributes_of(tid);
}

static inline void print_attributes(const char *what,
				    const struct attributes *x)
{
	printf("# %s: policy %u, flags %#llx, nice %d, priority %u, runtime %llu, deadline %llu, period %llu, clamps %u %u, slack %ld, %d CPUs\n",
	       what, x->a.policy, x->a.flags, x->a.nice, x->a.priority,
	       x->a.runtime, x->a.deadline, x->a.period, x->a.util_min,
	       x->a.util_max, x->slack, CPU_COUNT(&x->cpus));
}

static inline int same_now(pid_t tid, const struct attributes *want)
{
	struct attributes got = attributes_of(tid);

	/* -1: any will do. */
	if (want->slack < 0)
		got.slack = -1;
	return !memcmp(&got, want, sizeof(got));
}

/* And if not, says what it is. */
static inline int is_same(pid_t tid, const struct attributes *want)
{
	struct attributes got = attributes_of(tid);

	if (same_now(tid, want))
		return 1;
	print_attributes("expected", want);
	print_attributes("got", &got);
	return 0;
}

/* Soon, and then for good: nothing may be under way. */
static inline int becomes(pid_t tid, const struct attributes *want)
{
	int i;

	for (i = 0; i < 50; i++)
		if (at_rest() && same_now(tid, want))
			return 1;
	return is_same(tid, want);
}

/*
 * Where the machine's own CPU is taken away for some 100 ms, as happens in an
 * emulator, who was on it has had that, and the scheduler takes it off its next
 * turns. So the neighbour counts from its first one, and all are left alone for
 * a while at the end.
 */
#define SETTLE_SECONDS	2

/* CPU time of a thread, ns. */
static inline long cpu_ns(pid_t tid)
{
	char path[64];
	long ns = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &ns) != 1)
		vm_must(-1, path);
	fclose(f);
	return ns;
}

#endif /* _VB_BOOSTTEST_H */
