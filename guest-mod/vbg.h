/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vbalance_guest: objects and what its files call of each other.
 *
 *	vbg_state.c	run state of each vCPU, from one of two sources:
 *	vbg_page.c	  the area shared with vbalance_host
 *	vbg_area.c	  its memory
 *	vbg_steal.c	  KVM's steal-time record (no host module needed)
 *	vbg_irqs.c	which interrupts are ours (virtio queues), hot plug
 *	vbg_load.c	tracepoints: interrupt load, absences, when to look
 *	vbg_clock.c	the clock of all of that
 *	vbg_decide.c	looking at all interrupts, deciding, applying
 *	vbg_policy.c	Algorithm 1 and the two policies
 *	vbg_move.c	irq_set_affinity, the direct way
 *	vbg_redirect.c	keys for the host, pending bits from it
 *	vbg_account.c	  all that were set were taken
 *	vbg_stuck.c	  and none is overlooked
 *	vbg_borrow.c	serving queues of vCPUs that are away, unasked
 *	vbg_serve.c	calling a queue's handler on another vCPU
 *	vbg_critical.c	telling the host when others wait for this vCPU
 *	vbg_task.c	the process behind an interrupt
 *	vbg_facts.c	does the running kernel fit?
 *	vbg_debugfs.c	what a person sees
 *
 * Contexts: everything that the tracepoints call runs in hard interrupt
 * context or with preemption disabled; it reads tables under RCU and writes
 * only per-CPU data or what the busy bit of an interrupt protects. Setting up
 * and tearing down runs in process context under vbg_irqs_mutex or in the one
 * maintenance work item.
 */
#ifndef _VBG_H
#define _VBG_H

#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>
#include <linux/types.h>

#include <vbalance/abi.h>
#include "../core/algorithm1.h"
#include "../core/load.h"

/* ---- parameters (vbg_main.c) ---- */

enum vbg_source_kind { VBG_SOURCE_AUTO, VBG_SOURCE_PAGE, VBG_SOURCE_STEAL };
enum vbg_policy { VBG_POLICY_COST, VBG_POLICY_PAPER };
enum vbg_mapping { VBG_MAPPING_PER_IRQ, VBG_MAPPING_SINGLE };
enum vbg_remap {
	VBG_REMAP_AUTO,
	VBG_REMAP_REDIRECT,
	VBG_REMAP_BORROW,
	VBG_REMAP_AFFINITY,
	VBG_REMAP_NONE,
};

extern int vbg_source;
extern int vbg_policy;
extern int vbg_mapping;
extern int vbg_remap;
extern unsigned int vbg_threshold;	/* percent */
extern unsigned int vbg_backoff_ms;
extern unsigned int vbg_borrow_us;
extern unsigned int vbg_borrow_cpu;	/* percent */
extern bool vbg_observe;
extern bool vbg_redirect_tx;

/* What remap= comes to at present. */
enum vbg_mode {
	VBG_MODE_NONE,		/* decide only */
	VBG_MODE_AFFINITY,
	VBG_MODE_BORROW,
	VBG_MODE_REDIRECT,
};

enum vbg_mode vbg_mode(void);
const char *vbg_not_asked(enum vbg_mode mode, char *buf, size_t size);

/* ---- per CPU (vbg_load.c) ---- */

struct vbg_cpu {
	/* interrupt time; written by this CPU in interrupt context */
	u64 hard_since, hard_stolen;
	u64 soft_since, soft_stolen, soft_hard;
	u64 hard_ns, soft_ns;		/* totals */
	u64 look_ns;			/* our own, in interrupts */
	u64 look_end;			/* vbg_clock(), of the last */
	u64 look_owed;			/* no look before so much time of our own */
	u64 served_ns;			/* handlers that we called */
	u64 begin;			/* of the present interrupt */
	u64 hard_count, soft_count;
	struct vb_decay load;		/* hard + soft, ns, short window */
	struct vb_decay load_long;	/* the same, long window */
	/*
	 * Of ours, from its entry to its exit: RCU's grace periods do not end
	 * meanwhile, so what was looked up stays. The entry's probe comes first
	 * and goes last: no exit finds what another entry has left.
	 */
	struct vbg_irq *now_irq;
	unsigned int last_irq;		/* for the soft interrupts it causes */
	u32 critical;			/* VB_CRITICAL_*, with interrupts off */
	u32 io_softirqs;		/* to be run before it is over */

