/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The running kernel's BTF (/sys/kernel/btf), compared with what a module takes
 * for granted. What else guards it: the kernel's own check of symbol versions
 * covers only what the module links to, and Debian has none since 6.18; that of
 * the release says nothing about a kernel that was built again, or patched,
 * under the same name.
 *
 * Included by one file of each module.
 */
#ifndef _VB_COMMON_FACTS_H
#define _VB_COMMON_FACTS_H

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <asm/paravirt.h>

#include "../compat/hrtimer.h"
#include "../compat/pcpu_hot.h"
#include "../compat/tried.h"
#include "../core/facts.h"
#include "fault.h"

#ifdef CONFIG_PARAVIRT_XXL
/* By its place in here the kernel puts something else in the place of cli. */
#define VB_PARAVIRT_FACTS(group)					\
	VB_MEMBER(group, paravirt_patch_template, irq.save_fl),		\
	VB_MEMBER(group, paravirt_patch_template, irq.irq_disable),	\
	VB_MEMBER(group, paravirt_patch_template, irq.irq_enable),
#else
#define VB_PARAVIRT_FACTS(group)
#endif

/*
 * What both modules hand to functions that they link to: symbol versions cover
 * it, and there may be none. Of struct page, by whose size the kernel's headers
 * tell where its memory is.
 */
#define VB_LINKED_FACTS(group)						\
	VB_SIZE(group, file_operations), VB_SIZE(group, hrtimer),	\
	VB_SIZE(group, irq_work), VB_SIZE(group, mutex),		\
	VB_SIZE(group, notifier_block), VB_SIZE(group, work_struct),	\
	VB_SIZE(group, page),						\
	VB_MEMBER(group, notifier_block, notifier_call),		\
	VB_MEMBER(group, inode, i_private),				\
	VB_MEMBER(group, seq_file, private),				\
	VB_MEMBER(group, uts_namespace, name),				\
	VB_PARAVIRT_FACTS(group) VB_PCPU_HOT_FACTS(group)		\
	VB_HRTIMER_FACTS(group)
#define VB_KPROBE_FACTS(group)						\
	VB_SIZE(group, kprobe),						\
	VB_MEMBER(group, kprobe, addr),					\
	VB_MEMBER(group, kprobe, symbol_name),				\
	VB_MEMBER(group, kprobe, pre_handler),

struct vb_btf_file {
	struct vb_btf btf;
	void *data;
	u32 *index;
};

static void vb_btf_file_close(struct vb_btf_file *f)
{
	kvfree(f->index);
	kvfree(f->data);
	*f = (struct vb_btf_file){ };
}

/* Far more than any kernel's. */
#define VB_BTF_MAX	(256 << 20)

/*
 * Not kernel_read_file(): security modules ask what such a file is for, and
 * have no answer for this one. Return: bytes, or a negative errno.
 */
static ssize_t vb_btf_read(const char *path, void **data)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t size, at = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	/* Not of its inode: nothing has been compared. */
	size = vfs_llseek(file, 0, SEEK_END);
	n = size < 0 ? size : size > VB_BTF_MAX ? -EFBIG : 0;
	if (size > 0 && !n) {
		*data = vb_fault("btf") ? NULL : kvmalloc(size, GFP_KERNEL);
		n = *data ? 0 : -ENOMEM;
	}
	while (*data && at < size) {
		n = kernel_read(file, *data + at, size - at, &at);
		if (n <= 0)
			break;
	}
	filp_close(file, NULL);
	return n > 0 ? at : n ?: -EIO;
}

/* @base: of the kernel; NULL: this is it. Return: 0 or a negative errno. */
static int vb_btf_file_open(struct vb_btf_file *f, const char *name,
			    const struct vb_btf *base)
{
	char path[64];
	ssize_t size;
	int err = 0;

	snprintf(path, sizeof(path), "/sys/kernel/btf/%s", name);
	*f = (struct vb_btf_file){ };
	size = vb_btf_read(path, &f->data);
	if (size > 0)
		f->index = kvmalloc_array(vb_btf_index_max(size) + 1,
					  sizeof(u32), GFP_KERNEL);
	if (size < 0)
		err = size;
	else if (!f->index)
		err = -ENOMEM;
	else if (vb_btf_open(&f->btf, f->data, size, base, f->index))
		err = -EBADMSG;
	if (err)
		vb_btf_file_close(f);
	return err;
}

