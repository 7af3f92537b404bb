// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of VMs and vCPUs, and the work item that does for them what the
 * hooks may not do (sleep): debugfs folders, pinning, releasing, freeing.
 *
 * vbh_lock is never taken in the put hook (which may run under the scheduler's
 * run-queue lock). It is a raw lock, always taken with interrupts off, and
 * nothing is called under it that could sleep or allocate.
 */
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "../common/fault.h"
#include "vbh.h"

#define VBH_HASH_BITS	10

static struct hlist_head vbh_vcpu_hash[1 << VBH_HASH_BITS];
static struct hlist_head vbh_vm_hash[1 << VBH_HASH_BITS];

DEFINE_RAW_SPINLOCK(vbh_lock);
LIST_HEAD(vbh_vms);

static struct workqueue_struct *vbh_wq;

static void vbh_maintain(struct work_struct *work);
static DECLARE_WORK(vbh_work, vbh_maintain);

static void vbh_irq_work_fn(struct irq_work *work)
{
	queue_work(vbh_wq, &vbh_work);
}

/* Hard interrupt context also on PREEMPT_RT would be wrong for queue_work(). */
static DEFINE_IRQ_WORK(vbh_irq_work, vbh_irq_work_fn);

/**
 * vbh_kick() - let the work item look at all VMs soon
 * Context: any, also under the run-queue lock (irq_work, no wake-up here).
 */
void vbh_kick(void)
{
	irq_work_queue(&vbh_irq_work);
}

static struct hlist_head *vbh_vcpu_bucket(const struct kvm_vcpu *vcpu)
{
	return &vbh_vcpu_hash[hash_ptr(vcpu, VBH_HASH_BITS)];
}

static struct hlist_head *vbh_vm_bucket(const struct kvm *kvm)
{
	return &vbh_vm_hash[hash_ptr(kvm, VBH_HASH_BITS)];
}

/**
 * vbh_vcpu_find() - our object of a vCPU
 * @vcpu: vCPU, only compared
 * Context: RCU read side (preemption disabled will do).
 * Return: the object or NULL.
 */
struct vbh_vcpu *vbh_vcpu_find(const struct kvm_vcpu *vcpu)
{
	struct vbh_vcpu *v;

	hlist_for_each_entry_rcu(v, vbh_vcpu_bucket(vcpu), node,
				 lockdep_is_held(&vbh_lock) ||
				 rcu_read_lock_sched_held())
		if (v->vcpu == vcpu)
			return v;
	return NULL;
}

struct vbh_vm *vbh_vm_find(const struct kvm *kvm)
{
	struct vbh_vm *vm;

	hlist_for_each_entry_rcu(vm, vbh_vm_bucket(kvm), node,
				 lockdep_is_held(&vbh_lock) ||
				 rcu_read_lock_sched_held())
		if (vm->kvm == kvm)
			return vm;
	return NULL;
}

/* pid-fd, the name of KVM's own debugfs folder; without debugfs only the pid. */
static void vbh_vm_name(struct vbh_vm *vm, const struct kvm *kvm)
{
	if (!IS_ERR_OR_NULL(kvm->debugfs_dentry)) {
		snprintf(vm->name, sizeof(vm->name), "%pd",
			 kvm->debugfs_dentry);
		vm->named = true;
	}
}

static struct vbh_vm *vbh_vm_new(const struct kvm *kvm)
{
	struct vbh_vm *vm = kzalloc(sizeof(*vm), __GFP_NOWARN);

	if (!vm)
		return NULL;
	INIT_LIST_HEAD(&vm->vcpus);
	INIT_LIST_HEAD(&vm->gone);
	raw_spin_lock_init(&vm->bucket_lock);
	vm->kvm = kvm;
	vm->mm = kvm->mm;
	vm->pid = kvm->userspace_pid;
	vm->status = -VB_ENOENT;
	snprintf(vm->name, sizeof(vm->name), "%d", vm->pid);
	vbh_vm_name(vm, kvm);
	return vm;
}

