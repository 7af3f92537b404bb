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
#include "guestmem.h"

static void put(unsigned long at, __u64 word)
{
	if (pwrite(mem, &word, sizeof(word), at) != sizeof(word))
		fail("cannot write to the guest's memory");
}

static unsigned long pending_of(unsigned long ram, const struct vb_header *h,
				unsigned long slot)
{
	return entry_of(ram, h, h->pending_page, slot,
			sizeof(struct vb_pending));
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
	struct vb_header h;
	unsigned long at;

	if (argc != 4 && argc != 2)
		fail("usage: lose_bit PID [SLOT KEY]");
	at = open_guest(argv[1], &h);
	if (argc == 4)
		set_one(at, &h, strtoul(argv[2], NULL, 0),
			strtoul(argv[3], NULL, 0));
	else
		while (!clear_one(at, &h))
			;
	return 0;
}
