// SPDX-License-Identifier: GPL-2.0
// found: pages are pinned by the call of 6.1 to 6.4
// missing: pages are pinned by the call since 6.5
#include <linux/mm.h>

#ifndef VB_ONLY_HEADERS
long vb_probe(struct page **page);
long vb_probe(struct page **page)
{
	return pin_user_pages(0, 1, 0, page, NULL);
}
#endif
