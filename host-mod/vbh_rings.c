// SPDX-License-Identifier: GPL-2.0
/*
 * When is a guest done that does not say so? (CoINT, III.A and IV.)
 *
 * From an interrupt until its driver has nothing left to do a virtqueue does
 * not want another one, and its ring says so (core/rings.h). vhost-net is told
 * by the VMM where its rings are, and so are we: a return probe on
 * vhost_net_ioctl(). They are forgotten when vhost forgets them
 * (VHOST_NET_SET_BACKEND without one, VHOST_RESET_OWNER, vhost_net_release()),
 * and with the VM. What was set up before this module came is not known.
 *
 * Where rings are is kept by process: by the mm, which is only compared. While
 * vhost has rings it holds that mm, so it is not another one's. Nothing is
 * pinned: the addresses are the process's own, and they are read by its own
 * vCPU threads, as these would themselves; what is not there is not waited
 * for. Whatever a process writes into its rings is only about its own vCPUs.
 *
 * Read in two places, both with the vCPU's thread as current:
 *
 * - where it loses its CPU (vbh_rings_put()). Perhaps under the run-queue
 *   lock, but before the switch to another mm.
 * - while it is boosted as a holder, every VBH_RINGS_US, in an hrtimer on the
 *   CPU where it runs. In hard interrupt context current and the mm that is
 *   loaded belong together (switches are made with interrupts off). The
 *   other way would be the worker of the boosts: it would have to hold the mm
 *   and to load it, and to take the CPU from somebody each time.
 *
 * Who goes meanwhile: a look runs with preemption or interrupts off. That is a
 * read side, also for what a closed device or an ended process leaves
 * (kfree_rcu()) and for the vCPU, which is freed a grace period after the hooks
 * have lost it. The timer is cancelled before that, when the last boost has
 * ended: then a tick finds none and does not start it again. The thread's mm is
 * its own while it runs, or no more when it ends (exit_mm()).
 *
 * pagefault_disable() makes of a page that is not present an error at once,
 * without any lock; perf and BPF read user memory in the same contexts.
 */
#include <linux/hash.h>
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../common/fault.h"
#include "../compat/hrtimer.h"
#include "../compat/vhost_features.h"
#include "../core/rings.h"
#include "vbh.h"

/* How often the rings are looked at in a boost. */
#define VBH_RINGS_US	200

/* Of a device: vhost-net's receive and transmit. */
#define VBH_DEV_RINGS	2

/* Devices of a process. Bounds what a look takes. */
#define VBH_RING_DEVS	16
#define VBH_MM_RINGS	(VBH_RING_DEVS * VBH_DEV_RINGS)

/* Processes with such devices. */
#define VBH_RING_BITS	8
#define VBH_RING_MMS	256

struct vbh_ring {
	u64 avail, used;	/* user addresses; avail 0: not in use */
	u32 num;
};

struct vbh_ring_dev {
	const struct file *file;	/* key; NULL: none */
	u64 features;
	struct vbh_ring ring[VBH_DEV_RINGS];
};

/*
 * Readers take no lock. What they read of a device that is just changed may be
 * of two rings, which makes one wrong answer.
 */
struct vbh_ring_mm {
	struct hlist_node node;
	const struct mm_struct *mm;	/* key */
	bool incomplete;		/* there are more devices */
	struct vbh_ring_dev dev[VBH_RING_DEVS];
	struct rcu_head rcu;
};

static DEFINE_RAW_SPINLOCK(vbh_rings_lock);
static struct hlist_head vbh_ring_hash[1 << VBH_RING_BITS];
static int vbh_ring_mms;		/* under the lock */

/* ---- looking ---- */

/* @x: of the type of what is read. Return: 0, or -EFAULT at once. */
#define vbh_peek(x, address) ({						\
	int __err;							\
									\
	pagefault_disable();						\
	__err = get_user(x, (typeof(x) __user *)(address));		\
	pagefault_enable();						\
	__err;								\
})

static struct hlist_head *vbh_ring_bucket(const struct mm_struct *mm)
{
	return &vbh_ring_hash[hash_ptr(mm, VBH_RING_BITS)];
}

/* Context: RCU read side (preemption disabled will do), or the lock. */
static struct vbh_ring_mm *vbh_ring_mm_find(const struct mm_struct *mm)
{
	struct vbh_ring_mm *m;

