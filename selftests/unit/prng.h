/* SPDX-License-Identifier: GPL-2.0 */
/* splitmix64: the same numbers in every run and on every machine. */
#ifndef _VB_UNIT_PRNG_H
#define _VB_UNIT_PRNG_H

#include <stdint.h>

static uint64_t prng_state;

static inline void prng_seed(uint64_t seed)
{
	prng_state = seed;
}

static inline uint64_t prng_u64(void)
{
	uint64_t z = prng_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint64_t prng_below(uint64_t n)
{
	return prng_u64() % n;
}

/* Any number of bits from 0 to @bits with equal chance: small and large. */
static inline uint64_t prng_log(unsigned int bits)
{
	unsigned int n = prng_below(bits + 1);

	return n ? prng_u64() >> (64 - n) : 0;
}

#endif /* _VB_UNIT_PRNG_H */
