/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that run vCPUs of a minivm in vm_loop, and what brings them into
 * each run state.
 */
#ifndef _VB_VMTHREAD_H
#define _VB_VMTHREAD_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include "minivm.h"

struct vm_thread {
	struct minivm *m;
	int i;			/* index of the vCPU, which is its slot */
	int cpu;		/* where it runs; -1: anywhere */
	int stop, quit;
	int waits;		/* it is in user space, until vm_resume() */
	int error;		/* errno or exit reason that ended it */
	volatile pid_t tid;	/* 0: not there yet */
	sem_t go;
	pthread_t thread;
};

static __thread struct kvm_run *vm_run_here;

static inline __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline volatile struct vm_box *vm_box(struct minivm *m, int i)
{
	return (struct vm_box *)(m->mem + VM_BOXES) + i;
}

/* A signal also ends a KVM_RUN that is only about to begin. */
static void vm_on_signal(int sig)
{
	(void)sig;
	if (vm_run_here)
		vm_run_here->immediate_exit = 1;
}

/* The calling thread on one CPU; false if it is not there (or not ours). */
static inline int vm_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* A CPU other than @cpu, or -1. */
static inline int vm_other_cpu(int cpu)
{
	int i, found = -1;

	for (i = 0; i < CPU_SETSIZE && found < 0; i++)
		if (i != cpu && vm_pin(i))
			found = i;
	vm_pin(cpu);
	return found;
}

/* Stays on this CPU; @there is another one. Return: there is one. */
static inline int vm_two_cpus(int *here, int *there)
{
	*here = sched_getcpu();
	*there = vm_pin(*here) ? vm_other_cpu(*here) : -1;
	return *there >= 0;
}

static inline void vm_loop_regs(struct minivm *m, int i, __u64 area)
{
	struct vb_header *h = (struct vb_header *)(m->mem + area);
	__u64 box = VM_BOXES + i * sizeof(struct vm_box);
	struct kvm_regs r = {
		.rip = VM_LOOP, .rflags = 2, .rdi = box,
		.rsp = box + sizeof(struct vm_box),
		.rsi = area + offsetof(struct vb_header, running), .r8 = i,
		.r9 = area + h->host_table_page * VB_PAGE_SIZE +
		      i * sizeof(struct vb_vcpu_host),
	};

	vm_must(ioctl(m->vcpu[i], KVM_SET_REGS, &r), "KVM_SET_REGS");
}

static void *vm_thread_fn(void *arg)
{
	struct vm_thread *t = arg;
	struct kvm_run *run = t->m->run[t->i];

	if (t->cpu >= 0 && !vm_pin(t->cpu))
		t->error = errno;
	vm_run_here = run;
	t->tid = gettid();
	while (!t->error && !t->quit) {
		int leave = 0;

		if (!ioctl(t->m->vcpu[t->i], KVM_RUN, 0)) {
			leave = run->exit_reason == KVM_EXIT_IO;
			if (!leave)
				t->error = 1000 + run->exit_reason;
		} else if (errno == EINTR) {
			run->immediate_exit = 0;
			leave = t->stop;
		} else if (errno != EAGAIN) {	/* was in WAIT-FOR-SIPI */
			t->error = errno;
		}
		if (leave && !t->quit) {
			t->stop = 0;
			__atomic_store_n(&t->waits, 1, __ATOMIC_RELEASE);
			while (sem_wait(&t->go))
				;
		}
	}
	vm_run_here = NULL;
	return NULL;
}

/* vCPU @i of @m in vm_loop, on CPU @cpu. Its area is registered at @area. */
static inline void vm_start(struct vm_thread *t, struct minivm *m, int i,
			    int cpu, __u64 area)
{
	struct sigaction sa = { .sa_handler = vm_on_signal };

	*t = (struct vm_thread){ .m = m, .i = i, .cpu = cpu };
	sigaction(SIGUSR1, &sa, NULL);
	sem_init(&t->go, 0, 0);
	memset((void *)vm_box(m, i), 0, sizeof(struct vm_box));
	vm_loop_regs(m, i, area);
	vm_pthread(&t->thread, vm_thread_fn, t);
}

static inline void vm_command(struct vm_thread *t, __u64 command)
{
	vm_box(t->m, t->i)->command = command;
}

/* Out of the guest at any instruction, then asleep in user space. */
static inline void vm_stop(struct vm_thread *t)
{
	t->stop = 1;
	pthread_kill(t->thread, SIGUSR1);
}

static inline void vm_resume(struct vm_thread *t)
{
	t->waits = 0;
	sem_post(&t->go);
}

/* Ends the thread; returns 0 if nothing was wrong with it. */
static inline int vm_join(struct vm_thread *t)
{
	t->quit = 1;
	sem_post(&t->go);
	pthread_kill(t->thread, SIGUSR1);
	pthread_join(t->thread, NULL);
	if (t->error)
		printf("# vCPU %d: error %d\n", t->i, t->error);
	return t->error;
}

/* The same of one that waits, without its VM: its signal handler looks at that. */
static inline void vm_quit(struct vm_thread *t)
{
	t->quit = 1;
	sem_post(&t->go);
	pthread_join(t->thread, NULL);
}

/* An NMI to the vCPU with this APIC id. Needs KVM's own irqchip. */
static inline void vm_nmi(struct minivm *m, unsigned int apic_id)
{
	struct kvm_msi msi = {
		.address_lo = 0xfee00000 | apic_id << 12, .data = 4 << 8,
	};

	vm_must(ioctl(m->vm, KVM_SIGNAL_MSI, &msi), "KVM_SIGNAL_MSI");
}

static inline void vm_mp_state(struct minivm *m, int i, __u32 state)
{
	struct kvm_mp_state s = { .mp_state = state };

	vm_must(ioctl(m->vcpu[i], KVM_SET_MP_STATE, &s), "KVM_SET_MP_STATE");
}

#endif /* _VB_VMTHREAD_H */
