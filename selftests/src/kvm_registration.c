// SPDX-License-Identifier: GPL-2.0
/*
 * Registration and every refusal, from a VM of our own. Prints KTAP. Needs
 * /dev/kvm and vbalance_host; reads its counters in debugfs.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "minivm.h"

#define STATS	"/sys/kernel/debug/vbalance/host/stats"
#define COOKIE	0x1122334455667788ULL

static int tests, failures;

static void report(int good, const char *name)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, name);
	fflush(stdout);
	failures += !good;
}

static void expect(long got, long want, const char *name)
{
	if (got != want)
		printf("# %s: got %ld, expected %ld\n", name, got, want);
	report(got == want, name);
}

static long stat_of(const char *name)
{
	char word[64];
	long value;
	FILE *f = fopen(STATS, "r");

	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", word, &value) >= 1) {
		if (!strcmp(word, name)) {
			fclose(f);
			return value;
		}
	}
	fclose(f);
	return -1;
}

/* VmPin of a process, kB. */
static long pinned_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static int all_unpinned(void)
{
	int i;

	for (i = 0; i < 500; i++) {
		if (stat_of("pages_pinned") == stat_of("pages_unpinned"))
			return 1;
		usleep(10000);
	}
	return 0;
}

/* A refusal with its code, its counter, and nothing pinned afterwards. */
static void refused(struct minivm *m, __u64 gpa, __u64 version, __u64 cookie,
		    long err, const char *counter, const char *name)
{
	long before = stat_of(counter);
	long ret = vm_op(m, VB_OP_REGISTER, gpa, version, cookie);
	char text[128];

	if (!ret)	/* taken, then refused by the work item */
		ret = vm_wait_status(m, cookie, -VB_EAGAIN);
	expect(ret, err, name);
	snprintf(text, sizeof(text), "%s: counted, nothing pinned", name);
	report(stat_of(counter) == before + 1 && pinned_kb(getpid()) == 0 &&
	       all_unpinned(), text);
}

static void bad_header(struct minivm *m, size_t offset, size_t size,
		       __u64 value, long err, const char *name)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);

	memcpy((char *)h + offset, &value, size);
	refused(m, VM_AREA, VB_ABI_VERSION, COOKIE, err,
		err == -VB_EPROTO ? "refused_eproto" : "refused_einval", name);
}

