/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Algorithm 1 as it is printed in the paper (SoCC 2012, section 3.3.2), line
 * by line, with its sorting and its sets; the paper's text stands next to the
 * code. Written from the paper, not from core/algorithm1.h. Numbers have 128
 * bits: no rounding, no overflow.
 */
#ifndef _VB_UNIT_PAPER_H
#define _VB_UNIT_PAPER_H

#include <stdbool.h>
#include <stdint.h>

#define PAPER_MAX	4096

typedef unsigned __int128 paper_num;

enum paper_state { PAPER_LOW, PAPER_HIGH };

struct paper_vm {
	int n;
	uint64_t ld[PAPER_MAX];
	bool exists[PAPER_MAX];		/* else it is no vCPU of the VM */
	bool online[PAPER_MAX];
};

struct paper_result {
	bool prev_online, prev_high;
	bool remap;			/* next is one of @next_vc */
	bool next_vc[PAPER_MAX];
	int k;				/* online vCPUs */
	int nr_vc;			/* all vCPUs */
	paper_num ldsum;		/* ldavg * nr_vc */
	uint64_t ldmax, ldmin;
	enum paper_state state[PAPER_MAX];
};

static inline void paper_sort(const struct paper_vm *vm, int *ovc, int k)
{
	int i, j;

	for (i = 1; i < k; i++) {
		int vc = ovc[i];

		for (j = i; j > 0 && vm->ld[ovc[j - 1]] > vm->ld[vc]; j--)
			ovc[j] = ovc[j - 1];
		ovc[j] = vc;
	}
}

/* next vc <- { ovc | ld(ovc) = ldmin(ovc) } */
static inline void paper_take_minimum(const struct paper_vm *vm,
				      struct paper_result *r)
{
	int vc;

	r->remap = true;
	for (vc = 0; vc < vm->n; vc++)
		r->next_vc[vc] = vm->exists[vc] && vm->online[vc] &&
				 vm->ld[vc] == r->ldmin;
}

static inline void paper_algorithm1(const struct paper_vm *vm, int prev_vc,
				    uint32_t threshold_percent,
				    struct paper_result *r)
{
	static int ovc[PAPER_MAX];
	int i;

	r->remap = false;
	r->prev_online = false;
	r->prev_high = false;
	r->k = 0;
	r->nr_vc = 0;
	r->ldsum = 0;
	r->ldmax = 0;
	r->ldmin = 0;

	/* precompute the average IRQ load of all vcpus */
	for (i = 0; i < vm->n; i++) {
		if (!vm->exists[i])
			continue;
		r->ldsum += vm->ld[i];
		r->nr_vc++;
	}

	/* Get online vcpus set OVC */
	for (i = 0; i < vm->n; i++)
		if (vm->exists[i] && vm->online[i])
			ovc[r->k++] = i;
	/* The paper is silent on k = 0; there is nothing to map to. */
	if (!r->k)
		return;
	/* Sort online vcpus by their interrupt loads */
	paper_sort(vm, ovc, r->k);

	/* get the max/min IRQ load of online vcpus */
	r->ldmax = vm->ld[ovc[r->k - 1]];
	r->ldmin = vm->ld[ovc[0]];
	/* for each online vcpu: ld(ovc) > ldavg(vc) ? HIGH : LOW */
	for (i = 0; i < r->k; i++) {
		if ((paper_num)vm->ld[ovc[i]] * r->nr_vc > r->ldsum)
			r->state[ovc[i]] = PAPER_HIGH;
		else
			r->state[ovc[i]] = PAPER_LOW;
	}

	for (i = 0; i < r->k; i++)
		if (ovc[i] == prev_vc)
			r->prev_online = true;
	/* if prev vc is not online then */
	if (!r->prev_online) {
		/* must map the irq to an online vcpu */
		paper_take_minimum(vm, r);
		return;
	}
	/* if prev vc.state is HIGH then */
	r->prev_high = r->state[prev_vc] == PAPER_HIGH;
	if (r->prev_high) {
		/* if ldmax(ovc) > ldmin(ovc) * threshold then */
		if ((paper_num)r->ldmax * 100 >
		    (paper_num)r->ldmin * threshold_percent)
			/* the imbalance threshold is reached */
			paper_take_minimum(vm, r);
		/* else no need to remap */
	}
	/* else no need to remap */
}

#endif /* _VB_UNIT_PAPER_H */
