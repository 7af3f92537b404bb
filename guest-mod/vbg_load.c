// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupt load, absences, and the moments at which the state is looked at.
 *
 * Debian and Ubuntu build without CONFIG_IRQ_TIME_ACCOUNTING, so the time in
 * hard and soft interrupts is taken here, from the tracepoints around them.
 * Time that the host stole meanwhile (the vCPU was descheduled in the middle
 * of a handler) is no load and is taken off, by KVM's steal clock.
 *
 * Soft interrupt time (network, block) is put on the interrupt that fired
 * last on the CPU: it is the one that raised it, but for the rare case of two
 * devices in one pass.
 *
 * Device interrupts and the local timer count as hard interrupts; interrupts
 * between CPUs (rescheduling, function calls) are not measured: that would
 * take two more probes on each of the busiest vectors.
 *
 * The tracepoints are not exported: they are found by name. The canaries at
 * the end break the build when a prototype changes.
 */
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <trace/events/irq.h>
#include <trace/events/power.h>
#include <asm/trace/irq_vectors.h>

#include "../common/fault.h"
#include "../compat/task_events.h"
#include "../compat/vector_events.h"
#include "../core/redirect.h"
#include "vbg.h"
#include "vbg_trace.h"

DEFINE_PER_CPU(struct vbg_cpu, vbg_cpus);

/*
 * @clock says which clock it is: steal time's, or the one of the present
 * shared area. Times of different clocks must not be compared.
 */
#define VBG_CLOCK_STEAL	1

static u64 vbg_stolen_on(int cpu, u64 *clock)
{
	u64 ns = 0;

	*clock = VBG_CLOCK_STEAL;
	if (!vbg_steal_ns(cpu, &ns) && !vbg_page_stolen_ns(cpu, &ns, clock))
		*clock = 0;
	return ns;
}

/* Time that the host kept a CPU from running, ns. */
u64 vbg_stolen_ns(int cpu)
{
	u64 clock;

	return vbg_stolen_on(cpu, &clock);
}

/* Time between two moments without what was stolen in between. */
u64 vbg_busy_ns(u64 since, u64 now, u64 stolen_since, u64 stolen_now)
{
	u64 ns = now > since ? now - since : 0;
	u64 stolen = stolen_now > stolen_since ? stolen_now - stolen_since : 0;

	return ns > stolen ? ns - stolen : 0;
}

static void vbg_add_load(struct vb_decay *brief, struct vb_decay *lasting,
			 u64 now, u64 ns)
{
	vb_decay_add(brief, VB_DECAY_SHORT, now, ns);
	vb_decay_add(lasting, VB_DECAY_LONG, now, ns);
}

static u64 vbg_slide(u64 mean, u64 sample)
{
	return mean ? mean - mean / 8 + sample / 8 : sample;
}

/*
 * Back on the CPU after an absence? The steal clock is brought up to date by
 * the host before the guest resumes, so the first interrupt after it sees it.
 * Return: @now; after an absence, which may have been since then, the time.
 */
static u64 vbg_note_absence(struct vbg_cpu *c, int cpu, u64 now)
{
	u64 clock, stolen = vbg_stolen_on(cpu, &clock);
	u64 away = stolen - c->stolen_seen, stayed, us;

	c->stolen_seen = stolen;
	if (unlikely(!c->back_since || clock != c->stolen_clock)) {
		/* First look: whatever was stolen before is one lump. */
		c->stolen_clock = clock;
		c->back_since = vbg_clock();
		return c->back_since;
	}
	if (away < VB_ABSENCE_MIN_NS)
		return now;
	now = vbg_clock();
	if (away > NSEC_PER_SEC * 60)
		return now;
	stayed = vbg_busy_ns(c->back_since, now, 0, away);
	c->off_mean = vbg_slide(c->off_mean, away);
	c->on_mean = vbg_slide(c->on_mean, stayed);
	c->back_since = now;
	c->nr_absences++;
	us = div_u64(away, 1000);
	vb_decay_add(&c->lost_us2, VB_DECAY_LONG, now, us * us);
	trace_vb_guest_back(cpu, away, stayed);
	return now;
}

