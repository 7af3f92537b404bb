/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Validating module parameters: a word out of a list, a bool, a number with
 * a range. A wrong value gives -EINVAL and one line in the log that says what
 * would have been right.
 */
#ifndef _VB_COMMON_PARAM_H
#define _VB_COMMON_PARAM_H

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

struct vb_choice {
	int *var;
	const char * const *words;
	int nr;
};

struct vb_range {
	unsigned int *var;
	unsigned int min, max;
};

static int __maybe_unused vb_choice_set(const char *val,
					const struct kernel_param *kp)
{
	const struct vb_choice *c = kp->arg;
	char all[80];
	int i, n;

	for (i = 0; i < c->nr; i++) {
		if (sysfs_streq(val, c->words[i])) {
			WRITE_ONCE(*c->var, i);
			return 0;
		}
	}
	for (i = 0, n = 0; i < c->nr; i++)
		n += scnprintf(all + n, sizeof(all) - n, " %s", c->words[i]);
	pr_err("parameter %s=%s: not one of%s\n", kp->name, val, all);
	return -EINVAL;
}

static int __maybe_unused vb_choice_get(char *buf,
					const struct kernel_param *kp)
{
	const struct vb_choice *c = kp->arg;

	return sysfs_emit(buf, "%s\n", c->words[READ_ONCE(*c->var)]);
}

static const struct kernel_param_ops __maybe_unused vb_choice_ops = {
	.set = vb_choice_set,
	.get = vb_choice_get,
};

static int __maybe_unused vb_range_set(const char *val,
				       const struct kernel_param *kp)
{
	const struct vb_range *r = kp->arg;
	unsigned int v;

	if (!val || kstrtouint(val, 0, &v) || v < r->min || v > r->max) {
		pr_err("parameter %s=%s: not a number from %u to %u\n",
		       kp->name, val ? val : "", r->min, r->max);
		return -EINVAL;
	}
	WRITE_ONCE(*r->var, v);
	return 0;
}

static int __maybe_unused vb_range_get(char *buf,
				       const struct kernel_param *kp)
{
	const struct vb_range *r = kp->arg;

	return sysfs_emit(buf, "%u\n", READ_ONCE(*r->var));
}

static const struct kernel_param_ops __maybe_unused vb_range_ops = {
	.set = vb_range_set,
	.get = vb_range_get,
};

static int __maybe_unused vb_bool_set(const char *val,
				      const struct kernel_param *kp)
{
	bool v;

	if (!val || kstrtobool(val, &v)) {
		pr_err("parameter %s=%s: not 0 or 1\n", kp->name,
		       val ? val : "");
		return -EINVAL;
	}
	WRITE_ONCE(*(bool *)kp->arg, v);
	return 0;
}

static int __maybe_unused vb_bool_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(*(bool *)kp->arg));
}

static const struct kernel_param_ops __maybe_unused vb_bool_ops = {
	.set = vb_bool_set,
	.get = vb_bool_get,
};

/* @list: array of words; the value is the index. */
#define VB_CHOICE_PARAM(name, variable, list, mode)			\
	static struct vb_choice vb_choice_##name = {			\
		.var = &(variable), .words = (list),			\
		.nr = ARRAY_SIZE(list),					\
	};								\
	module_param_cb(name, &vb_choice_ops, &vb_choice_##name, mode)

#define VB_RANGE_PARAM(name, variable, lowest, highest, mode)		\
	static struct vb_range vb_range_##name = {			\
		.var = &(variable), .min = (lowest), .max = (highest),	\
	};								\
	module_param_cb(name, &vb_range_ops, &vb_range_##name, mode)

#define VB_BOOL_PARAM(name, variable, mode)				\
	module_param_cb(name, &vb_bool_ops, &(variable), mode)

#endif /* _VB_COMMON_PARAM_H */
