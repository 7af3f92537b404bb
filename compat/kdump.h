/* SPDX-License-Identifier: GPL-2.0 */
/* The function that every way into a crash kernel calls before it starts. */
#ifndef _VB_COMPAT_KDUMP_H
#define _VB_COMPAT_KDUMP_H

#include <linux/kconfig.h>

#define VB_KDUMP_FN	"machine_crash_shutdown"

/*
 * Since 6.9 only CRASH_DUMP brings it, before only KEXEC_CORE, which had
 * CRASH_CORE with it then.
 */
#define VB_HAS_KDUMP	\
	(IS_ENABLED(CONFIG_KEXEC_CORE) && \
	 (IS_ENABLED(CONFIG_CRASH_DUMP) || IS_ENABLED(CONFIG_CRASH_CORE)))

#endif /* _VB_COMPAT_KDUMP_H */
