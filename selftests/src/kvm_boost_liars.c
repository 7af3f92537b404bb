// SPDX-License-Identifier: GPL-2.0
/*
 * Two lying VMs and a busy neighbour on one CPU: what the two gain is no more
 * than the buckets allow, of each VM, also of one that lies with two vCPUs, and
 * of the CPU. Prints KTAP. Needs
 * /dev/kvm, vbalance_host, root and two CPUs.
 *
 *	kvm_boost_liars		for a minute
 *	kvm_boost_liars short	one of them
 *
 * The second VM is another process's.
 */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/wait.h>

#include "steady.h"

#define LIE_SECONDS	5
/* Of 1000 for a tick here and there, and for who else needs the CPU. */
#define MARGIN		50

/* What the other process tells, and is told. */
static struct {
	volatile pid_t tid;	/* of its vCPU */
	volatile int lies, quit;
} *other;

static pid_t other_pid;

static void other_process(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vm_set_up();
	if (vm_register(&m, VM_AREA, COOKIE))
		_exit(1);
	guest[0].critical = VB_CRITICAL_SAID;
	other->tid = start(0);
	while (!other->quit) {
		guest[0].critical = other->lies ? CRITICAL : VB_CRITICAL_SAID;
		usleep(1000);
	}
	_exit(vm_join(&thread[0]));
}

