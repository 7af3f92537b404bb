// SPDX-License-Identifier: GPL-2.0
/*
 * What vhost-net's rings say about a holder: rings of our own, in our memory,
 * in front of no network. Of both kinds (event index or flag), of devices that
 * cannot be read, and while devices are closed and processes killed under the
 * boosts that read them. Prints KTAP. Needs /dev/kvm, /dev/vhost-net,
 * vbalance_host, root and two CPUs.
 */
#define _GNU_SOURCE
#include <linux/vhost.h>
#include <sys/wait.h>

#include "boosttest.h"
#include "../core/rings.h"

#define RINGS	2		/* of a device */
#define NUM	8		/* entries of a ring */
#define DEVICES	17		/* one more than are known of a process */
#define TRIES	200
#define CLOSED	200		/* rings, while they are read */
#define KILLED	15		/* processes */

/* struct vring_avail and struct vring_used, as far as they matter. */
struct ring {
	volatile __u16 flags, idx, ring[NUM], used_event;
	__u16 pad[53];
	volatile __u16 used_flags, used_idx;
} __attribute__((aligned(256)));

_Static_assert(offsetof(struct ring, used_event) == VB_RING_USED_EVENT(NUM),
	       "used_event");

struct device {
	int fd;
	__u64 features;
	struct ring *ring;	/* RINGS of them, a page */
};

static struct device device[DEVICES];

/* ---- a device ---- */

static void must(struct device *d, unsigned long cmd, const void *arg,
		 const char *what)
{
	vm_must(ioctl(d->fd, cmd, arg), what);
}

static int set_features(struct device *d, __u64 features)
{
	return ioctl(d->fd, VHOST_SET_FEATURES, &features) ? errno : 0;
}

static void set_addresses(struct device *d)
{
	unsigned int i;

	for (i = 0; i < RINGS; i++) {
		struct vhost_vring_state num = { .index = i, .num = NUM };
		struct ring *r = &d->ring[i];
		struct vhost_vring_addr addr = {
			.index = i,
			/* Nobody ever reads a descriptor. */
			.desc_user_addr = (unsigned long)d->ring,
			.avail_user_addr = (unsigned long)&r->flags,
			.used_user_addr = (unsigned long)&r->used_flags,
		};

		must(d, VHOST_SET_VRING_NUM, &num, "VHOST_SET_VRING_NUM");
		must(d, VHOST_SET_VRING_ADDR, &addr, "VHOST_SET_VRING_ADDR");
	}
}

static void device_open(struct device *d, __u64 features)
{
	static const struct vhost_memory no_memory = { .nregions = 0 };

	d->fd = vm_must(open("/dev/vhost-net", O_RDWR | O_CLOEXEC),
			"/dev/vhost-net");
	d->features = features;
	d->ring = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (d->ring == MAP_FAILED)
		vm_must(-1, "mmap of rings");
	must(d, VHOST_SET_OWNER, NULL, "VHOST_SET_OWNER");
	must(d, VHOST_SET_MEM_TABLE, &no_memory, "VHOST_SET_MEM_TABLE");
	if (set_features(d, features))
		vm_must(-1, "VHOST_SET_FEATURES");
	set_addresses(d);
}

static void device_close(struct device *d)
{
	close(d->fd);
	munmap(d->ring, getpagesize());
}

/* The other kind's words say the opposite. */
static void ring_allows(struct device *d, int i, int open)
{
	struct ring *r = &d->ring[i];
	int events = !!(d->features & VB_RING_F_EVENT_IDX);

	r->used_idx = 65534;
	r->used_event = open == events ? 65534 : 65533;
	r->flags = open == events ? VB_RING_NO_INTERRUPT : 0;
}

static void device_allows(struct device *d, int open)
{
	int i;

	for (i = 0; i < RINGS; i++)
		ring_allows(d, i, open);
}

static int rings_are(long n)
{
	return AWAIT(count("rings") == n);
}

/* ---- what comes of it ---- */

/* To a vCPU that runs, as far as can be told: no fast path. */
static void interrupt(void)
{
	if (in_state(0, "running"))
		send(0);
	usleep(1000);
}

/* Interrupts, and preemptions soon after, until a counter has grown. */
static int grows(const char *counter, long by)
{
	long n = count(counter);
	int i;

	for (i = 0; i < 10000 * slowness() && count(counter) < n + by; i++)
		interrupt();
	return count(counter) >= n + by;
}

