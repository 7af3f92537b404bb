// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: where an MSI ends, with the vCPUs of a VM of our
 * own in every run state. Prints KTAP. Needs /dev/kvm, vbalance_host, root and
 * two CPUs.
 *
 *	kvm_redirect		all of it
 *	kvm_redirect off	vbalance_host was loaded with redirect=0
 *	kvm_redirect storm	send until SIGTERM, while others load and
 *				unload vbalance_host
 *
 * The vCPUs never take an interrupt (IF=0): what was delivered stands in the
 * IRRs of their APICs, which are read when all have been stopped. vCPUs' threads
 * share one CPU; a real-time one stays there and the others stay behind it, for
 * nearly a second. That nobody changed its state while an MSI was sent is read
 * from the host's own table; if somebody did, the whole is done again.
 */
#define _GNU_SOURCE
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
#define TRIES	100
#define AREA_END	(VM_AREA + VB_AREA_PAGES(SLOTS) * VB_PAGE_SIZE)
#define VM_SHOT		0x7800UL
#define VM_SHOTS	0xf0000UL
#define VM_CLOCK	0xf8000UL

static struct minivm m;
static struct vm_thread thread[NR];
static int active[NR];		/* its thread is not in user space */
static struct vb_header *h;
static struct vb_vcpu_guest *guest;
static struct vb_redirect *r;
static struct vb_pending *pending;
static int here, there;		/* CPUs: ours, the vCPUs' */
static int event;		/* eventfd of the irqfd */

/* ---- what the host says about the vCPUs ---- */

struct view {
	int state[NR];
	long changes[NR];
};

static int state_number(const char *name)
{
	static const char * const names[VB_NR_VCPU_STATES] = {
		"off", "running", "preempted", "halted", "vmm",
	};
	int i;

	for (i = 0; i < VB_NR_VCPU_STATES && strcmp(name, names[i]); i++)
		;
	return i;
}

static struct view look(void)
{
	char path[128], line[512], name[16];
	long n[4];
	struct view v;
	FILE *f;
	int s;

	memset(&v, 0xff, sizeof(v));
	snprintf(path, sizeof(path), HOST "/%d-%d/vcpus", getpid(), m.vm);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %*u %15s %*u %ld %*u %ld %*u %ld %*u %ld",
			   &s, name, &n[0], &n[1], &n[2], &n[3]) != 6 ||
		    s < 0 || s >= NR)
			continue;
		v.state[s] = state_number(name);
		v.changes[s] = n[0] + n[1] + n[2] + n[3];
	}
	if (f)
		fclose(f);
	return v;
}

static int states_are(const int *state)
{
	struct view v = look();

	return !memcmp(v.state, state, sizeof(v.state));
}

static int state_is(int i, int state)
{
	return look().state[i] == state;
}

/* ---- the vCPUs' APICs ---- */

#define APIC_WORD(l, offset)	(*(__u32 *)&(l)->regs[offset])