/*
 * An interrupt of a queue and the soft interrupt behind it are over.
 * Context: interrupts off.
 */
static void vbg_note_service(struct vbg_cpu *c, u64 soft_ns)
{
	c->service_ns = vbg_slide(c->service_ns, soft_ns + c->last_hard_ns);
	c->last_hard_ns = 0;
	vbg_task_served(c);
}

/* Half of them take longer than the mean: twice that. */
static u64 vbg_service_ns(const struct vbg_cpu *c)
{
	return 2 * (c->service_ns + c->task_ns);
}

/**
 * vbg_leaves_soon() - will this CPU be lost before an interrupt is served?
 * @c: this CPU
 * @now: vbg_clock()
 * Context: interrupts off.
 * Return: it will; a guess, see vb_stay_is_short().
 */
bool vbg_leaves_soon(const struct vbg_cpu *c, u64 now)
{
	/* It has just been woken: a stay begins. */
	if (READ_ONCE(c->idle))
		return false;
	return vb_stay_is_short(c->on_mean, vbg_busy_ns(c->back_since, now,
							0, 0),
				vbg_service_ns(c));
}

/**
 * vbg_load_served() - account a handler that was called by us (vbg_serve.c)
 * @c: this CPU
 * @i: interrupt, in progress here
 * @ns: how long
 * @work: it had something to do
 * Context: interrupts off.
 */
void vbg_load_served(struct vbg_cpu *c, struct vbg_irq *i, u64 ns, bool work)
{
	u64 now = vbg_clock();

	c->hard_ns += ns;
	c->served_ns += ns;
	c->last_hard_ns = ns;
	vbg_add_load(&c->load, &c->load_long, now, ns);
	i->hard_ns += ns;
	vbg_add_load(&i->load, &i->load_long, now, ns);
	if (work)
		vb_decay_add(&i->arrivals, VB_DECAY_SHORT, now, 1);
}

/* ---- tracepoints; none of them fires where preemption is possible ---- */

/*
 * What a look took is owed up to this. More was a pause of the whole VM, which
 * is not stolen, or a leap of the clock. Nor does a move keep others off longer.
 */
#define VBG_OWED_MOST	NSEC_PER_SEC

/*
 * Half of this CPU's time is for others: with many queues, or a slow kernel, a
 * look may take as long as it is to the next interrupt. What was stolen since
 * was nobody's: another vCPU's turn may be longer than a look.
 */
static void vbg_pay(struct vbg_cpu *c, u64 now)
{
	u64 had = vbg_busy_ns(c->look_end, now, c->hard_stolen, c->stolen_seen);

	c->look_owed -= min(c->look_owed, had);
}

/* Hard interrupts do not nest: one start for all kinds. */
static void vbg_hard_begin(struct vbg_cpu *c, int cpu, u64 now)
{
	u64 ns, stolen, from, end, own, pause, served = c->served_ns;
	enum vbg_looked looked;
	bool borrowed;

	vbg_page_check_self(cpu);
	now = vbg_note_absence(c, cpu, now);
	c->begin = now;
	vbg_pay(c, now);
	vbg_task_look(c, cpu, now);
	vbg_redirect_look(c, cpu, now);
	borrowed = vbg_borrow_look(c, cpu, now);
	/* Handlers take their time, and so may many queues. */
	from = borrowed || c->served_ns != served ? vbg_clock() : now;
	looked = vbg_look(c, cpu, from);
	end = vbg_clock();
	stolen = vbg_stolen_ns(cpu);
	/* Our own time, moves included, is nobody's interrupt load. */
	ns = vbg_busy_ns(now, end, c->stolen_seen, stolen);
	served = c->served_ns - served;
	own = ns > served ? ns - served : 0;
	c->look_ns += own;
	/* There is no look while one is owed for. */
	if (borrowed || looked != VBG_LOOKED_NOT)
		c->look_owed = min(own, VBG_OWED_MOST);
	/* A move is several exits, and the host may have taken long for them. */
	if (looked == VBG_LOOKED_MOVED) {
		pause = vbg_busy_ns(from, end, 0, 0);
		c->next_look = max(c->next_look,
				   end + min(pause, VBG_OWED_MOST));
	}
	c->look_end = end;
	c->hard_stolen = stolen;
	c->hard_since = end;
}

