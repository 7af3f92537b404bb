// SPDX-License-Identifier: GPL-2.0
/*
 * What do the hooks cost?
 *
 *	hookcost switch|msi ITERATIONS ROUNDS [registered]
 *
 * switch: every vCPU ioctl loads the vCPU and puts it again (vcpu_load,
 * vcpu_put), so a loop of the cheapest one, KVM_GET_MP_STATE, is a loop of both
 * run-state hooks. msi: a loop of KVM_SIGNAL_MSI, which is what the hook on the
 * delivery of interrupts sees. Run it with and without vbalance_host
 * (bench/hookcost does, in alternation); the difference is the price of a pair
 * of switches, from a vCPU and back to it, or of an MSI.
 *
 * Prints nanoseconds per turn of the loop, a line a round. "registered": the VM
 * registers a shared area first, so that run states are also published, and the
 * MSI is one that the guest has listed, for a vCPU that nothing is redirected
 * from (vmm_us=1000000). In an emulated machine with -icount shift=0 a nanosecond
 * is an instruction.
 */
#include "../../core/redirect.h"
#include "../../selftests/src/minivm.h"

#define COOKIE	0x1122334455667788ULL
#define KEYS	16		/* of a guest with 16 queues */
#define VECTOR	0x41

static struct minivm m;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void vm_set_up(int msi)
{
	struct kvm_mp_state state = { .mp_state = KVM_MP_STATE_RUNNABLE };
	struct kvm_lapic_state apic;

	if (!msi) {
		vm_create(&m, 1);
		return;
	}
	vm_new(&m, vm_memory_new(), 1);
	vm_add_vcpu(&m);
	vm_mode(&m, 0, 0);
	vm_must(ioctl(m.vcpu[0], KVM_SET_MP_STATE, &state), "KVM_SET_MP_STATE");
	vm_must(ioctl(m.vcpu[0], KVM_GET_LAPIC, &apic), "KVM_GET_LAPIC");
	*(__u32 *)&apic.regs[0xf0] = 0x1ff;	/* SVR: enabled */
	vm_must(ioctl(m.vcpu[0], KVM_SET_LAPIC, &apic), "KVM_SET_LAPIC");
}

static int set_up_area(void)
{
	struct vb_header *h = vm_header(&m, VM_AREA, 1, COOKIE);
	struct vb_redirect *r = (struct vb_redirect *)
		((char *)h + h->redirect_page * VB_PAGE_SIZE);
	long status;
	int i;

	for (i = 0; i < KEYS; i++)
		r->key[i] = vb_key_make(VECTOR + 1 - KEYS + i, false, 0, 0);
	r->nr_keys = KEYS;
	status = vm_register(&m, VM_AREA, COOKIE);
	if (status)
		fprintf(stderr, "registration: %ld\n", status);
	return !status;
}

static void get_state(void)
{
	struct kvm_mp_state state;

	vm_must(ioctl(m.vcpu[0], KVM_GET_MP_STATE, &state), "KVM_GET_MP_STATE");
}

static void send(void)
{
	struct kvm_msi msi = { .address_lo = 0xfee00000U, .data = VECTOR };

	vm_must(ioctl(m.vm, KVM_SIGNAL_MSI, &msi), "KVM_SIGNAL_MSI");
}

int main(int argc, char **argv)
{
	int msi = argc > 1 && !strcmp(argv[1], "msi");
	long i, n = argc > 3 ? atol(argv[2]) : 0;
	long round, rounds = argc > 3 ? atol(argv[3]) : 0;

	if (n < 1 || rounds < 1 || (!msi && strcmp(argv[1], "switch")) ||
	    (argc > 4 && strcmp(argv[4], "registered"))) {
		fprintf(stderr, "usage: %s switch|msi ITERATIONS ROUNDS [registered]\n",
			argv[0]);
		return 2;
	}
	vm_set_up(msi);
	if (argc > 4 && !set_up_area())
		return 4;
	for (round = 0; round < rounds; round++) {
		double start;

		/* It comes to the VMM anew. */
		get_state();
		start = now_ns();
		if (msi)
			for (i = 0; i < n; i++)
				send();
		else
			for (i = 0; i < n; i++)
				get_state();
		printf("%.2f\n", (now_ns() - start) / n);
	}
	return 0;
}
