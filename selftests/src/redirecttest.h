/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where an MSI ends, with the vCPUs of a VM in every run state.
 *
 * The vCPUs never take an interrupt (IF=0): what was delivered stands in the
 * IRRs of their APICs, which are read when all have been stopped. vCPUs' threads
 * share one CPU; a real-time one stays there and the others stay behind it, for
 * nearly a second. That nobody changed its state while an MSI was sent is read
 * from the host's own table; if somebody did, the whole is done again.
 */
#ifndef _VB_REDIRECTTEST_H
#define _VB_REDIRECTTEST_H

#include <sys/eventfd.h>

#include "vmthread.h"
#include "hosttest.h"
#include "../core/redirect.h"

#define COOKIE	0x1122334455667788ULL
#define NR	4
#define SLOTS	3		/* of the area: the last vCPU has none */
#define BEYOND	3
#define N	70		/* the key that is used; its bit is in word 1 */
#define VECTOR	0x41
#define GSI	30
#define PORT	0xf5		/* ioeventfd and irqfd at once */
#define PIN	9		/* of the IOAPIC, and its GSI */
#define TRIES	100
#define AREA_END	(VM_AREA + VB_AREA_PAGES(SLOTS) * VB_PAGE_SIZE)

static struct minivm m;
static struct vm_thread thread[NR];
static int active[NR];		/* its thread is not in user space */
static struct vb_header *h;
static struct vb_vcpu_guest *guest;
static struct vb_redirect *r;
static struct vb_pending *pending;
static unsigned int first_id;	/* APIC id of vCPU 0; above 0: x2APIC mode */
static int here, there;		/* CPUs: ours, the vCPUs' */
static int event;		/* eventfd of the irqfd */

/* ---- what the host says about the vCPUs ---- */

struct view {
	int state[NR];
	long changes[NR];
};

static inline int state_number(const char *name)
{
	static const char * const names[VB_NR_VCPU_STATES] = {
		"off", "running", "preempted", "halted", "vmm",
	};
	int i;

	for (i = 0; i < VB_NR_VCPU_STATES && strcmp(name, names[i]); i++)
		;
	return i;
}

/*
 * @percent, if there: how long each has been on its CPU, of its mean stay there;
 * -1: it is not, or nothing is known.
 */
static inline struct view look_closely(long *percent)
{
	char path[128], line[512], name[16];
	long n[4], on, mean;
	struct view v;
	FILE *f;
	int s;

	memset(&v, 0xff, sizeof(v));
	for (s = 0; percent && s < NR; s++)
		percent[s] = -1;
	snprintf(path, sizeof(path), HOST "/%d-%d/vcpus", getpid(), m.vm);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %*u %15s %*u %ld %*u %ld %*u %ld %*u %ld %*u %ld %ld",
			   &s, name, &n[0], &n[1], &n[2], &n[3], &on,
			   &mean) != 8 ||
		    s < 0 || s >= NR)
			continue;
		v.state[s] = state_number(name);
		v.changes[s] = n[0] + n[1] + n[2] + n[3];
		if (percent && mean && v.state[s] == VB_VCPU_RUNNING)
			percent[s] = on * 100 / mean;
	}
	if (f)
		fclose(f);
	return v;
}

static inline struct view look(void)
{
	return look_closely(NULL);
}

static inline int states_are(const int *state)
{
	struct view v = look();

	return !memcmp(v.state, state, sizeof(v.state));
}

static inline int state_is(int i, int state)
{
	return look().state[i] == state;
}

/* ---- the vCPUs' APICs ---- */

#define APIC_WORD(l, offset)	(*(__u32 *)&(l)->regs[offset])

static inline void apic_reset(int i)
{
	struct kvm_lapic_state l;
	int n;

	vm_must(ioctl(m.vcpu[i], KVM_GET_LAPIC, &l), "KVM_GET_LAPIC");
	APIC_WORD(&l, 0xd0) = 1U << (24 + i);	/* LDR; not of an x2APIC */
	APIC_WORD(&l, 0xe0) = ~0U;		/* DFR: flat */
	APIC_WORD(&l, 0xf0) = 0x1ff;		/* SVR: enabled */
	for (n = 0; n < 8; n++) {
		APIC_WORD(&l, 0x100 + n * 16) = 0;	/* ISR */
		APIC_WORD(&l, 0x180 + n * 16) = 0;	/* TMR */
		APIC_WORD(&l, 0x200 + n * 16) = 0;	/* IRR */
	}
	vm_must(ioctl(m.vcpu[i], KVM_SET_LAPIC, &l), "KVM_SET_LAPIC");
}

