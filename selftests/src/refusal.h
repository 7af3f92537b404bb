/* SPDX-License-Identifier: GPL-2.0 */
/* A refusal is counted exactly once, in the counter of its code. */
#ifndef _VB_REFUSAL_H
#define _VB_REFUSAL_H

#include <fcntl.h>
#include <sys/mount.h>

#include "hosttest.h"

#define COOKIE	0x1122334455667788ULL

static const struct {
	int err;
	const char *name;
} refusal_counters[] = {
	{ VB_EPERM, "refused_eperm" },
	{ VB_ENOENT, "refused_enoent" },
	{ VB_EAGAIN, "refused_eagain" },
	{ VB_ENOMEM, "refused_enomem" },
	{ VB_EFAULT, "refused_efault" },
	{ VB_EBUSY, "refused_ebusy" },
	{ VB_EINVAL, "refused_einval" },
	{ VB_EROFS, "refused_erofs" },
	{ VB_EPROTO, "refused_eproto" },
	{ VB_EOPNOTSUPP, "refused_eopnotsupp" },
	{ 0, "no_memory" },
};

#define NR_COUNTERS	(sizeof(refusal_counters) / sizeof(refusal_counters[0]))

struct counts {
	long v[NR_COUNTERS], held;
};

static inline struct counts counts_now(void)
{
	struct counts c = { .held = pages_held() };
	size_t i;

	for (i = 0; i < NR_COUNTERS; i++)
		c.v[i] = stat_of(refusal_counters[i].name);
	return c;
}

/* By one, and that of @err only (0: none); and no page more is held. */
static inline int only_grew(const struct counts *before, long err)
{
	struct counts now = counts_now();
	int good = now.held == before->held;
	size_t i;

	if (!good)
		printf("# pages held: %ld, then %ld\n", before->held, now.held);
	for (i = 0; i < NR_COUNTERS; i++) {
		long want = before->v[i] +
			    (err && refusal_counters[i].err == -err);

		if (now.v[i] == want && want >= 0)
			continue;
		printf("# %s: %ld, expected %ld\n", refusal_counters[i].name,
		       now.v[i], want);
		good = 0;
	}
	return good;
}

static inline void refusal(const struct counts *before, long ret, long err,
			   const char *name)
{
	char text[192];

	expect(ret, err, name);
	snprintf(text, sizeof(text), "%s: counted once, nothing pinned", name);
	report(only_grew(before, err), text);
}

/* @call is refused with @err. */
#define REFUSED(err, name, call)					\
	do {								\
		struct counts refused_before = counts_now();		\
									\
		refusal(&refused_before, call, err, name);		\
	} while (0)

/* @call answers @want, and this is no refusal. */
#define QUESTION(want, name, call)					\
	do {								\
		struct counts question_before = counts_now();		\
		long question_ret = call;				\
									\
		expect(question_ret, want, name);			\
		report(only_grew(&question_before, 0),			\
		       name ": not counted");				\
	} while (0)

/*
 * A page of a file, in a file system that is no swap: there for the hypercall,
 * and not to be pinned. NULL: it cannot be had.
 */
static inline void *page_of_file(void)
{
	char dir[] = "/tmp/vb-file.XXXXXX", path[64];
	void *p = MAP_FAILED;
	int fd;

	if (!mkdtemp(dir))
		return NULL;
	if (!mount("none", dir, "ramfs", 0, NULL)) {
		snprintf(path, sizeof(path), "%s/page", dir);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0 && !ftruncate(fd, VB_PAGE_SIZE))
			p = mmap(NULL, VB_PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_SHARED, fd, 0);
		if (fd >= 0)
			close(fd);
		umount2(dir, MNT_DETACH);
	}
	rmdir(dir);
	if (p == MAP_FAILED)
		return NULL;
	memset(p, 0, VB_PAGE_SIZE);
	return p;
}

#endif /* _VB_REFUSAL_H */