static u64 vbg_hard_end(struct vbg_cpu *c, int cpu, u64 now)
{
	u64 ns;

	vbg_critical_hard_exit(c, cpu);
	if (!c->hard_since)
		return 0;	/* we came in the middle of it */
	ns = vbg_busy_ns(c->hard_since, now, c->hard_stolen,
			 vbg_stolen_ns(cpu));
	c->hard_since = 0;
	c->hard_ns += ns;
	c->hard_count++;
	vbg_add_load(&c->load, &c->load_long, now, ns);
	return ns;
}

static void vbg_irq_entry(void *data, int irq, struct irqaction *action)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	u64 now = vbg_clock();
	struct vbg_irq *i = vbg_irq_find(irq);

	vbg_stat_inc(VBG_S_DEVICE_IRQS);
	c->now_irq = i;
	if (i) {
		vb_decay_add(&i->arrivals, VB_DECAY_SHORT, now, 1);
		i->handled++;
		if (i->handler && action->handler == i->handler &&
		    action->dev_id == i->dev_id)
			vbg_note_signal(i);
		c->last_irq = irq;
		vbg_critical_begin(c, smp_processor_id(), VB_CRITICAL_IRQ);
		vbg_redirect_overtaken(i, smp_processor_id());
	}
	vbg_hard_begin(c, smp_processor_id(), now);
}

static void vbg_irq_exit(void *data, int irq, struct irqaction *action,
			 int ret)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	u64 now = vbg_clock();
	u64 ns = vbg_hard_end(c, smp_processor_id(), now);
	struct vbg_irq *i = c->now_irq;

	c->now_irq = NULL;
	if (i) {
		i->hard_ns += ns;
		c->last_hard_ns = ns;
		vbg_add_load(&i->load, &i->load_long, now, ns);
	}
}

static void vbg_softirq_entry(void *data, unsigned int vec)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	unsigned long flags;

	/* A hard interrupt is before all of it, or within. */
	local_irq_save(flags);
	c->soft_stolen = vbg_stolen_ns(smp_processor_id());
	c->soft_hard = c->hard_ns + c->look_ns;
	c->soft_since = vbg_clock();
	local_irq_restore(flags);
}

static bool vbg_is_io_softirq(unsigned int vec)
{
	return vec == NET_RX_SOFTIRQ || vec == NET_TX_SOFTIRQ ||
	       vec == BLOCK_SOFTIRQ || vec == IRQ_POLL_SOFTIRQ;
}

static void vbg_softirq_exit(void *data, unsigned int vec)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	int cpu = smp_processor_id();
	u64 now, stolen, ns, nested;
	unsigned long flags;
	struct vbg_irq *i;

	/* Hard interrupts add to the same sums, and to what is taken off. */
	local_irq_save(flags);
	now = vbg_clock();
	stolen = vbg_stolen_ns(cpu);
	vbg_critical_soft_exit(c, cpu, vec);
	if (!c->soft_since)
		goto out;
	ns = vbg_busy_ns(c->soft_since, now, c->soft_stolen, stolen);
	nested = c->hard_ns + c->look_ns - c->soft_hard;
	ns = ns > nested ? ns - nested : 0;
	c->soft_since = 0;
	c->soft_ns += ns;
	c->soft_count++;
	vbg_add_load(&c->load, &c->load_long, now, ns);
	i = vbg_is_io_softirq(vec) && c->last_irq ?
	    vbg_irq_find(c->last_irq) : NULL;
	if (i) {
		vbg_note_service(c, ns);
		/* Can run while the hard interrupt is elsewhere already. */
		atomic64_add(ns, &i->soft_ns);
		vbg_add_load(&i->load, &i->load_long, now, ns);
	}
	vbg_page_publish_load(cpu, vbg_cpu_load_ns(cpu, now),
			      vbg_service_ns(c));
