/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vbalance_host: objects and what its files call of each other.
 *
 * Objects: one vbh_vm for each VM with at least one vCPU that was seen, one
 * vbh_vcpu for each of these vCPUs, one vbh_reg while a guest has a shared
 * area registered. KVM's own objects are keys for us: they are followed only
 * inside hooks, where KVM guarantees that they live (the hooked functions got
 * them as arguments), never from our work item.
 *
 * Lifetime: vbh_vcpu and vbh_vm are found under RCU through the hash tables
 * in vbh_vm.c. The hooks run with preemption disabled, which is a read side
 * for synchronize_rcu(). Removal: unlinked under vbh_lock in the destroy
 * hooks (which must not sleep), freed by the work item, a VM together with
 * its vCPUs, after a grace period and the last of its boosts.
 */
#ifndef _VBH_H
#define _VBH_H

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <uapi/linux/sched/types.h>

#include <vbalance/abi.h>
#include "../compat/task_clamps.h"
#include "../core/area.h"
#include "../core/boost.h"
#include "../core/redirect.h"
#include "../core/serve.h"

/* ---- registration of one shared area (vbh_area.c) ---- */

struct vbh_reg {
	struct vb_header *hdr;		/* host mapping of the area */
	struct vb_vcpu_host *table;
	struct vb_vcpu_guest *guest;
	struct vb_redirect *redirect;
	struct vb_pending *pending;
	struct vb_area_layout layout;
	struct page **pages;
	struct mm_struct *mm;		/* pinned_vm is charged here */
	pid_t pid;			/* of the VMM, for traces */
};

/* A request between the hypercall and the work item. */
struct vbh_request {
	struct vb_area_layout layout;
	struct mm_struct *mm;		/* mmgrab()ed */
	pid_t pid;			/* of the VMM, for traces */
	union {
		struct vb_header hdr;	/* private copy, then overwritten by */
		unsigned long hva[VB_MAX_AREA_PAGES];
	};
	/* Behind the addresses at that time; only compared, not held. */
	const struct page *page[VB_MAX_AREA_PAGES];
};

/* ---- objects (vbh_vm.c) ---- */

enum vbh_vm_count {
	VBH_VM_REGISTERED,
	VBH_VM_UNREGISTERED,
	VBH_VM_RESET,
	VBH_VM_STALE_COOKIE,
	VBH_VM_SLOT_BEYOND_AREA,
	VBH_VM_DIVERTED,	/* bits set for a running vCPU */
	VBH_VM_COALESCED,	/* the bit was set already */
	VBH_VM_POSTED,		/* bits set while none ran */
	VBH_VM_RETRACTED,	/* delivered as it was after all */
	VBH_VM_NR_COUNTS,
};

/* ---- a thread that is real-time for a while (vbh_lift.c) ---- */

struct vbh_lift {
	struct list_head list;
	struct task_struct *task;
	/* What it was. */
	unsigned int policy;
	bool reset_on_fork;
	u64 slice, slack, slack_lifted;	/* ns */
	unsigned int rt_timeout;	/* ticks */
	struct vb_task_clamps clamps;
	/* What others asked for meanwhile. */
	unsigned int calls;		/* not returned yet */
	bool has_attr, has_nice;
	bool had_attr;			/* and it was done: in attr */
	bool refused;			/* what the scheduler has done all the same */
	int missed;			/* calls that were not noted, so far */
	struct sched_attr attr;
	long nice;
	/* At the end. */
	u64 repaid;			/* ns */
	bool changed;			/* by somebody else: its policy */
	bool left_normal;
};

bool vbh_lift_is_limited(const struct task_struct *p);
bool vbh_lift_may(struct task_struct *p);
int vbh_lift(struct vbh_lift *l, struct task_struct *p);
void vbh_unlift(struct vbh_lift *l, u64 repay);
bool vbh_lift_settle(struct vbh_lift *l);
void vbh_lift_init(const struct task_struct *lifter);
void vbh_lift_check(void);
int vbh_lift_error(const char **why);
void vbh_lift_exit(void);

/* ---- boosts (vbh_boost.c) ---- */

