// SPDX-License-Identifier: GPL-2.0
#include <linux/slab.h>

struct vb_seed {
	int value;
};

static void not_needed(struct vb_seed *s)
{
	if (s)
		kfree(s); /* SEED: kfree() takes NULL */
}

static int used_again(struct vb_seed *s)
{
	kfree(s);
	return s->value; /* SEED: it is gone */
}

static void fine(struct vb_seed *s)
{
	kfree(s);
}
