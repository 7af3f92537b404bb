// SPDX-License-Identifier: GPL-2.0
/*
 * Which interrupts are ours: the virtqueue vectors of virtio-pci devices.
 *
 * Found through PCI (vendor 0x1af4) -> MSI-X vector -> irq_desc -> action:
 * a vector of one queue has vring_interrupt() as handler, the one that all
 * queues of a device share is named "...-virtqueues" (drivers/virtio/
 * virtio_pci_common.c). Configuration vectors and INTx are left alone; devices
 * with INTx are listed.
 *
 * A rescan runs at load, when a device comes or goes (bus notifiers) and once
 * a second (queues are also torn down and set up again by resets, suspend and
 * changes of the number of channels, which no notifier tells). An entry can
 * outlive its interrupt for a moment: every user looks the descriptor up anew
 * under RCU and compares handler data with dev_id under the descriptor's
 * lock before it touches anything.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_ring.h>
#include <linux/xarray.h>

#include "vbg.h"
#include "../common/fault.h"

#define VBG_PCI_VENDOR	0x1af4

struct vbg_table __rcu *vbg_table;
/* Who changes vbg_table, or walks it and may sleep. */
DEFINE_MUTEX(vbg_irqs_mutex);

/* irq number -> struct vbg_irq, for the interrupt handlers' tracepoints. */
static DEFINE_XARRAY(vbg_xa);

/* Context: RCU read side (preemption disabled will do). */
struct vbg_irq *vbg_irq_find(unsigned int irq)
{
	return xa_load(&vbg_xa, irq);
}

bool vbg_irq_lock(struct vbg_irq *i)
{
	return !test_and_set_bit_lock(0, &i->busy);
}

void vbg_irq_unlock(struct vbg_irq *i)
{
	clear_bit_unlock(0, &i->busy);
}

/* What interrupts that are gone have counted. Under vbg_irqs_mutex. */
static u64 vbg_gone_count[VBG_NR_COUNTS];
static u64 vbg_gone_decisions[VBG_NR_REASONS];

static void vbg_irq_add_counts(const struct vbg_irq *i, u64 *count,
			       u64 *decisions)
{
	int k;

	for (k = 0; k < VBG_NR_COUNTS; k++)
		count[k] += READ_ONCE(i->count[k]);
	for (k = 0; k < VBG_NR_REASONS; k++)
		decisions[k] += READ_ONCE(i->decisions[k]);
}

/**
 * vbg_irqs_sum() - counts of all interrupts, also of those that are gone
 * @count: VBG_NR_COUNTS sums
 * @decisions: VBG_NR_REASONS sums
 * Context: process, sleeps.
 */
void vbg_irqs_sum(u64 *count, u64 *decisions)
{
	const struct vbg_table *t;
	int n;

	mutex_lock(&vbg_irqs_mutex);
	memcpy(count, vbg_gone_count, sizeof(vbg_gone_count));
	memcpy(decisions, vbg_gone_decisions, sizeof(vbg_gone_decisions));
	t = rcu_dereference_protected(vbg_table,
				      lockdep_is_held(&vbg_irqs_mutex));
	for (n = 0; t && n < t->nr; n++)
		vbg_irq_add_counts(t->irqs[n], count, decisions);
	mutex_unlock(&vbg_irqs_mutex);
}

static void vbg_irq_free(struct vbg_irq *i)
{
	lockdep_assert_held(&vbg_irqs_mutex);
	vbg_irq_add_counts(i, vbg_gone_count, vbg_gone_decisions);
	free_cpumask_var(i->mask);
	kfree(i);
}

/* ---- looking at one interrupt ---- */

/* What a scan sees of a vector; a copy made under the descriptor's lock. */
struct vbg_seen {
	const void *dev_id;
	irq_handler_t handler;
	char name[sizeof_field(struct vbg_irq, name)];
	bool shared;
	enum vbg_why_fixed fixed;
	int cpu;
};

static bool vbg_is_shared_vector(const char *name)
{
	const char *suffix = "-virtqueues";
	size_t n = strlen(name), s = strlen(suffix);

	return n > s && !strcmp(name + n - s, suffix);
}

