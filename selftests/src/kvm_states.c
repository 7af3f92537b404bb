// SPDX-License-Identifier: GPL-2.0
/*
 * What stands in the shared page agrees with what the vCPUs' threads do: from
 * outside, and as the guest sees it about itself. Prints KTAP. Needs /dev/kvm,
 * vbalance_host, root and two CPUs.
 *
 * All vCPUs are on one CPU, we watch from another. Whatever is claimed about
 * two moments is claimed only when changed_tsc (which the host writes first)
 * was the same at both, so that nothing depends on how long anything takes.
 */
#define _GNU_SOURCE
#include "vmthread.h"
#include "hosttest.h"

#define COOKIE	0x1122334455667788ULL
#define NR	4
#define OFF	3		/* the vCPU that is not started for long */
#define SAMPLES	50000

static struct minivm m;
static struct vm_thread thread[NR];
static volatile struct vb_header *h;
static volatile struct vb_vcpu_host *t;
static __u64 tsc_offset[NR];
static int here, there;		/* CPUs: ours, the vCPUs' */

static const char * const state_name[VB_NR_VCPU_STATES] = {
	"off", "running", "preempted", "halted", "vmm",
};

static int bit(int slot)
{
	return h->running[0] >> slot & 1;
}

static __u64 guest_tsc(int slot)
{
	unsigned int lo, hi;

	__asm__ volatile("mfence; rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (lo | (__u64)hi << 32) + tsc_offset[slot];
}

/*
 * Where the host's TSC is unstable KVM stops the guest's while a vCPU has no
 * CPU: nothing can be said about times then. Emulated machines under load find
 * their TSC unstable at any time, and say so a moment later.
 */
static int tsc_stable(void)
{
	char line[256] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource",
			"r");

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = 0;
		fclose(f);
	}
	return !!strstr(line, "tsc");
}

static void report_times(int good, const char *name)
{
	if (!good)
		sleep(1);
	if (good || tsc_stable())
		report(good, name);
	else
		skip(name, "the host's TSC is unstable");
}

/* The state is there and the bit agrees; both stay for a moment. */
static int in_state(int slot, __u32 state)
{
	__u64 since = t[slot].changed_tsc;
	int i;

	for (i = 0; i < 3; i++) {
		if (t[slot].state != state ||
		    bit(slot) != (state == VB_VCPU_RUNNING))
			return 0;
		usleep(1000);
	}
	return t[slot].changed_tsc == since;
}

/*
 * The vCPU gets to @state; while it is there, the guest stands still (or,
 * running, moves), and the time of the change lies on the right side of the
 * guest's last own look at the clock.
 */
static void reaches(int slot, __u32 state, const char *how)
{
	volatile struct vm_box *box = vm_box(&m, slot);
	int i, seen = 0, still = 1, after = 1, past = 1;
	__u64 since, beats, last;
	char name[128];

	snprintf(name, sizeof(name), "%s: %s", how, state_name[state]);
	report(AWAIT(in_state(slot, state)), name);

	for (i = 0; i < 2000 && seen < 20; i++) {
		since = t[slot].changed_tsc;
		past &= since <= guest_tsc(slot);
		if (t[slot].state != state) {
			usleep(1000);
			continue;
		}
		since = t[slot].changed_tsc;
		beats = box->beats;
		if (state == VB_VCPU_RUNNING)
			AWAIT(box->beats >= beats + 2 ||
			      t[slot].changed_tsc != since);
		else
			usleep(1000);
		last = box->tsc;
		beats = box->beats - beats;
		if (t[slot].changed_tsc != since || t[slot].state != state)
			continue;
		seen++;
		still &= state == VB_VCPU_RUNNING ? beats >= 2 : !beats;
		after &= state == VB_VCPU_RUNNING ? last >= since :
						    last <= since;
	}
	snprintf(name, sizeof(name), "%s: the guest %s then", how,
		 state == VB_VCPU_RUNNING ? "moves" : "stands still");
	report(seen && still, name);
	snprintf(name, sizeof(name), "%s: time of the change", how);
	report_times(seen && after && past, name);
}

/*
 * vCPUs have a past when the guest registers. The first change after that adds
 * what happened since, not the whole past at once.
 */
static void registration(void)
{
	__u64 nr, spent;
	long past;
	int i;

	for (i = 0; i < 2; i++)
		vm_start(&thread[i], &m, i, there, VM_AREA);
	report(AWAIT(vm_preempted(&m, 1) > 5), "two vCPUs have a past");
	for (i = 0; i < 2; i++)
		vm_join(&thread[i]);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	past = vm_preempted(&m, 1);
	nr = t[1].nr_preempted;
	spent = t[1].preempted_tsc;
	vm_call(&m, 1, VB_HYPERCALL, VB_OP_PROBE, 0, 0, 0);
	past = vm_preempted(&m, 1) - past;
	expect(t[1].nr_preempted - nr, past,
	       "first change after the registration: preemptions");
	report(past || t[1].preempted_tsc == spent,
	       "first change after the registration: time preempted");
}

