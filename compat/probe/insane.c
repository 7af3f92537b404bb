// SPDX-License-Identifier: GPL-2.0
/* Must never compile: if it does, all others would, whatever they ask. */
#include <linux/module.h>

int vb_probe(void);
int vb_probe(void)
{
	return vb_what_no_kernel_declares();
}