#define BAD(m, field, value, err)					\
	bad_header(m, offsetof(struct vb_header, field),		\
		   sizeof(((struct vb_header *)0)->field), value, err,	\
		   "header: wrong " #field)

static void refusals(struct minivm *m)
{
	struct vb_header *h;
	void *ro;

	expect(vm_op(m, VB_OP_PROBE, 0, 0, 0), VB_ABI_VERSION, "probe");
	expect(vm_op(m, VB_OP_STATUS, 0, 0, COOKIE), -VB_ENOENT,
	       "status without registration");
	expect(vm_op(m, VB_OP_UNREGISTER, 0, 0, COOKIE), -VB_ENOENT,
	       "unregister without registration");
	expect(vm_op(m, VB_NR_OPS, 0, 0, 0), -VB_EOPNOTSUPP,
	       "unknown operation");
	expect(vm_op(m, ~0ULL, 0, 0, 0), -VB_EOPNOTSUPP,
	       "unknown operation, all bits");
	expect(vm_call(m, 0, VB_HYPERCALL + 1, 0, 0, 0, 0), -1000,
	       "other hypercalls are left to KVM");

	vm_header(m, VM_AREA, 4, COOKIE);
	refused(m, VM_AREA + 8, VB_ABI_VERSION, COOKIE, -VB_EINVAL,
		"refused_einval", "misaligned address");
	refused(m, VM_AREA, VB_ABI_VERSION + 1, COOKIE, -VB_EPROTO,
		"refused_eproto", "wrong version");
	refused(m, VM_AREA, VB_ABI_VERSION, 0, -VB_EINVAL, "refused_einval",
		"cookie 0");
	refused(m, VM_AREA, VB_ABI_VERSION, COOKIE + 1, -VB_EINVAL,
		"refused_einval", "cookie differs from the header's");
	refused(m, VM_MEM, VB_ABI_VERSION, COOKIE, -VB_EFAULT,
		"refused_efault", "address behind the memory");
	refused(m, 0xffffffffff000ULL, VB_ABI_VERSION, COOKIE, -VB_EFAULT,
		"refused_efault", "address beyond what a CPU has");
	refused(m, ~0xfffULL, VB_ABI_VERSION, COOKIE, -VB_EFAULT,
		"refused_efault", "highest page address");

	BAD(m, magic, 1, -VB_EINVAL);
	BAD(m, abi_version, VB_ABI_VERSION + 1, -VB_EPROTO);
	BAD(m, nr_slots, 0, -VB_EINVAL);
	BAD(m, nr_slots, VB_MAX_SLOTS + 1, -VB_EINVAL);
	BAD(m, nr_slots, 0xffffffff, -VB_EINVAL);
	BAD(m, nr_pages, 2, -VB_EINVAL);
	BAD(m, nr_pages, 0xffffffff, -VB_EINVAL);
	BAD(m, host_table_page, 2, -VB_EINVAL);
	BAD(m, guest_table_page, 0xffffffff, -VB_EINVAL);
	BAD(m, guest_flags, 1, -VB_EINVAL);
	BAD(m, cookie, 0, -VB_EINVAL);
	BAD(m, gfn[0], 0, -VB_EINVAL);

	h = vm_header(m, VM_AREA, 4, COOKIE);
	h->gfn[2] = VM_MEM >> VB_PAGE_SHIFT;
	refused(m, VM_AREA, VB_ABI_VERSION, COOKIE, -VB_EFAULT,
		"refused_efault", "one page of the area is not memory");
	h->gfn[2] = ~0ULL;
	refused(m, VM_AREA, VB_ABI_VERSION, COOKIE, -VB_EFAULT,
		"refused_efault", "one page of the area is nowhere");

	/* Read-only for the guest, and one page of it in an area. */
	ro = mmap(NULL, VM_MEM, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	vm_memory(m, 1, VM_MEM, ro, VM_MEM, KVM_MEM_READONLY);
	h = vm_header(m, VM_AREA, 4, COOKIE);
	memcpy(ro, h, VB_PAGE_SIZE);
	refused(m, VM_MEM, VB_ABI_VERSION, COOKIE, -VB_EROFS, "refused_erofs",
		"header in read-only memory");
	h->gfn[1] = VM_MEM >> VB_PAGE_SHIFT;
	refused(m, VM_AREA, VB_ABI_VERSION, COOKIE, -VB_EROFS, "refused_erofs",
		"table in read-only memory");
	vm_memory(m, 1, VM_MEM, ro, 0, 0);
	/* Writable for the guest, but not for the process. */
	vm_memory(m, 1, VM_MEM, ro, VM_MEM, 0);
	mprotect(ro, VM_MEM, PROT_READ);
	h->gfn[1] = VM_MEM >> VB_PAGE_SHIFT;
	expect(vm_op(m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE),
	       -VB_EAGAIN, "table in memory that the process may not write");
	vm_memory(m, 1, VM_MEM, ro, 0, 0);
	munmap(ro, VM_MEM);
	report(pinned_kb(getpid()) == 0 && all_unpinned(),
	       "nothing pinned after all refusals");
}

static void user_mode(void)
{
	long before = stat_of("refused_eperm");
	struct minivm m;

	vm_create(&m, 1);
	vm_header(&m, VM_AREA, 1, COOKIE);
	vm_mode(&m, 0, 1);
	expect(vm_op(&m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE),
	       -VB_EPERM, "guest user mode");
	report(stat_of("refused_eperm") == before + 1,
	       "guest user mode: counted");
	vm_mode(&m, 0, 0);
	expect(vm_op(&m, VB_OP_STATUS, 0, 0, COOKIE), -VB_ENOENT,
	       "guest user mode: nothing registered");
	vm_destroy(&m);
}

static void life(struct minivm *m)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE);
	struct vb_vcpu_host *t = vm_host_table(h);
	long ret = vm_register(m, VM_AREA, COOKIE);
	__u64 changes;

	expect(ret, 0, "registration");
	report(h->host_status == VB_HOST_ACTIVE &&
	       h->host_features == VB_HF_RUN_STATE &&
	       h->host_abi_version == VB_ABI_VERSION, "host part of the header");
	expect(pinned_kb(getpid()), VB_AREA_PAGES(4) * VB_PAGE_SIZE / 1024,
	       "pages are charged to the process");
	report(h->nr_vcpus == 2 && t[0].flags == VB_VCPU_F_VALID &&
	       t[1].flags == VB_VCPU_F_VALID && !t[2].flags &&
	       t[0].apic_id == 0 && t[1].apic_id == 1,
	       "slots are in order of creation");
	report(t[0].state == VB_VCPU_VMM && !h->running[0],
	       "a vCPU that is in the VMM is shown there");
	expect(vm_op(m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION, COOKIE),
	       -VB_EBUSY, "second registration");
	expect(vm_op(m, VB_OP_REGISTER, VM_AREA + 0x8000, VB_ABI_VERSION, 5),
	       -VB_EBUSY, "second registration elsewhere");
	expect(vm_op(m, VB_OP_STATUS, 0, 0, COOKIE + 1), -VB_EBUSY,
	       "status with another cookie");
	expect(vm_op(m, VB_OP_UNREGISTER, 0, 0, COOKIE + 1), -VB_ENOENT,
	       "unregister with another cookie");
	expect(vm_call(m, 1, VB_HYPERCALL, VB_OP_STATUS, 0, 0, COOKIE), 0,
	       "status from another vCPU");

	/* The guest's part, and the host's own, full of nonsense. */
	memset((char *)h + h->guest_table_page * VB_PAGE_SIZE, 0xff,
	       VB_PAGE_SIZE);
	h->nr_slots = 0xffffffff;
	h->nr_pages = 0xffffffff;
	h->host_table_page = 0x7fffffff;
	h->nr_vcpus = 0xffffffff;
	memset(h->gfn, 0xff, sizeof(h->gfn));
	t[0].flags = 0xffffffff;
	changes = t[0].changed_tsc;
	expect(vm_op(m, VB_OP_STATUS, 0, 0, COOKIE), 0,
	       "hostile values: still registered");
	report(t[0].changed_tsc != changes,
	       "hostile values: states go on in the right place");

	/* A vCPU that comes later gets its slot. */
	h->nr_vcpus = 2;
	vm_add_vcpu(m);
	vm_mode(m, 2, 0);
	vm_call(m, 2, VB_HYPERCALL, VB_OP_PROBE, 0, 0, 0);
	report(t[2].flags == VB_VCPU_F_VALID && t[2].apic_id == 2 &&
	       h->nr_vcpus == 3, "a new vCPU gets its slot");

	h->cookie = 0;
	changes = t[0].changed_tsc;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes, "cookie 0 stops host writes");
	h->cookie = COOKIE;
	t[0].cookie = 1;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes,
	       "another cookie in the entry stops writes to it");
	expect(vm_unregister(m, COOKIE), -VB_ENOENT, "unregister");
	report(pinned_kb(getpid()) == 0 && all_unpinned(),
	       "unregister unpins");
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[1].changed_tsc != ~0ULL && t[0].changed_tsc == changes,
	       "no writes after unregistering");
}

