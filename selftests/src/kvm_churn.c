// SPDX-License-Identifier: GPL-2.0
/*
 * kvm_churn N: makes and destroys N empty VMs, one after the other, while two
 * processes on each CPU wake each other. The first VM switches a static key in
 * schedule() on, the last one off: so the kernel's text is patched over and over
 * where all CPUs run it. Needs /dev/kvm. Status: 0, or another one with a
 * message.
 */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/wait.h>
#include "vmthread.h"

/*
 * A process on @cpu that answers each byte from @from by one to @to, for as long
 * as this one is there.
 */
static void answer(int cpu, int from, int to)
{
	pid_t parent = getpid();
	char byte;

	if (vm_must(fork(), "fork"))
		return;
	vm_must(prctl(PR_SET_PDEATHSIG, SIGKILL), "PR_SET_PDEATHSIG");
	if (getppid() == parent && vm_pin(cpu)) {
		while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
			;
	}
	_exit(1);
}

static void wake_each_other(int cpu)
{
	int there[2], back[2];

	vm_must(pipe(there), "pipe");
	vm_must(pipe(back), "pipe");
	answer(cpu, there[0], back[1]);
	answer(cpu, back[0], there[1]);
	vm_must(write(there[1], "", 1), "write");
}

int main(int argc, char **argv)
{
	long n = argc == 2 ? strtol(argv[1], NULL, 10) : 0, cpu, i;
	int kvm;

	if (n <= 0) {
		fprintf(stderr, "usage: kvm_churn N\n");
		return 1;
	}
	kvm = vm_must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		wake_each_other(cpu);
	for (i = 0; i < n; i++)
		close(vm_must(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM"));
	/* They were there all the time. */
	if (waitpid(-1, NULL, WNOHANG)) {
		fprintf(stderr, "kvm_churn: a process has ended\n");
		return 1;
	}
	return 0;
}
