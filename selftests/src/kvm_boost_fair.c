// SPDX-License-Identifier: GPL-2.0
/*
 * What a lying guest gains and its neighbour loses, and that nothing is left
 * of boosts whose thread, process, VM or module goes. Prints KTAP. Needs
 * /dev/kvm, /dev/vhost-net (or leaves it out), vbalance_host, root and two CPUs.
 *
 *	kvm_boost_fair		all but the storm; BOOSTS (1000) short ones
 *	kvm_boost_fair many	only those
 *	kvm_boost_fair short	some of it
 *	kvm_boost_fair storm	be boosted until SIGTERM, while others load and
 *				unload vbalance_host
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "steady.h"
#include "vhostring.h"

#define LIE_SECONDS	10
/*
 * Of 1000 for a tick here and there, and for who else needs the CPU: half of
 * what 20 % of boosts take away.
 */
#define MARGIN		50

/* ---- a guest that is always critical ---- */

/* What it does without end. */
enum how {
	IS_CRITICAL,
	IS_DONE,		/* is critical, and says that it is done */
	INTERRUPTS,		/* has itself interrupted, and says nothing */
	INTERRUPTS_RUNNING,	/* the same, and another vCPU of it runs */
	RINGS_HELD,		/* the same, and its rings never want another one */
	KICKS,			/* sleeps, critical, and is woken up */
};

struct lie {
	int share, vcpu_share, cpu_share;	/* percent */
	int repay;
	int row;
	enum how how;
	const char *refused;	/* grows; NULL: need not */
};

static const char * const how_name[] = {
	[IS_CRITICAL] = "",
	[IS_DONE] = ", again and again",
	[INTERRUPTS] = ", by interrupts",
	[INTERRUPTS_RUNNING] = ", by interrupts while another vCPU runs",
	[RINGS_HELD] = ", by interrupts, its rings held",
	[KICKS] = ", by waking up",
};

static int least_of(const struct lie *l)
{
	int least = l->share < l->vcpu_share ? l->share : l->vcpu_share;

	return least < l->cpu_share ? least : l->cpu_share;
}

static int takes_commands(int i)
{
	return !vm_box(&m, i)->command;
}

/* Critical only while it sleeps: it is for its wakers that it is boosted. */
static void sleeps(void)
{
	if (host[0].state == VB_VCPU_HALTED) {
		guest[0].critical = CRITICAL;
		if (takes_commands(1))
			vm_command(&thread[1], VM_CMD_KICK);
	} else if (!host[0].boosted && takes_commands(0)) {
		guest[0].critical = VB_CRITICAL_SAID;
		vm_command(&thread[0], VM_CMD_HALT);
	}
}

static void claim_once(enum how how)
{
	switch (how) {
	case IS_CRITICAL:
		guest[0].critical = CRITICAL;
		usleep(10000);
		return;
	case IS_DONE:
		guest[0].critical = CRITICAL;
		if (host[0].boosted && takes_commands(0))
			vm_command(&thread[0], VM_CMD_DONE);
		break;
	case INTERRUPTS:
	case INTERRUPTS_RUNNING:
	case RINGS_HELD:
		send(0);
		break;
	case KICKS:
		sleeps();
		break;
	}
	usleep(100);
}

/* For LIE_SECONDS. */
static void claim(const struct lie *l)
{
	__u64 end = now_ns() + LIE_SECONDS * 1000000000ULL;

	while (now_ns() < end)
		claim_once(l->how);
	guest[0].critical = VB_CRITICAL_SAID;
	if (l->how == KICKS) {
		AWAIT(takes_commands(0));
		vm_nmi(&m, 0);
	}
}

/* vCPU 1, where it helps to lie: who wakes up is beside who sleeps. */
static void helper_start(enum how how)
{
	thread[1].tid = 0;
	if (how == INTERRUPTS_RUNNING) {
		vm_start(&thread[1], &m, 1, here, VM_AREA);
		AWAIT(vm_box(&m, 1)->beats);
		least_weight(1);
	} else if (how == KICKS) {
		start(1);
	}
}

static void vcpus_end(void)
{
	int i;

	for (i = 0; i < NR; i++) {
		if (!thread[i].tid)
			continue;
		report(!vm_join(&thread[i]), "the vCPU ends well");
		vm_mp_state(&m, i, KVM_MP_STATE_RUNNABLE);
	}
}

/*
 * In SCHED_OTHER terms each on that CPU gets its part, who wakes up at most. What
 * is boosted comes on top of that, so the hog has its part of the rest; unless it
 * is paid back.
 */
