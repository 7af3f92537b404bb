/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that the kernel's own fault injection does not reach: of calls that
 * need no memory, and of hooks that this kernel has. Only for tests: with
 * VB_FAULTS=y on make's command line the module has these parameters.
 *
 *	fail_point	which calls: a word that vb_fault() is called with
 *	fail_at		the N-th of them from now on fails instead of being
 *			made; 0: none, or it has; below 0: each of them
 *	other_hook	SYMBOL:OTHER, where SYMBOL would be hooked the hook goes
 *			to OTHER: none, or one that cannot be probed
 */
#ifndef _VB_COMMON_FAULT_H
#define _VB_COMMON_FAULT_H

#ifdef VB_FAULTS
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kprobes.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

extern int vb_fail_at;
extern char vb_fail_point[16];
extern char vb_other_hook[128];

/* In one file of the module. */
#define VB_FAULT_PARAM							\
int vb_fail_at;								\
module_param_named(fail_at, vb_fail_at, int, 0644);			\
MODULE_PARM_DESC(fail_at, "which call fails, for tests (default 0: none)"); \
char vb_fail_point[16] = "load";					\
module_param_string(fail_point, vb_fail_point, sizeof(vb_fail_point), 0644); \
MODULE_PARM_DESC(fail_point, "of which kind, for tests (default load)"); \
char vb_other_hook[128];						\
module_param_string(other_hook, vb_other_hook, sizeof(vb_other_hook), 0444); \
MODULE_PARM_DESC(other_hook, "SYMBOL:OTHER, what is hooked instead, for tests")

/* Return: 0, or why the call that follows is not to be made. Context: any. */
static inline int vb_fault(const char *point)
{
	int n = READ_ONCE(vb_fail_at);

	if (!n || !sysfs_streq(vb_fail_point, point))
		return 0;
	if (n < 0)
		return -EIO;
	while (n > 0 && !try_cmpxchg(&vb_fail_at, &n, n - 1))
		;
	return n == 1 ? -EIO : 0;
}

/* While each call fails, what follows comes later. Context: any, busy. */
static inline void vb_fault_delay(const char *point, unsigned int ns)
{
	if (READ_ONCE(vb_fail_at) < 0 && sysfs_streq(vb_fail_point, point))
		for (; ns; ns -= min(ns, 1000000u))
			udelay(min(ns, 1000000u) / NSEC_PER_USEC);
}

/* While each call fails, what follows waits. Context: process, sleeps. */
static inline void vb_fault_wait(const char *point)
{
	while (READ_ONCE(vb_fail_at) < 0 && sysfs_streq(vb_fail_point, point))
		usleep_range(1000, 2000);
}

/* @symbol: NULL: by address. Return: what to hook where @symbol is wanted. */
static inline const char *vb_hooked(const char *symbol)
{
	size_t n = symbol ? strlen(symbol) : 0;

	if (n && !strncmp(vb_other_hook, symbol, n) && vb_other_hook[n] == ':')
		return vb_other_hook + n + 1;
	return symbol;
}

/* The probe keeps the name of what it stands for. Context: process. */
static inline int vb_register_kprobe(struct kprobe *p)
{
	const char *symbol = p->symbol_name;
	int err;

	p->symbol_name = vb_hooked(symbol);
	err = register_kprobe(p);
	p->symbol_name = symbol;
	return err;
}

static inline int vb_register_kretprobe(struct kretprobe *rp)
{
	const char *symbol = rp->kp.symbol_name;
	int err;

	rp->kp.symbol_name = vb_hooked(symbol);
	err = register_kretprobe(rp);
	rp->kp.symbol_name = symbol;
	return err;
}

#define register_kprobe		vb_register_kprobe
#define register_kretprobe	vb_register_kretprobe
#else
#define VB_FAULT_PARAM

static inline int vb_fault(const char *point)
{
	return 0;
}

static inline void vb_fault_delay(const char *point, unsigned int ns)
{
}

static inline void vb_fault_wait(const char *point)
{
}

static inline const char *vb_hooked(const char *symbol)
{
	return symbol;
}
#endif

#endif /* _VB_COMMON_FAULT_H */