static int other_start(void)
{
	other = mmap(NULL, sizeof(*other), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (other == MAP_FAILED)
		vm_must(-1, "mmap");
	fflush(stdout);
	other_pid = vm_must(fork(), "fork");
	if (!other_pid)
		other_process();
	return AWAIT(other->tid);
}

static int other_end(void)
{
	int status;

	other->quit = 1;
	return waitpid(other_pid, &status, 0) == other_pid && !status;
}

static int other_at_rest(void)
{
	return count_of(other_pid, "hint") ==
		count_of(other_pid, "ended_bound") +
		count_of(other_pid, "ended_off_cpu");
}

/* ---- what both have, or one ---- */

struct gain {
	long ns[2];		/* of boosts */
	long no[2];		/* refused */
	long vcpu_ns[2], second_ns, hog_ns;
	__u64 t;
};

static struct gain gain_now(const char *refused)
{
	return (struct gain){
		.ns = { count("boosted_ns"),
			count_of(other_pid, "boosted_ns") },
		.no = { count(refused), count_of(other_pid, refused) },
		.vcpu_ns = { cpu_ns(thread[0].tid), cpu_ns(other->tid) },
		.second_ns = thread[1].tid ? cpu_ns(thread[1].tid) : 0,
		.hog_ns = hog.kind == HOG_NONE ? 0 : cpu_ns(hog.tid),
		.t = now_ns(),
	};
}

static struct gain gain_since(struct gain was, const char *refused)
{
	struct gain g = gain_now(refused);
	int i;

	for (i = 0; i < 2; i++) {
		g.ns[i] -= was.ns[i];
		g.no[i] -= was.no[i];
		g.vcpu_ns[i] -= was.vcpu_ns[i];
	}
	g.second_ns -= was.second_ns;
	g.hog_ns -= was.hog_ns;
	g.t -= was.t;
	return g;
}

static long longest(int i)
{
	return i ? count_of(other_pid, "longest_ns") : count("longest_ns");
}

/* The last boost may begin with the last token, and the worker may be late. */
static int within(long ns, __u64 t, int share, long last)
{
	return ns <= (long)(t / 100) * share + VB_BOOST_BURST_NS + last;
}

struct limits {
	int share, vcpu_share, cpu_share;	/* percent */
	const char *refused;			/* grows, for both */
	int second;				/* our VM lies with two vCPUs */
};

/* Return: the second vCPU was boosted as well. */
static int lie_for(int seconds, int second)
{
	__u64 end = now_ns() + seconds * 1000000000ULL;
	int seen = 0;

	guest[0].critical = CRITICAL;
	if (second)
		guest[1].critical = CRITICAL;
	other->lies = 1;
	while (now_ns() < end) {
		seen |= host[1].boosted;
		usleep(1000);
	}
	guest[0].critical = VB_CRITICAL_SAID;
	guest[1].critical = VB_CRITICAL_SAID;
	other->lies = 0;
	return seen;
}

static void lie(struct limits l)
{
	int least = l.share < l.vcpu_share ? l.share : l.vcpu_share;
	int seen, threads = 3 + l.second;
	long all, hog_part, lost;
	char what[80], text[128];
	struct gain was, g;
	struct looks looks;

	defaults();
	/* They may lie for as long as they have tokens. */
	set_parameter("boost_row", "100");
	set_parameter("boost_repay", "0");
	percent("boost_share", l.share);
	percent("boost_vcpu_share", l.vcpu_share);
	percent("boost_cpu_share", l.cpu_share);
	snprintf(what, sizeof(what), "two liars%s, %d, %d and %d %%",
		 l.second ? ", one with two vCPUs" : "", l.share, l.vcpu_share,
		 l.cpu_share);
	if (l.second)
		start(1);
	looks = looks_now();
	was = gain_now(l.refused);
	hog_start(HOG_FAIR);
	/* So long that what a late end may add is little beside the share. */
	seen = lie_for(LIE_SECONDS * (l.second ? 3 : 1), l.second);
	snprintf(text, sizeof(text), "%s: at rest", what);
	report(AWAIT(other_at_rest()) && at_rest(), text);
	g = gain_since(was, l.refused);
	sleep(SETTLE_SECONDS);
	was = gain_since(was, l.refused);
	all = was.vcpu_ns[0] + was.second_ns + was.vcpu_ns[1] + was.hog_ns;
	looks = looks_since(looks);
	hog_part = was.hog_ns * 1000 / all;
	/* Its part of what was boosted, of 1000. */
	lost = (g.ns[0] + g.ns[1]) * 1000 / threads / all;
	printf("# boosted for %ld and %ld of %llu us, longest %ld and %ld us; vCPUs %ld, %ld and %ld us, hog %ld us: %ld of 1000, expected %ld; late %ld ms\n",
	       g.ns[0] / 1000, g.ns[1] / 1000, g.t / 1000, longest(0) / 1000,
	       longest(1) / 1000, was.vcpu_ns[0] / 1000, was.second_ns / 1000,
	       was.vcpu_ns[1] / 1000, was.hog_ns / 1000, hog_part,
	       1000 / threads - lost, looks.ns / 1000000);

	snprintf(text, sizeof(text), "%s: both are boosted", what);
	report(g.ns[0] > 0 && g.ns[1] > 0 && seen == l.second, text);
	snprintf(text, sizeof(text), "%s: %s grows for both", what, l.refused);
	report(g.no[0] > 0 && g.no[1] > 0, text);
	snprintf(text, sizeof(text), "%s: each within its share", what);
	report(within(g.ns[0], g.t, least, longest(0)) &&
	       within(g.ns[1], g.t, least, longest(1)), text);
	/* Of both one may have begun. */
	snprintf(text, sizeof(text), "%s: both within the CPU's", what);
	report(within(g.ns[0] + g.ns[1], g.t, l.cpu_share,
		      longest(0) + longest(1)), text);
	/* By counted CPU time, whatever the module says about boosts. */
	snprintf(text, sizeof(text), "%s: the neighbour keeps its share", what);
	keeps_part(hog_part, 1000 / threads - lost - MARGIN, all, &looks, text);
	hog_stop();
	if (l.second) {
		snprintf(text, sizeof(text), "%s: the second one ends well",
			 what);
		report(!vm_join(&thread[1]), text);
		thread[1].tid = 0;
	}
	defaults();
}

int main(int argc, char **argv)
{
	int all = argc < 2 || strcmp(argv[1], "short");

	begin();
	if (!vm_two_cpus(&here, &there)) {
		printf("1..0 # SKIP needs two CPUs\n");
		return 4;
	}
	defaults();
	report(other_start(), "another VM");
	vm_set_up();
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	start(0);
	steady_start();
	/*
	 * A bucket for each would be twice as much: first, as long boosts of
	 * others later on would be allowed for.
	 */
	if (all) {
		lie((struct limits){ 5, 50, 50, "no_vm_tokens", 1 });
		lie((struct limits){ 5, 50, 50, "no_vm_tokens", 0 });
		lie((struct limits){ 50, 5, 50, "no_vcpu_tokens", 0 });
		lie((struct limits){ 50, 50, 10, "no_cpu_tokens", 0 });
	}
	/* As many as there are: the CPU's is what counts. */
	lie((struct limits){ 20, 20, 20, "no_cpu_tokens", 0 });
	steady_stop();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	report(other_end(), "the other one too");
	vm_destroy(&m);
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
