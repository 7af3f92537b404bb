/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /sys/kernel/debug/vbalance, shared by the two modules (both are loaded in
 * a host that is itself a guest). Whoever comes first makes it, and it stays:
 * nothing keeps debugfs from removing what the other module makes in it just
 * then, which that would go on using.
 */
#ifndef _VB_COMMON_DEBUGFS_H
#define _VB_COMMON_DEBUGFS_H

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/printk.h>

#include "fault.h"

#define VB_DEBUGFS_TOP	"vbalance"
#define VB_DEBUGFS_HEAD	"v: 1\n"	/* first line of every file */

static inline struct dentry *vb_debugfs_try(const char *name)
{
	struct dentry *dir, *top = debugfs_lookup(VB_DEBUGFS_TOP, NULL);
	bool found = !IS_ERR_OR_NULL(top);

	if (!found)
		top = debugfs_create_dir(VB_DEBUGFS_TOP, NULL);
	if (IS_ERR(top))
		return top;
	dir = debugfs_create_dir(name, top);
	if (found)
		dput(top);
	return dir;
}

/*
 * Our folder below the common one; errors may be ignored, as debugfs does. A
 * kernel without CONFIG_DEBUG_FS, or one that was booted with debugfs=off, has
 * one for an answer to everything. The other module may make the common one at
 * the same time: then it is looked for again.
 */
static inline struct dentry *vb_debugfs_get(const char *name)
{
	struct dentry *dir;
	int err, tries = 2;

	do {
		err = vb_fault("debugfs");
		dir = err ? ERR_PTR(err) : vb_debugfs_try(name);
	} while (dir == ERR_PTR(-EEXIST) && --tries);
	if (IS_ERR(dir))
		pr_info("no debugfs (error %ld): nothing is shown there\n",
			PTR_ERR(dir));
	return dir;
}

#endif /* _VB_COMMON_DEBUGFS_H */
