/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module of another time: with VB_ABI=N on make's command line this comes
 * before all else, and the number is another one. Only for tests.
 */
#ifndef _VB_COMMON_OTHER_ABI_H
#define _VB_COMMON_OTHER_ABI_H

#include <vbalance/abi.h>

#undef VB_ABI_VERSION
#define VB_ABI_VERSION	VB_OTHER_ABI

#endif /* _VB_COMMON_OTHER_ABI_H */