static void again_and_reset(struct minivm *m)
{
	struct vb_header *h = vm_header(m, VM_AREA, 4, COOKIE + 1);
	struct vb_vcpu_host *t = vm_host_table(h);
	__u64 changes;

	expect(vm_register(m, VM_AREA, COOKIE + 1), 0, "registered again");

	/* A kernel that comes without a reset that anybody saw. */
	h->cookie = 77;
	vm_header(m, VM_AREA + 0x8000, 4, COOKIE + 2);
	expect(vm_op(m, VB_OP_REGISTER, VM_AREA + 0x8000, VB_ABI_VERSION,
		     COOKIE + 2), -VB_EAGAIN,
	       "area of a kernel that is gone is given up");
	do {
		usleep(2000);
	} while (vm_op(m, VB_OP_STATUS, 0, 0, 0) == -VB_EAGAIN);
	h = (struct vb_header *)(m->mem + VM_AREA + 0x8000);
	t = vm_host_table(h);
	expect(vm_register(m, VM_AREA + 0x8000, COOKIE + 2), 0,
	       "the next kernel registers");

	vm_reset_mode(m, 0);
	/* The next load of the vCPU sees it. */
	vm_mode(m, 0, 0);
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(vm_wait_status(m, COOKIE + 2, -VB_EAGAIN) == -VB_ENOENT,
	       "a reset ends the registration");
	report(h->host_status == VB_HOST_GONE, "the guest is told");
	changes = t[0].changed_tsc;
	vm_op(m, VB_OP_PROBE, 0, 0, 0);
	report(t[0].changed_tsc == changes, "no writes after a reset");
	report(all_unpinned(), "a reset unpins");
}