	/* a process woken by an interrupt of ours; with interrupts off */
	const struct task_struct *task;	/* only compared; NULL: none */
	u64 task_since, task_stolen;	/* when it was woken */
	u64 task_ns;			/* sliding mean until it sleeps */
	bool task_woken;		/* since the last service */

	/* absences from the physical CPU, as seen when we are back */
	u64 stolen_seen;		/* steal clock at the last look, ns */
	u64 stolen_clock;		/* which clock that was */
	u64 back_since;			/* vbg_clock() */
	u64 on_mean, off_mean;		/* ns, sliding means */
	u64 service_ns;			/* to serve an interrupt, the same */
	u64 last_hard_ns;		/* of a queue's handler, not yet in it */
	u64 nr_absences;
	struct vb_decay lost_us2;	/* sum of squared absences, us^2, long */

	bool idle;			/* halted, as far as the idle loop goes */
	u64 next_look;			/* vbg_clock(): not before */
	int look_from;			/* where in the table the next begins */
};

DECLARE_PER_CPU(struct vbg_cpu, vbg_cpus);

struct seq_file;
struct vbg_irq;

/* ---- the clock (vbg_clock.c) ---- */

extern u64 vbg_clock_offset;

/* ns, of this CPU as all others; only goes on. Context: any. */
static inline u64 vbg_clock(void)
{
	return local_clock() + READ_ONCE(vbg_clock_offset);
}

void vbg_clock_sleeps(void);
void vbg_clock_wakes(void);

/* ---- does the running kernel fit? (vbg_facts.c) ---- */

/* What can be missing: the rest works without. */
enum vbg_feature {
	VBG_F_LOAD,		/* this cannot */
	VBG_F_SERVE,		/* calling handlers of interrupts */
	VBG_F_REDIRECT,
	VBG_F_TASK,		/* processes that interrupts wake */
	VBG_NR_FEATURES,
};

int vbg_facts_check(void);
int vbg_facts_count(void);
const char *vbg_facts_differ(enum vbg_feature f);

int vbg_load_init(void);
void vbg_load_exit(void);
bool vbg_load_has(enum vbg_feature f, const char **missing);
bool vbg_leaves_soon(const struct vbg_cpu *c, u64 now);
void vbg_load_served(struct vbg_cpu *c, struct vbg_irq *i, u64 ns, bool work);
u64 vbg_stolen_ns(int cpu);
u64 vbg_busy_ns(u64 since, u64 now, u64 stolen_since, u64 stolen_now);

/* ---- run states (vbg_state.c) ---- */

/*
 * State of a CPU as VB_VCPU_*. Context: preemption disabled. A hint: the
 * truth may change at any time.
 */
u32 vbg_cpu_state(int cpu);
/*
 * Number of the present absence (or stay) of a CPU; changes whenever the CPU
 * has run again. Only to be compared for equality.
 */
u64 vbg_cpu_episode(int cpu);
bool vbg_have_source(void);
const char *vbg_state_source(void);
const char *vbg_state_name(u32 state);

/* Algorithm 1's "online": it has a physical CPU at this moment. */
static inline bool vbg_cpu_running(int cpu)
{
	return vbg_cpu_state(cpu) == VB_VCPU_RUNNING;
}

/* ---- source: shared area (vbg_page.c) ---- */

int vbg_page_init(void);
void vbg_page_exit(void);
int vbg_page_pm_init(void);
void vbg_page_pm_exit(void);
bool vbg_page_active(void);
bool vbg_page_state(int cpu, u32 *state, u64 *episode);
bool vbg_page_since_ns(int cpu, u64 *ns);
bool vbg_page_stolen_ns(int cpu, u64 *ns, u64 *clock);
void vbg_page_check_self(int cpu);
void vbg_page_publish_load(int cpu, u64 load_ns, u64 service_ns);
bool vbg_page_say_critical(int cpu, u32 critical);
void vbg_page_give_back(void);
void vbg_page_work(void);
int vbg_page_status(void);
const char *vbg_page_missing(int status);
int vbg_crash_error(const char **what);
int vbg_page_slot(int cpu);

/* ---- source: steal time (vbg_steal.c) ---- */

void vbg_steal_attach_cpu(void *unused);
bool vbg_steal_available(void);
bool vbg_steal_state(int cpu, u32 *state, u64 *episode);
bool vbg_steal_ns(int cpu, u64 *ns);

/* ---- interrupts (vbg_irqs.c) ---- */

