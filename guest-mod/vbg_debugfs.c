// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/vbalance/guest: see Documentation/debugfs.md.
 */
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "../common/debugfs.h"
#include "vbg.h"

DEFINE_PER_CPU(struct vbg_stats, vbg_stats);

static struct dentry *vbg_dir;

static const char * const vbg_stat_names[VBG_NR_STATS] = {
	[VBG_S_LOOKS] = "looks",
	[VBG_S_TICKS] = "ticks",
	[VBG_S_DEVICE_IRQS] = "device_irqs",
	[VBG_S_DECISIONS] = "decisions",
	[VBG_S_OBSERVED] = "observed",
	[VBG_S_NO_SOURCE] = "no_source",
	[VBG_S_REGISTRATIONS] = "registrations",
	[VBG_S_REGISTER_FAILED] = "register_failed",
	[VBG_S_FALLBACK_SELF] = "fallback_self",
	[VBG_S_FALLBACK_GONE] = "fallback_gone",
	[VBG_S_FALLBACK_STATUS] = "fallback_status",
	[VBG_S_RESCANS] = "rescans",
	[VBG_S_REDIRECT_IRQS] = "redirect_irqs",
	[VBG_S_SERVED] = "served",
	[VBG_S_STOLEN] = "stolen",
	[VBG_S_OVERTAKEN] = "overtaken",
	[VBG_S_MERGED] = "merged",
	[VBG_S_DROPPED] = "dropped",
	[VBG_S_LEFT] = "left",
	[VBG_S_SETTLED] = "settled",
	[VBG_S_MISSING] = "missing",
	[VBG_S_PUT_BACK] = "put_back",
	[VBG_S_LATE] = "late",
	[VBG_S_STUCK] = "stuck",
	[VBG_S_SWEEPS] = "sweeps",
	[VBG_S_SWEEPS_LATE] = "sweeps_late",
	[VBG_S_KEPT] = "kept",
	[VBG_S_BOOSTS_ENDED] = "boosts_ended",
	[VBG_S_BORROWED] = "borrowed",
	[VBG_S_TIMER_ARMED] = "timer_armed",
	[VBG_S_TIMER_FIRED] = "timer_fired",
	[VBG_S_TIMER_NS] = "timer_ns",
	[VBG_S_TIMER_BORROWED] = "timer_borrowed",
	[VBG_S_TIMER_LIMITED] = "timer_limited",
};

static const char * const vbg_count_names[VBG_NR_COUNTS] = {
	[VBG_C_MOVES] = "moves",
	[VBG_C_EBUSY] = "ebusy",
	[VBG_C_CONTENDED] = "contended",
	[VBG_C_FAILED] = "failed",
	[VBG_C_FOREIGN] = "foreign",
	[VBG_C_INJECTED] = "injected",
};

