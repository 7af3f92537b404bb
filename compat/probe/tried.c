// SPDX-License-Identifier: GPL-2.0
// found: of this kernel it is known what no header declares, should it have no BTF
// missing: not tried: boosts are not paid back; without BTF what no header declares is off
/*
 * Functions that are hooked and constants that are used without any header that
 * tells their parameters or values were looked at in kernels up to 7.3, the
 * newest of lab/kernels.json so far.
 */
#include <linux/version.h>

#ifndef VB_ONLY_HEADERS
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)
#error nobody has looked
#endif
#endif