static void lie(struct lie l)
{
	long ns, hog_ns, vcpu_ns, all, no, hog_part, repaid, lost;
	int least = least_of(&l), threads = l.how == KICKS ? 3 : 2;
	char text[128], what[80];
	pid_t tid = start(0);
	struct looks looks;
	struct given was;
	__u64 t;

	defaults();
	percent("boost_row", l.row);
	percent("boost_share", l.share);
	percent("boost_vcpu_share", l.vcpu_share);
	percent("boost_cpu_share", l.cpu_share);
	percent("boost_repay", l.repay);
	snprintf(what, sizeof(what), "lying, %d, %d and %d %%%s%s", l.share,
		 l.vcpu_share, l.cpu_share, l.repay ? ", paid back" : "",
		 how_name[l.how]);
	helper_start(l.how);
	looks = looks_now();
	vcpu_ns = cpu_ns(tid) + (threads == 3 ? cpu_ns(thread[1].tid) : 0);
	hog_start(HOG_FAIR);

	no = l.refused ? count(l.refused) : 0;
	repaid = count("repaid_ns");
	ns = count("boosted_ns");
	was = given_now();
	t = now_ns();
	claim(&l);
	snprintf(text, sizeof(text), "%s: at rest", what);
	report(at_rest(), text);
	repaid = count("repaid_ns") - repaid;
	ns = count("boosted_ns") - ns;
	t = now_ns() - t;
	if (least) {
		snprintf(text, sizeof(text), "%s: boosts give the CPU", what);
		/*
		 * In one of those before the machine may have stood still: that
		 * is paid first.
		 */
		if (count("longest_ns") > (long)(t / 100) * least)
			skip(text, "what a boost took while the machine stood still is more than the share of all this time");
		else	/* who is done at once needs but a part */
			report(have_given(was, 2000, l.how == IS_DONE ? 1 : 75),
			       text);
	}
	sleep(SETTLE_SECONDS);
	hog_ns = cpu_ns(hog.tid);
	vcpu_ns = cpu_ns(tid) + (threads == 3 ? cpu_ns(thread[1].tid) : 0) -
		vcpu_ns;
	looks = looks_since(looks);
	all = hog_ns + vcpu_ns;
	hog_part = hog_ns * 1000 / all;
	/* Its part of what was not paid back, of 1000. */
	lost = (ns - repaid) * 1000 / threads / all;
	printf("# boosted for %ld of %llu us, longest %ld us, paid back %ld us; vCPU %ld us, hog %ld us: %ld of 1000, expected %ld; late %ld ms\n",
	       ns / 1000, t / 1000, count("longest_ns") / 1000, repaid / 1000,
	       vcpu_ns / 1000, hog_ns / 1000, hog_part, 1000 / threads - lost,
	       looks.ns / 1000000);

	if (l.refused) {
		snprintf(text, sizeof(text), "%s: %s grows", what, l.refused);
		report(count(l.refused) > no, text);
	}
	snprintf(text, sizeof(text), "%s: %s is paid back", what,
		 l.repay && least ? "no more than was taken" : "nothing");
	/*
	 * How much less depends on how late they end: see kvm_boost_repay.c.
	 * The first one pays for one before.
	 */
	report(l.repay && least ? repaid <= ns + count("longest_ns") : !repaid,
	       text);
	/*
	 * The last boost may begin with the last token, and the worker may be
	 * late: this is what the longest one tells.
	 */
	snprintf(text, sizeof(text), "%s: %s", what,
		 least ? "no more than the share and a burst" : "nothing");
	report(least ? ns <= (long)(t / 100) * least +
				VB_BOOST_BURST_NS + count("longest_ns") :
		       !ns, text);
	snprintf(text, sizeof(text), "%s: the neighbour keeps its share", what);
	keeps_part(hog_part, 1000 / threads - lost - MARGIN, all, &looks, text);
	/* Or it would not be boosts that are measured. */
	if (l.refused && threads == 2) {
		snprintf(text, sizeof(text), "%s: and gets no more", what);
		keeps_part(1000 - hog_part, 500 + lost - MARGIN, all, &looks,
			   text);
	}
	hog_stop();
	vcpus_end();
	defaults();
}

/* ---- many ---- */