out:
	local_irq_restore(flags);
}

/*
 * The local timer. A busy vCPU that gets its CPU back takes its pending timer
 * interrupt first: this is the upcall of the paper (section 4.2.1).
 */
static void vbg_timer_entry(void *data, int vector)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);

	vbg_stat_inc(VBG_S_TICKS);
	vbg_hard_begin(c, smp_processor_id(), vbg_clock());
}

static void vbg_timer_exit(void *data, int vector)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);
	int cpu = smp_processor_id();
	u64 now = vbg_clock();

	vbg_hard_end(c, cpu, now);
	vbg_borrow_timer_exit(vbg_busy_ns(c->begin, now, c->stolen_seen,
					  vbg_stolen_ns(cpu)));
}

/* The redirection vector: what is pending is served in the look. */
static void vbg_redirect_irq_entry(void *data, int vector)
{
	struct vbg_cpu *c = this_cpu_ptr(&vbg_cpus);

	vbg_stat_inc(VBG_S_REDIRECT_IRQS);
	vbg_hard_begin(c, smp_processor_id(), vbg_clock());
}

static void vbg_redirect_irq_exit(void *data, int vector)
{
	vbg_hard_end(this_cpu_ptr(&vbg_cpus), smp_processor_id(),
		     vbg_clock());
}

/* State 0 polls (idle=poll, haltpoll): it wants its CPU like any busy loop. */
static void vbg_cpu_idle(void *data, unsigned int state, unsigned int cpu)
{
	struct vbg_cpu *c = &per_cpu(vbg_cpus, cpu);

	/* Whoever slept begins a new stay, as the host sees it. */
	if (state == PWR_EVENT_EXIT && c->idle && c->back_since)
		WRITE_ONCE(c->back_since, vbg_clock());
	WRITE_ONCE(c->idle, state != PWR_EVENT_EXIT && state);
}

static struct {
	const char *name;
	void *probe;
	enum vbg_feature feature;	/* that needs it */
	struct tracepoint *tp;
	bool registered;
} vbg_tps[] = {
	{ "irq_handler_entry", vbg_irq_entry },
	{ "irq_handler_exit", vbg_irq_exit },
	{ "softirq_entry", vbg_softirq_entry },
	{ "softirq_exit", vbg_softirq_exit },
	{ "local_timer_entry", vbg_timer_entry },
	{ "local_timer_exit", vbg_timer_exit },
	{ "cpu_idle", vbg_cpu_idle },
	{ "sched_wakeup", vbg_task_wakeup, VBG_F_TASK },
	{ "sched_switch", vbg_task_switch, VBG_F_TASK },
	{ "x86_platform_ipi_entry", vbg_redirect_irq_entry, VBG_F_REDIRECT },
	{ "x86_platform_ipi_exit", vbg_redirect_irq_exit, VBG_F_REDIRECT },
	{ "vector_config", vbg_redirect_config, VBG_F_REDIRECT },
	{ "vector_clear", vbg_redirect_clear, VBG_F_REDIRECT },
};

