// SPDX-License-Identifier: GPL-2.0
#include <linux/ftrace.h>

unsigned long vb_probe(struct ftrace_regs *fregs);
unsigned long vb_probe(struct ftrace_regs *fregs)
{
	return ftrace_regs_get_argument(fregs, 0);
}
