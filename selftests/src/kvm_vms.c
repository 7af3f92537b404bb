// SPDX-License-Identifier: GPL-2.0
/*
 * Several VMs with registered areas: what happens to one (unregistering, a
 * reset, its end, the death of its process) is its own affair. And VMs that
 * end with vCPUs in every state. Prints KTAP. Needs /dev/kvm and
 * vbalance_host; reads its folders in debugfs.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "vmthread.h"
#include "hosttest.h"

#define COOKIE	0x1122334455667788ULL
#define NR	8
#define SLOTS	4
#define KILLED	20

static struct minivm vm[NR];
static int there;		/* CPU of vCPUs that are to be watched */
static struct {
	__u64 cookie;		/* 0: not registered */
	long registered, unregistered, reset;
} want[NR];

static struct vb_header *header(const struct minivm *m)
{
	return (struct vb_header *)(m->mem + VM_AREA);
}

static struct vb_vcpu_host *table(const struct minivm *m)
{
	return vm_host_table(header(m));
}

/* Everything that is known about VM @i is as it should be. */
static int is_well(int i)
{
	struct vb_header *h = header(&vm[i]);
	struct vb_vcpu_host *t = table(&vm[i]);
	__u64 since = t[0].changed_tsc;
	long status = vm_op(&vm[i], VB_OP_STATUS, 0, 0, want[i].cookie);
	int good, writes = t[0].changed_tsc != since;

	good = vm_value(&vm[i], "registered") == want[i].registered &&
	       vm_value(&vm[i], "unregistered") == want[i].unregistered &&
	       vm_value(&vm[i], "reset") == want[i].reset &&
	       vm_value(&vm[i], "stale_cookie") == 0 &&
	       vm_value(&vm[i], "slot_beyond_area") == 0 &&
	       vm_value(&vm[i], "active") == !!want[i].cookie &&
	       vm_value(&vm[i], "pages") ==
			(want[i].cookie ? VB_AREA_PAGES(SLOTS) : 0);
	if (want[i].cookie)
		good &= !status && writes &&
			h->host_status == VB_HOST_ACTIVE &&
			h->cookie == want[i].cookie &&
			t[0].cookie == want[i].cookie &&
			t[0].state == VB_VCPU_VMM && !h->running[0];
	else
		good &= status == -VB_ENOENT && !writes &&
			h->host_status == VB_HOST_GONE;
	if (!good)
		printf("# VM %d: status %ld, writes %d, host_status %u\n", i,
		       status, writes, h->host_status);
	return good;
}

static void all_well(int nr, const char *after)
{
	int i, good = 1, active = 0;
	char name[128];

	for (i = 0; i < nr; i++) {
		good &= is_well(i);
		active += !!want[i].cookie;
	}
	snprintf(name, sizeof(name), "%s: every VM is as it should be", after);
	report(good, name);
	snprintf(name, sizeof(name), "%s: as many pages as areas", after);
	expect(pages_held(), active * VB_AREA_PAGES(SLOTS), name);
}

/* A VM in a process of its own; -1: not registered. Killed by closing *go. */
static pid_t other_process(int *go)
{
	int ready[2], stay[2];
	char c = 0;
	pid_t pid;

	if (pipe(ready) || pipe(stay))
		vm_must(-1, "pipe");
	pid = fork();
	if (!pid) {
		struct minivm m;

		close(stay[1]);
		vm_create(&m, 2);
		vm_header(&m, VM_AREA, SLOTS, want[0].cookie);
		c = !vm_register(&m, VM_AREA, want[0].cookie);
		if (write(ready[1], &c, 1) == 1 && read(stay[0], &c, 1) >= 0)
			raise(SIGKILL);
		_exit(1);
	}
	close(ready[1]);
	close(stay[0]);
	if (read(ready[0], &c, 1) != 1 || !c)
		pid = -1;
	close(ready[0]);
	*go = stay[1];
	return pid;
}