static void apic_reset(int i)
{
	struct kvm_lapic_state l;
	int n;

	vm_must(ioctl(m.vcpu[i], KVM_GET_LAPIC, &l), "KVM_GET_LAPIC");
	APIC_WORD(&l, 0xd0) = 1U << (24 + i);	/* LDR */
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

static struct irr irr_of(int i)
{
	struct kvm_lapic_state l;
	struct irr irr;
	int n;

	vm_must(ioctl(m.vcpu[i], KVM_GET_LAPIC, &l), "KVM_GET_LAPIC");
	for (n = 0; n < 8; n++)
		irr.word[n] = APIC_WORD(&l, 0x200 + n * 16);
	return irr;
}

static int irr_has(const struct irr *irr, int vector)
{
	return irr->word[vector / 32] >> (vector % 32) & 1;
}

static int irr_count(const struct irr *irr)
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

static void real_time(pthread_t t, int on)
{
	struct sched_param p = { .sched_priority = on ? 50 : 0 };

	errno = pthread_setschedparam(t, on ? SCHED_FIFO : SCHED_OTHER, &p);
	if (errno)
		vm_must(-1, "pthread_setschedparam");
}

static void *hog(void *unused)
{
	(void)unused;
	vm_pin(there);
	real_time(pthread_self(), 1);
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void hog_start(void *(*fn)(void *))
{
	hog_stop = 0;
	errno = pthread_create(&hog_thread, NULL, fn, NULL);
	if (errno)
		vm_must(-1, "pthread_create");
	hogs = 1;
}

static void resume(int i)
{
	vm_loop_regs(&m, i, VM_AREA);
	vm_box(&m, i)->command = 0;
	active[i] = 1;
	vm_resume(&thread[i]);
}

/* All in user space. */
static void park(void)
{
	int i;

	if (hogs) {
		__atomic_store_n(&hog_stop, 1, __ATOMIC_RELAXED);
		pthread_join(hog_thread, NULL);
		hogs = 0;
	}
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

static void threads_start(void)
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

static int threads_join(void)
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
static int arrange(const int *state)
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
		real_time(thread[runs].thread, 1);
		resume(runs);
	} else if (behind) {
		hog_start(hog);
	}
	return AWAIT(states_are(state));
}

/* ---- sending ---- */

struct msi {
	__u32 lo, data;
};

static struct msi msi(int dest, int logical, int vector)
{
	return (struct msi){ 0xfee00000U | dest << 12 | logical << 2, vector };
}

static int send_signal(struct msi i)
{
	struct kvm_msi k = { .address_lo = i.lo, .data = i.data };

	return ioctl(m.vm, KVM_SIGNAL_MSI, &k);
}

/* Sleeps for long: before the vCPUs are in their states. */
static void route(struct msi i)
{
	struct {
		struct kvm_irq_routing head;
		struct kvm_irq_routing_entry entry;
	} t = {
		.head.nr = 1,
		.entry = {
			.gsi = GSI, .type = KVM_IRQ_ROUTING_MSI,
			.u.msi = { .address_lo = i.lo, .data = i.data },
		},
	};

	vm_must(ioctl(m.vm, KVM_SET_GSI_ROUTING, &t), "KVM_SET_GSI_ROUTING");
}

static int send_irqfd(void)
{
	__u64 one = 1;

	return write(event, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

static void irqfd_new(void)
{
	struct kvm_irqfd irqfd = { .gsi = GSI };
	struct kvm_ioeventfd io = { .addr = PORT, .len = 1,
				    .flags = KVM_IOEVENTFD_FLAG_PIO };

	event = vm_must(eventfd(0, EFD_CLOEXEC), "eventfd");
	irqfd.fd = event;
	io.fd = event;
	route(msi(0, 0, VECTOR));
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
	int times;			/* 0: once */
	int wait_us;			/* between the states and the MSI */
	int no_cookie;			/* while it is sent */
};

/* The guest's part as it shall be, nothing pending. */
static void defaults(void)
{
	int i;

	memset(r, 0, sizeof(*r));
	memset(pending, 0, VB_PAGE_SIZE);
	memset(guest, 0, VB_PAGE_SIZE);
	for (i = 0; i < NR; i++)
		guest[i].redirect_vector = 0xa0 + i;
	r->key[N] = vb_key_make(VECTOR, false, 0, 0);
	r->nr_keys = N + 1;
}

static int nothing_stray(void)
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
static void clean(void)
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

static void outcome(struct outcome *o)
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
static int try(const struct try *t, struct outcome *o)
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
			good &= (t->irqfd ? send_irqfd() :
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

static int right(const struct outcome *o, const struct want *w, int n)
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

static void print_outcome(const struct outcome *o)
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

static void check_key(const char *name, const struct try *t, struct want w,
		      int n)
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

static void check(const char *name, const struct try *t, struct want w)
{
	check_key(name, t, w, N);
}

#define AS_IT_WAS(vcpu)	{ vcpu, VECTOR, -1, 0, 0, 0 }
#define DIVERTED(slot)	{ slot, 0xa0 + (slot), slot, 1, 0, 0 }
#define POSTED(slot)	{ slot, VECTOR, slot, 0, 0, 1 }

/* As an argument: check(name, &t, WANT(...)). */
#define WANT(...)	((struct want)__VA_ARGS__)

/* Owner 0 behind vCPU 1, the others in user space; an MSI for the owner. */
static struct try behind(void)
{
	return (struct try){ { PREEMPTED, RUNNING, VMM, VMM },
			     msi(0, 0, VECTOR), 0, 0, 0, 0 };
}

static struct try nobody(void)
{
	return (struct try){ { PREEMPTED, VMM, VMM, VMM },
			     msi(0, 0, VECTOR), 0, 0, 0, 0 };
}

/* ---- the owner's states ---- */

static const struct {
	const char *name;
	int state[NR];
	int times;
	struct want want;
} in_state[] = {
	{ "owner runs: as it was",
	  { RUNNING, VMM, VMM, VMM }, 1, AS_IT_WAS(0) },
	{ "owner halted, another runs: as it was",
	  { HALTED, RUNNING, VMM, VMM }, 1, AS_IT_WAS(0) },
	{ "owner preempted, another runs: diverted",
	  { PREEMPTED, RUNNING, VMM, VMM }, 1, DIVERTED(1) },
	{ "again before it was taken: coalesced",
	  { PREEMPTED, RUNNING, VMM, VMM }, 3, { 1, 0xa1, 1, 1, 2, 0 } },
	{ "owner preempted, nobody runs: posted",
	  { PREEMPTED, VMM, VMM, VMM }, 1, POSTED(0) },
	{ "again before it was taken: posted once",
	  { PREEMPTED, VMM, VMM, VMM }, 3, { 0, VECTOR, 0, 0, 2, 1 } },
	{ "owner preempted, another halted: posted",
	  { PREEMPTED, HALTED, VMM, VMM }, 1, POSTED(0) },
	{ "owner and another preempted, the third runs: diverted",
	  { PREEMPTED, PREEMPTED, RUNNING, VMM }, 1, DIVERTED(2) },
	{ "owner preempted, one without a slot runs: posted",
	  { PREEMPTED, VMM, VMM, RUNNING }, 1, POSTED(0) },
};

static void states(int irqfd)
{
	struct try t = behind();
	char name[128];
	size_t i;

	t.irqfd = irqfd;
	for (i = 0; i < sizeof(in_state) / sizeof(in_state[0]); i++) {
		memcpy(t.state, in_state[i].state, sizeof(t.state));
		t.times = in_state[i].times;
		snprintf(name, sizeof(name), "%s: %s",
			 irqfd ? "irqfd" : "KVM_SIGNAL_MSI", in_state[i].name);
		defaults();
		check(name, &t, in_state[i].want);
	}
}

static void owner_off(void)
{
	struct try t = behind();

	defaults();
	t.state[0] = VMM;
	t.state[2] = OFF;
	t.msi = msi(2, 0, VECTOR);
	r->key[N] = vb_key_make(VECTOR, false, 2, 2);
	check("owner waits for its SIPI: as it was", &t, WANT(AS_IT_WAS(2)));
}

static long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void owner_in_vmm(void)
{
	struct try t = behind();
	long long start = 0, end = 1000000;
	struct outcome o;
	int i, good = 0;

	defaults();
	t.state[0] = VMM;
	t.wait_us = 20000;
	set_parameter("vmm_us", "1000");
	check("owner in the VMM for long: diverted", &t, WANT(DIVERTED(1)));
	set_parameter("vmm_us", "0");
	t.wait_us = 0;
	check("owner in the VMM, vmm_us=0: diverted", &t, WANT(DIVERTED(1)));
	/* No longer than since the beginning of the attempt. */
	set_parameter("vmm_us", "1000000");
	for (i = 0; i < TRIES && end - start > 900000; i++) {
		start = now_us();
		memset(&o, 0, sizeof(o));
		good = try(&t, &o);
		end = now_us();
	}
	good &= end - start <= 900000 && right(&o, &WANT(AS_IT_WAS(0)), N);
	if (!good)
		print_outcome(&o);
	report(good, "owner in the VMM for a short time: as it was");
	set_parameter("vmm_us", "1000");
	/* The other one that may stay away for long is no target. */
	t = nobody();
	t.wait_us = 20000;
	check("nobody but one in the VMM: posted", &t, WANT(POSTED(0)));
}

/* ---- vectors ---- */

static void vectors(void)
{
	static const __u32 none[] = { 0, 1, 15, 256, 0x1a1, 0x80000031, ~0U };
	static const __u32 some[] = { 16, 17, 0x41, 255 };
	struct try t = behind();
	char name[64];
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		defaults();
		guest[1].redirect_vector = none[i];
		snprintf(name, sizeof(name), "redirect_vector %#x: no target",
			 none[i]);
		check(name, &t, WANT(POSTED(0)));
	}
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		defaults();
		guest[1].redirect_vector = some[i];
		snprintf(name, sizeof(name), "redirect_vector %#x: a target",
			 some[i]);
		check(name, &t, WANT({ 1, some[i], 1, 1, 0, 0 }));
	}
	/* The owner's own plays no part. */
	defaults();
	guest[0].redirect_vector = 0;
	check("owner without redirect_vector: diverted", &t, WANT(DIVERTED(1)));
}

/* ---- which MSIs ---- */

#define MSI_LEVEL	(1 << 15 | 1 << 14)
#define MSI_NMI		(4 << 8)
#define MSI_LOWEST	(1 << 8)

/* As VM_NMI was, but it counts: incq stack[0]; iretq. */
static void count_nmis(void)
{
	static const unsigned char code[] = {
		0x48, 0xff, 0x87, offsetof(struct vm_box, stack), 0, 0, 0,
		0x48, 0xcf,
	};

	memcpy(m.mem + VM_NMI, code, sizeof(code));
}

static void kinds(void)
{
	struct try t = behind();
	__u64 nmis;

	defaults();
	t.msi = msi(0, 0, VECTOR + 1);
	check("vector that is not listed: as it was", &t,
	      WANT({ 0, VECTOR + 1, -1, 0, 0, 0 }));
	t = nobody();
	t.msi = msi(0, 0, VECTOR + 1);
	check("vector that is not listed, nobody runs: as it was", &t,
	      WANT({ 0, VECTOR + 1, -1, 0, 0, 0 }));
	t = behind();
	t.state[0] = VMM;
	t.state[2] = PREEMPTED;
	t.msi = msi(2, 0, VECTOR);
	check("destination that is not listed: as it was", &t, WANT(AS_IT_WAS(2)));

	t = behind();
	r->nr_keys = N;
	check("key behind the last one: as it was", &t, WANT(AS_IT_WAS(0)));
	defaults();
	r->key[N] &= ~VB_KEY_VALID;
	check("key without VB_KEY_VALID: as it was", &t, WANT(AS_IT_WAS(0)));
	defaults();
	r->key[N] |= 1 << 10;
	check("key with a reserved bit: as it was", &t, WANT(AS_IT_WAS(0)));
	defaults();
	r->key[N] |= 1ULL << 63;
	check("key with another destination's high bit: as it was", &t,
	      WANT(AS_IT_WAS(0)));

	defaults();
	t.msi = msi(1, 1, VECTOR);	/* logical: bit 0 */
	check("logical, key physical: as it was", &t, WANT(AS_IT_WAS(0)));
	r->key[N] = vb_key_make(VECTOR, true, 1, 0);
	check("logical, listed: diverted", &t, WANT(DIVERTED(1)));
	t.msi = msi(1, 0, VECTOR);
	check("physical, key logical: as it was", &t, WANT(AS_IT_WAS(1)));
	/* To the owner and another: one of them would have had it too many. */
	r->key[N] = vb_key_make(VECTOR, true, 5, 0);
	t.msi = msi(5, 1, VECTOR);
	check("logical, two destinations, listed: diverted", &t, WANT(DIVERTED(1)));

	defaults();
	t.msi = msi(0, 0, VECTOR | MSI_LEVEL);
	check("level: as it was", &t, WANT(AS_IT_WAS(0)));
	t.msi = msi(0, 0, VECTOR | MSI_LOWEST);
	check("lowest priority: as it was", &t, WANT(AS_IT_WAS(0)));
	t.msi = msi(0, 0, VECTOR | MSI_NMI);
	nmis = vm_box(&m, 0)->stack[0];
	t.times = 1;
	check("NMI: no interrupt, no bit", &t,
	      WANT({ -1, 0, -1, 0, 0, 0 }));
	arrange((int[NR]){ RUNNING, VMM, VMM, VMM });
	report(AWAIT(vm_box(&m, 0)->stack[0] != nmis), "NMI: as it was");
	park();
	report(!vm_box(&m, 1)->stack[0], "NMI: not to the one that ran");
}

/* ---- hostile keys ---- */

static void every_key(void)
{
	static const int n[] = { 0, 1, 63, 64, 127, 128, 448, 511 };
	struct try t = behind();
	char name[64];
	size_t i;

	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		defaults();
		r->key[N] = 0;
		r->key[n[i]] = vb_key_make(VECTOR, false, 0, 0);
		r->nr_keys = VB_MAX_KEYS;
		snprintf(name, sizeof(name), "key %d: its bit", n[i]);
		check_key(name, &t, WANT(DIVERTED(1)), n[i]);
	}
}

static __u64 noise_state = 0x76424c20;

static __u64 noise(void)
{
	noise_state ^= noise_state << 13;
	noise_state ^= noise_state >> 7;
	noise_state ^= noise_state << 17;
	return noise_state;
}

static void hostile(void)
{
	static const int slots[] = { SLOTS + 1, 63, 64, 4095, 4096, 0xffff };
	struct outcome o;
	struct try t = behind();
	int i, n, good = 1;
	char name[64];

	for (i = 0; i < (int)(sizeof(slots) / sizeof(slots[0])); i++) {
		defaults();
		r->key[N] = vb_key_make(VECTOR, false, 0, slots[i]);
		snprintf(name, sizeof(name), "slot %d of nobody: as it was",
			 slots[i]);
		check(name, &t, WANT(AS_IT_WAS(0)));
	}
	defaults();
	r->key[N] = vb_key_make(VECTOR, false, 0, 1);
	check("slot of another, who runs: as it was", &t, WANT(AS_IT_WAS(0)));
	t.wait_us = 20000;
	r->key[N] = vb_key_make(VECTOR, false, 0, 2);
	check("slot of another, who is away for long: diverted", &t,
	      WANT(DIVERTED(1)));
	t = behind();
	t.state[0] = VMM;
	t.state[BEYOND] = PREEMPTED;
	t.msi = msi(BEYOND, 0, VECTOR);
	r->key[N] = vb_key_make(VECTOR, false, BEYOND, BEYOND);
	check("vCPU without a slot preempted: as it was", &t,
	      WANT(AS_IT_WAS(BEYOND)));

	t = behind();
	defaults();
	r->nr_keys = 0xffffffff;
	check("0xffffffff keys: diverted", &t, WANT(DIVERTED(1)));
	r->key[N] = 0;
	check("0xffffffff keys, not listed: as it was", &t, WANT(AS_IT_WAS(0)));

	/* Its header as well: the layout was taken at the registration. */
	defaults();
	h->redirect_page = 0xffffffff;
	h->pending_page = 0;
	h->nr_slots = 0xffffffff;
	check("header changed: diverted", &t, WANT(DIVERTED(1)));
	h->redirect_page = VB_REDIRECT_PAGE(SLOTS);
	h->pending_page = VB_PENDING_PAGE(SLOTS);
	h->nr_slots = SLOTS;

	/* Everything noise: it arrives, once, and nothing is written astray. */
	for (i = 0; i < 30 && good; i++) {
		int all = 0, bits = 0;

		for (n = 0; n < (int)VB_MAX_KEYS; n++)
			r->key[n] = noise() & 3 ? noise() :
				vb_key_make(VECTOR, noise() & 1, 0, noise());
		r->nr_keys = noise();
		for (n = 0; n < NR; n++) {
			guest[n].redirect_vector =
				noise() & 1 ? noise() : noise() & 0xff;
			guest[n].irq_load_ns = noise();
			guest[n].service_ns = noise();
		}
		if (!try(&t, &o)) {
			good = 0;
			break;
		}
		for (n = 0; n < NR; n++)
			all += irr_count(&o.irr[n]);
		for (n = 0; n < SLOTS * (int)(VB_MAX_KEYS / 64); n++)
			bits += __builtin_popcountll(((__u64 *)o.pending)[n]);
		good = all == 1 && bits <= 1 && !o.stray &&
			bits == o.diverted + o.posted && !o.coalesced &&
			(o.diverted ? !irr_count(&o.irr[0]) :
				      irr_has(&o.irr[0], VECTOR));
		if (!good)
			print_outcome(&o);
	}
	report(good, "noise: it arrives once, nothing is written astray");
}

/* ---- the end ---- */

static void endings(void)
{
	unsigned int size = VB_AREA_PAGES(SLOTS) * VB_PAGE_SIZE;
	unsigned char *copy = malloc(size);
	struct try t = behind();

	/* Both pages hold a number each that may not change. */
	defaults();
	t.no_cookie = 1;
	check("cookie cleared, another runs: as it was", &t, WANT(AS_IT_WAS(0)));
	t = nobody();
	t.no_cookie = 1;
	check("cookie cleared, nobody runs: as it was", &t, WANT(AS_IT_WAS(0)));

	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregister");
	/* try() itself writes to the area first: once, then compared. */
	t = behind();
	check("unregistered, another runs: as it was", &t, WANT(AS_IT_WAS(0)));
	memcpy(copy, h, size);
	check("unregistered, once more: as it was", &t, WANT(AS_IT_WAS(0)));
	t.irqfd = 1;
	check("unregistered, irqfd: as it was", &t, WANT(AS_IT_WAS(0)));
	t = nobody();
	check("unregistered, nobody runs: as it was", &t, WANT(AS_IT_WAS(0)));
	report(!memcmp(copy, h, size), "unregistered: nothing is written");
	free(copy);

	vm_header(&m, VM_AREA, SLOTS, COOKIE);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registered again");
	defaults();
	t = behind();
	check("registered again: diverted", &t, WANT(DIVERTED(1)));
}

/* ---- choice between two ---- */

/*
 * vCPU 1 counts as running while its thread, a real-time one in front of the
 * owner's, is in a long vCPU ioctl; vCPU 2 runs in this thread, on this CPU, and
 * sends the MSI itself: a port that is an irqfd. It looks at the host's table
 * just before and just after. (Two in guest mode at the same time are more
 * than emulated processors can be trusted with.)
 * rdi: where to, r8: host's table, r9: its length / 8, r10: rounds to wait
 */
extern const unsigned char vm_shot[], vm_shot_end[];

__asm__(
".pushsection .rodata\n"
"vm_shot:\n"
"1:	dec	%r10\n"
"	jnz	1b\n"
"	mov	%r8, %rsi\n"
"	mov	%r9, %rcx\n"
"	rep	movsq\n"
"	out	%al, $0xf5\n"		/* PORT */
"	mov	%r8, %rsi\n"
"	mov	%r9, %rcx\n"
"	rep	movsq\n"
"	out	%al, $0xf4\n"
"vm_shot_end:\n"
".popsection\n");

static void *long_ioctls(void *unused)
{
	static struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[255];
	} list;
	int i;

	(void)unused;
	vm_pin(there);
	real_time(pthread_self(), 1);
	/* Each of them writes to guest memory, three times. */
	list.head.nmsrs = 255;
	for (i = 0; i < 255; i++)
		list.entry[i] = (struct kvm_msr_entry){
			.index = 0x11, .data = VM_CLOCK, /* KVM_WALL_CLOCK */
		};
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED))
		if (ioctl(m.vcpu[1], KVM_SET_MSRS, &list) != 255)
			vm_must(-1, "KVM_SET_MSRS");
	return NULL;
}