struct irr {
	__u32 word[8];
};

static inline struct irr irr_of(int i)
{
	struct kvm_lapic_state l;
	struct irr irr;
	int n;

	vm_must(ioctl(m.vcpu[i], KVM_GET_LAPIC, &l), "KVM_GET_LAPIC");
	for (n = 0; n < 8; n++)
		irr.word[n] = APIC_WORD(&l, 0x200 + n * 16);
	return irr;
}

static inline int irr_has(const struct irr *irr, int vector)
{
	return irr->word[vector / 32] >> (vector % 32) & 1;
}

static inline int irr_count(const struct irr *irr)
{
	int n, sum = 0;

	for (n = 0; n < 8; n++)
		sum += __builtin_popcount(irr->word[n]);
	return sum;
}

/* ---- vCPUs into their states and out again ---- */

static int hog_stop;
static pthread_t hog_thread;
static int hogs;

#define LOW		40	/* real-time priorities */
#define MIDDLE		50
#define HIGH		60

/* @priority 0: not real-time. */
static inline void real_time(pthread_t t, int priority)
{
	struct sched_param p = { .sched_priority = priority };

	errno = pthread_setschedparam(t, priority ? SCHED_FIFO : SCHED_OTHER,
				      &p);
	if (errno)
		vm_must(-1, "pthread_setschedparam");
}

