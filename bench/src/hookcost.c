// SPDX-License-Identifier: GPL-2.0
/*
 * What do the run-state hooks cost?
 *
 * Every vCPU ioctl loads the vCPU and puts it again (vcpu_load, vcpu_put), so
 * a loop of the cheapest one, KVM_GET_MP_STATE, on a vCPU that never ran is a
 * loop of both hooks. Run it with and without vbalance_host (bench/hookcost
 * does, in alternation); the difference is the price of a load-and-put pair,
 * which is what one context switch of a vCPU pays.
 *
 *	hookcost [ITERATIONS [ROUNDS]]	prints nanoseconds per pair, a line a round
 *
 * In an emulated machine with -icount shift=0 a nanosecond is an instruction.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int must(int ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(4);
	}
	return ret;
}

int main(int argc, char **argv)
{
	long i, n = argc > 1 ? atol(argv[1]) : 100000;
	long round, rounds = argc > 2 ? atol(argv[2]) : 5;
	int kvm, vm, vcpu;
	struct kvm_mp_state state;

	if (n < 1 || rounds < 1) {
		fprintf(stderr, "usage: %s [ITERATIONS [ROUNDS]]\n", argv[0]);
		return 2;
	}
	kvm = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	vm = must(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	must(ioctl(vm, KVM_CREATE_IRQCHIP, 0), "KVM_CREATE_IRQCHIP");
	vcpu = must(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	for (round = 0; round < rounds; round++) {
		double start = now_ns();

		for (i = 0; i < n; i++)
			must(ioctl(vcpu, KVM_GET_MP_STATE, &state),
			     "KVM_GET_MP_STATE");
		printf("%.2f\n", (now_ns() - start) / n);
	}
	return 0;
}
