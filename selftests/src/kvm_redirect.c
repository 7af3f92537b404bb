// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: where an MSI ends, with the vCPUs of a VM of our
 * own in every run state. Prints KTAP. Needs /dev/kvm, vbalance_host, root and
 * two CPUs.
 *
 *	kvm_redirect		all of it
 *	kvm_redirect off	vbalance_host was loaded with redirect=0
 *	kvm_redirect x2apic	APIC ids above 255
 *	kvm_redirect 255	APIC ids around 255
 */
#define _GNU_SOURCE
#include "redirecttest.h"

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

static void owner_in_vmm(void)
{
	struct try t = behind();
	__u64 start = 0, end = ~0ULL, short_ns = 900000000;
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
	for (i = 0; i < TRIES && end - start > short_ns; i++) {
		start = now_ns();
		memset(&o, 0, sizeof(o));
		good = try(&t, &o);
		end = now_ns();
	}
	good &= end - start <= short_ns && right(&o, &WANT(AS_IT_WAS(0)), N);
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

	count_nmis();
	defaults();
	t.msi = msi(0, 0, VECTOR + 1);
	check("vector that is not listed: as it was", &t,
	      WANT({ 0, VECTOR + 1, -1, 0, 0, 0 }));
	t.line = 1;
	check("the IOAPIC's: as it was", &t,
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

/* ---- a key that changes while its MSI is redirected ---- */

#define VM_FLIP		0x7800UL

/* rdi: key, rax: its value */
extern const unsigned char vm_flip[], vm_flip_end[];

__asm__(
".pushsection .rodata\n"
"vm_flip:\n"
"1:	mov	%rax, (%rdi)\n"
"	nop\n"
"	nop\n"
"	movq	$0, (%rdi)\n"
"	jmp	1b\n"
"vm_flip_end:\n"
".popsection\n");

/* vCPU 1 with these registers, and behind it vCPU 0. */
static int in_front(const struct kvm_regs *regs)
{
	vm_must(ioctl(m.vcpu[1], KVM_SET_REGS, regs), "KVM_SET_REGS");
	resume(0);
	if (!AWAIT(state_is(0, RUNNING)))
		return 0;
	real_time(thread[1].thread, MIDDLE);
	active[1] = 1;
	vm_resume(&thread[1]);
	return AWAIT(states_are((int[]){ PREEMPTED, RUNNING, VMM, VMM }));
}

/* vCPU 1, in front of the owner, writes the key and takes it back, for ever. */
static int flip(void)
{
	struct kvm_regs regs = {
		.rip = VM_FLIP, .rflags = 2, .rax = r->key[N],
		.rdi = VM_AREA + ((char *)&r->key[N] - (char *)h),
	};

	return in_front(&regs);
}

/*
 * An interrupt that moves: its MSI was matched, its bit set, and then the key
 * is no longer that one. It must arrive as it is.
 */
static void retraction(void)
{
	int i, n, lost = 0, lost_retracted = 0, seen = 0;
	long retracted, before = vm_value(&m, "retracted");
	struct outcome o;

	memcpy(m.mem + VM_FLIP, vm_flip, vm_flip_end - vm_flip);
	for (i = 0; i < 10 * TRIES && seen < 20; i++) {
		defaults();
		clean();
		retracted = vm_value(&m, "retracted");
		/* One at a time: what follows may not hide that it was lost. */
		n = flip() && send_signal(msi_to(0)) >= 0;
		park();
		if (!n)
			continue;
		outcome(&o);
		retracted = vm_value(&m, "retracted") - retracted;
		seen += retracted;
		n = irr_has(&o.irr[0], VECTOR);
		lost_retracted += retracted && !n;
		lost += !n && !(irr_has(&o.irr[1], 0xa1) && o.slots == 2 &&
				o.pending[1].bits[N / 64]);
	}
	printf("# %d MSIs, %ld retracted\n", i,
	       vm_value(&m, "retracted") - before);
	report(seen > 0, "key changes: some MSIs are retracted");
	expect(lost_retracted, 0, "key changes: what is retracted arrives as it was");
	expect(lost, 0, "key changes: none is lost");
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

/* ---- APIC ids above 255 ---- */

/* rcx: MSR, rdx:rax: its value; (rdi): not 0 when it has been written */
extern const unsigned char vm_wrmsr[], vm_wrmsr_end[];

__asm__(
".pushsection .rodata\n"
"vm_wrmsr:\n"
"	wrmsr\n"
"	movq	$1, (%rdi)\n"
"1:	pause\n"
"	jmp	1b\n"
"vm_wrmsr_end:\n"
".popsection\n");

#define VM_SENT		(VM_FLIP + 64)

/*
 * As the MSI that is listed, but from vCPU 1, which runs before the owner: that
 * it has a CPU does not say that it has come to this.
 */
static int send_ipi(void)
{
	struct kvm_regs regs = {
		.rip = VM_FLIP, .rflags = 2, .rcx = 0x830,	/* ICR */
		.rax = VECTOR, .rdx = first_id, .rdi = VM_SENT,
	};
	volatile __u64 *sent = (volatile __u64 *)(m.mem + VM_SENT);

	*sent = 0;
	return in_front(&regs) && AWAIT(*sent);
}

static void ipi(void)
{
	struct outcome o;
	int good;

	memcpy(m.mem + VM_FLIP, vm_wrmsr, vm_wrmsr_end - vm_wrmsr);
	defaults();
	clean();
	good = send_ipi();
	park();
	outcome(&o);
	good &= right(&o, &WANT(AS_IT_WAS(0)), N);
	if (!good)
		print_outcome(&o);
	report(good, "interrupt between vCPUs, like one that is listed: as it was");
}

static void x2apic(void)
{
	struct try t = behind();

	report(h->host_features & VB_HF_REDIRECT,
	       "the area says that MSIs are redirected");
	states(0);
	states(1);
	defaults();
	r->key[N] = vb_key_make(VECTOR, false, first_id & 0xff, 0);
	check("key of the id's low byte: as it was", &t, WANT(AS_IT_WAS(0)));
	ipi();
}

/* 254, 255, 256, 257: 255 can mean everybody. */
static void around_255(void)
{
	struct try t = behind();

	defaults();
	check("only 255 runs: posted", &t, WANT(POSTED(0)));
	t.state[1] = VMM;
	t.state[2] = RUNNING;
	check("256 runs: diverted", &t, WANT(DIVERTED(2)));
	t.state[0] = VMM;
	t.state[1] = PREEMPTED;
	t.msi = msi_to(1);
	r->key[N] = vb_key_make(VECTOR, false, first_id + 1, 1);
	check("255 preempted, 256 runs: diverted", &t, WANT(DIVERTED(2)));
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

static void redirect_on(void)
{
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
	retraction();
	endings();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "off"))
		return with_vm(0, redirect_off);
	if (!strcmp(mode, "x2apic"))
		return with_vm(300, x2apic);
	if (!strcmp(mode, "255"))
		return with_vm(254, around_255);
	return with_vm(0, redirect_on);
}
