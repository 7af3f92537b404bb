// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's hypercalls, answered where KVM would say -KVM_ENOSYS.
 *
 * vbh_hypercall() runs in the return probe of kvm_emulate_hypercall(), in the
 * vCPU's thread inside KVM_RUN with kvm->srcu read-locked and preemption
 * disabled: it may look at memslots and read guest memory that is present,
 * and leaves everything that sleeps (pinning, mapping) to the work item.
 */
#include <linux/kvm_host.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../common/fault.h"
#include "vbh.h"
#include "vbh_trace.h"

void vbh_count_refusal(long err)
{
	static const struct {
		int err;
		enum vbh_stat stat;
	} map[] = {
		{ VB_EPERM, VBH_S_REFUSED_EPERM },
		{ VB_ENOENT, VBH_S_REFUSED_ENOENT },
		{ VB_EAGAIN, VBH_S_REFUSED_EAGAIN },
		{ VB_ENOMEM, VBH_S_REFUSED_ENOMEM },
		{ VB_EFAULT, VBH_S_REFUSED_EFAULT },
		{ VB_EBUSY, VBH_S_REFUSED_EBUSY },
		{ VB_EROFS, VBH_S_REFUSED_EROFS },
		{ VB_EPROTO, VBH_S_REFUSED_EPROTO },
		{ VB_EOPNOTSUPP, VBH_S_REFUSED_EOPNOTSUPP },
	};
	int n;

	for (n = 0; n < ARRAY_SIZE(map) && map[n].err != -err; n++)
		;
	vbh_stat_inc(n < ARRAY_SIZE(map) ? map[n].stat :
					   VBH_S_REFUSED_EINVAL);
}

/*
 * Host virtual address of a guest page that the host may write.
 * Context: kvm->srcu read side.
 */
static int vbh_gfn_to_hva(struct kvm *kvm, u64 gfn, unsigned long *hva)
{
	struct kvm_memory_slot *slot;

	slot = __gfn_to_memslot(kvm_memslots(kvm), gfn);
	if (!slot || slot->flags & KVM_MEMSLOT_INVALID ||
	    slot->id >= KVM_USER_MEM_SLOTS)
		return -VB_EFAULT;
	if (slot->flags & KVM_MEM_READONLY)
		return -VB_EROFS;
	*hva = __gfn_to_hva_memslot(slot, gfn);
	return 0;
}

static int vbh_request_fill(struct kvm *kvm, struct vbh_request *req, u64 gpa,
			    u64 cookie)
{
	unsigned long hva;
	struct page *page;
	u32 i;
	int err;

	err = vbh_gfn_to_hva(kvm, gpa >> VB_PAGE_SHIFT, &hva);
	if (err)
		return err;
	/* Not present right now (swapped, ...): the guest touches it, again. */
	if (vb_fault("absent") ||
	    copy_from_user_nofault(&req->hdr, (void __user *)hva,
				   sizeof(req->hdr)))
		return -VB_EAGAIN;
	err = vb_area_check(&req->hdr, gpa, cookie, &req->layout);
	if (err)
		return err;
	/*
	 * In place: hva[i] lies at or before gfn[i - 96], which has been read
	 * already.
	 */
	for (i = 0; i < req->layout.nr_pages; i++) {
		err = vbh_gfn_to_hva(kvm, READ_ONCE(req->hdr.gfn[i]), &hva);
		if (err)
			return err;
		req->hva[i] = hva;
		if (get_user_pages_fast_only(hva, 1, FOLL_WRITE, &page) != 1)
			return -VB_EAGAIN;
		req->page[i] = page;
		put_page(page);
	}
	return 0;
}

void vbh_request_free(struct vbh_request *req)
{
	if (req->mm)
		mmdrop(req->mm);
	kfree(req);
}

/* vCPUs that passed no hook since our module came have no object yet. */
static struct vbh_vm *vbh_discover_vcpus(const struct kvm_vcpu *caller)
{
	struct kvm *kvm = caller->kvm;
	struct vbh_vm *vm = vbh_vm_find(kvm);
	struct kvm_vcpu *vcpu;
	struct vbh_vcpu *v;
	unsigned long i;

	if (vm && READ_ONCE(vm->nr_vcpus) == atomic_read(&kvm->online_vcpus))
		return vm;
	kvm_for_each_vcpu(i, vcpu, kvm) {
		v = vbh_vcpu_find(vcpu);
		if (!v)
			v = vbh_vcpu_discover(vcpu);
		if (v)
			vbh_infer_state(v, vcpu, vcpu == caller);
	}
	return vbh_vm_find(kvm);
}

/*
 * May this VM register now? Also lets go of an area whose pages have got
 * another owner: a kernel that came without a reset that we saw.
 */