/**
 * vbh_vcpu_discover() - make our object for a vCPU that was not known yet
 * @vcpu: alive (the caller is in one of its hooks, or walks its VM)
 *
 * vCPUs are discovered when they are loaded for the first time after our
 * module came: no other hook is needed for those that existed before. Happens
 * once for each vCPU, so the allocation is not on the hot path; it takes from
 * the free lists only (no reclaim, no kswapd wake-up: no GFP_* bits but
 * NOWARN) and a failure is tried again at the next load.
 *
 * Context: preemption disabled, run-queue lock not held.
 * Return: the object, or NULL (no memory, vCPU not complete, VM going).
 */
struct vbh_vcpu *vbh_vcpu_discover(struct kvm_vcpu *vcpu)
{
	struct kvm *kvm = vcpu->kvm;
	struct vbh_vm *vm, *new_vm = NULL;
	struct vbh_vcpu *v, *new;
	unsigned long flags;

	/*
	 * KVM loads vCPUs before they are complete (kvm_arch_vcpu_create, no
	 * vcpu_idx yet) and after their VM has lost its last user
	 * (kvm_arch_destroy_vm): too early and too late for us.
	 */
	if (!refcount_read(&kvm->users_count) ||
	    kvm_get_vcpu(kvm, vcpu->vcpu_idx) != vcpu)
		return NULL;
	new = kzalloc(sizeof(*new), __GFP_NOWARN);
	if (!new)
		goto no_memory;
	vbh_rings_vcpu_init(new);
	if (!vbh_vm_find(kvm)) {
		new_vm = vbh_vm_new(kvm);
		if (!new_vm)
			goto no_memory;
	}

	raw_spin_lock_irqsave(&vbh_lock, flags);
	v = vbh_vcpu_find(vcpu);
	vm = vbh_vm_find(kvm);
	/* Faster than we: a hypercall of another vCPU (vbh_discover_vcpus()). */
	if (vb_fault("discover") || v || (vm && vm->dying) || (!vm && !new_vm))
		goto out_unlock;
	if (!vm) {
		vm = new_vm;
		new_vm = NULL;
		hlist_add_head_rcu(&vm->node, vbh_vm_bucket(kvm));
		list_add_tail(&vm->list, &vbh_vms);
	}
	v = new;
	new = NULL;
	v->vcpu = vcpu;
	v->vm = vm;
	v->slot = vcpu->vcpu_idx;
	v->apic_id = vcpu->vcpu_id;
	v->changed_tsc = rdtsc();
	vbh_note_tsc(v, vcpu);
	vm->nr_vcpus++;
	list_add_tail_rcu(&v->list, &vm->vcpus);
	hlist_add_head_rcu(&v->node, vbh_vcpu_bucket(vcpu));
	vbh_stat_inc(VBH_S_DISCOVERED);
	vbh_kick();
out_unlock:
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	kfree(new);
	kfree(new_vm);
	return v;

no_memory:
	kfree(new);
	vbh_stat_inc(VBH_S_NO_MEMORY);
	return NULL;
}

static void vbh_vcpu_unlink(struct vbh_vcpu *v)
{
	lockdep_assert_held(&vbh_lock);
	hlist_del_rcu(&v->node);
	list_del_rcu(&v->list);
	v->vm->nr_vcpus--;
	/* KVM destroys vCPUs with their VM only; a boost may still use it. */
	vbh_boost_end(v, VBH_B_END_GONE);
	list_add(&v->gone, &v->vm->gone);
}

/**
 * vbh_vm_detach() - take a VM's area, if it has one, away from the hooks
 * @vm: the work item will release it
 * @tell: the guest runs on: it is told when no hook can write any more. Else,
 *	a reset or the end of the VM, it is told now: when the work item comes to
 *	it the memory may be somebody else's, and our cookie still be in it
 *
 * Context: vbh_lock held.
 */