static enum vbg_why_fixed vbg_fixed(struct irq_data *d)
{
	if (irqd_affinity_is_managed(d))
		return VBG_FIXED_MANAGED;
	/* Not with the chips that x86 has for MSIs, nor as virtio asks for one. */
	if (vb_fault("fixed") || !d->chip || !d->chip->irq_set_affinity ||
	    !irqd_can_balance(d))
		return VBG_FIXED_CHIP;
	return VBG_MOVABLE;
}

/*
 * All CPUs is no restriction; neither is the driver's own spreading (virtio-net
 * binds queue n to CPU n and leaves it as a hint). What is left was somebody's
 * wish.
 */
static bool vbg_mask_is_free(const struct irq_desc *desc,
			     const struct cpumask *mask)
{
	lockdep_assert_held(&desc->lock);
	return cpumask_subset(cpu_online_mask, mask) ||
	       (desc->affinity_hint &&
		cpumask_equal(desc->affinity_hint, mask));
}

/**
 * vbg_irq_mask_changed() - take over the affinity mask if somebody changed it
 * @i: interrupt; the caller holds its busy bit
 * Context: RCU read side, interrupts off.
 * Return: it was changed.
 */
bool vbg_irq_mask_changed(struct vbg_irq *i)
{
	struct irq_data *d = irq_get_irq_data(i->irq);
	const struct cpumask *mask;
	struct irq_desc *desc;
	bool changed = false;

	if (!d)
		return false;
	desc = irq_data_to_desc(d);
	raw_spin_lock(&desc->lock);
	mask = irq_data_get_affinity_mask(d);
	if (desc->action && desc->action->dev_id == i->dev_id &&
	    !irqd_is_setaffinity_pending(d) && !cpumask_equal(mask, i->mask)) {
		cpumask_copy(i->mask, mask);
		WRITE_ONCE(i->restricted, !vbg_mask_is_free(desc, mask));
		changed = true;
	}
	raw_spin_unlock(&desc->lock);
	return changed;
}

/* Is this a virtqueue's vector? Fills @seen and the current affinity mask. */
static bool vbg_inspect(unsigned int irq, struct vbg_seen *seen,
			struct cpumask *mask, bool *unrestricted)
{
	struct irq_desc *desc;
	struct irq_data *d;
	unsigned long flags;
	bool ours = false;

	rcu_read_lock();
	/* Its driver may be freeing it: only the PCI device is locked. */
	d = vb_fault("inspect") ? NULL : irq_get_irq_data(irq);
	if (!d)
		goto out_rcu;
	desc = irq_data_to_desc(d);
	raw_spin_lock_irqsave(&desc->lock, flags);
	if (vb_fault("freed") || !desc->action || !desc->action->name)
		goto out_unlock;
	seen->shared = vbg_is_shared_vector(desc->action->name);
	/* With threadirqs the handler is the thread's. */
	if (desc->action->handler != vring_interrupt &&
	    desc->action->thread_fn != vring_interrupt && !seen->shared)
		goto out_unlock;
	strscpy(seen->name, desc->action->name, sizeof(seen->name));
	seen->dev_id = desc->action->dev_id;
	/* Without one it is neither served nor looked into, and has no key. */
	seen->handler = desc->action->thread_fn ||
			vbg_facts_differ(VBG_F_SERVE) ? NULL :
							desc->action->handler;
	seen->fixed = vbg_fixed(d);
	seen->cpu = cpumask_first(irq_data_get_effective_affinity_mask(d));
	cpumask_copy(mask, irq_data_get_affinity_mask(d));
	*unrestricted = vbg_mask_is_free(desc, mask);
	ours = true;
out_unlock:
	raw_spin_unlock_irqrestore(&desc->lock, flags);
out_rcu:
	rcu_read_unlock();
	return ours;
}

static int vbg_child(struct device *dev, void *child)
{
	/* Only virtio-pci's own child; its bus is the virtio bus. */
	if (!dev->bus || strcmp(dev->bus->name, "virtio"))
		return 0;
	*(struct device **)child = dev;
	return 1;
}

