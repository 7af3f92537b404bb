// SPDX-License-Identifier: GPL-2.0
// found: a huge page is known by page.page_type
// missing: a huge page is known by a function of the kernel's, or by a bit
#include <linux/page-flags.h>

#ifndef VB_ONLY_HEADERS
int vb_probe(void);
int vb_probe(void)
{
	return PGTY_hugetlb;
}
#endif
