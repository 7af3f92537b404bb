// SPDX-License-Identifier: GPL-2.0
static void deeper(void)
{
	wake_up_process(p); /* SEED: two calls below the hook */
	hrtimer_start(&t, 0, HRTIMER_MODE_REL_PINNED_HARD);
}

static void deep(int n)
{
	if (n)
		deeper();
	irq_work_queue(&work);
}

void vb_seed_put(struct kvm_vcpu *vcpu)
{
	deep(1);
	queue_work(wq, &work); /* SEED */
	pr_warn("not there\n"); /* SEED */
	hrtimer_start(&t, 0, HRTIMER_MODE_REL_PINNED); /* SEED: soft */
	vb_seed_unknown(); /* SEED: nobody knows what it does */
}

void vb_seed_load(struct kvm_vcpu *vcpu)
{
	void *p = kmalloc(4, GFP_ATOMIC);

	kfree(p);
	wake_up_process(current);
	p = kmalloc(4, GFP_KERNEL); /* SEED */
	mutex_lock(&lock); /* SEED */
}

/* Nobody gets here from there. */
static void work_item(void)
{
	mutex_lock(&lock);
	p = kmalloc(4, GFP_KERNEL);
}