struct shot {
	struct vb_vcpu_host before[SLOTS], after[SLOTS];
};

static void shoot(__u64 rounds)
{
	struct kvm_regs regs = {
		.rip = VM_SHOT, .rflags = 2, .rdi = VM_SHOTS,
		.r8 = VM_AREA + VB_HOST_TABLE_PAGE * VB_PAGE_SIZE,
		.r9 = SLOTS * sizeof(struct vb_vcpu_host) / 8, .r10 = rounds,
	};

	vm_must(ioctl(m.vcpu[2], KVM_SET_REGS, &regs), "KVM_SET_REGS");
	while (ioctl(m.vcpu[2], KVM_RUN, 0) < 0)
		if (errno != EINTR)
			vm_must(-1, "KVM_RUN");
	if (m.run[2]->exit_reason != KVM_EXIT_IO) {
		printf("# vCPU 2: exit reason %u\n", m.run[2]->exit_reason);
		exit(1);
	}
}

/*
 * One MSI; returns who got it (1 or 2), 0: nobody, -1: not as it should be,
 * -2: the states were others. @fresh: who came last to its CPU.
 */
static int choice(__u64 rounds, int *fresh)
{
	const struct shot *s = (const struct shot *)(m.mem + VM_SHOTS);
	struct outcome o;
	int i, steady = 1;

	clean();
	resume(0);
	if (!AWAIT(state_is(0, RUNNING)))
		steady = 0;
	hog_start(long_ioctls);
	if (!AWAIT(state_is(0, PREEMPTED)))
		steady = 0;
	shoot(rounds);
	park();
	outcome(&o);
	for (i = 0; i < SLOTS; i++)
		steady &= s->before[i].state == (i ? RUNNING : PREEMPTED) &&
			  s->after[i].state == s->before[i].state &&
			  s->after[i].changed_tsc == s->before[i].changed_tsc;
	if (!steady)
		return -2;
	*fresh = s->before[1].changed_tsc > s->before[2].changed_tsc ? 1 : 2;
	for (i = 1; i < SLOTS; i++)
		if (right(&o, &WANT(DIVERTED(i)), N))
			return i;
	print_outcome(&o);
	return right(&o, &WANT(POSTED(0)), N) ? 0 : -1;
}

