// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps one empty VM while it and its parent run. The first VM switches static keys in the
 * scheduler on, the last one off: with one that stays, tests that make and
 * destroy VMs by the hundred do not patch the kernel's text each time, which
 * emulated processors sometimes execute in the middle of.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <linux/kvm.h>

int main(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (prctl(PR_SET_PDEATHSIG, SIGTERM) || kvm < 0 ||
	    ioctl(kvm, KVM_CREATE_VM, 0) < 0) {
		perror("kvm_hold");
		return 1;
	}
	for (;;)
		pause();
}
