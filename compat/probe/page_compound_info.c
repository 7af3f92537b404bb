// SPDX-License-Identifier: GPL-2.0
// found: which folio a page is of is told by page.compound_info
// missing: which folio a page is of is told by page.compound_head
#include <linux/mm_types.h>

#ifndef VB_ONLY_HEADERS
unsigned long vb_probe(const struct page *page);
unsigned long vb_probe(const struct page *page)
{
	return page->compound_info;
}
#endif
