// SPDX-License-Identifier: GPL-2.0
/* Does not name the types. */
#include "area.h"

static int from_elsewhere(struct vb_seed_area *a, int i)
{
	int sum = READ_ONCE(a->hdr->nr_vcpus);

	sum += a->hdr->nr_vcpus; /* SEED */
	return sum + a->guest[i].critical; /* SEED */
}