static inline void *hog(void *unused)
{
	(void)unused;
	vm_pin(there);
	real_time(pthread_self(), MIDDLE);
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

static inline void hog_end(void)
{
	if (!hogs)
		return;
	__atomic_store_n(&hog_stop, 1, __ATOMIC_RELAXED);
	pthread_join(hog_thread, NULL);
	hogs = 0;
}

static inline void hog_start(void *(*fn)(void *))
{
	hog_stop = 0;
	vm_pthread(&hog_thread, fn, NULL);
	hogs = 1;
}

static inline void resume(int i)
{
	vm_loop_regs(&m, i, VM_AREA);
	vm_box(&m, i)->command = 0;
	active[i] = 1;
	vm_resume(&thread[i]);
}

/* All in user space. */
static inline void park(void)
{
	int i;

	hog_end();
	for (i = 0; i < NR; i++)
		if (active[i])
			vm_stop(&thread[i]);
	for (i = 0; i < NR; i++) {
		if (active[i] && !AWAIT(thread[i].waits)) {
			printf("# vCPU %d does not stop (error %d)\n", i,
			       thread[i].error);
			exit(1);
		}
		active[i] = 0;
		real_time(thread[i].thread, 0);
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
	}
}

static inline void threads_start(void)
{
	int i;

	for (i = 0; i < NR; i++) {
		vm_start(&thread[i], &m, i, there, VM_AREA);
		active[i] = 1;
	}
	/* From then on they can be stopped. */
	for (i = 0; i < NR; i++)
		AWAIT(vm_box(&m, i)->beats);
	park();
}

static inline int threads_join(void)
{
	int i, bad = 0;

	for (i = 0; i < NR; i++)
		bad |= vm_join(&thread[i]);
	return bad;
}

#define RUNNING		VB_VCPU_RUNNING
#define PREEMPTED	VB_VCPU_PREEMPTED
#define HALTED		VB_VCPU_HALTED
#define VMM		VB_VCPU_VMM
#define OFF		VB_VCPU_OFF

/* From park() to these states; at most one runs. */
static inline int arrange(const int *state)
{
	int i, behind = 0, runs = -1;

	for (i = 0; i < NR; i++) {
		if (state[i] == RUNNING) {
			runs = i;
			continue;
		}
		if (state[i] == VMM)
			continue;
		if (state[i] == OFF)
			vm_mp_state(&m, i, KVM_MP_STATE_UNINITIALIZED);
		resume(i);
		if (state[i] == HALTED)
			vm_command(&thread[i], VM_CMD_HALT);
		if (state[i] != PREEMPTED) {
			if (!AWAIT(state_is(i, state[i])))
				return 0;
			continue;
		}
		behind = 1;
		if (!AWAIT(state_is(i, RUNNING)))
			return 0;
	}
	if (runs >= 0) {
		real_time(thread[runs].thread, MIDDLE);
		resume(runs);
	} else if (behind) {
		hog_start(hog);
	}
	return AWAIT(states_are(state));
}

/* ---- sending ---- */

struct msi {
	__u32 lo, hi, data;
};

/* The high part means something with KVM_CAP_X2APIC_API only. */
static inline struct msi msi(unsigned int dest, int logical, int vector)
{
	return (struct msi){ 0xfee00000U | (dest & 0xff) << 12 | logical << 2,
			     dest & ~0xffU, vector };
}

static inline struct msi msi_to(int vcpu)
{
	return msi(first_id + vcpu, 0, VECTOR);
}

static inline int send_signal(struct msi i)
{
	struct kvm_msi k = { .address_lo = i.lo, .address_hi = i.hi,
			     .data = i.data };

	return ioctl(m.vm, KVM_SIGNAL_MSI, &k);
}

/* Sleeps for long: before the vCPUs are in their states. */
static inline void route(struct msi i)
{
	struct {
		struct kvm_irq_routing head;
		struct kvm_irq_routing_entry entry[2];
	} t = {
		.head.nr = 2,
		.entry = { {
			.gsi = GSI, .type = KVM_IRQ_ROUTING_MSI,
			.u.msi = { .address_lo = i.lo, .address_hi = i.hi,
				   .data = i.data },
		}, {
			.gsi = PIN, .type = KVM_IRQ_ROUTING_IRQCHIP,
			.u.irqchip = { KVM_IRQCHIP_IOAPIC, PIN },
		} },
	};

	vm_must(ioctl(m.vm, KVM_SET_GSI_ROUTING, &t), "KVM_SET_GSI_ROUTING");
}

/* An edge of a line, which the IOAPIC makes this interrupt of. */
static inline int send_line(int dest, int vector)
{
	struct kvm_irqchip chip = { .chip_id = KVM_IRQCHIP_IOAPIC };
	struct kvm_irq_level line = { .irq = PIN };
	int level;

	vm_must(ioctl(m.vm, KVM_GET_IRQCHIP, &chip), "KVM_GET_IRQCHIP");
	chip.chip.ioapic.redirtbl[PIN].bits = (__u64)dest << 56 | vector;
	vm_must(ioctl(m.vm, KVM_SET_IRQCHIP, &chip), "KVM_SET_IRQCHIP");
	for (level = 1; level >= 0; level--) {
		line.level = level;
		if (ioctl(m.vm, KVM_IRQ_LINE, &line) < 0)
			return -1;
	}
	return 0;
}

static inline int send_irqfd(void)
{
	__u64 one = 1;

	return write(event, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

static inline void irqfd_new(void)
{
	struct kvm_irqfd irqfd = { .gsi = GSI };
	struct kvm_ioeventfd io = { .addr = PORT, .len = 1,
				    .flags = KVM_IOEVENTFD_FLAG_PIO };

	event = vm_must(eventfd(0, EFD_CLOEXEC), "eventfd");
	irqfd.fd = event;
	io.fd = event;
	route(msi_to(0));
	vm_must(ioctl(m.vm, KVM_IRQFD, &irqfd), "KVM_IRQFD");
	vm_must(ioctl(m.vm, KVM_IOEVENTFD, &io), "KVM_IOEVENTFD");
}

/* ---- one MSI and what became of it ---- */

struct outcome {
	struct irr irr[NR];
	struct vb_pending pending[SLOTS];
	__u64 slots;
	int page_diverted, page_posted;
	int diverted, coalesced, posted;	/* by the host's own counters */
	int stray;			/* written where nothing belongs */
};

struct try {
	int state[NR];
	struct msi msi;
	int irqfd;			/* else KVM_SIGNAL_MSI */
	int line;			/* else an MSI */
	int times;			/* 0: once */
	int wait_us;			/* between the states and the MSI */
	int no_cookie;			/* while it is sent */
};

/* The guest's part as it shall be, nothing pending. */
static inline void defaults(void)
{
	int i;

	memset(r, 0, sizeof(*r));
	memset(pending, 0, VB_PAGE_SIZE);
	memset(guest, 0, VB_PAGE_SIZE);
	for (i = 0; i < NR; i++)
		guest[i].redirect_vector = 0xa0 + i;
	r->key[N] = vb_key_make(VECTOR, false, first_id, 0);
	r->nr_keys = N + 1;
}

static inline int nothing_stray(void)
{
	unsigned char *p = (unsigned char *)&pending[SLOTS];
	__u64 stray = 0;
	int i;

	for (i = 0; i < (int)(VB_MAX_SLOTS / 64); i++)
		stray |= i ? r->pending_slots[i] :
			     r->pending_slots[0] >> SLOTS;
	/* The rest of the table, and the page behind the area. */
	for (; p < m.mem + AREA_END + VB_PAGE_SIZE; p++)
		stray |= *p;
	return !stray;
}

static long count_before[3];

/* Nothing is pending anywhere. */
static inline void clean(void)
{
	int i;

	for (i = 0; i < NR; i++)
		apic_reset(i);
	r->nr_diverted = 0;
	r->nr_posted = 0;
	memset(r->pending_slots, 0, sizeof(r->pending_slots));
	memset(pending, 0, VB_PAGE_SIZE);
	count_before[0] = vm_value(&m, "diverted");
	count_before[1] = vm_value(&m, "coalesced");
	count_before[2] = vm_value(&m, "posted");
}

static inline void outcome(struct outcome *o)
{
	int i;

	for (i = 0; i < NR; i++)
		o->irr[i] = irr_of(i);
	memcpy(o->pending, pending, sizeof(o->pending));
	o->slots = r->pending_slots[0];
	o->page_diverted = r->nr_diverted;
	o->page_posted = r->nr_posted;
	o->diverted = vm_value(&m, "diverted") - count_before[0];
	o->coalesced = vm_value(&m, "coalesced") - count_before[1];
	o->posted = vm_value(&m, "posted") - count_before[2];
	o->stray = !nothing_stray();
}

/*
 * Returns 0 if the states did not come about. Keys and vectors are the
 * caller's; the pending bits and counts of the page begin at 0.
 */
static inline int try(const struct try *t, struct outcome *o)
{
	struct view before, after;
	int n, tries, good;

	if (t->irqfd)
		route(t->msi);
	for (tries = 0; tries < TRIES; tries++) {
		clean();
		good = arrange(t->state);
		if (t->wait_us)
			usleep(t->wait_us);
		before = look();
		if (t->no_cookie)
			h->cookie = 0;
		for (n = 0; n < (t->times ? t->times : 1); n++)
			good &= (t->line ?
				 send_line(t->msi.lo >> 12 & 0xff, t->msi.data) :
				 t->irqfd ? send_irqfd() :
					    send_signal(t->msi)) >= 0;
		if (t->no_cookie)
			h->cookie = COOKIE;
		after = look();
		good &= !memcmp(before.state, t->state, sizeof(t->state)) &&
			!memcmp(&before, &after, sizeof(before));
		park();
		if (good) {
			outcome(o);
			return 1;
		}
	}
	return 0;
}

/* Where it shall have ended. */
struct want {
	int to, vector;			/* to -1: nowhere */
	int slot;			/* of the pending bit; -1: none */
	int diverted, coalesced, posted;
};

static inline int right(const struct outcome *o, const struct want *w, int n)
{
	struct vb_pending bits = { };
	int i, good = 1;

	bits.bits[n / 64] = 1ULL << n % 64;
	for (i = 0; i < NR; i++)
		good &= irr_count(&o->irr[i]) == (i == w->to) &&
			(i != w->to || irr_has(&o->irr[i], w->vector));
	for (i = 0; i < SLOTS; i++)
		good &= !memcmp(&o->pending[i],
				i == w->slot ? &bits : &(struct vb_pending){ },
				sizeof(bits));
	good &= o->slots == (w->slot < 0 ? 0 : 1ULL << w->slot);
	good &= o->diverted == w->diverted && o->page_diverted == w->diverted &&
		o->posted == w->posted && o->page_posted == w->posted &&
		o->coalesced == w->coalesced;
	return good && !o->stray;
}

static inline void print_outcome(const struct outcome *o)
{
	int i, n;

	for (i = 0; i < NR; i++)
		for (n = 0; n < 256; n++)
			if (irr_has(&o->irr[i], n))
				printf("# vCPU %d has vector %#x\n", i, n);
	for (i = 0; i < SLOTS; i++)
		for (n = 0; n < (int)VB_MAX_KEYS; n++)
			if (o->pending[i].bits[n / 64] >> n % 64 & 1)
				printf("# slot %d has bit %d\n", i, n);
	printf("# slots %#llx, page: diverted %d, posted %d, host: diverted %d, coalesced %d, posted %d%s\n",
	       o->slots, o->page_diverted, o->page_posted, o->diverted,
	       o->coalesced, o->posted, o->stray ? ", stray bits" : "");
}

static inline void check_key(const char *name, const struct try *t,
			     struct want w, int n)
{
	struct outcome o;
	struct view v;
	int good, i;

	if (!try(t, &o)) {
		v = look();
		for (i = 0; i < NR; i++)
			printf("# vCPU %d: state %d, wanted %d\n", i,
			       v.state[i], t->state[i]);
		printf("# %s: no attempt with steady states\n", name);
		report(0, name);
		return;
	}
	good = right(&o, &w, n);
	if (!good)
		print_outcome(&o);
	report(good, name);
}

static inline void check(const char *name, const struct try *t, struct want w)
{
	check_key(name, t, w, N);
}

#define AS_IT_WAS(vcpu)	{ vcpu, VECTOR, -1, 0, 0, 0 }
#define DIVERTED(slot)	{ slot, 0xa0 + (slot), slot, 1, 0, 0 }
#define POSTED(slot)	{ slot, VECTOR, slot, 0, 0, 1 }

/* As an argument: check(name, &t, WANT(...)). */
#define WANT(...)	((struct want)__VA_ARGS__)

/* Owner 0 behind vCPU 1, the others in user space; an MSI for the owner. */
static inline struct try behind(void)
{
	return (struct try){ { PREEMPTED, RUNNING, VMM, VMM },
			     msi_to(0), 0, 0, 0, 0, 0 };
}

static inline struct try nobody(void)
{
	return (struct try){ { PREEMPTED, VMM, VMM, VMM },
			     msi_to(0), 0, 0, 0, 0, 0 };
}

/* ---- the VM ---- */

/* Before vCPUs are created: ids of 32 bits, none of them a broadcast. */
static inline void x2apic_api(void)
{
	struct kvm_enable_cap cap = {
		.cap = KVM_CAP_X2APIC_API,
		.args = { KVM_X2APIC_API_USE_32BIT_IDS |
			  KVM_X2APIC_API_DISABLE_BROADCAST_QUIRK },
	};

	vm_must(ioctl(m.vm, KVM_ENABLE_CAP, &cap), "KVM_CAP_X2APIC_API");
}

static inline void x2apic_mode(int i)
{
	struct kvm_sregs s;

	vm_must(ioctl(m.vcpu[i], KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.apic_base |= 1 << 10 | 1 << 11;
	vm_must(ioctl(m.vcpu[i], KVM_SET_SREGS, &s), "x2APIC mode");
}

/* vCPUs have the APIC ids from @id on. */
static inline int set_up(unsigned int id)
{
	__u64 offset;
	struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
		.addr = (unsigned long)&offset,
	};
	int i;

	begin();
	first_id = id;
	if (!vm_two_cpus(&here, &there)) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 0;
	}
	vm_new(&m, vm_memory_new(), 1);
	if (id)
		x2apic_api();
	for (i = 0; i < NR; i++) {
		vm_add_vcpu_id(&m, id + i);
		vm_mode(&m, i, 0);
		if (id)
			x2apic_mode(i);
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
		/* Times of different vCPUs are compared. */
		vm_must(ioctl(m.vcpu[i], i ? KVM_SET_DEVICE_ATTR :
					     KVM_GET_DEVICE_ATTR, &attr),
			"KVM_VCPU_TSC_OFFSET");
	}
	h = vm_header(&m, VM_AREA, SLOTS, COOKIE);
	guest = (struct vb_vcpu_guest *)((char *)h + h->guest_table_page *
					 VB_PAGE_SIZE);
	r = vm_redirect(h);
	pending = (struct vb_pending *)((char *)h + h->pending_page *
					VB_PAGE_SIZE);
	return 1;
}

/* The whole program. @fn: the VM is registered, its vCPUs are in user space. */
static inline int with_vm(unsigned int id, void (*fn)(void))
{
	if (!set_up(id))
		return 4;
	threads_start();
	irqfd_new();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	fn();
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregistered");
	report(!threads_join(), "all vCPUs end well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}

#endif /* _VB_REDIRECTTEST_H */
