// SPDX-License-Identifier: GPL-2.0
/*
 * Every refusal of a hypercall, from VMs of our own: its code, its counter up
 * by one and no other counter, as many pages pinned as before. Prints KTAP.
 * Needs /dev/kvm and vbalance_host; reads its counters in debugfs.
 *
 * Not here: -VB_ENOMEM, which needs fault injection.
 */
#include <glob.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "refusal.h"

#define SIDE		VM_MEM		/* guest address of the second slot */
#define SIDE_SIZE	0x1000UL

static void bad_header(struct minivm *m, size_t offset, size_t size,
		       __u64 value, long err, const char *name)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);

	memcpy((char *)h + offset, &value, size);
	REFUSED(err, name, vm_register(m, VM_AREA, COOKIE));
}

#define BAD(m, field, value, err)					\
	bad_header(m, offsetof(struct vb_header, field),		\
		   sizeof(((struct vb_header *)0)->field), value, err,	\
		   "header: wrong " #field)

static long reg(struct minivm *m, __u64 gpa, __u64 version, __u64 cookie)
{
	return vm_op(m, VB_OP_REGISTER, gpa, version, cookie);
}

static void arguments(struct minivm *m)
{
	QUESTION(VB_ABI_VERSION, "probe", vm_op(m, VB_OP_PROBE, 0, 0, 0));
	QUESTION(-VB_ENOENT, "status without registration",
		 vm_op(m, VB_OP_STATUS, 0, 0, COOKIE));
	QUESTION(-VB_ENOSYS, "other hypercalls are left to KVM",
		 vm_call(m, 0, VB_HYPERCALL + 1, 0, 0, 0, 0));
	REFUSED(-VB_ENOENT, "unregister without registration",
		vm_op(m, VB_OP_UNREGISTER, 0, 0, COOKIE));
	REFUSED(-VB_ENOENT, "unregister without registration, cookie 0",
		vm_op(m, VB_OP_UNREGISTER, 0, 0, 0));
	REFUSED(-VB_EOPNOTSUPP, "unknown operation",
		vm_op(m, VB_NR_OPS, 0, 0, 0));
	REFUSED(-VB_EOPNOTSUPP, "unknown operation, all bits",
		vm_op(m, ~0ULL, 0, 0, 0));

	vm_header(m, VM_AREA, 4, COOKIE);
	REFUSED(-VB_EINVAL, "misaligned address",
		reg(m, VM_AREA + 8, VB_ABI_VERSION, COOKIE));
	REFUSED(-VB_EPROTO, "wrong version",
		reg(m, VM_AREA, VB_ABI_VERSION + 1, COOKIE));
	REFUSED(-VB_EPROTO, "wrong version, high bits",
		reg(m, VM_AREA, VB_ABI_VERSION | 1ULL << 32, COOKIE));
	REFUSED(-VB_EINVAL, "cookie 0", reg(m, VM_AREA, VB_ABI_VERSION, 0));
	REFUSED(-VB_EINVAL, "cookie differs from the header's",
		reg(m, VM_AREA, VB_ABI_VERSION, COOKIE + 1));
	REFUSED(-VB_EFAULT, "address behind the memory",
		reg(m, VM_MEM, VB_ABI_VERSION, COOKIE));
	REFUSED(-VB_EFAULT, "address beyond what a CPU has",
		reg(m, 0xffffffffff000ULL, VB_ABI_VERSION, COOKIE));
	REFUSED(-VB_EFAULT, "highest page address",
		reg(m, ~0xfffULL, VB_ABI_VERSION, COOKIE));
}

static void headers(struct minivm *m)
{
	struct vb_header *h;

	BAD(m, magic, 1, -VB_EINVAL);
	BAD(m, abi_version, VB_ABI_VERSION + 1, -VB_EPROTO);
	BAD(m, nr_slots, 0, -VB_EINVAL);
	BAD(m, nr_slots, VB_MAX_SLOTS + 1, -VB_EINVAL);
	BAD(m, nr_slots, 0xffffffff, -VB_EINVAL);
	BAD(m, nr_pages, 2, -VB_EINVAL);
	BAD(m, nr_pages, 0xffffffff, -VB_EINVAL);
	BAD(m, host_table_page, 0, -VB_EINVAL);
	BAD(m, host_table_page, 2, -VB_EINVAL);
	BAD(m, guest_table_page, 0, -VB_EINVAL);
	BAD(m, guest_table_page, 1, -VB_EINVAL);
	BAD(m, guest_table_page, 0xffffffff, -VB_EINVAL);
	BAD(m, redirect_page, 0, -VB_EINVAL);
	BAD(m, redirect_page, 0xffffffff, -VB_EINVAL);
	BAD(m, pending_page, 0, -VB_EINVAL);
	BAD(m, pending_page, 0xffffffff, -VB_EINVAL);
	BAD(m, guest_flags, 1, -VB_EINVAL);
	BAD(m, cookie, 0, -VB_EINVAL);
	BAD(m, gfn[0], 0, -VB_EINVAL);

	h = vm_header(m, VM_AREA, 4, COOKIE);
	h->gfn[2] = VM_MEM >> VB_PAGE_SHIFT;
	REFUSED(-VB_EFAULT, "one page of the area is not memory",
		vm_register(m, VM_AREA, COOKIE));
	h->gfn[2] = ~0ULL;
	REFUSED(-VB_EFAULT, "one page of the area is nowhere",
		vm_register(m, VM_AREA, COOKIE));
	/* What is wrong stands at the very end of the longest list. */
	h = vm_header(m, VM_AREA, VB_MAX_SLOTS, COOKIE);
	h->gfn[h->nr_pages - 1] = VM_MEM >> VB_PAGE_SHIFT;
	REFUSED(-VB_EFAULT, "the last page of the largest area is not memory",
		vm_register(m, VM_AREA, COOKIE));
}

static void busy(struct minivm *m)
{
	vm_header(m, VM_AREA, 4, COOKIE);
	vm_header(m, VM_AREA + 0x8000, 4, 5);
	expect(vm_register(m, VM_AREA, COOKIE), 0, "one registration");
	REFUSED(-VB_EBUSY, "second registration",
		reg(m, VM_AREA, VB_ABI_VERSION, COOKIE));
	REFUSED(-VB_EBUSY, "second registration elsewhere",
		reg(m, VM_AREA + 0x8000, VB_ABI_VERSION, 5));
	QUESTION(-VB_EBUSY, "status with another cookie",
		 vm_op(m, VB_OP_STATUS, 0, 0, COOKIE + 1));
	REFUSED(-VB_ENOENT, "unregister with another cookie",
		vm_op(m, VB_OP_UNREGISTER, 0, 0, COOKIE + 1));
	QUESTION(0, "the first one is still there",
		 vm_op(m, VB_OP_STATUS, 0, 0, COOKIE));
	expect(vm_unregister(m, COOKIE), -VB_ENOENT, "and unregisters");
}

static void user_mode(void)
{
	struct minivm m;

	vm_create(&m, 1);
	vm_header(&m, VM_AREA, 1, COOKIE);
	vm_mode(&m, 0, 1);
	REFUSED(-VB_EPERM, "guest user mode registers",
		reg(&m, VM_AREA, VB_ABI_VERSION, COOKIE));
	REFUSED(-VB_EPERM, "guest user mode asks",
		vm_op(&m, VB_OP_PROBE, 0, 0, 0));
	vm_mode(&m, 0, 0);
	expect(vm_op(&m, VB_OP_STATUS, 0, 0, COOKIE), -VB_ENOENT,
	       "guest user mode: nothing registered");
	vm_destroy(&m);
}

/* An area with its table, or its header, in a second slot over @mem. */
static void side(struct minivm *m, void *mem, __u32 flags, long err,
		 const char *what)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);
	char name[128];

	vm_memory(m, 1, SIDE, mem, SIDE_SIZE, flags);
	h->gfn[1] = SIDE >> VB_PAGE_SHIFT;
	snprintf(name, sizeof(name), "table in %s", what);
	REFUSED(err, name, vm_register(m, VM_AREA, COOKIE));
	vm_memory(m, 1, SIDE, mem, 0, 0);
}