enum vbg_why_fixed {
	VBG_MOVABLE,
	VBG_FIXED_MANAGED,	/* managed affinity: belongs to the block layer */
	VBG_FIXED_CHIP,		/* no affinity support, or per CPU */
};

/* Why a handler is called by us. */
enum vbg_serve_kind {
	VBG_SERVE_OWN,		/* a bit of our own, set by the host */
	VBG_SERVE_STEAL,	/* one of a vCPU that is away */
	VBG_SERVE_BORROW,	/* no bit: the ring shows it */
	VBG_SERVE_SWEEP,	/* to be sure */
	VBG_NR_SERVE_KINDS,
};

enum vbg_count {
	VBG_C_MOVES,
	VBG_C_EBUSY,		/* old vCPU has not cleaned up its vector */
	VBG_C_CONTENDED,	/* descriptor locked by somebody else */
	VBG_C_FAILED,		/* any other error */
	VBG_C_FOREIGN,		/* somebody else moved or restricted it */
	VBG_C_INJECTED,
	VBG_NR_COUNTS,
};

/*
 * Why an interrupt stays or moves: X(constant, name in debugfs and traces).
 * What they mean: Documentation/debugfs.md.
 */
#define VBG_REASONS(X)				\
	X(VBG_R_LOW, "stay_low")		\
	X(VBG_R_BALANCED, "stay_balanced")	\
	X(VBG_R_NONE_ONLINE, "stay_none_online")\
	X(VBG_R_MINIMUM, "stay_minimum")	\
	X(VBG_R_HOLDER_RUNS, "stay_holder_runs")\
	X(VBG_R_EPISODE, "stay_episode")	\
	X(VBG_R_USELESS, "stay_useless")	\
	X(VBG_R_SAVING, "stay_saving")		\
	X(VBG_R_SIMILAR, "stay_similar")	\
	X(VBG_R_BACKOFF, "stay_backoff")	\
	X(VBG_R_FIXED, "stay_fixed")		\
	X(VBG_R_CLEANUP, "stay_cleanup")	\
	X(VBG_R_SERVED, "stay_served")		\
	X(VBG_R_OFFLINE, "move_offline")	\
	X(VBG_R_IMBALANCE, "move_imbalance")	\
	X(VBG_R_RESCUE, "move_rescue")		\
	X(VBG_R_STEER, "move_steer")		\
	X(VBG_R_FOLLOW, "move_follow")

enum vbg_reason {
#define VBG_REASON_ENUM(constant, name) constant,
	VBG_REASONS(VBG_REASON_ENUM)
#undef VBG_REASON_ENUM
	VBG_NR_REASONS,
};

struct vbg_irq {
	unsigned int irq;
	const struct device *dev; /* PCI device; compared, never followed */
	const void *dev_id;	/* the same */
	char name[40];		/* as in /proc/interrupts */
	char kind[8];		/* net, blk, scsi */
	irq_handler_t handler;	/* of a queue; NULL: in a thread, not called */
	bool shared;		/* one vector for all queues of the device */
	bool transmit;		/* a network device's queue for sending */
	/* Redirection: under desc->lock, or before it is seen. */
	int key_nr;		/* 0 .. VB_MAX_KEYS - 1, -1: none */
	bool fresh;		/* not looked at yet; under vbg_irqs_mutex */
	bool leaving;		/* the table: no key any more */
	bool known;		/* the two below are right */
	bool remapped;		/* by an interrupt remapping unit */
	bool logical;		/* destination mode */
	enum vbg_why_fixed fixed;

	bool restricted;	/* admin's mask binds us; under the busy bit */
	cpumask_var_t mask;	/* affinity mask when last looked; busy bit */

	/*
	 * Read by every CPU at every look, written by the one that decides,
	 * under the busy bit.
	 */
	int cpu ____cacheline_aligned_in_smp;	/* where the policy left it */
	int where;		/* where it goes; follows every move */
	u64 next_look;		/* when the holder runs: next evaluation */
	u64 next_rescue;	/* when it does not: the same, for ... */
	u64 judged_episode;	/* ... this absence */

	unsigned long busy ____cacheline_aligned_in_smp; /* bit 0: a decision */
	/* below: under the busy bit */
	int home;		/* CPU at adoption, or where a foreign move put it */
	u64 backoff_until;	/* vbg_clock() */
	u64 next_steer;		/* long-lived decisions: not before */
	u64 next_balance;	/* moves by load under policy=cost: not before */
	u64 tried_episode;
	int tried_cpu;		/* holder in whose absence a move was tried */
	int before_cpu;		/* where the last move took it from */
	int busy_cpu;		/* its clean-up is waited for; -1: none */
	u64 busy_episode;
	u64 busy_until;		/* nor is it tried before this */
	u64 last_cost, last_saved;
	u32 injected_since;	/* since irqs_unhandled was last put right */
	u64 count[VBG_NR_COUNTS];
	u64 decisions[VBG_NR_REASONS];
	enum vbg_reason last_reason;

