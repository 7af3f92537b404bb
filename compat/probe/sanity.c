// SPDX-License-Identifier: GPL-2.0
/* Must always compile: if it does not, no other answer can be trusted. */
#include <linux/module.h>
#include <linux/ftrace.h>

int vb_probe(void);
int vb_probe(void)
{
	return 0;
}
