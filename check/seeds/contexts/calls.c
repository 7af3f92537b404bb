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
	call_rcu(&p->rcu, free_it); /* SEED */
	mmdrop(mm); /* SEED */
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
static void vb_seed_work(struct work_struct *work)
{
	mutex_lock(&lock);
	p = kmalloc(4, GFP_KERNEL);
}

static DECLARE_WORK(work, vb_seed_work);

/* In no list: vb_seed_new is a hook like vb_seed_put, not one that sleeps. */
static int vb_seed_new(struct kprobe *p, struct pt_regs *regs)
{
	return vb_seed_twice(1);
}

static int vb_seed_twice(int n)
{
	return 2 * n;
}

static struct kprobe vb_seed_probe = {
	.symbol_name = "vb_seed_new",
	.pre_handler = vb_seed_new, /* SEED */
};

static struct kretprobe vb_seed_call = {
	.entry_handler = vb_seed_load,
	.handler = vb_seed_new, /* SEED */
};

static struct notifier_block vb_seed_nb = { .notifier_call = vb_seed_new }; /* SEED */
static DEFINE_IRQ_WORK(vb_seed_irq_work, vb_seed_new); /* SEED */

static struct {
	const char *name;
	void *probe;
} vb_seed_tps[] = {
	{ "sched_switch", vb_seed_put },
	{ "sched_wakeup", vb_seed_new }, /* SEED: a tracepoint */
};

static void vb_seed_register(void)
{
	if (vb_seed_new(NULL, NULL))
		return;
	init_irq_work(&vb_seed_irq_work, vb_seed_new); /* SEED */
	per_cpu(vb_seed_late, 0) =
		IRQ_WORK_INIT_HARD(vb_seed_new); /* SEED */
	vb_hrtimer_setup(&per_cpu(vb_seed_timer, 0), vb_seed_load,
			 CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	vb_hrtimer_setup(&per_cpu(vb_seed_timer, 0),
			 vb_seed_new, /* SEED */
			 CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}
