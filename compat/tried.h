/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Is what no header declares known of this kernel? It is of those up to the
 * newest that the tests ran on; for others there is BTF (common/facts.h).
 */
#ifndef _VB_COMPAT_TRIED_H
#define _VB_COMPAT_TRIED_H

#ifdef HAVE_tried
#define VB_TRIED	true
#else
#define VB_TRIED	false
#endif

#endif /* _VB_COMPAT_TRIED_H */