/* X(constant, name in debugfs); what they mean: Documentation/debugfs.md. */
#define VBH_BOOST_COUNTS(X)				\
	X(VBH_B_NONE, "none")				\
	X(VBH_B_HINT, "hint")				\
	X(VBH_B_TASK, "task")				\
	X(VBH_B_HOLDER, "holder")			\
	X(VBH_B_FAST_PATH, "fast_path")			\
	X(VBH_B_WAITING, "waiting")			\
	X(VBH_B_EXTENDED, "extended")			\
	X(VBH_B_END_DONE, "ended_done")			\
	X(VBH_B_END_OFF, "ended_off_cpu")		\
	X(VBH_B_END_BOUND, "ended_bound")		\
	X(VBH_B_END_GONE, "ended_gone")			\
	X(VBH_B_END_MOVED, "ended_moved")		\
	X(VBH_B_NO_VM_TOKENS, "no_vm_tokens")		\
	X(VBH_B_NO_VCPU_TOKENS, "no_vcpu_tokens")	\
	X(VBH_B_NO_CPU_TOKENS, "no_cpu_tokens")		\
	X(VBH_B_CPU_TURN, "cpu_turn")			\
	X(VBH_B_IN_ROW, "in_row")			\
	X(VBH_B_PAUSE, "pause")				\
	X(VBH_B_POLICY, "other_policy")			\
	X(VBH_B_UNWATCHED, "unwatched")			\
	X(VBH_B_NOT_NEEDED, "not_needed")		\
	X(VBH_B_TRANSMIT, "transmit")			\
	X(VBH_B_USER_CHANGED, "user_changed")		\
	X(VBH_B_LEFT_NORMAL, "left_normal")		\
	X(VBH_B_LATE, "late_ends")			\
	X(VBH_B_TIME_NS, "boosted_ns")			\
	X(VBH_B_LONGEST_NS, "longest_ns")		\
	X(VBH_B_REPAID_NS, "repaid_ns")			\
	X(VBH_B_NO_HOLDER, "no_holder")		\
	X(VBH_B_KICKS, "kicks")

enum vbh_boost_count {
#define VBH_BOOST_ENUM(constant, name) constant,
	VBH_BOOST_COUNTS(VBH_BOOST_ENUM)
#undef VBH_BOOST_ENUM
	VBH_B_NR_COUNTS,
};

/* For an interrupt that waits: the vCPU has not begun to serve it. */
static inline bool vbh_is_for_irq(enum vbh_boost_count why)
{
	return why == VBH_B_FAST_PATH || why == VBH_B_WAITING;
}

enum vbh_boost_state {
	VBH_BOOST_IDLE,
	VBH_BOOST_WANTED,	/* the worker has not seen it yet */
	VBH_BOOST_ON,
};

struct vbh_boost {
	int state;			/* enum vbh_boost_state */
	int over;			/* why it shall end; 0: not yet */
	/* Of whoever made it WANTED, then of the worker. */
	enum vbh_boost_count why;
	struct llist_node node;
	struct task_struct *task;	/* counted */
	bool was_halted;		/* as it was wanted */
	u32 word;			/* the vCPU's, as it was wanted */
	struct list_head active;
	u64 deadline;			/* ns, monotonic; ended: next look */
	int cpu;			/* whose time was asked for */
	int ended;			/* why, put back; 0: not yet */
	u64 paid, paid_until;		/* CPU time, ns */
	u64 debt, debt_since;		/* of the last boost; ns, monotonic */
	u64 not_before;			/* ns, monotonic */
	struct vbh_lift lift;
	/* Under the VM's bucket_lock. */
	struct vb_bucket bucket;
	u32 in_row;
};

struct vbh_vm {
	struct hlist_node node;		/* hash by kvm */
	struct list_head list;		/* vbh_vms */
	struct list_head vcpus;		/* RCU list of vbh_vcpu */
	struct list_head gone;		/* vCPUs that were destroyed */
	const struct kvm *kvm;		/* key */
	const struct mm_struct *mm;	/* of the VMM; only compared */
	pid_t pid;
	int nr_vcpus;
	bool dying;			/* kvm_arch_destroy_vm() was entered */
	bool unlinked;			/* off the hash, work item frees it */
	bool named;			/* name is final */
	char name[24];			/* pid-fd, as in KVM's debugfs */

	struct vbh_reg __rcu *reg;	/* the active area */
	u16 key_hints[VB_KEY_HINTS];	/* vb_key_find() */
	struct vbh_reg *old_reg;	/* to be released by the work item */
	bool tell;			/* the guest then; see vbh_vm_detach() */
	struct vbh_request *request;	/* to be set up by the work item */
	u64 cookie;			/* of request or registration */
	int status;			/* answer of VB_OP_STATUS */