	/* updated where the interrupt is handled */
	u64 handled ____cacheline_aligned_in_smp;
	u64 served[VBG_NR_SERVE_KINDS];	/* by us */
	u64 served_idle;		/* of these: nothing to do */
	u32 signalled;			/* before the last of all calls */
	u64 hard_ns;
	atomic64_t soft_ns;
	struct vb_decay load;		/* short window */
	struct vb_decay load_long;
	struct vb_decay arrivals;	/* short window */
};

struct vbg_table {
	struct rcu_head rcu;
	int nr;
	struct vbg_irq *irqs[];
};

/*
 * What has been sent can be freed later: nobody waits for that as for an
 * answer, and each interrupt less is time for who sends.
 */
static inline bool vbg_is_lazy(const struct vbg_irq *i)
{
	return i->transmit && !READ_ONCE(vbg_redirect_tx);
}

extern struct vbg_table __rcu *vbg_table;
extern struct mutex vbg_irqs_mutex;

int vbg_irqs_init(void);
void vbg_irqs_exit(void);
void vbg_irqs_rescan(void);
struct vbg_irq *vbg_irq_find(unsigned int irq);
void vbg_irqs_show_left(struct seq_file *m,
			void (*show)(struct seq_file *m, unsigned int irq,
				     const char *name, const char *kind));
void vbg_irqs_sum(u64 *count, u64 *decisions);
bool vbg_irq_lock(struct vbg_irq *i);
void vbg_irq_unlock(struct vbg_irq *i);
bool vbg_irq_mask_changed(struct vbg_irq *i);

/* ---- decisions (vbg_decide.c) ---- */

enum vbg_looked {
	VBG_LOOKED_NOT,
	VBG_LOOKED,
	VBG_LOOKED_MOVED,	/* a move was tried */
};

enum vbg_looked vbg_look(struct vbg_cpu *c, int me, u64 now);
void vbg_decide_slow(void);
extern const char * const vbg_reason_names[VBG_NR_REASONS];

/* ---- measures that policies use (vbg_policy.c) ---- */

u64 vbg_cpu_wait_ns(int cpu, u64 now);
u64 vbg_cpu_load_ns(int cpu, u64 now);
u64 vbg_cpu_load_long_ns(int cpu, u64 now);

/* ---- moves (vbg_move.c) ---- */

int vbg_move(struct vbg_irq *i, int target, u64 *cost_ns);
void vbg_retrigger(struct vbg_irq *i, struct irq_desc *desc);
int vbg_irq_where(struct vbg_irq *i, bool *pending);
void vbg_move_restore(const struct vbg_table *t);
u64 vbg_move_cost(void);
void vbg_move_age_cost(void);
void vbg_move_fix_unhandled(struct vbg_irq *i);
void vbg_move_counts(u64 *nr, u64 *sum_ns, u64 *max_ns);

/* ---- redirection and borrowing ---- */

int vbg_serve(struct vbg_irq *i, enum vbg_serve_kind kind);
void vbg_note_signal(struct vbg_irq *i);

void vbg_redirect_adopt(struct vbg_irq *i);
void vbg_redirect_forget(struct vbg_irq *i);
void vbg_redirect_unkey(const struct vbg_irq *i);
bool vbg_redirect_refresh(void);
void vbg_redirect_look(struct vbg_cpu *c, int cpu, u64 now);
void vbg_redirect_overtaken(const struct vbg_irq *i, int cpu);
void vbg_redirect_config(void *data, unsigned int irq, unsigned int vector,
			 unsigned int cpu, unsigned int apicdest);
void vbg_redirect_clear(void *data, unsigned int irq, unsigned int vector,
			unsigned int cpu, unsigned int prev_vector,
			unsigned int prev_cpu);
