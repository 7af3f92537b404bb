// SPDX-License-Identifier: GPL-2.0
// found: vhost's features may be set by this call, too
// missing: vhost's features are set by one call only
#include <linux/vhost.h>

#ifndef VB_ONLY_HEADERS
unsigned int vb_probe(const struct vhost_features_array *array);
unsigned int vb_probe(const struct vhost_features_array *array)
{
	return array->features[0] ? VHOST_SET_FEATURES_ARRAY : array->count;
}
#endif
