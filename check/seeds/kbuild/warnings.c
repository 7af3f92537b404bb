// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

int vb_seed_warnings(int given);

int vb_seed_warnings(int given)
{
	int set; /* SEED: never used */

	set = given;
	return 0;
}

MODULE_DESCRIPTION("faults");
MODULE_LICENSE("GPL");
