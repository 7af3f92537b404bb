// SPDX-License-Identifier: GPL-2.0
/*
 * Redirection at delivery: which of two running vCPUs gets an MSI. Prints
 * KTAP. Needs /dev/kvm, vbalance_host, root and two CPUs.
 */
#define _GNU_SOURCE
#include "redirecttest.h"

#define VM_SHOT		0x7800UL
#define VM_SHOTS	0xf0000UL
#define VM_CLOCK	0xf8000UL

/*
 * vCPU 1 counts as running while its thread, a real-time one in front of the
 * owner's, is in a long vCPU ioctl; vCPU 2 runs in this thread, on this CPU, and
 * sends the MSI itself: a port that is an irqfd. It looks at the host's table
 * just before and just after, and does so when vCPU 1 has just come back: when
 * it goes away again, the host knows that a little earlier than its table says
 * so, or much earlier if its processor does not run meanwhile; see was_there().
 * (Two in guest mode at the same time are more than emulated processors can
 * be trusted with.)
 * rdi: where to, r8: host's table, r9: its length / 8, r10: rounds to wait,
 * r11: vCPU 1's state
 */
_Static_assert(VB_VCPU_RUNNING == 1, "vm_shot");

extern const unsigned char vm_shot[], vm_shot_end[];

__asm__(
".pushsection .rodata\n"
"vm_shot:\n"
"1:	dec	%r10\n"
"	jnz	1b\n"
"2:	cmpl	$1, (%r11)\n"
"	je	2b\n"
"3:	cmpl	$1, (%r11)\n"
"	jne	3b\n"
"	mov	%r8, %rsi\n"
"	mov	%r9, %rcx\n"
"	rep	movsq\n"
"	out	%al, $0xf5\n"		/* PORT */
"	rdtsc\n"
"	shl	$32, %rdx\n"
"	or	%rdx, %rax\n"
"	mov	%r8, %rsi\n"
"	mov	%r9, %rcx\n"
"	rep	movsq\n"
"	stosq\n"
"	out	%al, $0xf4\n"
"vm_shot_end:\n"
".popsection\n");

#define TABLE	(VM_AREA + VB_HOST_TABLE_PAGE * VB_PAGE_SIZE)

static volatile const struct vb_vcpu_host *published(int i)
{
	return (const struct vb_vcpu_host *)(m.mem + TABLE) + i;
}

static int after_2;		/* vCPU 1 comes to its CPU when 2 has come */
static __u64 since_2;		/* its state's, when vCPU 1 had not come yet */
static volatile pid_t tid_1;	/* of vCPU 1's thread */
static __u64 left_1[1 << 16];	/* when each of its ioctls was over, guest TSC */
static unsigned int nr_left_1;

static void *long_ioctls(void *unused)
{
	static struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[255];
	} list;
	int i;

	(void)unused;
	vm_pin(there);
	real_time(pthread_self(), MIDDLE);
	tid_1 = gettid();
	/* Each of them writes to guest memory, three times. */
	list.head.nmsrs = 255;
	for (i = 0; i < 255; i++)
		list.entry[i] = (struct kvm_msr_entry){
			.index = 0x11, .data = VM_CLOCK, /* KVM_WALL_CLOCK */
		};
	nr_left_1 = 0;
	/* In this order: a change after that look is not missed. */
	do
		since_2 = published(2)->changed_tsc;
	while (after_2 && published(2)->state != RUNNING &&
	       !__atomic_load_n(&hog_stop, __ATOMIC_RELAXED));
	while (!__atomic_load_n(&hog_stop, __ATOMIC_RELAXED)) {
		if (ioctl(m.vcpu[1], KVM_SET_MSRS, &list) != 255)
			vm_must(-1, "KVM_SET_MSRS");
		if (nr_left_1 < sizeof(left_1) / sizeof(*left_1))
			left_1[nr_left_1++] = published(1)->changed_tsc;
	}
	return NULL;
}

struct shot {
	struct vb_vcpu_host before[SLOTS], after[SLOTS];
	__u64 sent;		/* the MSI, when that was over; guest TSC */
};

/*
 * vCPU 1 was in the ioctl for as long as the MSI was sent, for the host, too,
 * which may not have come to saying so. Once its thread has ended.
 */
static int was_there(const struct shot *s)
{
	unsigned int i;

	for (i = 0; i < nr_left_1; i++)
		if (left_1[i] > s->before[1].changed_tsc)
			return left_1[i] > s->sent;
	return 0;
}