void vbg_redirect_last_look(struct vbg_irq *i);
void vbg_redirect_sweep(void);
void vbg_redirect_init(void);
void vbg_redirect_exit(void);
void vbg_redirect_start(void);
void vbg_redirect_stop(void);
void vbg_redirect_cpu_off(int cpu);
bool vbg_redirect_offered(void);
void vbg_account_host(u64 *diverted, u64 *posted);
bool vbg_redirect_has_key(const struct vbg_irq *i);
const char *vbg_redirect_state(const struct vbg_irq *i);
int vbg_redirect_key_cpu(const struct vbg_irq *i);
bool vbg_redirect_transmit(const struct vbg_irq *i);

/* ---- hint of what must not be interrupted (vbg_critical.c) ---- */

void vbg_critical_begin(struct vbg_cpu *c, int cpu, u32 what);
void vbg_critical_end(struct vbg_cpu *c, int cpu, u32 what);
void vbg_critical_end_later(struct vbg_cpu *c, int cpu, u32 what);
void vbg_critical_init(void);
void vbg_critical_exit(void);
void vbg_critical_hard_exit(struct vbg_cpu *c, int cpu);
void vbg_critical_soft_exit(struct vbg_cpu *c, int cpu, unsigned int vec);

/* ---- processes that interrupts wake (vbg_task.c) ---- */

void vbg_task_wakeup(void *data, struct task_struct *p);
void vbg_task_switch(void *data, bool preempt, struct task_struct *prev,
		     struct task_struct *next, unsigned int prev_state);
void vbg_task_look(struct vbg_cpu *c, int cpu, u64 now);
void vbg_task_served(struct vbg_cpu *c);

void vbg_borrow_init(void);
void vbg_borrow_exit(void);
bool vbg_borrow_look(struct vbg_cpu *c, int me, u64 now);
void vbg_borrow_timer_exit(u64 ns);
void vbg_borrow_cpu_on(int cpu);
void vbg_borrow_cpu_off(int cpu);

/* ---- maintenance (vbg_main.c) ---- */

void vbg_maintain_soon(void);
void vbg_maintain_start(void);
void vbg_maintain_stop(void);

/* ---- statistics ---- */

enum vbg_stat {
	VBG_S_LOOKS,
	VBG_S_TICKS,
	VBG_S_DEVICE_IRQS,
	VBG_S_DECISIONS,
	VBG_S_OBSERVED,		/* would have moved, VBG_MODE_NONE */
	VBG_S_NO_SOURCE,	/* nothing known: nothing decided */
	VBG_S_REGISTRATIONS,
	VBG_S_REGISTER_FAILED,
	VBG_S_FALLBACK_SELF,	/* own bit clear while running */
	VBG_S_FALLBACK_GONE,	/* host said it has let go */
	VBG_S_FALLBACK_STATUS,	/* keep-alive hypercall failed */
	VBG_S_RESCANS,
	VBG_S_REDIRECT_IRQS,	/* redirection vector taken */
	VBG_S_SERVED,		/* pending bits: by whom they were set for */
	VBG_S_STOLEN,		/* by another vCPU */
	VBG_S_OVERTAKEN,	/* the interrupt itself came first */
	VBG_S_MERGED,		/* put back where it was set already */
	VBG_S_DROPPED,		/* belongs to no interrupt any more */
	VBG_S_LEFT,		/* when an area ended: swept */
	VBG_S_SETTLED,		/* areas that have ended and been judged */
	VBG_S_MISSING,		/* bits that nobody had taken then: never */
	VBG_S_PUT_BACK,		/* in progress elsewhere: for later */
	VBG_S_LATE,		/* taken from a running vCPU after 10 ms */
	VBG_S_STUCK,		/* overlooked for 100 ms: never */
	VBG_S_SWEEPS,
	VBG_S_SWEEPS_LATE,
	VBG_S_KEPT,		/* pages that the host has not let go of */
	VBG_S_BOOSTS_ENDED,	/* by telling the host */
	VBG_S_BORROWED,
	VBG_S_TIMER_ARMED,
	VBG_S_TIMER_FIRED,
	VBG_S_TIMER_NS,		/* in the interrupts of that timer */
	VBG_S_TIMER_BORROWED,	/* of VBG_S_BORROWED: in these interrupts */
	VBG_S_TIMER_LIMITED,	/* armed for later: its share is used up */
	VBG_NR_STATS,
};

struct vbg_stats {
	u64 v[VBG_NR_STATS];
};

DECLARE_PER_CPU(struct vbg_stats, vbg_stats);

#define vbg_stat_inc(s)	this_cpu_inc(vbg_stats.v[s])

void vbg_debugfs_init(void);
void vbg_debugfs_exit(void);

#endif /* _VBG_H */
