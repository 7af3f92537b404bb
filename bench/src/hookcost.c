// SPDX-License-Identifier: GPL-2.0
/*
 * What do the run-state hooks cost?
 *
 * Every vCPU ioctl loads the vCPU and puts it again (vcpu_load, vcpu_put), so
 * a loop of the cheapest one, KVM_GET_MP_STATE, is a loop of both hooks. Run
 * it with and without vbalance_host (bench/hookcost does, in alternation);
 * the difference is the price of a load-and-put pair, which is what one
 * context switch away from a vCPU and back to it pays.
 *
 *	hookcost ITERATIONS ROUNDS [registered]
 *
 * prints nanoseconds per pair, a line a round. "registered": the VM registers
 * a shared area first, so that each hook also publishes. In an emulated
 * machine with -icount shift=0 a nanosecond is an instruction.
 */
#include "../../selftests/src/minivm.h"

#define COOKIE	0x1122334455667788ULL

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long i, n = argc > 2 ? atol(argv[1]) : 0;
	long round, rounds = argc > 2 ? atol(argv[2]) : 0;
	struct kvm_mp_state state;
	struct minivm m;

	if (n < 1 || rounds < 1 ||
	    (argc > 3 && strcmp(argv[3], "registered"))) {
		fprintf(stderr, "usage: %s ITERATIONS ROUNDS [registered]\n",
			argv[0]);
		return 2;
	}
	vm_create(&m, 1);
	if (argc > 3) {
		vm_header(&m, VM_AREA, 1, COOKIE);
		i = vm_register(&m, VM_AREA, COOKIE);
		if (i) {
			fprintf(stderr, "registration: %ld\n", i);
			return 4;
		}
	}
	for (round = 0; round < rounds; round++) {
		double start = now_ns();

		for (i = 0; i < n; i++)
			vm_must(ioctl(m.vcpu[0], KVM_GET_MP_STATE, &state),
				"KVM_GET_MP_STATE");
		printf("%.2f\n", (now_ns() - start) / n);
	}
	return 0;
}
