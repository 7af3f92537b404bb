// SPDX-License-Identifier: GPL-2.0
/*
 * kvm_churn N: makes and destroys N empty VMs, one after the other, while two
 * processes on each CPU wake each other. The first VM switches a static key in
 * schedule() on, the last one off: so the kernel's text is patched over and over
 * where all CPUs run it. Needs /dev/kvm. Status: 0, or 1 with a message.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/kvm.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/*
 * A process on @cpu that answers each byte from @from by one to @to, for as long
 * as this one is there.
 */
static void answer(int cpu, int from, int to)
{
	pid_t parent = getpid();
	cpu_set_t set;
	char byte;

	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		break;
	default:
		return;
	}
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent ||
	    sched_setaffinity(0, sizeof(set), &set))
		die("kvm_churn");
	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	exit(1);
}

static void wake_each_other(int cpu)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		die("pipe");
	answer(cpu, there[0], back[1]);
	answer(cpu, back[0], there[1]);
	if (write(there[1], "", 1) != 1)
		die("write");
}

int main(int argc, char **argv)
{
	long n = argc == 2 ? strtol(argv[1], NULL, 10) : 0, cpu, i;
	int kvm, vm;

	if (n <= 0) {
		fprintf(stderr, "usage: kvm_churn N\n");
		return 1;
	}
	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		die("/dev/kvm");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		wake_each_other(cpu);
	for (i = 0; i < n; i++) {
		vm = ioctl(kvm, KVM_CREATE_VM, 0);
		if (vm < 0)
			die("KVM_CREATE_VM");
		close(vm);
	}
	/* They were there all the time. */
	if (waitpid(-1, NULL, WNOHANG)) {
		fprintf(stderr, "kvm_churn: a process has ended\n");
		return 1;
	}
	return 0;
}