	struct dentry *dir;
	atomic64_t count[VBH_VM_NR_COUNTS];

	struct vbh_vcpu *waits;		/* an interrupt, for it; or NULL */

	raw_spinlock_t bucket_lock;	/* innermost */
	struct vb_bucket bucket;
	atomic_t nr_boosts;		/* of its vCPUs, not ended yet */
	atomic64_t boosts[VBH_B_NR_COUNTS];
};

struct vbh_vcpu {
	struct hlist_node node;		/* hash by vcpu */
	struct list_head list;		/* vm->vcpus */
	struct list_head gone;		/* vm->gone, freed with the VM */
	struct kvm_vcpu *vcpu;		/* key; followed in hooks only */
	struct vbh_vm *vm;
	u32 slot;
	u32 apic_id;
	u32 word;			/* sequence << 8 | state */
	u64 changed_tsc;		/* host TSC */
	u64 count[VB_NR_VCPU_STATES];	/* entries into each state */
	u64 cycles[VB_NR_VCPU_STATES];	/* finished stays, host TSC cycles */
	u64 tsc_ratio, tsc_offset;	/* host to guest, at the last change */
	u64 stay_since;			/* host TSC: on a CPU since then */
	unsigned long switches;		/* of its thread, as it was loaded */
	bool within;			/* lost its CPU inside an ioctl */
	u64 stay_mean;			/* of stays that ended by preemption */
	/* Its thread; valid while it is preempted or halted. */
	struct task_struct *task;
	u64 irq_tsc;			/* device interrupt for it, host TSC */
	bool unposted;			/* one that only it can serve waits */
	/* The thread's own: whom a hypercall under way wakes up. */
	struct vbh_vcpu *wakes_up;
	int rings;			/* enum vb_rings, when last looked at */
	u32 irq_rings;			/* it was for these; 0: not known */
	u32 irq_sent;			/* what its VM had sent before */
	u32 wakes;			/* interrupts while it was halted */
	u32 quick;			/* vb_wake_ask() */
	u32 irq_seen;			/* rings of earlier ones */
	u64 answered;			/* the irq_tsc whose answer is sent */
	/* The thread's own: it told a device what it had sent until then. */
	u64 kicked, kicked_for;		/* TSC; the irq_tsc */
	u32 kicked_sent;
	struct vb_serve serve;
	struct hrtimer rings_timer;
	struct vbh_boost boost;
} ____cacheline_aligned_in_smp;

/* vbh_vcpu.word: VB_VCPU_* below, above it the number of changes. */
#define VBH_STATE_MASK	0xffU
#define VBH_SEQ_ONE	0x100U

extern raw_spinlock_t vbh_lock;
extern struct list_head vbh_vms;

struct vbh_vcpu *vbh_vcpu_find(const struct kvm_vcpu *vcpu);
struct vbh_vcpu *vbh_vcpu_discover(struct kvm_vcpu *vcpu);
struct vbh_vm *vbh_vm_find(const struct kvm *kvm);
void vbh_vcpu_destroyed(const struct kvm_vcpu *vcpu);
void vbh_vm_destroyed(const struct kvm *kvm);
void vbh_vm_drop_all(void);
void vbh_kick(void);
int vbh_vm_init(void);
void vbh_vm_exit(void);

/* ---- hooks on KVM (vbh_hooks.c) ---- */

enum vbh_feature {
	VBH_F_RUN_STATE,
	VBH_F_REGISTRATION,
	VBH_F_REDIRECT,
	VBH_F_BOOST,
	VBH_F_REPAY,
	VBH_F_RINGS,
	VBH_F_KICKS,
	VBH_F_LOCKS,
	VBH_F_CHECK,
	VBH_NR_FEATURES,
};

/* Deliveries that may sleep: of VBH_F_REDIRECT, with facts of its own. */
#define VBH_F_SLEEPING	VBH_NR_FEATURES

struct vbh_feature_state {
	const char *name;
	const char *what;
	int err;		/* 0: on; else why not (negative errno) */
	const char *detail;	/* mechanism, or what is missing */
};

extern struct vbh_feature_state vbh_features[VBH_NR_FEATURES];

