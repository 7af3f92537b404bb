/* SPDX-License-Identifier: GPL-2.0 */
/* The call of vhost that sets features beyond the first 64 as well. */
#ifndef _VB_COMPAT_VHOST_FEATURES_H
#define _VB_COMPAT_VHOST_FEATURES_H

#include <linux/vhost.h>

#ifndef HAVE_vhost_features_array	/* since 6.17 */
/* VMMs try it: such a kernel refuses it, and nothing comes of it here. */
struct vhost_features_array {
	__u64 count;
	__u64 features[];
};

#define VHOST_SET_FEATURES_ARRAY	_IOW(VHOST_VIRTIO, 0x83, \
					     struct vhost_features_array)
#endif

#endif /* _VB_COMPAT_VHOST_FEATURES_H */
