/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel's inline functions read of struct page for page_folio(),
 * folio_test_hugetlb(), folio_test_swapbacked() and put_page(): to be compared
 * with the running kernel (core/facts.h). Not of which types put_page() leaves
 * alone: no page of user space's is of one.
 */
#ifndef _VB_COMPAT_PAGE_H
#define _VB_COMPAT_PAGE_H

#include <linux/mm_types.h>
#include <linux/page-flags.h>

#ifdef HAVE_page_compound_info
#define VB_PAGE_FOLIO_FACTS(group)	VB_MEMBER(group, page, compound_info),
#else
#define VB_PAGE_FOLIO_FACTS(group)	VB_MEMBER(group, page, compound_head),
#endif
#ifdef HAVE_pgty_hugetlb
#define VB_PAGE_TYPE_FACTS(group)	VB_CONSTANT(group, PGTY_hugetlb),
#else	/* before 6.12; a bit of page_type since 6.9 */
#define VB_PAGE_TYPE_FACTS(group)
#endif
#define VB_PAGE_FACTS(group)	\
	VB_MEMBER(group, page, flags), VB_MEMBER(group, page, _refcount), \
	VB_MEMBER(group, page, page_type),				\
	VB_CONSTANT(group, PG_swapbacked), VB_CONSTANT(group, PG_head),	\
	VB_PAGE_FOLIO_FACTS(group) VB_PAGE_TYPE_FACTS(group)

#endif /* _VB_COMPAT_PAGE_H */