/* @must: who has to get it; 0: the one that came last to its CPU. */
static void choose(const char *name, __u64 load1, __u64 load2, int must)
{
	int i, who, fresh, bad = 0, steady = 0, seen[3] = { };

	defaults();
	guest[1].irq_load_ns = load1;
	guest[2].irq_load_ns = load2;
	/* Both have come last, and both have got it if both may. */
	for (i = 0; i < 2 * TRIES && !bad && !(seen[1] && seen[2]); i++) {
		who = choice(i & 1 ? 1 : 1 << (19 + i / 2 % 6), &fresh);
		if (who == -2)
			continue;
		steady++;
		seen[fresh]++;
		bad = who != (must ? must : fresh);
		if (bad)
			printf("# went to %d, last on its CPU is %d\n", who,
			       fresh);
	}
	printf("# %s: %d of %d attempts, last on its CPU: %d and %d\n", name,
	       steady, i, seen[1], seen[2]);
	report(!bad && seen[1] && seen[2], name);
}

static void choices(void)
{
	__u64 ms = 1000000, floor = 1 << 22;

	memcpy(m.mem + VM_SHOT, vm_shot, vm_shot_end - vm_shot);
	route(msi(0, 0, VECTOR));
	choose("no load: the one that came last", 0, 0, 0);
	choose("the lighter one", 100 * ms, 10 * ms, 2);
	choose("the lighter one, the other way round", 10 * ms, 100 * ms, 1);
	choose("ratio 1.5: the one that came last", 100 * ms, 150 * ms, 0);
	choose("beyond ratio 1.5: the lighter one", 100 * ms, 150 * ms + 1, 1);
	choose("up to the floor: the one that came last", floor, 0, 0);
	choose("beyond the floor: the lighter one", floor + 1, 0, 2);
	choose("largest loads: the one that came last", ~0ULL, ~0ULL, 0);
	choose("one of the largest loads: the other one", ~0ULL, 10 * ms, 2);
	set_parameter("threshold", "300");
	choose("threshold=300: the one that came last", 100 * ms, 300 * ms, 0);
	choose("beyond threshold=300: the lighter one", 300 * ms + 1, 100 * ms,
	       2);
	set_parameter("threshold", "150");
}