/* Its virtio device. Context: the device is locked. */
static struct device *vbg_device_child(struct pci_dev *pdev)
{
	struct device *child = NULL;

	device_for_each_child(&pdev->dev, &child, vbg_child);
	return child;
}

static const char *vbg_device_kind(struct device *child)
{
	switch (child ? dev_to_virtio(child)->id.device : 0) {
	case VIRTIO_ID_NET: return "net";
	case VIRTIO_ID_BLOCK: return "blk";
	case VIRTIO_ID_SCSI: return "scsi";
	default: return NULL;
	}
}

/* Does a device interrupt by this line? As vp_find_vqs_intx() asks for it. */
static bool vbg_has_line(unsigned int irq, struct device *child)
{
	const struct irqaction *action;
	struct irq_desc *desc;
	struct irq_data *d;
	unsigned long flags;
	bool found = false;

	rcu_read_lock();
	d = irq_get_irq_data(irq);
	if (d) {
		desc = irq_data_to_desc(d);
		raw_spin_lock_irqsave(&desc->lock, flags);
		for (action = desc->action; action; action = action->next)
			found |= action->name &&
				 !strcmp(action->name, dev_name(child));
		raw_spin_unlock_irqrestore(&desc->lock, flags);
	}
	rcu_read_unlock();
	return found;
}

/**
 * vbg_irqs_show_left() - list the devices that have no vectors
 * @m: for a line of each
 * @show: prints it
 *
 * Without MSI-X a device interrupts by a line (INTx), which it may share with
 * others and which says nothing about queues: left alone, and not in the
 * table. A device that is just being bound, unbound or reset is left out: that
 * may take as long as it likes.
 * Context: process, sleeps; not under vbg_irqs_mutex, which is taken while
 * devices are locked.
 */
void vbg_irqs_show_left(struct seq_file *m,
			void (*show)(struct seq_file *m, unsigned int irq,
				     const char *name, const char *kind))
{
	struct pci_dev *pdev = NULL;
	struct device *child;
	const char *kind;

	while ((pdev = pci_get_device(VBG_PCI_VENDOR, PCI_ANY_ID, pdev))) {
		/* As in vbg_scan_locked(). */
		if (data_race((bool)pdev->msix_enabled) ||
		    !device_trylock(&pdev->dev))
			continue;
		child = vbg_device_child(pdev);
		kind = vbg_device_kind(child);
		if (kind && !pdev->msix_enabled &&
		    vbg_has_line(pdev->irq, child))
			show(m, pdev->irq, dev_name(child), kind);
		device_unlock(&pdev->dev);
	}
}

/* ---- the scan ---- */

struct vbg_scan {
	struct vbg_table *new;
	int max;		/* room in @new */
};

static struct vbg_table *vbg_table_grow(struct vbg_table *t, int max)
{
	return krealloc(t, struct_size(t, irqs, max), GFP_KERNEL);
}

static bool vbg_scan_add(struct vbg_scan *s, struct vbg_irq *i)
{
	struct vbg_table *t;

	if (vb_fault("adopt"))
		return false;
	if (s->new->nr == s->max) {
		t = vbg_table_grow(s->new, 2 * s->max);
		if (!t)
			return false;
		s->new = t;
		s->max *= 2;
	}
	s->new->irqs[s->new->nr++] = i;
	return true;
}