static void no_holder(const char *name)
{
	int good = at_rest() && grows("no_holder", 2) && at_rest();
	long n = count("holder");

	/*
	 * An interrupt that is delivered at the very moment of a look counts as
	 * one after it: such holders are few.
	 */
	good = good && grows("no_holder", PREEMPTIONS);
	report(good && count("holder") < n + PREEMPTIONS / 2, name);
}

static void holder(const char *name)
{
	/* What the last look has seen is as it was. */
	int good = at_rest() && grows("holder", 2);
	long n, done;

	n = count("no_holder");
	done = count("ended_done");
	good = good && grows("holder", 10) && at_rest();
	report(good && count("no_holder") == n && count("ended_done") == done,
	       name);
}

/* The driver gets done while its vCPU is boosted, wherever it is. */
static void gets_done(struct device *d, int i, const char *name)
{
	long done = count("ended_done"), n = 0;
	int good = 1;

	generous("20000");
	for (; n < TRIES && good && count("ended_done") < done + 5; n++) {
		ring_allows(d, i, 0);
		good = grows("holder", 1);
		ring_allows(d, i, 1);
		good = good && at_rest();
	}
	report(good && count("ended_done") >= done + 5, name);
	generous("2000");
}

static void kind(__u64 features, const char *what)
{
	struct device *d = &device[0];
	char text[96];

	device_open(d, features);
	device_allows(d, 1);
	snprintf(text, sizeof(text), "%s: the rings are known", what);
	report(rings_are(RINGS), text);
	snprintf(text, sizeof(text), "%s: all allow interrupts: no holder",
		 what);
	no_holder(text);
	ring_allows(d, 1, 0);
	snprintf(text, sizeof(text), "%s: one does not: holder", what);
	holder(text);
	snprintf(text, sizeof(text), "%s: until it does", what);
	gets_done(d, 1, text);
	device_allows(d, 1);
	snprintf(text, sizeof(text), "%s: no holder again", what);
	no_holder(text);

	device_open(&device[1], features);
	device_allows(&device[1], 0);
	snprintf(text, sizeof(text), "%s: a second device does not: holder",
		 what);
	holder(text);
	device_close(&device[1]);
	snprintf(text, sizeof(text), "%s: that is closed: no holder", what);
	no_holder(text);
	device_close(d);
	snprintf(text, sizeof(text), "%s: closed: forgotten", what);
	report(rings_are(0), text);
}

