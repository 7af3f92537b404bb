// SPDX-License-Identifier: GPL-2.0
#include <linux/dcache.h>
#include <linux/sched/signal.h>
#include <linux/trace_events.h>

int vb_seed_members(const struct task_struct *p);

int vb_seed_members(const struct task_struct *p)
{
	return READ_ONCE(p->on_rq) + p->flags +
		READ_ONCE(p->exit_signal) + /* SEED: through a macro */
		p->pdeath_signal; /* SEED */
}

static inline int vb_seed_inline(const struct task_struct *p)
{
	return p->exit_code; /* SEED: in an inline function */
}

int vb_seed_calls(const struct task_struct *p);

int vb_seed_calls(const struct task_struct *p)
{
	return vb_seed_inline(p);
}

bool vb_seed_theirs(struct task_struct *p, const struct dentry *d);

bool vb_seed_theirs(struct task_struct *p, const struct dentry *d)
{
	return thread_group_leader(p) && /* SEED: in one of the kernel's */
		d_is_dir(d); /* SEED: and in one that it calls */
}

unsigned int vb_seed_named_alike(const struct task_struct *p,
				 const struct trace_iterator *i);

/* In a list of facts is thread_info.cpu. */
unsigned int vb_seed_named_alike(const struct task_struct *p,
				 const struct trace_iterator *i)
{
	return p->thread_info.cpu +
		i->cpu; /* SEED */
}