/* ---- while vbalance_host comes and goes ---- */

static volatile sig_atomic_t told_to_end;

static void on_term(int sig)
{
	(void)sig;
	told_to_end = 1;
}

#define STORM	64		/* MSIs a round, each with a key of its own */

/* Each of them has arrived as it was, or is pending where somebody is told. */
static int lost(int *redirected)
{
	struct irr irr[NR];
	int i, n, found, sum = 0;

	for (i = 0; i < NR; i++)
		irr[i] = irr_of(i);
	for (n = 0; n < STORM; n++) {
		found = irr_has(&irr[n & 1], 0x30 + n);
		for (i = 0; i < SLOTS; i++) {
			if (!(pending[i].bits[0] >> n & 1) ||
			    !irr_has(&irr[i], 0xa0 + i))
				continue;
			*redirected += !found;
			found = 1;
		}
		sum += !found;
	}
	return sum;
}

static int storm(void)
{
	int i, n, rounds = 0, missing = 0, redirected = 0, registered = 0;
	__u64 cookie = COOKIE;

	signal(SIGTERM, on_term);
	while (!told_to_end) {
		if (h->host_status != VB_HOST_ACTIVE) {
			vm_header(&m, VM_AREA, SLOTS, ++cookie);
			defaults();
			r->key[N] = 0;
			for (n = 0; n < STORM; n++)
				r->key[n] = vb_key_make(0x30 + n, false, n & 1,
							n & 1);
			registered += !vm_register(&m, VM_AREA, cookie);
		}
		for (i = 0; i < NR; i++)
			apic_reset(i);
		memset(r->pending_slots, 0, sizeof(r->pending_slots));
		memset(pending, 0, VB_PAGE_SIZE);
		/* Two that take turns: one of them is always preempted. */
		resume(0);
		resume(1);
		usleep(2000);
		for (n = 0; n < STORM; n++)
			send_signal(msi(n & 1, 0, 0x30 + n));
		park();
		missing += lost(&redirected);
		rounds++;
	}
	printf("# %d rounds, %d registrations, %d redirected\n", rounds,
	       registered, redirected);
	expect(missing, 0, "storm: nothing is lost");
	report(registered > 1, "storm: registered more than once");
	report(redirected > 0, "storm: some were redirected");
	report(!threads_join(), "storm: all vCPUs end well");
	vm_destroy(&m);
	return end();
}