/* Is it on? Context: any. */
static inline bool vbh_can(enum vbh_feature f)
{
	return !READ_ONCE(vbh_features[f].err);
}

extern bool vbh_kvm_present;

void vbh_feature_set(enum vbh_feature f, int err, const char *detail);
int vbh_probe_error(const char *symbol);
int vbh_probe_address(const char *symbol, unsigned long *at);
int vbh_hooks_init(void);
void vbh_hooks_exit(void);

/* What is hooked by ftrace or kprobes. */
enum vbh_hooked {
	/* Lifetime first: an object must never be made that cannot go. */
	VBH_H_VCPU_DESTROY,
	VBH_H_VM_DESTROY,
	VBH_H_PUT,
	VBH_H_LOAD,
	VBH_NR_NEEDED,
	VBH_H_DELIVER = VBH_NR_NEEDED,
	/*
	 * What may sleep (KVM_SIGNAL_MSI, irqfds at times): since 7.x it does
	 * not pass the other one, and has this name.
	 */
	VBH_H_DELIVER_SLOW,
	VBH_NR_H,
};

/* ---- hooks by ftrace (vbh_ftrace.c) ---- */

#ifdef CONFIG_DYNAMIC_FTRACE
int vbh_ftrace_add(enum vbh_hooked h, const char *symbol);
void vbh_ftrace_del(enum vbh_hooked h);
#else
static inline int vbh_ftrace_add(enum vbh_hooked h, const char *symbol)
{
	return -EOPNOTSUPP;
}

static inline void vbh_ftrace_del(enum vbh_hooked h)
{
}
#endif

/* ---- calls whose return is of interest (vbh_kretprobe.c) ---- */

struct vbh_kretprobe {
	const char *symbol;
	const char *how;		/* debugfs: of the feature that it is */
	kretprobe_handler_t entry;	/* nonzero: this call is not */
	kretprobe_handler_t handler;	/* at the return; 0 */
	size_t data_size;		/* for each call */
	struct kretprobe probe;
	bool on;
};

int vbh_kretprobe_add(struct vbh_kretprobe *p);
void vbh_kretprobe_del(struct vbh_kretprobe *p);
void vbh_probes_init(void);
void vbh_probes_exit(void);
int vbh_probes_error(const char **what);

/* ---- does the running kernel fit? (vbh_facts.c) ---- */

int vbh_facts_check_kernel(void);
void vbh_facts_check_kvm(void);
void vbh_facts_check_vhost(void);
int vbh_facts_error(void);
int vbh_facts_kernel_error(void);
const char *vbh_facts_differ(enum vbh_feature f);

/* ---- run states (vbh_state.c) ---- */

void vbh_on_load(struct kvm_vcpu *vcpu);
void vbh_on_put(struct kvm_vcpu *vcpu);
void vbh_publish_all(struct vbh_vm *vm, struct vbh_reg *reg);
void vbh_infer_state(struct vbh_vcpu *v, const struct kvm_vcpu *vcpu,
		     bool is_caller);
void vbh_note_tsc(struct vbh_vcpu *v, const struct kvm_vcpu *vcpu);

/* ---- delivery of interrupts (vbh_redirect.c) ---- */

void vbh_on_deliver(struct kvm *kvm, const void *src,
		    struct kvm_lapic_irq *irq);

/*
 * ---- boosts: whom (vbh_holder.c), how long (vbh_rings.c), and how
 * (vbh_boost.c) ----
 */

enum vbh_boost_count vbh_is_critical(const struct vbh_vcpu *v);
bool vbh_says_itself(const struct vbh_vcpu *v);
bool vbh_cpu_has_vcpu(int cpu);
void vbh_holder_leave(struct vbh_vcpu *v, u32 state);
void vbh_holder_put(struct vbh_vcpu *v);
void vbh_holder_last(struct vbh_vcpu *v);
struct vbh_vcpu *vbh_holder_asleep(struct kvm *kvm, u32 apic_id);
bool vbh_holder_woken(struct vbh_vcpu *v);
bool vbh_will_be_served(const struct vbh_vcpu *v);
void vbh_holder_load(struct vbh_vcpu *v, u64 gone);

/* What a guest says of an interrupt (vb_redirect.transmit). */
enum vbh_said {
	VBH_SAID_NOTHING,
	VBH_SAID_TRANSMIT,
	VBH_SAID_OTHER,
};

