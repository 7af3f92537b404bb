/* SPDX-License-Identifier: GPL-2.0 */
/* Included by one file of each module. */
#ifndef _VB_COMMON_RELEASE_H
#define _VB_COMMON_RELEASE_H

#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <generated/utsrelease.h>

/*
 * With CONFIG_MODVERSIONS the kernel's own check ignores the release. Another
 * one can have another layout of what no symbol's version covers.
 * Return: 0, or -ENOEXEC, which the log has explained. Context: process.
 */
static inline int vb_check_release(void)
{
	if (!strcmp(init_utsname()->release, UTS_RELEASE))
		return 0;
	pr_err("built for kernel %s, this is %s: build it again\n",
	       UTS_RELEASE, init_utsname()->release);
	return -ENOEXEC;
}

#endif /* _VB_COMMON_RELEASE_H */
