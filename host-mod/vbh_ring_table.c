// SPDX-License-Identifier: GPL-2.0
/*
 * Where vhost-net's rings are. It is told by the VMM, and so are we: a return
 * probe on vhost_net_ioctl(). They are forgotten when vhost forgets them
 * (VHOST_NET_SET_BACKEND without one, VHOST_RESET_OWNER, vhost_net_release()),
 * and with the VM. What was set up before this module came is not known.
 *
 * Kept by process: by the mm, which is only compared. While vhost has rings it
 * holds that mm, so it is not another one's. Nothing is pinned.
 */
#include <linux/hash.h>
#include <linux/kprobes.h>
#include <linux/slab.h>

#include "../common/fault.h"
#include "../compat/vhost_features.h"
#include "../core/rings.h"
#include "vbh.h"
#include "vbh_rings.h"

/* Processes with such devices. */
#define VBH_RING_BITS	8
#define VBH_RING_MMS	256

static DEFINE_RAW_SPINLOCK(vbh_rings_lock);
static struct hlist_head vbh_ring_hash[1 << VBH_RING_BITS];
static int vbh_ring_mms;		/* under the lock */

static struct hlist_head *vbh_ring_bucket(const struct mm_struct *mm)
{
	return &vbh_ring_hash[hash_ptr(mm, VBH_RING_BITS)];
}

/**
 * vbh_ring_mm_find() - the rings of a process
 * @mm: the process
 * Context: RCU read side (preemption disabled will do), or the lock.
 * Return: NULL: it has none.
 */
struct vbh_ring_mm *vbh_ring_mm_find(const struct mm_struct *mm)
{
	struct vbh_ring_mm *m;

	hlist_for_each_entry_rcu(m, vbh_ring_bucket(mm), node,
				 lockdep_is_held(&vbh_rings_lock) ||
				 rcu_read_lock_sched_held())
		if (m->mm == mm)
			return m;
	return NULL;
}

/* ---- learning and forgetting; all under the lock ---- */

static void vbh_ring_set(struct vbh_ring *r, u64 avail, u64 used)
{
	if (!r->avail && avail)
		vbh_stat_inc(VBH_S_RINGS_LEARNT);
	else if (r->avail && !avail)
		vbh_stat_inc(VBH_S_RINGS_FORGOTTEN);
	WRITE_ONCE(r->told, 0);
	WRITE_ONCE(r->used, used);
	WRITE_ONCE(r->avail, avail);
}

static void vbh_ring_dev_forget(struct vbh_ring_dev *dev)
{
	int i;

	for (i = 0; i < VBH_DEV_RINGS; i++)
		vbh_ring_set(&dev->ring[i], 0, 0);
	dev->file = NULL;
}

static struct vbh_ring_dev *vbh_ring_dev_find(struct vbh_ring_mm *m,
					      const struct file *file)
{
	int i;

	for (i = 0; i < VBH_RING_DEVS; i++)
		if (m->dev[i].file == file)
			return &m->dev[i];
	return NULL;
}

/* @new: free memory for a process, NULL when it has been used. */
static struct vbh_ring_dev *vbh_ring_dev_get(const struct file *file,
					     struct vbh_ring_mm **new)
{
	struct vbh_ring_mm *m = vbh_ring_mm_find(current->mm);
	struct vbh_ring_dev *dev;

	if (!m && *new && vbh_ring_mms < VBH_RING_MMS) {
		m = *new;
		*new = NULL;
		m->mm = current->mm;
		hlist_add_head_rcu(&m->node, vbh_ring_bucket(m->mm));
		vbh_ring_mms++;
	}
	if (!m)
		return NULL;
	dev = vbh_ring_dev_find(m, file);
	if (dev)
		return dev;
	dev = vbh_ring_dev_find(m, NULL);
	if (!dev) {
		WRITE_ONCE(m->incomplete, true);
		return NULL;
	}
	*dev = (struct vbh_ring_dev){
		.file = file,
		.features = VB_RING_F_NOT_SAID,
	};
	return dev;
}

