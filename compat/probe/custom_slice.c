// SPDX-License-Identifier: GPL-2.0
// found: a thread keeps the slice that it was given over a boost
// missing: threads have no slice of their own
/* Does a thread of the fair class have a slice of its own? Since 6.12. */
#include <linux/sched.h>

#ifndef VB_ONLY_HEADERS
bool probe(const struct task_struct *p);
bool probe(const struct task_struct *p)
{
	return p->se.custom_slice;
}
#endif
