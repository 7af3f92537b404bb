/* SPDX-License-Identifier: GPL-2.0 */
#include <vbalance/abi.h>

struct vb_seed_area {
	struct vb_header *hdr;
	struct vb_vcpu_guest *guest;
};
