/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of a running guest of QEMU, and the shared area in it, from
 * outside: for tests of what no guest would do, and of what one says. The
 * includer defines _GNU_SOURCE.
 */
#ifndef VB_GUESTMEM_H
#define VB_GUESTMEM_H

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
	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what,
		errno ? ": " : "", errno ? strerror(errno) : "");
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

static void find_header(unsigned long at, unsigned long size,
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
}

/* Of slot @slot of the table that begins at gfn[@page]. */
static unsigned long entry_of(unsigned long ram, const struct vb_header *h,
			      unsigned int page, unsigned long slot,
			      unsigned long size)
{
	slot *= size;
	return ram + h->gfn[page + slot / VB_PAGE_SIZE] * VB_PAGE_SIZE +
		slot % VB_PAGE_SIZE;
}

/* Return: where it is. PID: of the VMM. */
static unsigned long open_guest(const char *pid, struct vb_header *h)
{
	unsigned long at, size;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/mem", pid);
	mem = open(path, O_RDWR);
	if (mem < 0)
		fail(path);
	at = ram(pid, &size);
	find_header(at, size, h);
	return at;
}

#endif /* VB_GUESTMEM_H */
