// SPDX-License-Identifier: GPL-2.0
/*
 * burn N [SECONDS]: N busy threads, thread i pinned on CPU i.
 *
 * They execute nothing but user-space instructions, so that a vCPU that runs
 * one gives its CPU up only when the host's scheduler takes it away.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *spin(void *arg)
{
	volatile unsigned long n = 0;

	(void)arg;
	for (;;)
		n++;
	return NULL;
}

static int start_on(int cpu)
{
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t *set = CPU_ALLOC(cpu + 1);
	size_t size = CPU_ALLOC_SIZE(cpu + 1);
	int err;

	if (!set)
		return ENOMEM;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	pthread_attr_init(&attr);
	err = pthread_attr_setaffinity_np(&attr, size, set);
	if (!err)
		err = pthread_create(&thread, &attr, spin, NULL);
	pthread_attr_destroy(&attr);
	CPU_FREE(set);
	return err;
}

int main(int argc, char **argv)
{
	int i, err, n = argc > 1 ? atoi(argv[1]) : 0;
	int seconds = argc > 2 ? atoi(argv[2]) : 0;

	if (n < 1 || argc > 3 || seconds < 0) {
		fprintf(stderr, "usage: burn THREADS [SECONDS]\n");
		return 2;
	}
	for (i = 0; i < n; i++) {
		err = start_on(i);
		if (err) {
			fprintf(stderr, "burn: thread on CPU %d: %s\n", i,
				strerror(err));
			return 1;
		}
	}
	if (seconds)
		sleep(seconds);
	else
		for (;;)
			pause();
	return 0;
}
