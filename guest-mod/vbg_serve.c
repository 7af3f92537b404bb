// SPDX-License-Identifier: GPL-2.0
/*
 * Serving a virtqueue's interrupt on a vCPU that it was not sent to.
 *
 * What calls the handler here is, for the rest of the kernel, one more CPU in
 * handle_edge_irq() (kernel/irq/chip.c): IRQD_IRQ_INPROGRESS is set under
 * desc->lock while the handler runs. So the handler never runs twice at once,
 * disable_irq() and synchronize_irq() hold, and free_irq() waits for us before
 * the virtqueue goes. The real interrupt, when it comes meanwhile, finds it in
 * progress and masks the vector (since 6.17 it waits instead): it is unmasked
 * and the handler runs again before the end, as in handle_edge_irq().
 *
 * The handlers are vring_interrupt() and vp_vring_interrupt(), which look into
 * the ring and do nothing if there is nothing: serving too often is harmless.
 * They start NAPI or complete requests on this CPU.
 */
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "../compat/irq_state.h"
#include "../core/rings.h"
#include "vbg.h"
#include "vbg_trace.h"

/*
 * Has the device interrupted, or would it have as far as the driver asked for
 * it? Of some rings this cannot be asked: then yes. As vb_ring_signal().
 */
static u32 vbg_signal(const struct vbg_irq *i)
{
	const struct virtqueue *vq = i->dev_id;
	const struct vring *vr;

	if (i->shared || virtio_has_feature(vq->vdev, VIRTIO_F_RING_PACKED))
		return VB_SIGNAL_ANY;
	/* An interrupt that comes late: the ring is being given up. */
	if (READ_ONCE(vq->reset))
		return 0;
	vr = virtqueue_get_vring((struct virtqueue *)vq);
	if (!virtio_has_feature(vq->vdev, VIRTIO_RING_F_EVENT_IDX))
		return virtio16_to_cpu(vq->vdev, READ_ONCE(vr->avail->flags)) &
		       VRING_AVAIL_F_NO_INTERRUPT ? 0 : VB_SIGNAL_ANY;
	return vb_ring_signal(virtio16_to_cpu(vq->vdev,
					      READ_ONCE(vr->used->idx)),
			      virtio16_to_cpu(vq->vdev,
					      READ_ONCE(vring_used_event(vr))));
}

/**
 * vbg_note_signal() - a queue's handler is about to be called
 * @i: its interrupt; dev_id is that of the handler's call
 * Context: interrupts off, the interrupt is in progress.
 */
void vbg_note_signal(struct vbg_irq *i)
{
	u32 signal = vbg_signal(i);

	if (signal)
		WRITE_ONCE(i->signalled, signal);
}

static int vbg_serve_check(const struct vbg_irq *i, struct irq_desc *desc,
			   enum vbg_serve_kind kind)
{
	const struct irqaction *action = desc->action;
	struct irq_data *d = &desc->irq_data;

	lockdep_assert_held(&desc->lock);
	if (!action || action->dev_id != i->dev_id || !i->handler ||
	    action->handler != i->handler)
		return -ENOENT;
	if (irqd_irq_inprogress(d))
		return -EBUSY;
	/* A queue in reset (virtio's ring reset) has no ring to look at. */
	if (!irqd_is_started(d) ||
	    (!i->shared && ((const struct virtqueue *)i->dev_id)->reset))
		return -ENOENT;
	if (irqd_irq_disabled(d))
		return -EALREADY;
	if (irqd_irq_masked(d))
		return -EBUSY;
	if (kind == VBG_SERVE_BORROW &&
	    !vb_signal_is_new(vbg_signal(i), READ_ONCE(i->signalled)))
		return -ENODATA;
	return 0;
}

/* The handler, as often as the real interrupt came meanwhile, and once. */
static irqreturn_t vbg_serve_locked(struct vbg_irq *i, struct irq_desc *desc)
{
	struct irq_data *d = &desc->irq_data;
	struct irqaction *action = desc->action;
	irqreturn_t ret = IRQ_NONE;
	bool again, threaded;

	vb_irq_set_inprogress(desc);
	do {
		raw_spin_unlock(&desc->lock);
		threaded = vb_lockdep_handler_begin();
		ret |= action->handler(i->irq, action->dev_id);
		vb_lockdep_handler_end(threaded);
		raw_spin_lock(&desc->lock);
		again = irqd_irq_masked(d) && !irqd_irq_disabled(d) &&
			desc->action;
		if (again)
			vb_irq_unmask(desc);
	} while (again);
	vb_irq_clear_inprogress(desc);
	return ret;
}

/**
 * vbg_serve() - call the handler of an interrupt, here and now
 * @i: interrupt
 * @kind: why; VBG_SERVE_BORROW only if the device has signalled
 *
 * Context: interrupts off, soft interrupts run after it (hard interrupt, or
 * bottom halves disabled); RCU read side.
 * Return: 0; -EBUSY: its handler runs, or its descriptor is locked: again
 * later; -ENODATA: nothing to do; -ENOENT: there is nothing to be served.
 */
int vbg_serve(struct vbg_irq *i, enum vbg_serve_kind kind)
{
	struct irq_data *d = irq_get_irq_data(i->irq);
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	struct irq_desc *desc;
	irqreturn_t ret = IRQ_NONE;
	int err, cpu = smp_processor_id();
	u64 start, stolen, ns;

	/* Its device is going, we are about to hear of it. */
	if (!d)
		return -ENOENT;
	desc = irq_data_to_desc(d);
	/* Its holder may have lost its CPU with the lock: never wait for it. */
	if (!raw_spin_trylock(&desc->lock))
		return -EBUSY;
	err = vbg_serve_check(i, desc, kind);
	if (err == -EALREADY) {
		/* Disabled: it comes when it is enabled. */
		vb_irq_keep(desc);
		err = 0;
		goto out_unlock;
	}
	if (err)
		goto out_unlock;
	vbg_note_signal(i);
	start = vbg_clock();
	stolen = vbg_stolen_ns(cpu);
	vbg_critical_begin(c, cpu, VB_CRITICAL_IRQ);
	vb_irq_count(desc);
	ret = vbg_serve_locked(i, desc);
	ns = vbg_busy_ns(start, vbg_clock(), stolen, vbg_stolen_ns(cpu));
	i->served[kind]++;
	if (ret == IRQ_NONE)
		i->served_idle++;
	c->last_irq = i->irq;
	vbg_load_served(c, i, ns, ret != IRQ_NONE);
	if (kind == VBG_SERVE_BORROW && ret == IRQ_NONE)
		err = -ENODATA;
	trace_vb_guest_serve(i->irq, kind, ret != IRQ_NONE, ns);
out_unlock:
	raw_spin_unlock(&desc->lock);
	/* Otherwise at the end of this hard interrupt. */
	if (!in_hardirq())
		vbg_critical_hard_exit(c, cpu);
	return err;
}
