/* SPDX-License-Identifier: GPL-2.0 */
/* One page of the current mm, pinned under its mmap_lock. */
#ifndef _VB_COMPAT_PIN_PAGE_H
#define _VB_COMPAT_PIN_PAGE_H

#include <linux/mm.h>

#ifdef HAVE_pin_user_pages_vmas		/* until 6.4 */
#define vb_pin_user_page(addr, flags, page)	\
	pin_user_pages(addr, 1, flags, page, NULL)
#else
#define vb_pin_user_page(addr, flags, page)	\
	pin_user_pages(addr, 1, flags, page)
#endif

#endif /* _VB_COMPAT_PIN_PAGE_H */