static void several(void)
{
	int i, go, folders = vm_folders(), apart = 1;
	long held;
	pid_t pid;

	for (i = 0; i < NR; i++) {
		vm_create(&vm[i], 1 + i % 3);
		want[i].cookie = COOKIE + i;
		want[i].registered = 1;
		vm_header(&vm[i], VM_AREA, SLOTS, COOKIE + i);
		/* All at once: nobody waits for the one before. */
		apart &= !vm_op(&vm[i], VB_OP_REGISTER, VM_AREA,
				VB_ABI_VERSION, COOKIE + i);
	}
	for (i = 0; i < NR; i++)
		apart &= !vm_wait_status(&vm[i], COOKIE + i, -VB_EAGAIN);
	report(apart, "8 VMs register together");
	expect(pinned_kb(getpid()), NR * VB_AREA_PAGES(SLOTS) * VB_PAGE_SIZE /
	       1024, "8 VMs: their process is charged for all");
	expect(vm_folders(), folders + NR, "8 VMs: 8 folders");
	all_well(NR, "8 VMs");
	for (i = 0, apart = 1; i < NR; i++)
		apart &= vm_op(&vm[i], VB_OP_STATUS, 0, 0,
			       COOKIE + (i + 1) % NR) == -VB_EBUSY &&
			 vm_op(&vm[i], VB_OP_UNREGISTER, 0, 0,
			       COOKIE + (i + 1) % NR) == -VB_ENOENT;
	report(apart, "8 VMs: no use of another one's cookie");

	expect(vm_unregister(&vm[2], COOKIE + 2), -VB_ENOENT, "one unregisters");
	want[2].cookie = 0;
	want[2].unregistered = 1;
	all_well(NR, "one unregistered");

	vm_reset_mode(&vm[3], 0);
	vm_mode(&vm[3], 0, 0);
	want[3].cookie = 0;
	want[3].reset = 1;
	expect(vm_wait_status(&vm[3], COOKIE + 3, -VB_EAGAIN), -VB_ENOENT,
	       "one is reset");
	all_well(NR, "one was reset");

	/* Cookies are the guest's own: two may have the same. */
	vm_header(&vm[2], VM_AREA, SLOTS, COOKIE + 1);
	expect(vm_register(&vm[2], VM_AREA, COOKIE + 1), 0,
	       "one comes back with the cookie of another");
	want[2].cookie = COOKIE + 1;
	want[2].registered++;
	all_well(NR, "one came back");
	expect(vm_unregister(&vm[2], COOKIE + 1), -VB_ENOENT,
	       "and unregisters");
	want[2].cookie = 0;
	want[2].unregistered++;
	all_well(NR, "the other one with this cookie stays");

	held = pages_held();
	pid = other_process(&go);
	report(pid > 0, "a VM of another process registers");
	expect(pages_held(), held + VB_AREA_PAGES(SLOTS),
	       "a VM of another process: its pages");
	close(go);
	waitpid(pid, NULL, 0);
	report(AWAIT(pages_held() == held), "it is killed: its pages are free");
	report(AWAIT(vm_folders() == folders + NR),
	       "it is killed: its folder goes");
	all_well(NR, "one of another process was killed");

	vm_destroy(&vm[NR - 1]);
	report(AWAIT(vm_folders() == folders + NR - 1), "one is destroyed");
	AWAIT(pages_held() < held);
	all_well(NR - 1, "one was destroyed");
	for (i = 0; i < NR - 1; i++)
		vm_destroy(&vm[i]);
	report(all_unpinned() && AWAIT(vm_folders() == folders),
	       "all are destroyed");
}

/*
 * In the child: a VM with a vCPU in each state, all on the other CPU (who looks
 * on the same CPU sees none running). All its file descriptors are closed:
 * what keeps it are its threads in KVM_RUN.
 */
enum { IS_FIRST, IS_SECOND, IS_HALTED, IS_VMM, IS_OFF, NR_IS };

static int has_state(struct vb_vcpu_host *t, int i, __u32 state)
{
	return AWAIT(__atomic_load_n(&t[i].state, __ATOMIC_ACQUIRE) == state);
}

static int has_states(struct vb_vcpu_host *t)
{
	return has_state(t, IS_FIRST, VB_VCPU_RUNNING) &&
	       has_state(t, IS_FIRST, VB_VCPU_PREEMPTED) &&
	       has_state(t, IS_SECOND, VB_VCPU_RUNNING) &&
	       has_state(t, IS_SECOND, VB_VCPU_PREEMPTED) &&
	       has_state(t, IS_HALTED, VB_VCPU_HALTED) &&
	       has_state(t, IS_VMM, VB_VCPU_VMM) &&
	       has_state(t, IS_OFF, VB_VCPU_OFF);
}

