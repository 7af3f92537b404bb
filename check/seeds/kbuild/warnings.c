// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

int vb_seed_warnings(int given);

int vb_seed_warnings(int given)
{
	int set; /* SEED: never used */

#ifdef VB_FAULTS
	int set_too; /* SEED: only with the words of a variant */

	set_too = given;
#endif
	set = given;
	return 0;
}

MODULE_DESCRIPTION("faults");
MODULE_LICENSE("GPL");