static void __maybe_unused vbg_canaries(void)
{
	check_trace_callback_type_irq_handler_entry(vbg_irq_entry);
	check_trace_callback_type_irq_handler_exit(vbg_irq_exit);
	check_trace_callback_type_softirq_entry(vbg_softirq_entry);
	check_trace_callback_type_softirq_exit(vbg_softirq_exit);
	check_trace_callback_type_local_timer_entry(vbg_timer_entry);
	check_trace_callback_type_local_timer_exit(vbg_timer_exit);
	check_trace_callback_type_cpu_idle(vbg_cpu_idle);
	vb_task_events_canary(vbg_task_wakeup, vbg_task_switch);
	vb_vector_events_canary(vbg_redirect_irq_entry, vbg_redirect_irq_exit,
				vbg_redirect_config, vbg_redirect_clear);
}

static void vbg_find_tp(struct tracepoint *tp, void *unused)
{
	int n;

	for (n = 0; n < ARRAY_SIZE(vbg_tps); n++)
		if (!strcmp(tp->name, vb_hooked(vbg_tps[n].name)))
			vbg_tps[n].tp = tp;
}

/* Return: 0, or a negative errno: not registered. */
static int vbg_tp_register(int n)
{
	int err = -ENOENT;

	if (vbg_tps[n].tp)
		err = tracepoint_probe_register(vbg_tps[n].tp,
						vbg_tps[n].probe, NULL);
	if (err)
		pr_warn("tracepoint %s: %s: error %d\n", vbg_tps[n].name,
			vbg_tps[n].tp ? "not registered" : "missing", err);
	vbg_tps[n].registered = !err;
	return err;
}

static void vbg_tp_unregister(int n)
{
	if (vbg_tps[n].registered)
		tracepoint_probe_unregister(vbg_tps[n].tp, vbg_tps[n].probe,
					    NULL);
	vbg_tps[n].registered = false;
}

/* What of a feature could not be registered. */
static const char *vbg_missing[VBG_NR_FEATURES];

/* All that a feature needs, or none of it. Return: 0 or a negative errno. */
static int vbg_feature_register(enum vbg_feature f)
{
	int n, err = 0;

	if (vbg_facts_differ(f))
		return 0;
	for (n = 0; !err && n < ARRAY_SIZE(vbg_tps); n++) {
		if (vbg_tps[n].feature != f)
			continue;
		err = vbg_tp_register(n);
		if (err)
			vbg_missing[f] = vbg_tps[n].name;
	}
	for (n = 0; err && n < ARRAY_SIZE(vbg_tps); n++)
		if (vbg_tps[n].feature == f)
			vbg_tp_unregister(n);
	return err;
}

/**
 * vbg_load_init() - start measuring and deciding
 * Context: process.
 * Return: 0 or a negative errno, nothing left behind.
 */
int vbg_load_init(void)
{
	int err;

	vbg_critical_init();
	for_each_kernel_tracepoint(vbg_find_tp, NULL);
	err = vbg_feature_register(VBG_F_LOAD);
	if (err)
		goto err_exit;
	/* What has failed is said in the log, and by vbg_load_has(). */
	vbg_feature_register(VBG_F_REDIRECT);
	vbg_feature_register(VBG_F_TASK);
	return 0;

err_exit:
	vbg_load_exit();
	return err;
}

/**
 * vbg_load_has() - is all there that a feature needs of the kernel?
 * @f: feature
 * @missing: what is not
 *
 * Context: any, after vbg_load_init().
 *
 * Return: there is all.
 */
bool vbg_load_has(enum vbg_feature f, const char **missing)
{
	*missing = vbg_facts_differ(f) ?: vbg_missing[f];
	/* A redirected interrupt has to be served. */
	if (!*missing && f == VBG_F_REDIRECT)
		*missing = vbg_facts_differ(VBG_F_SERVE);
	return !*missing;
}

/* Nobody is in a probe any more when this returns. Context: process. */
void vbg_load_exit(void)
{
	int n;

	for (n = ARRAY_SIZE(vbg_tps) - 1; n >= 0; n--)
		vbg_tp_unregister(n);
	tracepoint_synchronize_unregister();
	vbg_critical_exit();
}