static void every_state(unsigned char *mem, int ready)
{
	static struct vm_thread thread[NR_IS];
	static struct minivm m;
	char c = 1;
	int i;

	vm_new(&m, mem, 1);
	for (i = 0; i < NR_IS; i++) {
		vm_add_vcpu(&m);
		vm_mode(&m, i, 0);
		vm_mp_state(&m, i, i == IS_OFF ? KVM_MP_STATE_UNINITIALIZED :
						 KVM_MP_STATE_RUNNABLE);
	}
	vm_header(&m, VM_AREA, NR_IS, COOKIE);
	if (vm_register(&m, VM_AREA, COOKIE))
		_exit(1);
	for (i = 0; i < NR_IS; i++)
		vm_start(&thread[i], &m, i, there, VM_AREA);
	vm_command(&thread[IS_HALTED], VM_CMD_HALT);
	vm_command(&thread[IS_VMM], VM_CMD_LEAVE);
	/* No thread calls KVM_RUN again: the descriptors can go. */
	if (!AWAIT(thread[IS_VMM].waits) || !has_states(table(&m)))
		_exit(1);
	close(m.vm);
	close(m.kvm);
	for (i = 0; i < NR_IS; i++)
		close(m.vcpu[i]);
	if (write(ready, &c, 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

/* Ends by a signal; the memory stays ours to look at. */
static void ends(int sig, const char *how)
{
	static unsigned char copy[VM_MEM];
	unsigned char *mem = vm_memory_new();
	struct vb_header *h = (struct vb_header *)(mem + VM_AREA);
	int ready[2], folders = vm_folders();
	struct vb_vcpu_host *t;
	char name[128], c = 0;
	pid_t pid;

	if (pipe(ready))
		vm_must(-1, "pipe");
	pid = fork();
	if (!pid)
		every_state(mem, ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		c = 0;
	close(ready[0]);
	t = vm_host_table(h);
	snprintf(name, sizeof(name), "%s: its file was closed, states go on",
		 how);
	report(c && has_states(t) && h->host_status == VB_HOST_ACTIVE, name);
	kill(pid, sig);
	waitpid(pid, NULL, 0);
	snprintf(name, sizeof(name),
		 "%s with vCPUs in every state: no pages, no folder", how);
	report(all_unpinned() && AWAIT(vm_folders() == folders), name);
	snprintf(name, sizeof(name),
		 "%s with vCPUs in every state: the page says so", how);
	report(h->host_status == VB_HOST_GONE && !h->running[0], name);
	/* Another VM may come to the same place in the kernel's memory. */
	memcpy(copy, mem, VM_MEM);
	vm_create(&vm[0], NR_IS);
	vm_op(&vm[0], VB_OP_PROBE, 0, 0, 0);
	vm_destroy(&vm[0]);
	snprintf(name, sizeof(name),
		 "%s with vCPUs in every state: nothing is written any more",
		 how);
	report(!memcmp(copy, mem, VM_MEM), name);
	munmap(mem, VM_MEM);
}

/* Half of them as soon as they began, the others when they are registered. */
static void killed_together(void)
{
	int i, folders = vm_folders(), signals = 0, ready = 0;
	unsigned char *mem[KILLED];
	pid_t pid[KILLED];
	int fd[2];
	char c;

	if (pipe(fd))
		vm_must(-1, "pipe");
	for (i = 0; i < KILLED; i++) {
		mem[i] = vm_memory_new();
		pid[i] = fork();
		if (!pid[i])
			every_state(mem[i], fd[1]);
	}
	close(fd[1]);
	while (ready < KILLED / 2 && read(fd[0], &c, 1) == 1)
		ready++;
	for (i = 0; i < KILLED; i++)
		kill(pid[i], SIGKILL);
	for (i = 0; i < KILLED; i++) {
		int status;

		waitpid(pid[i], &status, 0);
		signals += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		munmap(mem[i], VM_MEM);
	}
	close(fd[0]);
	report(ready >= KILLED / 2 && signals == KILLED,
	       "20 VMs are killed, half of them while they come");
	report(all_unpinned(), "20 VMs are killed: no pages are left");
	report(AWAIT(vm_folders() == folders),
	       "20 VMs are killed: no folders are left");
}

int main(void)
{
	int here;

	begin();
	several();
	if (!vm_two_cpus(&here, &there)) {
		skip("the end of VMs with vCPUs in every state",
		     "needs two CPUs");
		return end();
	}
	ends(SIGKILL, "killed");
	ends(SIGTERM, "ended");
	killed_together();
	return end();
}