/* The largest area there is. */
static void largest(void)
{
	static struct minivm m;
	struct vb_header *h;

	vm_create(&m, 1);
	h = vm_header(&m, VM_AREA, VB_MAX_SLOTS, COOKIE);
	expect(vm_register(&m, VM_AREA, COOKIE), 0, "4096 slots");
	report(h->nr_vcpus == 1, "4096 slots: one vCPU");
	vm_destroy(&m);
	report(all_unpinned(), "a VM that goes while registered is unpinned");
}

static void killed(void)
{
	pid_t pid = fork();
	struct minivm m;
	int status;

	if (!pid) {
		vm_create(&m, 2);
		vm_header(&m, VM_AREA, 4, COOKIE);
		if (vm_register(&m, VM_AREA, COOKIE))
			_exit(1);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	report(WIFSIGNALED(status) && all_unpinned(),
	       "a VMM that is killed while registered");
}

/* Register, exit, destroy: many times, as fast as it goes. */
static void churn(void)
{
	int i, good = 1;

	for (i = 0; i < 100; i++) {
		struct minivm m;

		vm_create(&m, 1 + i % 4);
		vm_header(&m, VM_AREA, 4, COOKIE + i);
		good &= !vm_op(&m, VB_OP_REGISTER, VM_AREA, VB_ABI_VERSION,
			       COOKIE + i);
		if (i % 3 == 1)
			good &= !vm_wait_status(&m, COOKIE + i, -VB_EAGAIN);
		if (i % 3 == 2)
			vm_op(&m, VB_OP_UNREGISTER, 0, 0, COOKIE + i);
		vm_destroy(&m);
	}
	report(good, "100 VMs come, register and go");
	report(all_unpinned(), "100 VMs: all unpinned");
}

static int vm_folders(void)
{
	DIR *d = opendir("/sys/kernel/debug/vbalance/host");
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	if (d)
		closedir(d);
	return n;
}

int main(void)
{
	struct minivm m;
	int folders, i;

	printf("KTAP version 1\n");
	if (access("/dev/kvm", R_OK | W_OK)) {
		printf("1..0 # SKIP no /dev/kvm\n");
		return 4;
	}
	if (access(STATS, R_OK)) {
		printf("1..0 # SKIP vbalance_host is not loaded\n");
		return 4;
	}
	folders = vm_folders();
	vm_create(&m, 2);
	refusals(&m);
	user_mode();
	life(&m);
	again_and_reset(&m);
	vm_destroy(&m);
	largest();
	killed();
	churn();
	for (i = 0; i < 500 && vm_folders() != folders; i++)
		usleep(10000);
	expect(vm_folders(), folders, "no folder of a VM is left");
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