static void side_header(struct minivm *m, void *mem, __u32 flags, long err,
			const char *what)
{
	char name[128];

	vm_memory(m, 1, SIDE, mem, SIDE_SIZE, flags);
	snprintf(name, sizeof(name), "header in %s", what);
	REFUSED(err, name, vm_register(m, SIDE, COOKIE));
	vm_memory(m, 1, SIDE, mem, 0, 0);
}

static void *pages(int prot, int flags)
{
	void *p = mmap(NULL, SIDE_SIZE, prot, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		vm_must(-1, "mmap");
	return p;
}

/* A good area whose header is in the second slot. */
static void fill_side(struct minivm *m, void *mem)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);

	h->gfn[0] = SIDE >> VB_PAGE_SHIFT;
	memcpy(mem, h, VB_PAGE_SIZE);
}

static void memory(struct minivm *m)
{
	unsigned char *p = pages(PROT_READ | PROT_WRITE, MAP_SHARED);
	volatile unsigned char *q;
	unsigned char sum = 0;
	size_t i;

	memset(p, 0, SIDE_SIZE);
	fill_side(m, p);
	side(m, p, KVM_MEM_READONLY, -VB_EROFS, "a read-only slot");
	side_header(m, p, KVM_MEM_READONLY, -VB_EROFS, "a read-only slot");
	mprotect(p, SIDE_SIZE, PROT_READ);
	side(m, p, 0, -VB_EAGAIN, "memory that the process may not write");
	side_header(m, p, 0, -VB_EAGAIN,
		    "memory that the process may not write");
	mprotect(p, SIDE_SIZE, PROT_NONE);
	side(m, p, 0, -VB_EAGAIN, "memory that the process may not read");
	side_header(m, p, 0, -VB_EAGAIN,
		    "memory that the process may not read");
	mprotect(p, SIDE_SIZE, PROT_READ | PROT_WRITE);

	/* Not present: refused until somebody touches it. */
	vm_memory(m, 1, SIDE, p, SIDE_SIZE, 0);
	madvise(p, SIDE_SIZE, MADV_REMOVE);
	vm_header(m, VM_AREA, 4, COOKIE)->gfn[1] = SIDE >> VB_PAGE_SHIFT;
	REFUSED(-VB_EAGAIN, "a page that was given back",
		vm_register(m, VM_AREA, COOKIE));
	memset(p, 0, SIDE_SIZE);
	expect(vm_register(m, VM_AREA, COOKIE), 0,
	       "the same page, after it was written");
	expect(vm_unregister(m, COOKIE), -VB_ENOENT, "and unregistered");
	vm_memory(m, 1, SIDE, p, 0, 0);

	/* The slot stays, the process's memory goes. */
	fill_side(m, p);
	vm_memory(m, 1, SIDE, p, SIDE_SIZE, 0);
	munmap(p, SIDE_SIZE);
	REFUSED(-VB_EAGAIN, "header in memory that was unmapped",
		vm_register(m, SIDE, COOKIE));
	vm_header(m, VM_AREA, 4, COOKIE)->gfn[1] = SIDE >> VB_PAGE_SHIFT;
	REFUSED(-VB_EAGAIN, "table in memory that was unmapped",
		vm_register(m, VM_AREA, COOKIE));
	vm_memory(m, 1, SIDE, p, 0, 0);
	REFUSED(-VB_EFAULT, "table in a slot that was taken away",
		vm_register(m, VM_AREA, COOKIE));

	/* Only read so far: the zero page, which nobody may write. */
	q = pages(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	for (i = 0; i < SIDE_SIZE; i += VB_PAGE_SIZE)
		sum |= q[i];
	if (!sum)
		side(m, (void *)q, 0, -VB_EAGAIN, "the zero page");
	munmap((void *)q, SIDE_SIZE);
}

/* Memory that has no pages of its own: a PCI device's. */
static void device_memory(struct minivm *m)
{
	static const char name[] = "table in a PCI device's memory";
	void *p = MAP_FAILED;
	struct stat st;
	glob_t g;
	size_t i;
	int fd;

	if (glob("/sys/bus/pci/devices/*/resource[0-5]", 0, NULL, &g))
		g.gl_pathc = 0;
	for (i = 0; i < g.gl_pathc && p == MAP_FAILED; i++) {
		fd = open(g.gl_pathv[i], O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_size >= (off_t)SIDE_SIZE)
			p = mmap(NULL, SIDE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_SHARED, fd, 0);
		close(fd);
	}
	if (p == MAP_FAILED) {
		skip(name, "no PCI device lets us map any");
		return;
	}
	side(m, p, 0, -VB_EAGAIN, "a PCI device's memory");
	munmap(p, SIDE_SIZE);
}

/* Memory that the kernel itself must not reach. */
static void secret_memory(struct minivm *m)
{
	void *p = MAP_FAILED;
	int fd = syscall(447 /* memfd_secret */, O_CLOEXEC);

	if (fd >= 0 && !ftruncate(fd, SIDE_SIZE))
		p = mmap(NULL, SIDE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED) {
		skip("table in secret memory", "no memfd_secret here");
		return;
	}
	memset(p, 0, SIDE_SIZE);
	side(m, p, 0, -VB_EAGAIN, "secret memory");
	munmap(p, SIDE_SIZE);
}

/* Memory that must not be written behind a file system's back. */
static void file_memory(struct minivm *m)
{
	void *p = page_of_file();

	if (!p) {
		skip("table in a file", "no ramfs");
		return;
	}
	side(m, p, 0, -VB_EFAULT, "a file");
	fill_side(m, p);
	side_header(m, p, 0, -VB_EFAULT, "a file");
	munmap(p, VB_PAGE_SIZE);
}

/*
 * One page in two roles is the guest's own folly: the host may refuse or take
 * it, but it writes nowhere else, and lets go of all.
 */
static void twice(struct minivm *m, int to, int from, const char *name)
{
	size_t area = 3 * VB_PAGE_SIZE, rest = VM_AREA + area;
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);
	unsigned char *copy = malloc(VM_MEM);
	struct counts before = counts_now();
	int good, refused;
	char text[128];
	long ret;

	h->gfn[to] = h->gfn[from];
	memcpy(copy, m->mem, VM_MEM);
	ret = vm_register(m, VM_AREA, COOKIE);
	refused = ret == -VB_EINVAL;
	if (!ret) {
		vm_op(m, VB_OP_PROBE, 0, 0, 0);
		ret = vm_unregister(m, COOKIE);
		ret = ret == -VB_ENOENT ? 0 : ret;
	}
	good = only_grew(&before, refused ? -VB_EINVAL : 0);
	snprintf(text, sizeof(text), "%s: refused, or taken and left", name);
	report((!ret || refused) && good, text);
	snprintf(text, sizeof(text), "%s: nothing else was written", name);
	report(!memcmp(copy, m->mem, VM_AREA) &&
	       !memcmp(copy + rest, m->mem + rest, VM_MEM - rest) &&
	       !memcmp(copy + VM_AREA + to * VB_PAGE_SIZE,
		       m->mem + VM_AREA + to * VB_PAGE_SIZE, VB_PAGE_SIZE),
	       text);
	free(copy);
}

int main(void)
{
	struct minivm m;

	begin();
	vm_create(&m, 1);
	arguments(&m);
	headers(&m);
	busy(&m);
	user_mode();
	memory(&m);
	device_memory(&m);
	secret_memory(&m);
	file_memory(&m);
	twice(&m, 1, 0, "host table over the header");
	twice(&m, 2, 0, "guest table over the header");
	twice(&m, 2, 1, "guest table over the host table");
	vm_header(&m, VM_AREA, 4, COOKIE);
	expect(vm_register(&m, VM_AREA, COOKIE), 0,
	       "after all that, a good area is taken");
	expect(vm_unregister(&m, COOKIE), -VB_ENOENT, "and left");
	vm_destroy(&m);
	report(pinned_kb(getpid()) == 0 && all_unpinned(),
	       "nothing pinned at the end");
	return end();
}