	hlist_for_each_entry_rcu(m, vbh_ring_bucket(mm), node,
				 lockdep_is_held(&vbh_rings_lock) ||
				 rcu_read_lock_sched_held())
		if (m->mm == mm)
			return m;
	return NULL;
}

static enum vb_rings vbh_ring_look(const struct vbh_ring *r, u64 features)
{
	u64 avail = READ_ONCE(r->avail), used = READ_ONCE(r->used);
	u16 flags = 0, used_event = 0, used_idx = 0;
	u32 num = READ_ONCE(r->num);

	if (!vb_ring_is_legible(features))
		return VB_RINGS_UNKNOWN;
	if (features & VB_RING_F_EVENT_IDX ?
	    vbh_peek(used_event, avail + VB_RING_USED_EVENT(num)) ||
	    vbh_peek(used_idx, used + VB_RING_USED_IDX) :
	    vbh_peek(flags, avail + VB_RING_AVAIL_FLAGS))
		return VB_RINGS_UNKNOWN;
	return vb_ring_state(features, num, flags, used_event, used_idx);
}

static enum vb_rings vbh_rings_read(const struct vbh_ring_mm *m)
{
	enum vb_rings one, all = VB_RINGS_OPEN;
	bool any = false;
	int i;

	if (!m || READ_ONCE(m->incomplete))
		return VB_RINGS_UNKNOWN;
	for (i = 0; i < VBH_MM_RINGS && all != VB_RINGS_HELD; i++) {
		const struct vbh_ring_dev *dev = &m->dev[i / VBH_DEV_RINGS];
		const struct vbh_ring *r = &dev->ring[i % VBH_DEV_RINGS];

		if (!READ_ONCE(r->avail))
			continue;
		any = true;
		one = vbh_ring_look(r, READ_ONCE(dev->features));
		all = vb_rings_join(all, one);
	}
	return any ? all : VB_RINGS_UNKNOWN;
}

/* Context: preemption disabled; current is the vCPU's thread. */
static enum vb_rings vbh_rings_look(struct vbh_vcpu *v)
{
	enum vb_rings rings = VB_RINGS_UNKNOWN;

	/* Whoever ends a VM loads its vCPUs for that. */
	if (current->mm && current->mm == v->vm->mm)
		rings = vbh_rings_read(vbh_ring_mm_find(current->mm));
	/*
	 * An interrupt that is delivered between the reading and this is lost
	 * to vbh_rings_irq(): no holder until the next look. The fast path, if
	 * nobody runs, does not go by this.
	 */
	WRITE_ONCE(v->rings, rings);
	return rings;
}

/**
 * vbh_rings_allow() - do all rings of the VM allow interrupts?
 * @v: vCPU
 *
 * As of the last look, unless an interrupt was delivered to the vCPU since.
 * Context: any.
 * Return: they do; false when it is not known.
 */
bool vbh_rings_allow(const struct vbh_vcpu *v)
{
	return READ_ONCE(v->rings) == VB_RINGS_OPEN;
}

/* An interrupt for @v: there is something to do again. Context: any. */
void vbh_rings_irq(struct vbh_vcpu *v)
{
	if (READ_ONCE(v->rings) == VB_RINGS_OPEN)
		WRITE_ONCE(v->rings, VB_RINGS_HELD);
}

/* Who got the CPU for an interrupt becomes a holder with that. */
static bool vbh_is_boosted_holder(const struct vbh_vcpu *v)
{
	enum vbh_boost_count why = READ_ONCE(v->boost.why);

	return READ_ONCE(v->boost.state) != VBH_BOOST_IDLE &&
	       (why == VBH_B_HOLDER ||
		(why == VBH_B_FAST_PATH && !vbh_says_itself(v)));
}

/**
 * vbh_rings_put() - a vCPU that got an interrupt loses its CPU
 * @v: vCPU; current is its thread
 * Context: put hook, perhaps under the run-queue lock.
 */
void vbh_rings_put(struct vbh_vcpu *v)
{
	if (vbh_rings_look(v) != VB_RINGS_OPEN)
		return;
	atomic64_inc(&v->vm->boosts[VBH_B_NO_HOLDER]);
	if (vbh_is_boosted_holder(v))
		vbh_boost_end(v, VBH_B_END_DONE);
}