static void shot_regs(__u64 rounds)
{
	struct kvm_regs regs = {
		.rip = VM_SHOT, .rflags = 2, .rdi = VM_SHOTS, .r8 = TABLE,
		.r9 = SLOTS * sizeof(struct vb_vcpu_host) / 8, .r10 = rounds,
		.r11 = TABLE + sizeof(struct vb_vcpu_host) +
			offsetof(struct vb_vcpu_host, state),
	};

	vm_must(ioctl(m.vcpu[2], KVM_SET_REGS, &regs), "KVM_SET_REGS");
}

static void shoot(void)
{
	while (ioctl(m.vcpu[2], KVM_RUN, 0) < 0)
		if (errno != EINTR)
			vm_must(-1, "KVM_RUN");
	if (m.run[2]->exit_reason != KVM_EXIT_IO) {
		printf("# vCPU 2: exit reason %u\n", m.run[2]->exit_reason);
		exit(1);
	}
}

/* How often the thread of vCPU 1 has lost or left its CPU. */
static long switches_1(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid_1);
	return value_of(path, "voluntary_ctxt_switches:") +
		value_of(path, "nonvoluntary_ctxt_switches:");
}

/*
 * Who has come to its CPU last is as it was meant: the one that was there
 * first has not come anew since, and begun another stay.
 */
static int as_meant(long switches)
{
	const struct shot *s = (const struct shot *)(m.mem + VM_SHOTS);

	return after_2 ? s->before[2].changed_tsc == since_2 :
		switches_1() == switches;
}

/* Who sleeps begins another stay, so ioctls on its vCPU do not count. */
static void forget_stays(void)
{
	usleep(2 * VB_ABSENCE_MIN_NS / 1000);
}

/*
 * One MSI; returns who got it (1 or 2), 0: nobody, -1: not as it should be,
 * -2: the states were others. @later: 1 was in user space since 2 came.
 */
static int choice(__u64 rounds, int *later)
{
	const struct shot *s = (const struct shot *)(m.mem + VM_SHOTS);
	int i, meant, steady = 1;
	struct outcome o;
	long switches;

	clean();
	resume(0);
	if (!AWAIT(state_is(0, RUNNING)))
		steady = 0;
	shot_regs(rounds);
	forget_stays();
	hog_start(long_ioctls);
	if (!AWAIT(state_is(0, PREEMPTED)) ||
	    (!after_2 && !AWAIT(state_is(1, RUNNING))))
		steady = 0;
	switches = switches_1();
	/* Seen there after that: if it went before, it has come before 2 does. */
	if (!after_2 && !AWAIT(state_is(1, RUNNING)))
		steady = 0;
	shoot();
	meant = as_meant(switches);
	park();
	outcome(&o);
	for (i = 0; i < SLOTS; i++)
		steady &= s->before[i].state == (i ? RUNNING : PREEMPTED) &&
			  s->after[i].state == s->before[i].state &&
			  s->after[i].changed_tsc == s->before[i].changed_tsc;
	if (!steady || !meant || !was_there(s))
		return -2;
	*later = s->before[1].changed_tsc > s->before[2].changed_tsc;
	for (i = 1; i < SLOTS; i++)
		if (right(&o, &WANT(DIVERTED(i)), N))
			return i;
	print_outcome(&o);
	return right(&o, &WANT(POSTED(0)), N) ? 0 : -1;
}

/* @must: who has to get it; 0: the one that came last to its CPU. */
static void choose(const char *name, __u64 load1, __u64 load2, int must)
{
	int i, who, last, later, bad = 0, steady = 0, seen[3] = { };

	defaults();
	guest[1].irq_load_ns = load1;
	guest[2].irq_load_ns = load2;
	/*
	 * Both have come last, and both have got it if both may; and 1 was in
	 * user space for a moment after 2 came, which is not to count.
	 */
	for (i = 0; i < 10 * TRIES && !bad && !(seen[1] && seen[2]); i++) {
		after_2 = i & 1;
		last = after_2 ? 1 : 2;
		who = choice(1 << (19 + i / 2 % 6), &later);
		if (who == -2)
			continue;
		steady++;
		seen[last] += later;
		bad = who != (must ? must : last);
		if (bad)
			printf("# went to %d, last on its CPU is %d\n", who,
			       last);
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

int main(void)
{
	return with_vm(0, choices);
}