/* Facts of one module of the kernel's (or NULL), and of the kernel itself. */
static int vb_facts_find(const char *module, const struct vb_fact *facts,
			 struct vb_finding *r, int nr, bool *has_module)
{
	struct vb_btf_file kernel, mod;
	int err;

	*has_module = false;
	err = vb_btf_file_open(&kernel, "vmlinux", NULL);
	if (err)
		return err;
	if (module)
		err = vb_btf_file_open(&mod, module, &kernel.btf);
	if (module && !err) {
		*has_module = true;
		vb_facts_look(&mod.btf, facts, r, nr);
		vb_btf_file_close(&mod);
	}
	/* Built in, or without a description of its own. */
	if (err == -ENOENT)
		err = 0;
	if (!err)
		vb_facts_look(&kernel.btf, facts, r, nr);
	vb_btf_file_close(&kernel);
	return err;
}

static void vb_fact_complain(const struct vb_fact *f,
			     const struct vb_finding *r)
{
	char expected[sizeof(r->found)];

	vb_fact_expected(f, expected, sizeof(expected));
	pr_warn("built for another kernel: %s is %s here, built for %s\n",
		f->what, r->state == VB_FACT_ABSENT ? "not there" : r->found,
		expected);
}

/*
 * What neither headers nor a description tell is taken for granted of kernels
 * of which it is known, and of no newer one.
 */
static bool vb_fact_unknown(const struct vb_fact *f)
{
	if (!f->hidden || (VB_TRIED && !vb_fault("tried")))
		return false;
	pr_warn("built for a kernel that was not tried, and nothing tells what %s is here\n",
		f->what);
	return true;
}

/**
 * vb_facts_check() - does the running kernel fit?
 * @module: whose types and functions most of them are; NULL: the kernel's own
 * @facts: what was true when this was built
 * @nr: how many
 * @differs: for each group that there are facts of: one that is not so, or NULL
 *
 * What differs is said in the log. /sys is looked for where the caller's
 * process has its root. Where the module has no description of its own, what
 * is not found has not been compared: it is as if it differed if no header
 * declares it and the kernel is newer than those that were tried. Of a
 * description that cannot be read (no memory; a kind of type that is newer than
 * this) everything differs, and what is optional if it is not there.
 * Context: process, sleeps; the module is there.
 * Return: number of facts that were compared; -ENOENT: there is no description;
 *	-ENODATA: none of the module's; or another negative errno: see above.
 */
static int vb_facts_check(const char *module, const struct vb_fact *facts,
			  int nr, const char **differs)
{
	struct vb_finding *r = kcalloc(nr, sizeof(*r), GFP_KERNEL);
	bool has_module;
	int n, err = -ENOMEM, compared = 0, skipped = 0;
	bool complained = false;

	for (n = 0; n < nr; n++)
		differs[facts[n].group] = NULL;
	if (r)
		err = vb_facts_find(module, facts, r, nr, &has_module);
	/* There is a description, which says nothing to us: anything may differ. */
	if (err && err != -ENOENT) {
		pr_warn("BTF of the kernel%s%s cannot be read: error %d\n",
			module ? " or " : "", module ?: "", err);
		for (n = 0; n < nr; n++)
			differs[facts[n].group] = "BTF that cannot be read";
	}
	for (n = 0; err == -ENOENT && n < nr; n++)
		if (vb_fact_unknown(&facts[n]))
			differs[facts[n].group] = facts[n].what;
	for (n = 0; !err && n < nr; n++) {
		if (r[n].state == VB_FACT_ABSENT && module && !has_module) {
			skipped += !facts[n].optional;
			if (vb_fact_unknown(&facts[n]))
				differs[facts[n].group] = facts[n].what;
			continue;
		}
		if (r[n].state == VB_FACT_ABSENT && facts[n].optional) {
			differs[facts[n].group] = facts[n].what;
			continue;
		}
		compared++;
		if (r[n].state == VB_FACT_SAME)
			continue;
		vb_fact_complain(&facts[n], &r[n]);
		complained = true;
		differs[facts[n].group] = facts[n].what;
	}
	kfree(r);
	if (complained)
		pr_warn("build it again, for the kernel as it is now\n");
	if (err)
		return err;
	return skipped ? -ENODATA : compared;
}

/* With what to refuse when what is needed differs. @compared: see above. */
static int vb_facts_refusal(int compared)
{
	return compared == -ENOMEM ? -ENOMEM : -ENOEXEC;
}

#endif /* _VB_COMMON_FACTS_H */
