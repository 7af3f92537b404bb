// SPDX-License-Identifier: GPL-2.0
/*
 * More vCPUs than fit into a word of the bitmap or a page of the table, with
 * APIC ids that are neither dense nor in order: each one has its own slot.
 * Prints KTAP. Needs /dev/kvm and vbalance_host.
 */
#define _GNU_SOURCE
#include "vmthread.h"
#include "hosttest.h"

#define COOKIE		0x1122334455667788ULL
#define NR		300
#define TOGETHER	150	/* of them have a thread at the same time */
#define LATE		10	/* are plugged in after the registration */
#define WORDS		((NR + 63) / 64)

static struct minivm m;
static unsigned int id[NR];
static struct vm_thread thread[NR];
static volatile struct vb_header *h;
static volatile struct vb_vcpu_host *t;

/* 0 (the boot vCPU), then downwards in large steps. */
static void choose_ids(void)
{
	int max = ioctl(m.kvm, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPU_ID);
	int step = max > NR ? (max - 1) / (NR - 1) : 1, i;

	for (i = 1; i < NR; i++)
		id[i] = (NR - i) * step;
	printf("# APIC ids 0 .. %u, step %d\n", id[1], step);
}

static void add(int i)
{
	vm_add_vcpu_id(&m, id[i]);
	vm_mode(&m, i, 0);
}

/* Once around vm_loop, in this thread; the guest looks at its own slot. */
static int runs(int i)
{
	volatile struct vm_box *box = vm_box(&m, i);

	memset((void *)box, 0, sizeof(*box));
	vm_loop_regs(&m, i, VM_AREA);
	box->command = VM_CMD_LEAVE;
	if (ioctl(m.vcpu[i], KVM_RUN, 0) ||
	    m.run[i]->exit_reason != KVM_EXIT_IO) {
		printf("# vCPU %d: exit reason %u, errno %d\n", i,
		       m.run[i]->exit_reason, errno);
		return 0;
	}
	if (box->beats != 1 || box->bit_clear || box->not_running) {
		printf("# vCPU %d: %llu rounds, %llu, %llu\n", i, box->beats,
		       box->bit_clear, box->not_running);
		return 0;
	}
	return 1;
}

static int valid(int i)
{
	return t[i].flags == VB_VCPU_F_VALID && t[i].apic_id == id[i];
}

static int nobody_runs(void)
{
	__u64 any = 0;
	int i;

	for (i = 0; i < (int)(VB_MAX_SLOTS / 64); i++)
		any |= h->running[i];
	return !any;
}

static void one_by_one(void)
{
	static __u64 since[NR];
	int i, j, saw = 1, own = 1, state = 1;

	for (i = 0; i < NR; i++)
		since[i] = t[i].changed_tsc;
	for (i = 0; i < NR; i++) {
		saw &= runs(i);
		for (j = 0; j < NR; j++)
			own &= (t[j].changed_tsc != since[j]) == (j == i);
		since[i] = t[i].changed_tsc;
		state &= t[i].state == VB_VCPU_VMM && nobody_runs();
	}
	report(saw, "each vCPU finds its own bit and state");
	report(own, "each vCPU changes its own slot and no other");
	report(state, "each vCPU's slot shows when it left");
}

/* Some threads, all on one CPU. */
static void together(void)
{
	int there, here, i, w, alone = 1, only = 1, all = 0;
	static long seen[NR];
	int bad = 0, started = 0;

	if (!vm_two_cpus(&here, &there)) {
		skip("vCPUs on one CPU", "needs two CPUs");
		return;
	}
	for (i = 0; i < NR; i += NR / TOGETHER, started++)
		vm_start(&thread[i], &m, i, there, VM_AREA);
	for (i = 0; i < 60000 && !all; i++) {
		int s;

		for (w = 0; w < (int)(VB_MAX_SLOTS / 64); w++) {
			__u64 bits = h->running[w];

			alone &= !(bits & (bits - 1));
			if (!bits)
				continue;
			s = w * 64 + __builtin_ctzll(bits);
			if (s >= NR || s % (NR / TOGETHER))
				only = 0;
			else
				seen[s]++;
		}
		for (s = 0, all = 1; s < NR; s += NR / TOGETHER)
			all &= !!seen[s];
		usleep(1000);
	}
	report(alone, "on one CPU: at most one bit of a word is set");
	report(only, "on one CPU: only of those that have a thread");
	report(all, "on one CPU: each one is seen running");
	for (i = 0; i < NR; i += NR / TOGETHER) {
		volatile struct vm_box *box = vm_box(&m, i);

		thread[i].quit = 1;
		pthread_kill(thread[i].thread, SIGUSR1);
		bad += box->bit_clear || box->not_running;
	}
	for (i = 0; i < NR; i += NR / TOGETHER)
		bad += !!vm_join(&thread[i]);
	expect(bad, 0, "on one CPU: none ever saw its bit clear");
	report(nobody_runs(), "all threads gone: nobody runs");
}

int main(void)
{
	int i, good;

	begin();
	vm_new(&m, vm_memory_new(), 0);
	if (ioctl(m.kvm, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS) < NR) {
		printf("1..0 # SKIP KVM allows fewer vCPUs\n");
		return 4;
	}
	choose_ids();
	for (i = 0; i < NR - LATE; i++)
		add(i);
	h = vm_header(&m, VM_AREA, NR, COOKIE);
	t = vm_host_table((struct vb_header *)h);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	for (i = 0, good = 1; i < NR; i++)
		good &= i < NR - LATE ? valid(i) : !t[i].flags;
	report(good, "slots in order of creation, each with its APIC id");
	expect(h->nr_vcpus, NR - LATE, "number of vCPUs");
	expect(pinned_kb(getpid()), VB_AREA_PAGES(NR) * VB_PAGE_SIZE / 1024,
	       "all pages of the area are pinned");
	for (i = NR - LATE, good = 1; i < NR; i++) {
		add(i);
		runs(i);
		good &= valid(i) && h->nr_vcpus == (unsigned int)i + 1;
	}
	report(good, "vCPUs that come later get the next slots");
	one_by_one();
	together();
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregister");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
