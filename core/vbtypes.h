/* SPDX-License-Identifier: GPL-2.0 */
/* Types and accessors for code that is compiled in the kernel and in user space. */
#ifndef _VB_CORE_VBTYPES_H
#define _VB_CORE_VBTYPES_H

#ifdef __KERNEL__
#include <linux/compiler.h>
#include <linux/types.h>
#else
#include <linux/types.h>
#include <stdbool.h>
typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __s64 s64;
typedef __u8 u8;
typedef __s8 s8;

#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#endif

#endif /* _VB_CORE_VBTYPES_H */
