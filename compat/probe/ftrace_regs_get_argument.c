// SPDX-License-Identifier: GPL-2.0
// found: hooks read arguments by it
// missing: hooks read arguments from ftrace_regs
#include <linux/ftrace.h>

#ifndef VB_ONLY_HEADERS
unsigned long vb_probe(struct ftrace_regs *fregs);
unsigned long vb_probe(struct ftrace_regs *fregs)
{
	return ftrace_regs_get_argument(fregs, 0);
}
#endif