static struct vbg_irq *vbg_adopt(unsigned int irq, const struct vbg_seen *seen,
				 const char *kind, const struct cpumask *mask,
				 bool unrestricted)
{
	struct vbg_irq *i = kzalloc(sizeof(*i), GFP_KERNEL);

	if (!i)
		return NULL;
	if (!alloc_cpumask_var(&i->mask, GFP_KERNEL)) {
		kfree(i);
		return NULL;
	}
	cpumask_copy(i->mask, mask);
	i->restricted = !unrestricted;
	i->irq = irq;
	i->dev_id = seen->dev_id;
	strscpy(i->name, seen->name, sizeof(i->name));
	strscpy(i->kind, kind, sizeof(i->kind));
	i->handler = seen->handler;
	i->shared = seen->shared;
	i->transmit = !seen->shared && strstr(seen->name, "-output.");
	i->fixed = seen->fixed;
	i->home = seen->cpu;
	i->cpu = seen->cpu;
	i->where = seen->cpu;
	i->tried_cpu = -1;
	i->before_cpu = -1;
	i->busy_cpu = -1;
	if (i->fixed)
		i->last_reason = VBG_R_FIXED;
	vbg_redirect_adopt(i);
	/* Not all of them in one interrupt. */
	i->next_steer = vbg_clock() + (irq % 64) * (NSEC_PER_SEC / 64);
	return i;
}

static void vbg_scan_device(struct vbg_scan *s, struct pci_dev *pdev)
{
	struct vbg_seen seen = {};
	cpumask_var_t mask;
	const char *kind;
	int n, irq;

	kind = pdev->msix_enabled ? vbg_device_kind(vbg_device_child(pdev)) :
				    NULL;
	if (!kind || !alloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	/*
	 * Vectors are handed out from 0 on. The size of the device's table is
	 * not asked for: that would be an exit into the VMM once a second.
	 */
	for (n = 0; (irq = pci_irq_vector(pdev, n)) > 0; n++) {
		struct vbg_irq *i, *known;
		bool unrestricted;

		if (!vbg_inspect(irq, &seen, mask, &unrestricted))
			continue;
		known = vbg_irq_find(irq);
		if (known && known->dev_id == seen.dev_id &&
		    !strcmp(known->name, seen.name))
			i = known;
		else
			i = vbg_adopt(irq, &seen, kind, mask, unrestricted);
		if (!i)
			continue;
		i->dev = &pdev->dev;
		if (!vbg_scan_add(s, i) && i != known) {
			vbg_redirect_forget(i);
			synchronize_rcu();
			vbg_irq_free(i);
		}
	}
	free_cpumask_var(mask);
}

/*
 * A device that cannot be asked now keeps the entries that it has, but for those
 * whose number is another device's by now.
 */
static void vbg_scan_keep(struct vbg_scan *s, const struct vbg_table *old,
			  const struct pci_dev *pdev)
{
	int n;

	for (n = 0; old && n < old->nr; n++)
		if (old->irqs[n]->dev == &pdev->dev &&
		    vbg_irq_find(old->irqs[n]->irq) == old->irqs[n])
			vbg_scan_add(s, old->irqs[n]);
}

static bool vbg_table_has(const struct vbg_table *t, const struct vbg_irq *i)
{
	int n;

	for (n = 0; t && n < t->nr; n++)
		if (t->irqs[n] == i)
			return true;
	return false;
}

/* Those that leave are not found any more. */
static void vbg_table_erase(const struct vbg_table *old,
			    const struct vbg_table *new)
{
	int n;

	for (n = 0; old && n < old->nr; n++) {
		if (vbg_table_has(new, old->irqs[n]))
			continue;
		/* What a probe that had begun before has stored. */
		vbg_redirect_unkey(old->irqs[n]);
		/* Not if there was no memory to find it by. */
		if (vbg_irq_find(old->irqs[n]->irq) == old->irqs[n])
			xa_erase(&vbg_xa, old->irqs[n]->irq);
	}
}

static void vbg_table_install(struct vbg_table *new)
{
	struct vbg_table *old = rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex));
	int n;

	for (n = 0; old && n < old->nr; n++)
		if (!vbg_table_has(new, old->irqs[n]))
			vbg_redirect_forget(old->irqs[n]);
	/* Tracepoints and hooks that still use the old ones are read sides. */
	synchronize_rcu();
	vbg_table_erase(old, new);
	for (n = 0; new && n < new->nr; n++) {
		struct vbg_irq *found = vbg_irq_find(new->irqs[n]->irq);

		/* That of a device that could not be asked is not the newer one. */
		if (found == new->irqs[n] ||
		    (found && vbg_table_has(old, new->irqs[n])))
			continue;
		if (vb_fault("store") ?:
		    xa_err(xa_store(&vbg_xa, new->irqs[n]->irq, new->irqs[n],
				    GFP_KERNEL)))
			pr_warn("no memory: irq %u is not measured and not redirected\n",
				new->irqs[n]->irq);
	}
	rcu_assign_pointer(vbg_table, new);
	synchronize_rcu();
	for (n = 0; old && n < old->nr; n++) {
		if (vbg_table_has(new, old->irqs[n]))
			continue;
		vbg_redirect_last_look(old->irqs[n]);
		vbg_irq_free(old->irqs[n]);
	}
	kfree(old);
}