static void many(void)
{
	const char *env = getenv("BOOSTS");
	long n, wanted = env ? atol(env) : 1000, last = -1, quiet = 0;
	struct attributes before;
	pid_t tid = start(0);
	__u64 t;
	int i;

	before = make_unusual(tid);
	generous("50");
	hog_start(HOG_PULSES);
	n = begun();
	t = now_ns();
	/* For as long as they come at all. */
	for (i = 0; begun() < n + wanted && quiet < 5000; i++) {
		guest[0].critical = i & 1 ? CRITICAL : VB_CRITICAL_SAID;
		if (i % 16 == 3 && !vm_box(&m, 0)->command)
			vm_command(&thread[0], VM_CMD_DONE);
		quiet = begun() == last ? quiet + 1 : 0;
		last = begun();
		usleep(i & 1 ? 1000 : 100);
	}
	t = now_ns() - t;
	n = begun() - n;
	guest[0].critical = VB_CRITICAL_SAID;
	printf("# %ld boosts in %llu ms\n", n, t / 1000000);
	report(n >= wanted, "many short boosts");
	report(at_rest(), "many short boosts: at rest");
	expect(begun(), ended(), "many short boosts: each has ended once");
	report(becomes(tid, &before),
	       "many short boosts: the thread is as it was");
	print_counts();
	hog_stop();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	defaults();
}

/* ---- who goes ---- */

/* Its thread ends in the middle of a boost. */
static void threads_go(void)
{
	int i, good = 1;

	generous("5000");
	hog_start(HOG_FAIR);
	for (i = 0; i < 20 && good; i++) {
		start(0);
		guest[0].critical = CRITICAL;
		good = CATCH(host[0].boosted) && !vm_join(&thread[0]);
	}
	guest[0].critical = VB_CRITICAL_SAID;
	report(good, "threads end while they are boosted");
	report(at_rest(), "threads end while they are boosted: at rest");
	hog_stop();
	defaults();
}

/* Its VM is closed as soon as the thread has left it; the thread lives on. */
static void vms_go(void)
{
	struct attributes before;
	int i, good = 1, folders;

	generous("20000");
	hog_start(HOG_FAIR);
	for (i = 0; i < 10 && good; i++) {
		pid_t tid = start(0);

		before = make_unusual(tid);
		guest[0].critical = CRITICAL;
		good = CATCH(host[0].boosted);
		vm_stop(&thread[0]);
		good = good && CATCH(thread[0].waits);
		folders = vm_folders();
		/* The hog and at_rest() look at the area of the VM. */
		hog_stop();
		vm_destroy(&m);
		good = good && AWAIT(vm_folders() < folders) &&
			AWAIT(same_now(tid, &before));
		vm_quit(&thread[0]);
		good = vm_anew() && good;
		hog_start(HOG_FAIR);
	}
	report(good, "VMs are closed: their threads are as they were");
	hog_stop();
	defaults();
}

static void victim(void)
{
	vm_set_up();
	guest[0].critical = CRITICAL;
	if (vm_register(&m, VM_AREA, COOKIE))
		_exit(1);
	guest[0].critical = CRITICAL;
	hog.kind = HOG_NONE;
	hog_start(HOG_FAIR);
	start(0);
	for (;;)
		pause();
}

static void processes_go(void)
{
	int i, good = 1;
	pid_t pid;

	generous("20000");
	for (i = 0; i < 10 && good; i++) {
		fflush(stdout);
		pid = vm_must(fork(), "fork");
		if (!pid)
			victim();
		good = AWAIT(count_of(pid, "hint") > i % 3);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		good = good && AWAIT(count_of(pid, "hint") == -1);
	}
	report(good, "processes are killed while they are boosted");
	defaults();
}

/* ---- while vbalance_host comes and goes ---- */

static volatile sig_atomic_t told_to_end;

static void on_term(int sig)
{
	(void)sig;
	told_to_end = 1;
}

static int module_is_there(void)
{
	return !access("/sys/module/vbalance_host", F_OK);
}