void vbh_holder_irq(struct kvm *kvm, const struct vbh_vm *vm,
		    const struct kvm_lapic_irq *irq, enum vbh_said said,
		    bool posted);

void vbh_rings_vcpu_init(struct vbh_vcpu *v);
void vbh_rings_vcpu_exit(struct vbh_vcpu *v);
bool vbh_rings_allow(const struct vbh_vcpu *v);
bool vbh_rings_irq(struct vbh_vcpu *v, bool fresh);
void vbh_rings_put(struct vbh_vcpu *v);
void vbh_rings_load(struct vbh_vcpu *v);
void vbh_rings_kicked(struct vbh_vcpu *v);
bool vbh_is_boosted_holder(const struct vbh_vcpu *v);
unsigned int vbh_rings_known(const struct vbh_vm *vm);
void vbh_rings_vm_gone(const struct mm_struct *mm);
bool vbh_rings_there(void);
int vbh_rings_add(const char **missing);
void vbh_rings_del(void);

/* ---- what vCPUs tell devices (vbh_kicks.c) ---- */

extern struct vbh_kretprobe vbh_kick_probe;

/* ---- holders that slept for a lock (vbh_locks.c) ---- */

#define VBH_HYPERCALL	"kvm_emulate_hypercall"

extern struct vbh_kretprobe vbh_waker_probe;

void vbh_boost_want(struct vbh_vcpu *v, struct task_struct *task,
		    enum vbh_boost_count why, bool halted);
bool vbh_boost_goes_on(const struct vbh_vcpu *v);
void vbh_boost_end(struct vbh_vcpu *v, enum vbh_boost_count why);
void vbh_boost_wait(struct vbh_vm *vm);
int vbh_boost_init(void);
void vbh_boost_exit(void);

/* ---- registration ---- */

long vbh_hypercall(struct kvm_vcpu *vcpu, u64 op, u64 a1, u64 a2, u64 a3);
void vbh_count_refusal(long err);
void vbh_vm_reset(const struct kvm *kvm);
void vbh_vm_detach(struct vbh_vm *vm, bool tell);
struct vbh_reg *vbh_area_map(const struct vbh_request *req, const u64 *wanted,
			     int *err);
void vbh_area_tell(struct vbh_reg *reg);
void vbh_area_release(struct vbh_reg *reg);
void vbh_request_free(struct vbh_request *req);

/* ---- statistics, summed over CPUs when read (vbh_debugfs.c) ---- */

enum vbh_stat {
	VBH_S_LOADS,
	VBH_S_PUTS,
	VBH_S_PUBLISHED,
	VBH_S_UNKNOWN_VCPU,
	VBH_S_DISCOVERED,
	VBH_S_NO_MEMORY,
	VBH_S_HYPERCALLS,
	VBH_S_REFUSED_EPERM,
	VBH_S_REFUSED_EINVAL,
	VBH_S_REFUSED_EFAULT,
	VBH_S_REFUSED_EROFS,
	VBH_S_REFUSED_EBUSY,
	VBH_S_REFUSED_EPROTO,
	VBH_S_REFUSED_ENOENT,
	VBH_S_REFUSED_ENOMEM,
	VBH_S_REFUSED_EAGAIN,
	VBH_S_REFUSED_EOPNOTSUPP,
	VBH_S_PAGES_PINNED,
	VBH_S_PAGES_UNPINNED,
	VBH_S_MSI_MATCHED,
	VBH_S_RINGS_LEARNT,
	VBH_S_RINGS_FORGOTTEN,
	VBH_NR_STATS,
};

struct vbh_stats {
	u64 v[VBH_NR_STATS];
};

DECLARE_PER_CPU(struct vbh_stats, vbh_stats);

#define vbh_stat_inc(s)		this_cpu_inc(vbh_stats.v[s])
#define vbh_stat_add(s, n)	this_cpu_add(vbh_stats.v[s], n)

extern const char * const vbh_state_names[VB_NR_VCPU_STATES];
extern const char * const vbh_vm_count_names[VBH_VM_NR_COUNTS];
extern const char * const vbh_boost_count_names[VBH_B_NR_COUNTS];

void vbh_debugfs_init(void);
void vbh_debugfs_exit(void);
void vbh_debugfs_add_vm(struct vbh_vm *vm);
void vbh_debugfs_del_vm(struct vbh_vm *vm);

extern bool vbh_observe;

#endif /* _VBH_H */
