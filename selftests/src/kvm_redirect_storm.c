// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: MSIs are sent until SIGTERM, while others load and
 * unload vbalance_host. Prints KTAP. Needs /dev/kvm, vbalance_host, root and two
 * CPUs.
 */
#define _GNU_SOURCE
#include "redirecttest.h"

static volatile sig_atomic_t told_to_end;

static void on_term(int sig)
{
	(void)sig;
	told_to_end = 1;
}

#define STORM	64		/* MSIs a round, each with a key of its own */

/* Each of them has arrived as it was, or is pending where somebody is told. */
static int lost(int *redirected)
{
	struct irr irr[NR];
	int i, n, found, sum = 0;

	for (i = 0; i < NR; i++)
		irr[i] = irr_of(i);
	for (n = 0; n < STORM; n++) {
		found = irr_has(&irr[n & 1], 0x30 + n);
		for (i = 0; i < SLOTS; i++) {
			if (!(pending[i].bits[0] >> n & 1) ||
			    !irr_has(&irr[i], 0xa0 + i))
				continue;
			*redirected += !found;
			found = 1;
		}
		sum += !found;
	}
	return sum;
}

int main(void)
{
	int i, n, rounds = 0, missing = 0, redirected = 0, registered = 0;
	__u64 cookie = COOKIE;

	if (!set_up(0))
		return 4;
	threads_start();
	signal(SIGTERM, on_term);
	while (!told_to_end) {
		if (h->host_status != VB_HOST_ACTIVE) {
			vm_header(&m, VM_AREA, SLOTS, ++cookie);
			defaults();
			r->key[N] = 0;
			for (n = 0; n < STORM; n++)
				r->key[n] = vb_key_make(0x30 + n, false, n & 1,
							n & 1);
			registered += !vm_register(&m, VM_AREA, cookie);
		}
		for (i = 0; i < NR; i++)
			apic_reset(i);
		memset(r->pending_slots, 0, sizeof(r->pending_slots));
		memset(pending, 0, VB_PAGE_SIZE);
		/* Two that take turns: one of them is always preempted. */
		resume(0);
		resume(1);
		usleep(2000);
		for (n = 0; n < STORM; n++)
			send_signal(msi(n & 1, 0, 0x30 + n));
		park();
		missing += lost(&redirected);
		rounds++;
	}
	printf("# %d rounds, %d registrations, %d redirected\n", rounds,
	       registered, redirected);
	expect(missing, 0, "storm: nothing is lost");
	report(registered > 1, "storm: registered more than once");
	report(redirected > 0, "storm: some were redirected");
	report(!threads_join(), "storm: all vCPUs end well");
	vm_destroy(&m);
	return end();
}
