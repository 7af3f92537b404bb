/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that the kernel's own fault injection does not reach: of calls that
 * need no memory. Only for tests: with VB_FAULTS=y on make's command line the
 * module has a parameter fail_at=N, and the N-th such call after it is loaded
 * fails instead of being made.
 */
#ifndef _VB_COMMON_FAULT_H
#define _VB_COMMON_FAULT_H

#ifdef VB_FAULTS
#include <linux/errno.h>
#include <linux/moduleparam.h>

extern int vb_fail_at;

/* In one file of the module. */
#define VB_FAULT_PARAM							\
int vb_fail_at;								\
module_param_named(fail_at, vb_fail_at, int, 0444);			\
MODULE_PARM_DESC(fail_at, "which call fails, for tests (default 0: none)")

/* Return: 0, or why the call that follows is not to be made. */
static inline int vb_fault(void)
{
	return vb_fail_at && !--vb_fail_at ? -EIO : 0;
}
#else
#define VB_FAULT_PARAM

static inline int vb_fault(void)
{
	return 0;
}
#endif

#endif /* _VB_COMMON_FAULT_H */