void vbh_vm_detach(struct vbh_vm *vm, bool tell)
{
	struct vbh_reg *reg = rcu_dereference_protected(vm->reg,
						lockdep_is_held(&vbh_lock));

	lockdep_assert_held(&vbh_lock);
	/* What has been taken away before: whoever had a reason not to. */
	vm->tell = tell && (vm->cookie || vm->tell);
	WRITE_ONCE(vm->cookie, 0);	/* a set-up under way notices */
	if (!reg)
		return;
	RCU_INIT_POINTER(vm->reg, NULL);
	vm->old_reg = reg;
	vm->status = -VB_EAGAIN;
	if (!tell)
		vbh_area_tell(reg);
	vbh_kick();
}

/*
 * Off the hash at once, so that a new VM at the same address is a new object;
 * the area goes as well. The work item frees the rest.
 */
static void vbh_vm_unlink(struct vbh_vm *vm, bool tell)
{
	vbh_vm_detach(vm, tell);
	hlist_del_rcu(&vm->node);
	vm->unlinked = true;
	vbh_kick();
}

/* kvm_arch_vcpu_destroy(). Context: any. */
void vbh_vcpu_destroyed(const struct kvm_vcpu *vcpu)
{
	struct vbh_vcpu *v;
	struct vbh_vm *vm;
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	v = vbh_vcpu_find(vcpu);
	if (v) {
		vm = v->vm;
		vbh_vcpu_unlink(v);
		if (vm->dying && !vm->nr_vcpus)
			vbh_vm_unlink(vm, false);
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
}

/*
 * Entry of kvm_arch_destroy_vm(): no vCPU thread is left in KVM, but the
 * function itself still loads vCPUs before it destroys them one by one. So
 * the VM only stops accepting new vCPUs here and leaves with its last one.
 * Context: any.
 */
void vbh_vm_destroyed(const struct kvm *kvm)
{
	struct vbh_vm *vm;
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	vm = vbh_vm_find(kvm);
	if (vm) {
		vm->dying = true;
		/* Its memory may be another one's already, if it is a file's. */
		vbh_vm_detach(vm, false);
		/* It is known by its vCPUs, and those go after this: never yet. */
		if (!vm->nr_vcpus)
			vbh_vm_unlink(vm, false);
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
}

/* All at once: kvm.ko or our module goes, the hooks are off. May sleep. */
void vbh_vm_drop_all(void)
{
	struct vbh_vcpu *v, *next;
	struct vbh_vm *vm;
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	list_for_each_entry(vm, &vbh_vms, list) {
		if (vm->unlinked)
			continue;
		vm->dying = true;
		list_for_each_entry_safe(v, next, &vm->vcpus, list)
			vbh_vcpu_unlink(v);
		vbh_vm_unlink(vm, true);
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);

	irq_work_sync(&vbh_irq_work);
	if (vbh_wq) {
		queue_work(vbh_wq, &vbh_work);
		flush_work(&vbh_work);
	}
}

/* Pin and map what a guest asked for; the VM cannot vanish under us. */
static void vbh_vm_setup(struct vbh_vm *vm, struct vbh_request *req)
{
	struct vbh_reg *reg;
	unsigned long flags;
	int err = 0;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (vm->unlinked || vm->cookie != req->layout.cookie) {
		/* Reset or unregistered before we came to it. */
		if (!vm->old_reg && !vm->request)
			vm->status = -VB_ENOENT;
		raw_spin_unlock_irqrestore(&vbh_lock, flags);
		vbh_request_free(req);
		return;
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);

	reg = vbh_area_map(req, &vm->cookie, &err);
	/* -VB_EAGAIN: nobody wants it any more. */
	if (!reg && err != -VB_EAGAIN)
		vbh_count_refusal(err);
	vb_fault_wait("setup");

	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (reg && (vm->unlinked || vm->cookie != req->layout.cookie)) {
		/* Destroyed, reset or unregistered while we pinned. */
		vm->old_reg = reg;
		vm->status = -VB_EAGAIN;
		reg = NULL;
	} else if (reg) {
		rcu_assign_pointer(vm->reg, reg);
	} else if (vm->cookie == req->layout.cookie) {
		vm->status = err;
		vm->cookie = 0;
	} else {
		/* Refused, and nobody waits for it any more. */
		vm->status = -VB_ENOENT;
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);

	vbh_request_free(req);
	if (!reg)
		return;

	/*
	 * From here on each change of state is published by the hooks. Give
	 * the area what was known before, then say that it is complete. Only
	 * this work item releases areas, so @reg stays.
	 */
	synchronize_rcu();
	vbh_publish_all(vm, reg);
	atomic64_inc(&vm->count[VBH_VM_REGISTERED]);

	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (rcu_access_pointer(vm->reg) == reg)
		vm->status = 0;
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
}

/* What has to be done for a VM; taken under vbh_lock. */
struct vbh_todo {
	struct vbh_vm *vm;
	struct vbh_request *request;
	struct vbh_reg *old_reg;
	bool add_dir;
	bool free;
};

static bool vbh_next_todo(struct vbh_todo *todo)
{
	struct vbh_vm *vm;
	unsigned long flags;

	memset(todo, 0, sizeof(*todo));
	raw_spin_lock_irqsave(&vbh_lock, flags);
	list_for_each_entry(vm, &vbh_vms, list) {
		todo->add_dir = !vm->dir && !vm->unlinked;
		todo->free = vm->unlinked;
		if (!vm->request && !vm->old_reg && !todo->add_dir &&
		    !todo->free)
			continue;
		todo->vm = vm;
		todo->request = vm->request;
		vm->request = NULL;
		todo->old_reg = vm->old_reg;
		vm->old_reg = NULL;
		/* At the end: a busy VM does not keep others waiting. */
		if (todo->free)
			list_del(&vm->list);
		else
			list_move_tail(&vm->list, &vbh_vms);
		break;
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	return todo->vm;
}

static bool vbh_mm_has_vm(const struct mm_struct *mm)
{
	const struct vbh_vm *vm;
	unsigned long flags;
	bool has = false;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	list_for_each_entry(vm, &vbh_vms, list)
		has |= vm->mm == mm;
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	return has;
}

/* No hook finds it any more. */
static void vbh_vm_free(struct vbh_vm *vm)
{
	struct vbh_vcpu *v, *next;

	vbh_boost_wait(vm);
	list_for_each_entry_safe(v, next, &vm->gone, gone) {
		vbh_rings_vcpu_exit(v);
		kfree(v);
	}
	if (!vbh_mm_has_vm(vm->mm))
		vbh_rings_vm_gone(vm->mm);
	kfree(vm);
}

static void vbh_maintain(struct work_struct *work)
{
	struct vbh_todo todo;
	unsigned long flags;

	while (vbh_next_todo(&todo)) {
		struct vbh_vm *vm = todo.vm;

		if (todo.add_dir)
			vbh_debugfs_add_vm(vm);
		if (todo.old_reg) {
			/* Hooks that still use it are read sides. */
			synchronize_rcu();
			vb_fault_wait("tell");
			raw_spin_lock_irqsave(&vbh_lock, flags);
			/* Unless the VM has ended since. */
			if (vm->tell)
				vbh_area_tell(todo.old_reg);
			raw_spin_unlock_irqrestore(&vbh_lock, flags);
			vbh_area_release(todo.old_reg);
			raw_spin_lock_irqsave(&vbh_lock, flags);
			if (!vm->request && !vm->old_reg && !todo.request)
				vm->status = -VB_ENOENT;
			raw_spin_unlock_irqrestore(&vbh_lock, flags);
		}
		if (todo.free) {
			vbh_debugfs_del_vm(vm);
			if (todo.request)
				vbh_request_free(todo.request);
			synchronize_rcu();
			vbh_vm_free(vm);
		} else if (todo.request) {
			vbh_vm_setup(vm, todo.request);
		}
	}
}

int vbh_vm_init(void)
{
	/* One worker: set-up and release of an area never run side by side. */
	vbh_wq = alloc_ordered_workqueue("vbalance_host", 0);
	return vbh_wq ? 0 : -ENOMEM;
}

/* After the hooks are off. */
void vbh_vm_exit(void)
{
	vbh_vm_drop_all();
	destroy_workqueue(vbh_wq);
	vbh_wq = NULL;
}