static void *hog(void *stop)
{
	struct sched_param p = { .sched_priority = 50 };

	if (!vm_pin(there) || sched_setscheduler(0, SCHED_FIFO, &p))
		return (void *)1;
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* One vCPU and a real-time thread on its CPU. */
static void behind_hog(void)
{
	__u64 before = t[0].nr_preempted, nr, spent, since;
	pthread_t thread;
	int i, stop = 0, exact = 0;
	void *failed;

	vm_pthread(&thread, hog, &stop);
	reaches(0, VB_VCPU_PREEMPTED, "behind a real-time thread");
	report(t[0].nr_preempted > before,
	       "behind a real-time thread: counted");
	stop = 1;
	pthread_join(thread, &failed);
	report(!failed, "the real-time thread was one");
	reaches(0, VB_VCPU_RUNNING, "after the real-time thread");

	/* One episode, seen from both ends: it adds just its length. */
	for (i = 0; i < 50 && !exact; i++) {
		stop = 0;
		vm_pthread(&thread, hog, &stop);
		AWAIT(in_state(0, VB_VCPU_PREEMPTED));
		since = t[0].changed_tsc;
		nr = t[0].nr_preempted;
		spent = t[0].preempted_tsc;
		stop = 1;
		pthread_join(thread, NULL);
		AWAIT(in_state(0, VB_VCPU_RUNNING));
		/* Others may have taken the CPU for a moment meanwhile. */
		exact = t[0].nr_preempted == nr && t[0].preempted_tsc - spent ==
			t[0].changed_tsc - since;
	}
	report_times(exact, "preempted_tsc grows by the length of the episode");
}

static void one_vcpu(void)
{
	vm_start(&thread[0], &m, 0, there, VM_AREA);
	reaches(0, VB_VCPU_RUNNING, "spins");
	vm_command(&thread[0], VM_CMD_HALT);
	reaches(0, VB_VCPU_HALTED, "executes HLT");
	report(!h->running[0], "executes HLT: nobody runs");
	vm_nmi(&m, 0);
	reaches(0, VB_VCPU_RUNNING, "gets an interrupt");
	report(vm_box(&m, 0)->wakes == 1, "gets an interrupt: and goes on");

	behind_hog();

	vm_command(&thread[0], VM_CMD_LEAVE);
	report(AWAIT(thread[0].waits), "port access: handled in user space");
	reaches(0, VB_VCPU_VMM, "port access");
	vm_resume(&thread[0]);
	reaches(0, VB_VCPU_RUNNING, "port access done");
	vm_stop(&thread[0]);
	report(AWAIT(thread[0].waits), "stopped: waits in user space");
	reaches(0, VB_VCPU_VMM, "stopped anywhere in the guest");
	vm_resume(&thread[0]);
	reaches(0, VB_VCPU_RUNNING, "goes on");

	/* Waits for its SIPI, like an AP that no kernel has started. */
	vm_mp_state(&m, OFF, KVM_MP_STATE_UNINITIALIZED);
	vm_start(&thread[OFF], &m, OFF, there, VM_AREA);
	reaches(OFF, VB_VCPU_OFF, "waits for its SIPI");
	report(t[OFF].flags == VB_VCPU_F_VALID,
	       "waits for its SIPI: its slot is valid");
	report(!vm_join(&thread[OFF]), "is ended there");
	reaches(OFF, VB_VCPU_VMM, "is ended there");
	vm_mp_state(&m, OFF, KVM_MP_STATE_RUNNABLE);
}

/* What may never be seen in any sample of any vCPU. */
struct watch {
	__u64 since, nr, spent;
	long seen[VB_NR_VCPU_STATES], bits;
	long times;		/* that were wrong */
};

static int sample(int slot, struct watch *w)
{
	volatile struct vm_box *box = vm_box(&m, slot);
	__u32 state = t[slot].state;
	__u64 since = t[slot].changed_tsc, now = guest_tsc(slot);
	__u64 nr = t[slot].nr_preempted, spent = t[slot].preempted_tsc;
	__u64 beats = box->beats, last = box->tsc, later = box->beats;
	int good = 1;

	if (state >= VB_NR_VCPU_STATES || nr < w->nr || spent < w->spent) {
		printf("# slot %d: state %u, %llu then %llu, %llu then %llu\n",
		       slot, state, w->nr, nr, w->spent, spent);
		return 0;
	}
	if (since > now || since < w->since)
		w->times++;
	w->since = since;
	w->nr = nr;
	w->spent = spent;
	w->seen[state]++;
	if (state != VB_VCPU_RUNNING && t[slot].changed_tsc == since &&
	    t[slot].state == state) {
		if (later != beats)
			printf("# slot %d: moved while %s\n", slot,
			       state_name[state]);
		good = later == beats;
		w->times += last > since;
	}
	return good;
}

/* All on one CPU. */
static void stacked(void)
{
	int i, good = 1, alone = 1, every = 0, both = 1, done = 0;
	struct watch w[NR] = {};
	__u64 counted[NR];
	long n;

	for (i = 0; i < NR; i++)
		counted[i] = t[i].nr_preempted;
	for (i = 1; i < NR; i++)
		vm_start(&thread[i], &m, i, there, VM_AREA);
	for (n = 0; (n < SAMPLES || !every) && n < 40 * SAMPLES; n++) {
		__u64 bits = h->running[0];

		alone &= !(bits & (bits - 1)) && bits < 1ULL << NR;
		for (i = 0, every = 1; i < NR; i++) {
			w[i].bits += bits >> i & 1;
			good &= sample(i, &w[i]);
			every &= w[i].bits > 100 &&
				 w[i].seen[VB_VCPU_RUNNING] > 100 &&
				 w[i].seen[VB_VCPU_PREEMPTED] > 100;
		}
	}
	report(alone, "stacked: at most one bit is ever set");
	report(every, "stacked: each one is seen running and preempted");
	report(good, "stacked: counts only grow, nobody moves who does not run");
	for (i = 0, good = 1; i < NR; i++)
		good &= !w[i].times;
	report_times(good, "stacked: times only grow, none is ahead or before the guest's own");
	for (i = 0; i < NR; i++)
		done += t[i].nr_preempted > counted[i];
	report(done == NR, "stacked: every one's preemptions are counted");
	for (i = 1; i < 64; i++)
		both &= !h->running[i];
	report(both, "stacked: no bit of a vCPU that does not exist");

	/* Halted ones leave the CPU to the others. */
	for (i = 1; i < NR; i++)
		vm_command(&thread[i], VM_CMD_HALT);
	for (i = 1, done = 0; i < NR; i++)
		done += AWAIT(in_state(i, VB_VCPU_HALTED));
	report(done == NR - 1, "three halt: seen halted");
	reaches(0, VB_VCPU_RUNNING, "the fourth spins");
	vm_nmi(&m, 2);
	report(AWAIT(t[2].state == VB_VCPU_PREEMPTED && bit(0)) &&
	       AWAIT(t[0].state == VB_VCPU_PREEMPTED && bit(2)),
	       "one wakes: the two take turns");
}

/* The guest looked at its own bit and state in each round of its loop. */
static void own_view(void)
{
	int i, good = 1, joined = 0;

	for (i = 0; i < NR; i++) {
		volatile struct vm_box *box = vm_box(&m, i);

		joined |= vm_join(&thread[i]);
		if (box->beats && !box->bit_clear && !box->not_running)
			continue;
		printf("# vCPU %d: %llu rounds, bit clear in %llu, not running in %llu\n",
		       i, box->beats, box->bit_clear, box->not_running);
		good = 0;
	}
	report(!joined, "all threads end well");
	report(good, "no vCPU ever saw its own bit clear or another state");
	for (i = 0; i < NR; i++)
		good &= in_state(i, VB_VCPU_VMM);
	report(good && !h->running[0], "all threads gone: nobody runs");
}

static int read_offset(int slot)
{
	struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
		.addr = (unsigned long)&tsc_offset[slot],
	};

	return ioctl(m.vcpu[slot], KVM_GET_DEVICE_ATTR, &attr);
}

int main(void)
{
	int i;

	begin();
	if (!vm_two_cpus(&here, &there)) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 4;
	}
	vm_new(&m, vm_memory_new(), 1);
	for (i = 0; i < NR; i++) {
		vm_add_vcpu(&m);
		vm_mode(&m, i, 0);
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
		vm_must(read_offset(i), "KVM_VCPU_TSC_OFFSET");
	}
	h = vm_header(&m, VM_AREA, NR, COOKIE);
	t = vm_host_table((struct vb_header *)h);
	registration();
	one_vcpu();
	stacked();
	own_view();
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregister");
	report(!h->running[0] && h->host_status == VB_HOST_GONE,
	       "unregistered: the page says so");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