static int storm(void)
{
	int i, registered = 0, refused = 0, checked = 0, wrong = 0, known = 0;
	struct attributes want[NR], got;
	__u64 cookie = COOKIE;
	long ret, last = 0;

	signal(SIGTERM, on_term);
	for (i = 0; i < NR; i++)
		start(i);
	for (i = 0; i < NR; i++) {
		make_unusual(thread[i].tid);
		set_slack(thread[i].tid, 123456 + i);
		want[i] = attributes_of(thread[i].tid);
	}
	hog_start(HOG_FAIR);
	while (!told_to_end) {
		if (!module_is_there()) {
			for (i = 0; i < NR; i++) {
				got = attributes_of(thread[i].tid);
				/* Or it came back just before that. */
				if (module_is_there())
					break;
				checked++;
				if (!memcmp(&got, &want[i], sizeof(got)))
					continue;
				if (!wrong++) {
					print_attributes("expected", &want[i]);
					print_attributes("got", &got);
				}
			}
			known = 0;
			usleep(1000);
			continue;
		}
		/* An extra vCPU would be in the way: the first one, stopped. */
		if (h->host_status != VB_HOST_ACTIVE || !known) {
			vm_stop(&thread[0]);
			AWAIT(thread[0].waits);
			vm_header(&m, VM_AREA, NR, ++cookie);
			for (i = 0; i < NR; i++)
				guest[i].critical = CRITICAL;
			ret = vm_register(&m, VM_AREA, cookie);
			known = !ret;
			registered += known;
			if (ret) {
				refused++;
				last = ret;
			}
			vm_loop_regs(&m, 0, VM_AREA);
			vm_resume(&thread[0]);
		}
		usleep(1000);
	}
	hog_stop();
	printf("# registered %d times, refused %d times (%ld), %d looks without the module\n",
	       registered, refused, last, checked);
	expect(wrong, 0, "storm: without the module all is as it was");
	report(checked > 0, "storm: it was seen without the module");
	report(registered > 1, "storm: registered more than once");
	for (i = 0; i < NR; i++)
		wrong |= vm_join(&thread[i]);
	report(!wrong, "storm: all vCPUs end well");
	vm_destroy(&m);
	return end();
}

/* Before the VM has an area. */
static void silent_lies(bool all)
{
	struct device d;

	lie((struct lie){ 20, 50, 50, 0, 100, INTERRUPTS, "no_vm_tokens" });
	if (!all)
		return;
	lie((struct lie){ 50, 20, 50, 0, 100, INTERRUPTS_RUNNING, "no_vcpu_tokens" });
	lie((struct lie){ 5, 4, 10, 1, 4, INTERRUPTS, NULL });
	if (access("/dev/vhost-net", R_OK | W_OK)) {
		skip("lying, its rings held", "no /dev/vhost-net");
		return;
	}
	device_open(&d, VB_RING_F_EVENT_IDX);
	device_allows(&d, 0);
	report(AWAIT(count("rings") == RINGS), "the rings are known");
	lie((struct lie){ 20, 50, 50, 0, 100, RINGS_HELD, "no_vm_tokens" });
	device_close(&d);
}

/* With a long row it may lie for as long as it has tokens. */
static void lies(bool all)
{
	if (all) {
		lie((struct lie){ 50, 20, 50, 0, 100, IS_CRITICAL, "no_vcpu_tokens" });
		lie((struct lie){ 50, 50, 20, 0, 100, IS_CRITICAL, "no_cpu_tokens" });
		lie((struct lie){ 0, 50, 50, 1, 100, IS_CRITICAL, "no_vm_tokens" });
		/* For short moments, as often as it can. */
		lie((struct lie){ 5, 50, 50, 0, 100, IS_DONE, NULL });
		lie((struct lie){ 20, 50, 50, 0, 100, KICKS, "no_vm_tokens" });
	}
	lie((struct lie){ 20, 50, 50, 0, 100, IS_CRITICAL, "no_vm_tokens" });
	/* The parameters' defaults. */
	lie((struct lie){ 5, 4, 10, 1, 4, IS_CRITICAL, NULL });
	if (!all)
		return;
	if (feature_is_on("boost_repay"))
		lie((struct lie){ 20, 50, 50, 1, 100, IS_CRITICAL, "no_vm_tokens" });
	else
		skip("lying, paid back", "not with this kernel");
}

int main(int argc, char **argv)
{
	bool only_many = argc > 1 && !strcmp(argv[1], "many");
	bool all = argc < 2;
	int folders;

	if (!set_up())
		return 4;
	if (argc > 1 && !strcmp(argv[1], "storm"))
		return storm();
	folders = vm_folders();
	defaults();
	if (!only_many) {
		processes_go();
		steady_start();
		silent_lies(all);
	}
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "registration");
	guest[0].critical = VB_CRITICAL_SAID;
	if (!only_many) {
		lies(all);
		steady_stop();
	}
	if (all || only_many)
		many();
	if (all) {
		threads_go();
		vms_go();
	}
	vm_destroy(&m);
	report(AWAIT(vm_folders() <= folders), "the counters go with the VM");
	report(all_unpinned(), "nothing pinned at the end");
	return end();
}
