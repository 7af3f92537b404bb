// SPDX-License-Identifier: GPL-2.0
#include <linux/sched.h>

int vb_seed_members(const struct task_struct *p);

int vb_seed_members(const struct task_struct *p)
{
	return READ_ONCE(p->on_rq) + p->flags +
		READ_ONCE(p->exit_signal) + /* SEED: through a macro */
		p->pdeath_signal; /* SEED */
}