/* By time alone; and no look at what may be anything. */
static void unknown(void)
{
	struct device *d = &device[0];
	struct vhost_vring_file none = { .fd = -1 };
	__u64 offered = 0;
	int i;

	device_open(d, 0);
	device_allows(d, 1);
	must(d, VHOST_GET_FEATURES, &offered, "VHOST_GET_FEATURES");
	if (offered & VB_RING_F_PACKED) {
		expect(set_features(d, VB_RING_F_PACKED), 0, "packed rings");
		report(rings_are(0), "packed rings: none can be read");
		holder("packed rings: by time alone");
	} else {
		expect(set_features(d, VB_RING_F_PACKED), EOPNOTSUPP,
		       "packed rings: vhost has none");
		report(rings_are(RINGS), "packed rings: refused, all is as it was");
		no_holder("packed rings: refused, no holder");
	}
	if (offered & VB_RING_F_ACCESS_PLATFORM) {
		expect(set_features(d, VB_RING_F_ACCESS_PLATFORM), 0,
		       "behind an IOMMU");
		report(rings_are(0), "behind an IOMMU: none can be read");
		holder("behind an IOMMU: by time alone");
		expect(set_features(d, 0), 0, "behind none any more");
	}
	munmap(d->ring, getpagesize());
	report(rings_are(RINGS), "memory that has gone: known");
	holder("memory that has gone: by time alone");
	d->ring = mmap(d->ring, getpagesize(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE,
		       -1, 0);
	device_allows(d, 1);
	no_holder("memory that is back: no holder");

	none.index = 1;
	must(d, VHOST_NET_SET_BACKEND, &none, "VHOST_NET_SET_BACKEND");
	report(rings_are(1), "a ring that is stopped: forgotten");
	no_holder("the other one is open: no holder");
	must(d, VHOST_RESET_OWNER, NULL, "VHOST_RESET_OWNER");
	report(rings_are(0), "VHOST_RESET_OWNER: forgotten");
	holder("no ring: by time alone");
	device_close(d);

	for (i = 0; i < DEVICES; i++) {
		device_open(&device[i], 0);
		device_allows(&device[i], 1);
	}
	holder("more devices than are known: by time alone");
	for (i = 0; i < DEVICES; i++)
		device_close(&device[i]);
	report(rings_are(0), "all are closed: forgotten");
}

/* ---- who closes them meanwhile ---- */

static struct {
	pthread_t thread;
	volatile int stop;
} closer;

/* Open and not, with memory and without, and gone. */
static void *closer_fn(void *unused)
{
	struct device d;
	unsigned int n;

	vm_pin(here);
	for (n = 0; !closer.stop; n++) {
		device_open(&d, n & 1 ? VB_RING_F_EVENT_IDX : 0);
		device_allows(&d, n & 2);
		usleep(1000);
		device_allows(&d, !(n & 2));
		usleep(n % 7 * 100);
		if (n % 3)
			madvise(d.ring, getpagesize(), MADV_DONTNEED);
		device_close(&d);
	}
	return unused;
}

static void closer_start(void)
{
	closer.stop = 0;
	vm_pthread(&closer.thread, closer_fn, NULL);
}

static void devices_go(void)
{
	long forgotten = stat_of("rings_forgotten");
	long open = count("no_holder"), held = count("holder");
	long done = count("ended_done");
	int i, most = 30000 * slowness();

	generous("5000");
	device_open(&device[0], VB_RING_F_EVENT_IDX);
	device_allows(&device[0], 1);
	closer_start();
	for (i = 0; i < most; i++) {
		if (stat_of("rings_forgotten") >= forgotten + CLOSED &&
		    count("no_holder") >= open + 50 &&
		    count("holder") >= held + 20 &&
		    count("ended_done") >= done + 5)
			break;
		interrupt();
	}
	closer.stop = 1;
	pthread_join(closer.thread, NULL);
	forgotten = stat_of("rings_forgotten") - forgotten;
	printf("# %ld rings were closed; %ld looks found none held, %ld holders, %ld of them done\n",
	       forgotten, count("no_holder") - open, count("holder") - held,
	       count("ended_done") - done);
	report(i < most, "devices are closed while their rings are read");
	report(at_rest(), "devices are closed: at rest");
	device_close(&device[0]);
	report(rings_are(0), "devices are closed: forgotten");
}

static void victim(void)
{
	vm_set_up();
	hog.kind = HOG_NONE;
	hog_start(HOG_FAIR);
	start(0);
	device_open(&device[0], 0);
	device_allows(&device[0], 1);
	closer_start();
	for (;;) {
		send(0);
		usleep(1000);
	}
}

/* Read, and the reader is the vCPU of a process that has just been killed. */
static void processes_go(void)
{
	int i, good = 1;
	pid_t pid;

	for (i = 0; i < KILLED && good; i++) {
		fflush(stdout);
		pid = vm_must(fork(), "fork");
		if (!pid)
			victim();
		good = AWAIT(count_of(pid, "no_holder") > i % 4 &&
			     count_of(pid, "holder") > i % 3);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		good = good && AWAIT(count_of(pid, "holder") == -1);
	}
	report(good, "processes are killed while their rings are read");
	report(AWAIT(stat_of("rings_learnt") == stat_of("rings_forgotten")),
	       "processes are killed: their rings are forgotten");
}

int main(void)
{
	if (access("/dev/vhost-net", R_OK | W_OK)) {
		printf("1..0 # SKIP no /dev/vhost-net\n");
		return 4;
	}
	if (!set_up())
		return 4;
	defaults();
	generous("5000");
	set_parameter("holder_us", "100000");
	processes_go();
	generous("2000");
	start(0);
	hog_start(HOG_FAIR);
	kind(0, "without event index");
	kind(VB_RING_F_EVENT_IDX, "with event index");
	unknown();
	devices_go();
	hog_stop();
	print_counts();
	expect(begun(), ended(), "each boost has ended once");
	defaults();
	report(!vm_join(&thread[0]), "the vCPU ends well");
	vm_destroy(&m);
	report(stat_of("rings_learnt") > 0 &&
	       AWAIT(stat_of("rings_learnt") == stat_of("rings_forgotten")),
	       "all rings are forgotten");
	return end();
}