static void vbg_scan_locked(const struct device *leaving)
{
	struct vbg_table *old = rcu_dereference_protected(vbg_table,
					lockdep_is_held(&vbg_irqs_mutex));
	struct pci_dev *pdev = NULL;
	struct vbg_scan s = { .max = 32 };
	bool same;
	int n;

	s.new = vbg_table_grow(NULL, s.max);
	if (!s.new)
		return;
	s.new->nr = 0;
	/* A device that came in between is found by its own event. */
	while ((pdev = pci_get_device(VBG_PCI_VENDOR, PCI_ANY_ID, pdev))) {
		/*
		 * Without vectors there is nothing to be asked for, and its lock
		 * is somebody's: vfio does not open a device whose lock is taken.
		 */
		if (&pdev->dev == leaving || !data_race((bool)pdev->msix_enabled))
			continue;
		/*
		 * Being bound or unbound right now: its vectors must not be
		 * asked for.
		 */
		if (!device_trylock(&pdev->dev)) {
			vbg_scan_keep(&s, old, pdev);
			continue;
		}
		vbg_scan_device(&s, pdev);
		device_unlock(&pdev->dev);
	}
	same = old && old->nr == s.new->nr;
	for (n = 0; same && n < old->nr; n++)
		same = old->irqs[n] == s.new->irqs[n];
	vbg_stat_inc(VBG_S_RESCANS);
	if (same)
		kfree(s.new);
	else
		vbg_table_install(s.new);
}

/* Context: process, sleeps. */
void vbg_irqs_rescan(void)
{
	mutex_lock(&vbg_irqs_mutex);
	vbg_scan_locked(NULL);
	mutex_unlock(&vbg_irqs_mutex);
}

/* ---- hot plug ---- */

static int vbg_pci_event(struct notifier_block *nb, unsigned long event,
			 void *data)
{
	struct device *dev = data;
	unsigned int noio;

	if (to_pci_dev(dev)->vendor != VBG_PCI_VENDOR)
		return NOTIFY_DONE;
	if (event == BUS_NOTIFY_BOUND_DRIVER) {
		vbg_maintain_soon();
	} else if (event == BUS_NOTIFY_UNBIND_DRIVER) {
		/* vbg_maintain() must never wait for memory with the mutex. */
		noio = memalloc_noio_save();
		mutex_lock(&vbg_irqs_mutex);
		vbg_scan_locked(dev);
		mutex_unlock(&vbg_irqs_mutex);
		memalloc_noio_restore(noio);
	}
	return NOTIFY_DONE;
}

static struct notifier_block vbg_pci_nb = { .notifier_call = vbg_pci_event };

int vbg_irqs_init(void)
{
	int err = vb_fault("load") ?:
		  bus_register_notifier(&pci_bus_type, &vbg_pci_nb);

	if (err)
		return err;
	vbg_irqs_rescan();
	return 0;
}

/* After nobody decides any more: everything back to where it was. */
void vbg_irqs_exit(void)
{
	struct vbg_table *t;

	bus_unregister_notifier(&pci_bus_type, &vbg_pci_nb);
	mutex_lock(&vbg_irqs_mutex);
	t = rcu_dereference_protected(vbg_table,
				      lockdep_is_held(&vbg_irqs_mutex));
	if (t)
		vbg_move_restore(t);
	vbg_table_install(NULL);
	mutex_unlock(&vbg_irqs_mutex);
	xa_destroy(&vbg_xa);
}
