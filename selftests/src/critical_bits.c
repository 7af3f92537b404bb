// SPDX-License-Identifier: GPL-2.0
/*
 * critical_bits PID SECONDS [FILE]
 *
 * Looks for so long at what a guest of QEMU says of its vCPUs
 * (vb_vcpu_guest.critical), from outside, and prints which bits each had at
 * some time: "SLOT WORD".
 *
 * FILE: each look in it: when it began and ended, on this machine's TSC, and
 * the words of all slots: "BEGIN END WORD...".
 *
 * PID: of the VMM.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <time.h>

#include <x86intrin.h>

#include "guestmem.h"

/* Slots of the first page of the table: as many as any guest of ours has. */
#define MAX_SLOTS	(VB_PAGE_SIZE / sizeof(struct vb_vcpu_guest))
#define MAX_LOOKS	1000000

struct look {
	__u64 begin, end;
	__u8 word[MAX_SLOTS];
};

static struct look *looks;
static unsigned long nr_looks;
static __u32 seen[MAX_SLOTS];

static void look(unsigned long at, unsigned int slots)
{
	static struct vb_vcpu_guest guest[MAX_SLOTS];
	struct look *l = &looks[nr_looks++];
	unsigned int s;

	l->begin = __rdtsc();
	get(at, guest, slots * sizeof(guest[0]));
	l->end = __rdtsc();
	for (s = 0; s < slots; s++) {
		l->word[s] = guest[s].critical;
		seen[s] |= guest[s].critical;
	}
}

static void write_looks(const char *path, unsigned int slots)
{
	FILE *f = fopen(path, "w");
	unsigned long n;
	unsigned int s;

	if (!f)
		fail(path);
	for (n = 0; n < nr_looks; n++) {
		fprintf(f, "%llu %llu", looks[n].begin, looks[n].end);
		for (s = 0; s < slots; s++)
			fprintf(f, " %u", looks[n].word[s]);
		fputc('\n', f);
	}
	if (fclose(f))
		fail(path);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned int s, slots;
	struct vb_header h;
	unsigned long at;
	double end;

	if (argc != 3 && argc != 4)
		fail("usage: critical_bits PID SECONDS [FILE]");
	at = open_guest(argv[1], &h);
	slots = h.nr_slots;
	if (slots > MAX_SLOTS)
		fail("too many slots");
	looks = calloc(MAX_LOOKS, sizeof(*looks));
	if (!looks)
		fail("no memory");
	at = entry_of(at, &h, h.guest_table_page, 0, sizeof(struct vb_vcpu_guest));
	end = now() + atof(argv[2]);
	while (now() < end && nr_looks < MAX_LOOKS)
		look(at, slots);
	for (s = 0; s < slots; s++)
		printf("%u %u\n", s, seen[s]);
	if (argc == 4)
		write_looks(argv[3], slots);
	return 0;
}
