// SPDX-License-Identifier: GPL-2.0
#include <vbalance/abi.h>

struct vb_seed {
	struct vb_header *hdr;
	const struct vb_vcpu_host *table;
	struct vb_redirect *redirect;
	struct vb_header copy;
};

static int twice(const struct vb_vcpu_host *e)
{
	if (e->state > 4) /* SEED: read once, */
		return 0;
	return e->state; /* SEED: and again */
}

static int through_members(const struct vb_seed *s, int i)
{
	int sum = s->hdr->nr_slots; /* SEED */

	sum += s->table[i].state; /* SEED */
	sum += s->redirect->key[i]; /* SEED */
	return sum;
}

static void written(struct vb_seed *s)
{
	s->hdr->cookie = 0; /* SEED */
}

static int fine(struct vb_seed *s, int i)
{
	u64 nr = READ_ONCE(s->redirect->key[i]);

	WRITE_ONCE(s->hdr->cookie, nr);
	set_bit(i, (unsigned long *)s->hdr->running);
	smp_store_release(&s->hdr->host_status, 0);
	return READ_ONCE(s->hdr->nr_slots) + READ_ONCE(s->table[i].state) +
	       s->copy.nr_slots;
}