static void vbh_rings_start(struct vbh_vcpu *v)
{
	hrtimer_start(&v->rings_timer, ns_to_ktime(VBH_RINGS_US * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/**
 * vbh_rings_load() - a vCPU has got a CPU
 * @v: vCPU; current is its thread
 * Context: load hook.
 */
void vbh_rings_load(struct vbh_vcpu *v)
{
	/*
	 * As seen when it lost its CPU, or there is nothing to be read. What
	 * came since counts, too: the fast path is for that.
	 */
	if (vbh_is_boosted_holder(v) &&
	    (READ_ONCE(v->rings) == VB_RINGS_HELD ||
	     READ_ONCE(v->boost.why) == VBH_B_FAST_PATH))
		vbh_rings_start(v);
}

static enum hrtimer_restart vbh_rings_tick(struct hrtimer *timer)
{
	struct vbh_vcpu *v = container_of(timer, struct vbh_vcpu, rings_timer);

	/* If it has left this CPU, its next load begins anew. */
	if (current != READ_ONCE(v->task) || !vbh_is_boosted_holder(v))
		return HRTIMER_NORESTART;
	switch (vbh_rings_look(v)) {
	case VB_RINGS_OPEN:
		vbh_boost_end(v, VBH_B_END_DONE);
		break;
	case VB_RINGS_HELD:
		/* Not RESTART: a load elsewhere may start it at any time. */
		vbh_rings_start(v);
		break;
	case VB_RINGS_UNKNOWN:
		break;
	}
	return HRTIMER_NORESTART;
}

/* Before the hooks find @v. Context: any. */
void vbh_rings_vcpu_init(struct vbh_vcpu *v)
{
	vb_hrtimer_setup(&v->rings_timer, vbh_rings_tick, CLOCK_MONOTONIC,
			 HRTIMER_MODE_REL_PINNED_HARD);
}

/* When no hook finds @v any more. Context: process. */
void vbh_rings_vcpu_exit(struct vbh_vcpu *v)
{
	hrtimer_cancel(&v->rings_timer);
}

/**
 * vbh_rings_known() - how many rings a VM has that can be read
 * @vm: the VM
 * Context: any.
 * Return: their number.
 */
unsigned int vbh_rings_known(const struct vbh_vm *vm)
{
	const struct vbh_ring_mm *m;
	unsigned int n = 0;
	int i;

	preempt_disable();
	m = vbh_ring_mm_find(vm->mm);
	for (i = 0; m && i < VBH_MM_RINGS; i++) {
		const struct vbh_ring_dev *dev = &m->dev[i / VBH_DEV_RINGS];

		n += READ_ONCE(dev->ring[i % VBH_DEV_RINGS].avail) &&
		     vb_ring_is_legible(READ_ONCE(dev->features));
	}
	preempt_enable();
	return n;
}

/* ---- learning and forgetting; all under the lock ---- */

static void vbh_ring_set(struct vbh_ring *r, u64 avail, u64 used)
{
	if (!r->avail && avail)
		vbh_stat_inc(VBH_S_RINGS_LEARNT);
	else if (r->avail && !avail)
		vbh_stat_inc(VBH_S_RINGS_FORGOTTEN);
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
	struct vbh_ring_mm *new = NULL;
	struct vbh_ring_dev *dev;
	unsigned long flags;

	if (regs_return_value(regs))
		return 0;
	if (c->cmd == VHOST_RESET_OWNER) {
		vbh_rings_forget(c->file, NULL);
		return 0;
	}
	/* From the free lists only, as in vbh_vcpu_discover(). */
	if (!vbh_ring_mm_find(current->mm))
		new = kzalloc(sizeof(*new), __GFP_NOWARN);
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
static struct kretprobe vbh_ioctl_probe;
static bool vbh_rings_on;

#define VBH_RELEASE	"vhost_net_release"
#define VBH_IOCTL	"vhost_net_ioctl"

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
	vbh_ioctl_probe = (struct kretprobe) {
		.kp.symbol_name = VBH_IOCTL,
		.entry_handler = vbh_ring_call_entry,
		.handler = vbh_ring_call_return,
		.data_size = sizeof(struct vbh_ring_call),
		.maxactive = max(64, 2 * (int)num_possible_cpus()),
	};
	/* Nothing is learnt that would not be forgotten. */
	*missing = vbh_release_probe.symbol_name;
	err = register_kprobe(&vbh_release_probe);
	if (err)
		return err;
	*missing = vbh_ioctl_probe.kp.symbol_name;
	err = register_kretprobe(&vbh_ioctl_probe);
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
	unregister_kretprobe(&vbh_ioctl_probe);
	unregister_kprobe(&vbh_release_probe);
	vbh_rings_on = false;
	vbh_rings_forget(NULL, NULL);
}