static int stats_show(struct seq_file *m, void *unused)
{
	u64 count[VBG_NR_COUNTS] = {}, decisions[VBG_NR_REASONS] = {};
	u64 nr, sum, max, diverted, posted;
	int k, cpu;

	vbg_irqs_sum(count, decisions);
	vbg_move_counts(&nr, &sum, &max);
	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_printf(m, "source %s\n", vbg_state_source());
	seq_printf(m, "page_status %d\n", vbg_page_status());
	for (k = 0; k < VBG_NR_STATS; k++) {
		u64 total = 0;

		for_each_possible_cpu(cpu)
			total += READ_ONCE(per_cpu(vbg_stats, cpu).v[k]);
		seq_printf(m, "%s %llu\n", vbg_stat_names[k], total);
	}
	for (k = 0; k < VBG_NR_COUNTS; k++)
		seq_printf(m, "%s %llu\n", vbg_count_names[k], count[k]);
	vbg_account_host(&diverted, &posted);
	seq_printf(m, "host_diverted %llu\n", diverted);
	seq_printf(m, "host_posted %llu\n", posted);
	seq_printf(m, "move_cost_ns %llu\n", vbg_move_cost());
	seq_printf(m, "move_cost_n %llu\n", nr);
	seq_printf(m, "move_cost_sum_ns %llu\n", sum);
	seq_printf(m, "move_cost_max_ns %llu\n", max);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int decisions_show(struct seq_file *m, void *unused)
{
	u64 count[VBG_NR_COUNTS] = {}, decisions[VBG_NR_REASONS] = {};
	int k;

	vbg_irqs_sum(count, decisions);
	seq_puts(m, VB_DEBUGFS_HEAD);
	for (k = 0; k < VBG_NR_REASONS; k++)
		seq_printf(m, "%s %llu\n", vbg_reason_names[k], decisions[k]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(decisions);

static bool vbg_is_holder(int cpu)
{
	const struct vbg_table *t;
	bool holds = false;
	int n;

	rcu_read_lock();
	t = rcu_dereference(vbg_table);
	for (n = 0; t && n < t->nr && !holds; n++)
		holds = vbg_irq_where(t->irqs[n], NULL) == cpu;
	rcu_read_unlock();
	return holds;
}

static int vcpus_show(struct seq_file *m, void *unused)
{
	u64 now = vbg_clock(), sum = 0, avg;
	int cpu;

	for_each_online_cpu(cpu)
		sum += vbg_cpu_load_ns(cpu, now);
	avg = div_u64(sum, num_online_cpus());

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_puts(m, "cpu slot run alg1 load_us hard_n hard_us soft_n soft_us look_us absences away_mean_us stay_mean_us wait_us\n");
	for_each_online_cpu(cpu) {
		const struct vbg_cpu *c = &per_cpu(vbg_cpus, cpu);
		u64 load = vbg_cpu_load_ns(cpu, now);
		enum vb_a1_state a1;
		u32 state;
		int slot;

		preempt_disable();
		slot = vbg_page_slot(cpu);
		state = vbg_cpu_state(cpu);
		preempt_enable();
		a1 = vb_a1_state(state == VB_VCPU_RUNNING, vbg_is_holder(cpu),
				 load, avg);
		seq_printf(m, "%d %d %s %s %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu\n",
			   cpu, slot, vbg_state_name(state), vb_a1_state_name(a1),
			   div_u64(load, 1000), READ_ONCE(c->hard_count),
			   div_u64(READ_ONCE(c->hard_ns), 1000),
			   READ_ONCE(c->soft_count),
			   div_u64(READ_ONCE(c->soft_ns), 1000),
			   div_u64(READ_ONCE(c->look_ns), 1000),
			   READ_ONCE(c->nr_absences),
			   div_u64(READ_ONCE(c->off_mean), 1000),
			   div_u64(READ_ONCE(c->on_mean), 1000),
			   div_u64(vbg_cpu_wait_ns(cpu, now), 1000));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vcpus);

static const char *vbg_fixed_name(const struct vbg_irq *i)
{
	switch (i->fixed) {
	case VBG_FIXED_MANAGED: return "managed";
	case VBG_FIXED_CHIP: return "fixed";
	default: return READ_ONCE(i->restricted) ? "restricted" : "free";
	}
}

/* The columns of irqs_show(): nothing is counted of it, nor decided. */
static void vbg_left_show(struct seq_file *m, unsigned int irq,
			  const char *name, const char *kind)
{
	seq_printf(m, "%u %s %s intx fixed - - - - - - - - - - - - stay_fixed intx -1 - - - - -\n",
		   irq, name, kind);
}

static int irqs_show(struct seq_file *m, void *unused)
{
	const struct vbg_table *t;
	u64 now = vbg_clock();
	int n, where;

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_puts(m, "irq name kind vector affinity cpu home load_us handled hard_us soft_us moves ebusy contended failed foreign last_cost_us last_reason redirect key_cpu transmit served stolen borrowed swept idle\n");
	mutex_lock(&vbg_irqs_mutex);
	t = rcu_dereference_protected(vbg_table,
				      lockdep_is_held(&vbg_irqs_mutex));
	for (n = 0; t && n < t->nr; n++) {
		struct vbg_irq *i = t->irqs[n];

		rcu_read_lock();
		where = vbg_irq_where(i, NULL);
		rcu_read_unlock();
		seq_printf(m, "%u %s %s %s %s %d %d %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %s %s %d %d %llu %llu %llu %llu %llu\n",
			   i->irq, i->name, i->kind,
			   i->shared ? "shared" : "queue", vbg_fixed_name(i),
			   where, READ_ONCE(i->home),
			   div_u64(vb_decay_read(&i->load, VB_DECAY_SHORT,
						 now), 1000),
			   READ_ONCE(i->handled),
			   div_u64(READ_ONCE(i->hard_ns), 1000),
			   div_u64(atomic64_read(&i->soft_ns), 1000),
			   READ_ONCE(i->count[VBG_C_MOVES]),
			   READ_ONCE(i->count[VBG_C_EBUSY]),
			   READ_ONCE(i->count[VBG_C_CONTENDED]),
			   READ_ONCE(i->count[VBG_C_FAILED]),
			   READ_ONCE(i->count[VBG_C_FOREIGN]),
			   div_u64(READ_ONCE(i->last_cost), 1000),
			   vbg_reason_names[READ_ONCE(i->last_reason)],
			   vbg_redirect_state(i), vbg_redirect_key_cpu(i),
			   vbg_redirect_transmit(i),
			   READ_ONCE(i->served[VBG_SERVE_OWN]),
			   READ_ONCE(i->served[VBG_SERVE_STEAL]),
			   READ_ONCE(i->served[VBG_SERVE_BORROW]),
			   READ_ONCE(i->served[VBG_SERVE_SWEEP]),
			   READ_ONCE(i->served_idle));
	}
	mutex_unlock(&vbg_irqs_mutex);
	vbg_irqs_show_left(m, vbg_left_show);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(irqs);

/* @missing: why not, or NULL. */
static void vbg_feature_show(struct seq_file *m, const char *name,
			     const char *missing)
{
	if (missing)
		seq_printf(m, "%s off (%s)\n", name, missing);
	else
		seq_printf(m, "%s on\n", name);
}

static int features_show(struct seq_file *m, void *unused)
{
	const char *missing;
	enum vbg_mode mode;
	char buf[20];
	int err;

	seq_puts(m, VB_DEBUGFS_HEAD);
	seq_printf(m, "version %s\nabi_version %d\n", VB_VERSION,
		   VB_ABI_VERSION);
	err = vbg_page_status();
	if (vbg_page_active())
		seq_puts(m, "page on\n");
	else if (vbg_source == VBG_SOURCE_STEAL)
		seq_puts(m, "page off (source=steal)\n");
	else
		seq_printf(m, "page off (%s: error %d)\n",
			   vbg_page_missing(err), err);
	if (vbg_steal_available())
		seq_puts(m, "steal on\n");
	else
		seq_puts(m, "steal off (host offers no steal time)\n");
	mode = vbg_mode();
	missing = NULL;
	if (mode == VBG_MODE_NONE)
		missing = vbg_not_asked(VBG_MODE_AFFINITY, buf, sizeof(buf));
	vbg_feature_show(m, "affinity", missing);
	if (vbg_load_has(VBG_F_REDIRECT, &missing) && mode != VBG_MODE_REDIRECT)
		missing = vbg_redirect_offered() ?
			  vbg_not_asked(VBG_MODE_REDIRECT, buf, sizeof(buf)) :
			  "not offered by the host";
	vbg_feature_show(m, "redirect", missing);
	if (vbg_load_has(VBG_F_SERVE, &missing) && mode != VBG_MODE_BORROW)
		missing = vbg_not_asked(VBG_MODE_BORROW, buf, sizeof(buf));
	vbg_feature_show(m, "borrow", missing);
	vbg_load_has(VBG_F_TASK, &missing);
	vbg_feature_show(m, "task", missing);
	err = vbg_crash_error(&missing);
	if (err)
		seq_printf(m, "kdump off (%s: error %d)\n", missing, err);
	else
		seq_printf(m, "kdump on (%s)\n", missing);
	if (vbg_facts_count() < 0)
		seq_printf(m, "btf_check off (no BTF: error %d)\n",
			   vbg_facts_count());
	else
		seq_printf(m, "btf_check on (%d facts)\n", vbg_facts_count());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(features);

void vbg_debugfs_init(void)
{
	vbg_dir = vb_debugfs_get("guest");
	debugfs_create_file("stats", 0444, vbg_dir, NULL, &stats_fops);
	debugfs_create_file("decisions", 0444, vbg_dir, NULL, &decisions_fops);
	debugfs_create_file("vcpus", 0444, vbg_dir, NULL, &vcpus_fops);
	debugfs_create_file("irqs", 0444, vbg_dir, NULL, &irqs_fops);
	debugfs_create_file("features", 0444, vbg_dir, NULL, &features_fops);
}

void vbg_debugfs_exit(void)
{
	debugfs_remove(vbg_dir);
}