/*
 * Forgets the devices of @file or of @mm (NULL: of all). Return: a process that
 * is left without a device, to be freed; there may be more. Few and rare: they
 * are gone through.
 */
static struct vbh_ring_mm *vbh_rings_forget_some(const struct file *file,
						 const struct mm_struct *mm)
{
	struct vbh_ring_mm *m;
	int b, i, left;

	for (b = 0; b < ARRAY_SIZE(vbh_ring_hash); b++)
		hlist_for_each_entry(m, &vbh_ring_hash[b], node) {
			for (i = left = 0; i < VBH_RING_DEVS; i++) {
				struct vbh_ring_dev *dev = &m->dev[i];

				if (dev->file && (!file || dev->file == file) &&
				    (!mm || m->mm == mm))
					vbh_ring_dev_forget(dev);
				left += !!dev->file;
			}
			if (left)
				continue;
			hlist_del_rcu(&m->node);
			vbh_ring_mms--;
			return m;
		}
	return NULL;
}

static void vbh_rings_forget(const struct file *file,
			     const struct mm_struct *mm)
{
	struct vbh_ring_mm *m;
	unsigned long flags;

	do {
		raw_spin_lock_irqsave(&vbh_rings_lock, flags);
		m = vbh_rings_forget_some(file, mm);
		raw_spin_unlock_irqrestore(&vbh_rings_lock, flags);
		if (m)
			kfree_rcu(m, rcu);
	} while (m);
}

/* A process's last VM has gone. Context: any. */
void vbh_rings_vm_gone(const struct mm_struct *mm)
{
	vbh_rings_forget(NULL, mm);
}

/* ---- the probes ---- */

struct vbh_ring_call {
	const struct file *file;
	u32 cmd;
	u32 index;
	union {
		struct {
			u64 avail, used;
		};
		u64 features;
		u32 num;
		s32 fd;
	};
};

/* What the VMM asks for. Return: not 0: cannot be read. */
static int vbh_ring_call_read(struct vbh_ring_call *c, void __user *arg)
{
	struct vhost_vring_addr __user *addr = arg;
	struct vhost_vring_state __user *state = arg;
	struct vhost_vring_file __user *file = arg;

	switch (c->cmd) {
	case VHOST_SET_FEATURES:
		return vbh_peek(c->features, arg);
	case VHOST_SET_FEATURES_ARRAY: {
		struct vhost_features_array __user *array = arg;
		u64 count;

		c->features = 0;
		return vbh_peek(count, &array->count) ||
		       (count && vbh_peek(c->features, &array->features[0]));
	}
	case VHOST_SET_VRING_NUM:
		return vbh_peek(c->index, &state->index) ||
		       vbh_peek(c->num, &state->num);
	case VHOST_SET_VRING_ADDR:
		return vbh_peek(c->index, &addr->index) ||
		       vbh_peek(c->avail, &addr->avail_user_addr) ||
		       vbh_peek(c->used, &addr->used_user_addr);
	case VHOST_NET_SET_BACKEND:
		return vbh_peek(c->index, &file->index) ||
		       vbh_peek(c->fd, &file->fd);
	}
	return 0;
}

/* Nonzero: not ours, the return of this call is not probed. */
static int vbh_ring_call_entry(struct kretprobe_instance *ri,
			       struct pt_regs *regs)
{
	struct vbh_ring_call *c = (struct vbh_ring_call *)ri->data;

	c->file = (const struct file *)regs->di;
	c->cmd = regs->si;
	c->index = 0;
	switch (c->cmd) {
	case VHOST_SET_FEATURES:
	case VHOST_SET_FEATURES_ARRAY:
	case VHOST_SET_VRING_NUM:
	case VHOST_SET_VRING_ADDR:
	case VHOST_NET_SET_BACKEND:
	case VHOST_RESET_OWNER:
		break;
	default:
		return 1;
	}
	/* What is not known any more is forgotten. */
	if (!current->mm || vbh_ring_call_read(c, (void __user *)regs->dx) ||
	    c->index >= VBH_DEV_RINGS)
		c->cmd = VHOST_RESET_OWNER;
	return 0;
}

