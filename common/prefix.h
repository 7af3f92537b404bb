/* SPDX-License-Identifier: GPL-2.0 */
/* First in every file of both modules: who speaks in the kernel log. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
