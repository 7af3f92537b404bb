// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/vbalance/host: see Documentation/debugfs.md.
 */
#include <linux/kvm_host.h>
#include <linux/math64.h>
#include <linux/seq_file.h>

#include "../common/debugfs.h"
#include "vbh.h"

DEFINE_PER_CPU(struct vbh_stats, vbh_stats);

static struct dentry *vbh_dir;

static const char * const vbh_stat_names[VBH_NR_STATS] = {
	[VBH_S_LOADS] = "loads",
	[VBH_S_PUTS] = "puts",
	[VBH_S_PUBLISHED] = "published",
	[VBH_S_UNKNOWN_VCPU] = "unknown_vcpu",
	[VBH_S_DISCOVERED] = "vcpus_discovered",
	[VBH_S_NO_MEMORY] = "no_memory",
	[VBH_S_HYPERCALLS] = "hypercalls",
	[VBH_S_REFUSED_EPERM] = "refused_eperm",
	[VBH_S_REFUSED_EINVAL] = "refused_einval",
	[VBH_S_REFUSED_EFAULT] = "refused_efault",
	[VBH_S_REFUSED_EROFS] = "refused_erofs",
	[VBH_S_REFUSED_EBUSY] = "refused_ebusy",
	[VBH_S_REFUSED_EPROTO] = "refused_eproto",
	[VBH_S_REFUSED_ENOENT] = "refused_enoent",
	[VBH_S_REFUSED_ENOMEM] = "refused_enomem",
	[VBH_S_REFUSED_EAGAIN] = "refused_eagain",
	[VBH_S_REFUSED_EOPNOTSUPP] = "refused_eopnotsupp",
	[VBH_S_PAGES_PINNED] = "pages_pinned",
	[VBH_S_PAGES_UNPINNED] = "pages_unpinned",
	[VBH_S_MSI_MATCHED] = "msi_matched",
	[VBH_S_RINGS_LEARNT] = "rings_learnt",
	[VBH_S_RINGS_FORGOTTEN] = "rings_forgotten",
};

const char * const vbh_vm_count_names[VBH_VM_NR_COUNTS] = {
	[VBH_VM_REGISTERED] = "registered",
	[VBH_VM_UNREGISTERED] = "unregistered",
	[VBH_VM_RESET] = "reset",
	[VBH_VM_STALE_COOKIE] = "stale_cookie",
	[VBH_VM_SLOT_BEYOND_AREA] = "slot_beyond_area",
	[VBH_VM_DIVERTED] = "diverted",
	[VBH_VM_COALESCED] = "coalesced",
	[VBH_VM_POSTED] = "posted",
	[VBH_VM_RETRACTED] = "retracted",
};