static void vbh_ring_call_apply(struct vbh_ring_dev *dev,
				const struct vbh_ring_call *c)
{
	struct vbh_ring *r = &dev->ring[c->index];

	switch (c->cmd) {
	case VHOST_SET_VRING_NUM:
		WRITE_ONCE(r->num, c->num);
		break;
	case VHOST_SET_VRING_ADDR:
		vbh_ring_set(r, c->avail, c->used);
		break;
	case VHOST_NET_SET_BACKEND:
		if (c->fd < 0)
			vbh_ring_set(r, 0, 0);
		break;
	default:
		WRITE_ONCE(dev->features, c->features);
	}
}

/* Context: preemption disabled. */
static int vbh_ring_call_return(struct kretprobe_instance *ri,
				struct pt_regs *regs)
{
	struct vbh_ring_call *c = (struct vbh_ring_call *)ri->data;
	struct vbh_ring_mm *new;
	struct vbh_ring_dev *dev;
	unsigned long flags;

	if (regs_return_value(regs))
		return 0;
	if (c->cmd == VHOST_RESET_OWNER) {
		vbh_rings_forget(c->file, NULL);
		return 0;
	}
	/* Always: who has one could lose it before the lock is taken. */
	new = kzalloc(sizeof(*new), GFP_NOWAIT | __GFP_NOWARN);
	raw_spin_lock_irqsave(&vbh_rings_lock, flags);
	dev = vbh_ring_dev_get(c->file, &new);
	if (dev)
		vbh_ring_call_apply(dev, c);
	raw_spin_unlock_irqrestore(&vbh_rings_lock, flags);
	kfree(new);
	return 0;
}

static int vbh_ring_release(struct kprobe *p, struct pt_regs *regs)
{
	vbh_rings_forget((const struct file *)regs->si, NULL);
	return 0;
}

static struct kprobe vbh_release_probe;
static bool vbh_rings_on;

#define VBH_RELEASE	"vhost_net_release"
#define VBH_IOCTL	"vhost_net_ioctl"

static struct vbh_kretprobe vbh_ioctl_probe = {
	.symbol = VBH_IOCTL,
	.entry = vbh_ring_call_entry,
	.handler = vbh_ring_call_return,
	.data_size = sizeof(struct vbh_ring_call),
};

/* Is vhost_net there? It is if one of the two is. Context: as below. */
bool vbh_rings_there(void)
{
	return !vbh_probe_error(VBH_RELEASE) || !vbh_probe_error(VBH_IOCTL);
}

/**
 * vbh_rings_add() - learn where rings are from now on
 * @missing: the function that could not be probed
 * Context: process; callers serialise.
 * Return: 0 or a negative errno.
 */
int vbh_rings_add(const char **missing)
{
	int err;

	if (vbh_rings_on)
		return 0;
	/* Cleared: a probe cannot be registered again otherwise. */
	vbh_release_probe = (struct kprobe) {
		.symbol_name = VBH_RELEASE,
		.pre_handler = vbh_ring_release,
	};
	/* Nothing is learnt that would not be forgotten. */
	*missing = vbh_release_probe.symbol_name;
	err = register_kprobe(&vbh_release_probe);
	if (err)
		return err;
	*missing = vbh_ioctl_probe.symbol;
	err = vbh_kretprobe_add(&vbh_ioctl_probe);
	if (err)
		unregister_kprobe(&vbh_release_probe);
	vbh_rings_on = !err;
	return err;
}

/* And no longer. Context: as vbh_rings_add(). */
void vbh_rings_del(void)
{
	if (!vbh_rings_on)
		return;
	vbh_kretprobe_del(&vbh_ioctl_probe);
	unregister_kprobe(&vbh_release_probe);
	vbh_rings_on = false;
	vbh_rings_forget(NULL, NULL);
}
