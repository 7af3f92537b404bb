/* SPDX-License-Identifier: GPL-2.0 */
/* Changed since 1.txt was recorded, with the same version. */
#include <linux/types.h>

#define VB_ABI_VERSION	1

#define VB_SAME		1
#define VB_CHANGED	4	/* SEED: was 3 */
#define VB_NEW		5

struct vb_grown {
	__u32	same;
	__u32	added;		/* was reserved */
	__u64	reserved0;
	__u64	moved;		/* as it was */
	__u16	narrow;		/* SEED: was 32 bits */
	__u16	squeezed_in;	/* SEED: was nothing's */
	__u32	at_the_end;
};
