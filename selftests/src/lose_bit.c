// SPDX-License-Identifier: GPL-2.0
/*
 * lose_bit PID SLOT KEY
 *
 * Sets a pending bit of a guest of QEMU from outside and tells nobody: as if
 * it had been lost. KEY must belong to nobody.
 *
 * lose_bit PID
 *
 * Waits until a bit is pending, and takes it away.
 *
 * PID: of the VMM. The guest must have registered one area only since it was
 * started.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vbalance/abi.h>

static int mem;

static void fail(const char *what)
{
	fprintf(stderr, "lose_bit: %s%s%s\n", what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	exit(1);
}

static void get(unsigned long at, void *to, size_t n)
{
	if (pread(mem, to, n, at) != (ssize_t)n)
		fail("cannot read the guest's memory");
}

/* The largest mapping of a VMM is its guest's memory, from address 0 on. */
static unsigned long ram(const char *pid, unsigned long *size)
{
	unsigned long from, to, best = 0;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "r");
	if (!f)
		fail(path);
	*size = 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx rw", &from, &to) == 2 &&
		    to - from > *size) {
			best = from;
			*size = to - from;
		}
	fclose(f);
	return best;
}

static unsigned long find_header(unsigned long at, unsigned long size,
				 struct vb_header *h)
{
	unsigned long i, found = 0;
	__u64 magic;

	for (i = 0; i < size / VB_PAGE_SIZE; i++) {
		get(at + i * VB_PAGE_SIZE, &magic, sizeof(magic));
		if (magic != VB_MAGIC)
			continue;
		get(at + i * VB_PAGE_SIZE, h, sizeof(*h));
		if (h->gfn[0] != i || h->host_status != VB_HOST_ACTIVE)
			continue;
		if (found)
			fail("more than one area");
		found = at + i * VB_PAGE_SIZE;
	}
	if (!found)
		fail("no area");
	get(found, h, sizeof(*h));
	return found;
}

static void put(unsigned long at, __u64 word)
{
	if (pwrite(mem, &word, sizeof(word), at) != sizeof(word))
		fail("cannot write to the guest's memory");
}

static unsigned long pending_of(unsigned long ram, const struct vb_header *h,
				unsigned long slot)
{
	slot *= sizeof(struct vb_pending);
	return ram + h->gfn[h->pending_page + slot / VB_PAGE_SIZE] *
		VB_PAGE_SIZE + slot % VB_PAGE_SIZE;
}

static void set_one(unsigned long ram, const struct vb_header *h,
		    unsigned long slot, unsigned long key)
{
	unsigned long at;
	__u64 word;

	errno = 0;
	if (slot >= h->nr_slots || key >= VB_MAX_KEYS)
		fail("no such bit");
	at = pending_of(ram, h, slot) + key / 64 * sizeof(word);
	/* Nobody else writes to the word of keys that nobody has. */
	get(at, &word, sizeof(word));
	put(at, word | 1ULL << key % 64);
}

/*
 * Of the first keys: a guest with few interrupts has no others. What the guest
 * takes between look and write was not lost: more than one try is needed then.
 */
static int clear_one(unsigned long ram, const struct vb_header *h)
{
	unsigned long slot, at;
	__u64 word, again;

	for (slot = 0; slot < h->nr_slots; slot++) {
		at = pending_of(ram, h, slot);
		get(at, &word, sizeof(word));
		if (!word)
			continue;
		/* Of a vCPU that is away: nobody is just taking it. */
		usleep(500);
		get(at, &again, sizeof(again));
		if (again != word)
			continue;
		put(at, word & (word - 1));
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long at, size;
	struct vb_header h;
	char path[64];

	if (argc != 4 && argc != 2)
		fail("usage: lose_bit PID [SLOT KEY]");
	snprintf(path, sizeof(path), "/proc/%s/mem", argv[1]);
	mem = open(path, O_RDWR);
	if (mem < 0)
		fail(path);
	at = ram(argv[1], &size);
	find_header(at, size, &h);
	if (argc == 4)
		set_one(at, &h, strtoul(argv[2], NULL, 0),
			strtoul(argv[3], NULL, 0));
	else
		while (!clear_one(at, &h))
			;
	return 0;
}