static int set_up(void)
{
	__u64 offset;
	struct kvm_device_attr attr = {
		.group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
		.addr = (unsigned long)&offset,
	};
	int i;

	begin();
	here = sched_getcpu();
	there = vm_pin(here) ? vm_other_cpu(here) : -1;
	if (there < 0) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 0;
	}
	vm_new(&m, vm_memory_new(), 1);
	for (i = 0; i < NR; i++) {
		vm_add_vcpu(&m);
		vm_mode(&m, i, 0);
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
		/* Times of different vCPUs are compared. */
		vm_must(ioctl(m.vcpu[i], i ? KVM_SET_DEVICE_ATTR :
					     KVM_GET_DEVICE_ATTR, &attr),
			"KVM_VCPU_TSC_OFFSET");
	}
	count_nmis();
	h = vm_header(&m, VM_AREA, SLOTS, COOKIE);
	guest = (struct vb_vcpu_guest *)((char *)h + h->guest_table_page *
					 VB_PAGE_SIZE);
	r = (struct vb_redirect *)((char *)h + h->redirect_page * VB_PAGE_SIZE);
	pending = (struct vb_pending *)((char *)h + h->pending_page *
					VB_PAGE_SIZE);
	return 1;
}

static void redirect_off(void)
{
	struct try t = behind();

	report(!(h->host_features & VB_HF_REDIRECT) &&
	       h->host_features & VB_HF_RUN_STATE,
	       "redirect=0: the area says so");
	defaults();
	check("redirect=0, another runs: as it was", &t, WANT(AS_IT_WAS(0)));
	t.irqfd = 1;
	check("redirect=0, irqfd: as it was", &t, WANT(AS_IT_WAS(0)));
	t = nobody();
	check("redirect=0, nobody runs: as it was", &t, WANT(AS_IT_WAS(0)));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!set_up())
		return 4;
	threads_start();
	if (!strcmp(mode, "storm"))
		return storm();
	irqfd_new();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	if (!strcmp(mode, "off")) {
		redirect_off();
	} else {
		report(h->host_features & VB_HF_REDIRECT,
		       "the area says that MSIs are redirected");
		states(0);
		states(1);
		owner_off();
		owner_in_vmm();
		vectors();
		kinds();
		every_key();
		hostile();
		choices();
		endings();
	}
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "unregistered");
	report(!threads_join(), "all vCPUs end well");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