static long vbh_may_register(struct vbh_vm *vm)
{
	struct vbh_reg *reg;
	unsigned long flags;
	long err = 0;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	reg = rcu_dereference_protected(vm->reg, lockdep_is_held(&vbh_lock));
	if (reg && READ_ONCE(reg->hdr->cookie) != reg->layout.cookie) {
		vbh_vm_detach(vm, false);
		err = -VB_EAGAIN;
	} else if (vm->dying || reg) {
		err = -VB_EBUSY;
	} else if (vm->request || vm->old_reg || vm->status == -VB_EAGAIN) {
		/* Being set up, or being let go? */
		err = vm->cookie ? -VB_EBUSY : -VB_EAGAIN;
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	return err;
}

static long vbh_op_register(struct kvm_vcpu *vcpu, u64 gpa, u64 version,
			    u64 cookie)
{
	struct kvm *kvm = vcpu->kvm;
	struct vbh_request *req;
	struct vbh_vm *vm;
	unsigned long flags;
	long err;

	if (version != VB_ABI_VERSION)
		return -VB_EPROTO;
	if (!cookie || gpa & (VB_PAGE_SIZE - 1))
		return -VB_EINVAL;
	vm = vbh_discover_vcpus(vcpu);
	if (!vm)
		return -VB_ENOMEM;
	err = vbh_may_register(vm);
	if (err)
		return err;

	req = kzalloc(sizeof(*req), GFP_NOWAIT | __GFP_NOWARN);
	if (!req)
		return -VB_ENOMEM;
	err = vbh_request_fill(kvm, req, gpa, cookie);
	if (err)
		goto out_free;
	mmgrab(kvm->mm);
	req->mm = kvm->mm;
	req->pid = vm->pid;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (vm->dying || vm->request || vm->old_reg ||
	    rcu_access_pointer(vm->reg) || vm->status == -VB_EAGAIN) {
		err = -VB_EBUSY;
	} else {
		vm->request = req;
		vm->cookie = cookie;
		vm->status = -VB_EAGAIN;
		req = NULL;
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	if (!err)
		vbh_kick();
out_free:
	if (req)
		vbh_request_free(req);
	return err;
}

static long vbh_op_unregister(struct kvm_vcpu *vcpu, u64 cookie)
{
	struct vbh_vm *vm = vbh_vm_find(vcpu->kvm);
	unsigned long flags;
	long err = 0;

	if (!vm)
		return -VB_ENOENT;
	raw_spin_lock_irqsave(&vbh_lock, flags);
	if (!cookie || vm->cookie != cookie) {
		err = -VB_ENOENT;
	} else {
		vbh_vm_detach(vm, true);
		atomic64_inc(&vm->count[VBH_VM_UNREGISTERED]);
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	return err;
}

static long vbh_op_status(struct kvm_vcpu *vcpu, u64 cookie)
{
	struct vbh_vm *vm = vbh_vm_find(vcpu->kvm);
	unsigned long flags;
	long ret;

	if (!vm)
		return -VB_ENOENT;
	raw_spin_lock_irqsave(&vbh_lock, flags);
	ret = vm->status;
	if (!ret && vm->cookie != cookie)
		ret = -VB_EBUSY;
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
	return ret;
}

static long vbh_op_done(const struct kvm_vcpu *vcpu)
{
	struct vbh_vcpu *v = vbh_vcpu_find(vcpu);

	if (v)
		vbh_boost_end(v, VBH_B_END_DONE);
	return 0;
}

/**
 * vbh_hypercall() - answer a guest
 * @vcpu: caller, in its own thread; kernel mode of the guest (KVM saw to it)
 * @op: VB_OP_*
 * @a1: rcx
 * @a2: rdx
 * @a3: rsi
 *
 * Context: preemption disabled, kvm->srcu read side.
 * Return: what goes to rax.
 */
long vbh_hypercall(struct kvm_vcpu *vcpu, u64 op, u64 a1, u64 a2, u64 a3)
{
	bool question = op == VB_OP_PROBE || op == VB_OP_STATUS;
	long ret;

	vbh_stat_inc(VBH_S_HYPERCALLS);
	switch (op) {
	case VB_OP_PROBE:
		ret = VB_ABI_VERSION;
		break;
	case VB_OP_REGISTER:
		ret = vbh_op_register(vcpu, a1, a2, a3);
		break;
	case VB_OP_UNREGISTER:
		ret = vbh_op_unregister(vcpu, a3);
		break;
	case VB_OP_STATUS:
		ret = vbh_op_status(vcpu, a3);
		break;
	case VB_OP_DONE:
		ret = vbh_op_done(vcpu);
		break;
	default:
		ret = -VB_EOPNOTSUPP;
	}
	if (ret < 0 && !question)
		vbh_count_refusal(ret);
	trace_vb_host_hypercall(vcpu->kvm->userspace_pid, vcpu->vcpu_id, op, a1,
				a3, ret);
	return ret;
}

/**
 * vbh_vm_reset() - the VMM put the boot vCPU back into its reset state
 * @kvm: its VM
 *
 * The memory may soon belong to a fresh kernel. The guest did not say
 * good-bye, so nobody waits for the end of our writes but the cookie check.
 * Those that other CPUs are just in the middle of are the last.
 * Context: any.
 */
void vbh_vm_reset(const struct kvm *kvm)
{
	struct vbh_vm *vm;
	unsigned long flags;

	raw_spin_lock_irqsave(&vbh_lock, flags);
	vm = vbh_vm_find(kvm);
	if (vm && vm->cookie) {
		vbh_vm_detach(vm, false);
		atomic64_inc(&vm->count[VBH_VM_RESET]);
	}
	raw_spin_unlock_irqrestore(&vbh_lock, flags);
}