static int stats_show(struct seq_file *m, void *unused)
{
	int s, cpu;

	seq_puts(m, VB_DEBUGFS_HEAD);
	for (s = 0; s < VBH_NR_STATS; s++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu(vbh_stats, cpu).v[s]);
		seq_printf(m, "%s %llu\n", vbh_stat_names[s], sum);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int features_show(struct seq_file *m, void *unused)
{
	const char *what;
	int f, err;

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_printf(m, "version %s\nabi_version %d\n", VB_VERSION,
		   VB_ABI_VERSION);
	for (f = 0; f < VBH_NR_FEATURES; f++) {
		const struct vbh_feature_state *s = &vbh_features[f];

		if (s->err)
			seq_printf(m, "%s off (%s: error %d)\n", s->name,
				   s->detail, s->err);
		else
			seq_printf(m, "%s on (%s)\n", s->name, s->detail);
	}
	err = vbh_probes_error(&what);
	if (err)
		seq_printf(m, "probes off (%s: error %d)\n", what, err);
	else
		seq_puts(m, "probes on\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(features);

static u64 vbh_cycles_to_us(u64 cycles)
{
	return tsc_khz ? mul_u64_u32_div(cycles, 1000, tsc_khz) : 0;
}

/* What its guest says of it; may be anything. */
static void vbh_show_published(struct seq_file *m, const struct vbh_vcpu *v)
{
	u64 load = 0, service = 0;
	struct vbh_reg *reg;

	preempt_disable();
	reg = rcu_dereference_sched(v->vm->reg);
	if (reg && v->slot < reg->layout.nr_slots) {
		load = READ_ONCE(reg->guest[v->slot].irq_load_ns);
		service = READ_ONCE(reg->guest[v->slot].service_ns);
	}
	preempt_enable();
	seq_printf(m, " %llu %llu\n", div_u64(load, 1000),
		   div_u64(service, 1000));
}

static int vcpus_show(struct seq_file *m, void *unused)
{
	struct vbh_vm *vm = m->private;
	struct vbh_vcpu *v;
	int s;

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_puts(m, "slot apic_id state since_us");
	for (s = VB_VCPU_RUNNING; s < VB_NR_VCPU_STATES; s++)
		seq_printf(m, " %s_n %s_us", vbh_state_names[s],
			   vbh_state_names[s]);
	seq_puts(m, " on_us stay_us load_us service_us\n");

	rcu_read_lock();
	list_for_each_entry_rcu(v, &vm->vcpus, list) {
		u32 state = READ_ONCE(v->word) & 0xff;
		u64 now = rdtsc();
		u64 since = vb_cycles_since(READ_ONCE(v->changed_tsc), now);
		u64 stay = READ_ONCE(v->stay_since);
		u64 on = state == VB_VCPU_RUNNING && stay && now > stay ?
			 now - stay : 0;

		seq_printf(m, "%u %u %s %llu", v->slot, v->apic_id,
			   vbh_state_names[state], vbh_cycles_to_us(since));
		for (s = VB_VCPU_RUNNING; s < VB_NR_VCPU_STATES; s++)
			seq_printf(m, " %llu %llu", READ_ONCE(v->count[s]),
				   vbh_cycles_to_us(READ_ONCE(v->cycles[s])));
		seq_printf(m, " %llu %llu", vbh_cycles_to_us(on),
			   vbh_cycles_to_us(READ_ONCE(v->stay_mean)));
		vbh_show_published(m, v);
	}
	rcu_read_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vcpus);

static int registration_show(struct seq_file *m, void *unused)
{
	struct vbh_vm *vm = m->private;
	unsigned long flags;
	struct vbh_reg *reg;
	u32 slots = 0, pages = 0;
	bool active;
	int i, status;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	reg = rcu_dereference_protected(vm->reg, lockdep_is_held(&vbh_lock));
	active = reg;
	if (reg) {
		slots = reg->layout.nr_slots;
		pages = reg->layout.nr_pages;
	}
	status = vm->status;
	raw_spin_unlock_irqrestore(&vbh_lock, flags);

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_printf(m, "active %d\nstatus %d\nslots %u\npages %u\n", active,
		   status, slots, pages);
	for (i = 0; i < VBH_VM_NR_COUNTS; i++)
		seq_printf(m, "%s %lld\n", vbh_vm_count_names[i],
			   atomic64_read(&vm->count[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(registration);

static int boost_show(struct seq_file *m, void *unused)
{
	struct vbh_vm *vm = m->private;
	int i;

	seq_puts(m, VB_DEBUGFS_HEAD);
	for (i = VBH_B_NONE + 1; i < VBH_B_NR_COUNTS; i++)
		seq_printf(m, "%s %lld\n", vbh_boost_count_names[i],
			   atomic64_read(&vm->boosts[i]));
	seq_printf(m, "rings %u\n", vbh_rings_known(vm));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(boost);

/* Work item only. */
void vbh_debugfs_add_vm(struct vbh_vm *vm)
{
	vm->dir = debugfs_create_dir(vm->name, vbh_dir);
	debugfs_create_file("vcpus", 0444, vm->dir, vm, &vcpus_fops);
	debugfs_create_file("registration", 0444, vm->dir, vm,
			    &registration_fops);
	debugfs_create_file("boost", 0444, vm->dir, vm, &boost_fops);
}

/* Waits for readers: the VM can be freed afterwards. */
void vbh_debugfs_del_vm(struct vbh_vm *vm)
{
	debugfs_remove(vm->dir);
	vm->dir = NULL;
}

void vbh_debugfs_init(void)
{
	vbh_dir = vb_debugfs_get("host");
	debugfs_create_file("stats", 0444, vbh_dir, NULL, &stats_fops);
	debugfs_create_file("features", 0444, vbh_dir, NULL, &features_fops);
}

void vbh_debugfs_exit(void)
{
	debugfs_remove(vbh_dir);
}
