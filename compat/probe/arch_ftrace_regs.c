// SPDX-License-Identifier: GPL-2.0
// found: a hook's registers are in struct __arch_ftrace_regs
// missing: a hook's registers are in struct ftrace_regs
#include <linux/ftrace.h>

#ifndef VB_ONLY_HEADERS
const struct pt_regs *vb_probe(const struct __arch_ftrace_regs *fregs);
const struct pt_regs *vb_probe(const struct __arch_ftrace_regs *fregs)
{
	return &fregs->regs;
}
#endif
