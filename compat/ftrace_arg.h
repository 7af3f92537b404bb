/* SPDX-License-Identifier: GPL-2.0 */
/* Function arguments inside an ftrace callback. */
#ifndef _VB_COMPAT_FTRACE_ARG_H
#define _VB_COMPAT_FTRACE_ARG_H

#include <linux/build_bug.h>
#include <linux/ftrace.h>

#ifdef HAVE_ftrace_regs_get_argument	/* since 6.2 */
#define vb_ftrace_arg(fregs, n)	ftrace_regs_get_argument(fregs, n)
#else
/* 6.1: x86 saves the argument registers (not the rest) in fregs->regs. */
#define vb_ftrace_arg(fregs, n)	\
	(BUILD_BUG_ON_ZERO((n) > 2) + \
	 ((n) == 0 ? (fregs)->regs.di : \
	  (n) == 1 ? (fregs)->regs.si : (fregs)->regs.dx))
#endif

/* Where they are read: to be compared with the running kernel (core/facts.h). */
#ifdef HAVE_arch_ftrace_regs
#define VB_FTRACE_ARG_FACTS(group)	\
	VB_MEMBER(group, __arch_ftrace_regs, regs),
#else
#define VB_FTRACE_ARG_FACTS(group)	VB_MEMBER(group, ftrace_regs, regs),
#endif

#endif /* _VB_COMPAT_FTRACE_ARG_H */
