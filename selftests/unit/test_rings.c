// SPDX-License-Identifier: GPL-2.0
/*
 * core/rings.h: against a driver and a device that follow the specification
 * (and Linux: virtqueue_disable_cb_split() and its counterparts).
 */
#include "core/rings.h"

#include <linux/virtio_ring.h>
#include <stddef.h>

#include "ktap.h"
#include "prng.h"

#define EVENT_IDX	VB_RING_F_EVENT_IDX

static enum vb_rings state(u64 features, u32 num, __u16 flags, __u16 used_event,
			   __u16 used_idx)
{
	return vb_ring_state(features, num, flags, used_event, used_idx);
}

/* The header of the specification says the same. */
static void test_layout(void)
{
	static __u64 memory[1 << 15];
	struct vring r;
	u32 num;

	CHECK_EQ(VB_RING_NO_INTERRUPT, VRING_AVAIL_F_NO_INTERRUPT, "flag");
	CHECK_EQ(VB_RING_F_EVENT_IDX, 1ULL << VIRTIO_RING_F_EVENT_IDX,
		 "feature");
	CHECK_EQ(VB_RING_USED_IDX, offsetof(struct vring_used, idx), "idx");
	CHECK_EQ(VB_RING_AVAIL_FLAGS, offsetof(struct vring_avail, flags),
		 "flags");
	for (num = 1; num <= 4096; num *= 2) {
		vring_init(&r, num, memory, 4096);
		CHECK_EQ(VB_RING_USED_EVENT(num),
			 (char *)&vring_used_event(&r) - (char *)r.avail,
			 "%u", num);
	}
}

static void test_flags(void)
{
	u32 i;

	prng_seed(0x76427201);
	for (i = 0; i < 10000; i++) {
		__u16 event = prng_below(65536), idx = prng_below(65536);
		__u16 other = prng_below(65536) & ~VRING_AVAIL_F_NO_INTERRUPT;
		u32 num = 1U << prng_below(16);

		CHECK_EQ(state(0, num, other, event, idx), VB_RINGS_OPEN,
			 "flags %#x", other);
		CHECK_EQ(state(0, num, other | 1, event, idx), VB_RINGS_HELD,
			 "flags %#x", other | 1);
		/* With event indices the flags say nothing. */
		CHECK_EQ(state(EVENT_IDX, num, other, event, idx),
			 state(EVENT_IDX, num, other | 1, event, idx),
			 "flags %#x, event index", other);
	}
}

/* OPEN if and only if one of the next entries used raises an interrupt. */
static void test_event(void)
{
	u32 i, n;

	prng_seed(0x76427202);
	for (i = 0; i < 20000; i++) {
		u32 num = 1U << prng_below(9);
		__u16 idx = prng_below(65536), event;
		bool raised = false;

		event = prng_below(2) ? prng_below(65536) :
			(__u16)(idx + prng_below(4 * num) - 2 * num);
		for (n = 0; n < num; n++)
			raised |= vring_need_event(event, idx + n + 1, idx + n);
		CHECK_EQ(state(EVENT_IDX, num, 0, event, idx),
			 raised ? VB_RINGS_OPEN : VB_RINGS_HELD,
			 "size %u, event %u, used %u", num, event, idx);
	}
}

/*
 * A driver as Linux': it has got an interrupt, takes what there is, and asks
 * for the next one when there is nothing left. Held from the interrupt on, open
 * when it is through; all along the ring, and with the index wrapping round.
 */
static void test_driver(void)
{
	const u32 num = 256;
	__u16 used = 0, taken = 0, event = 0;
	u32 i;

	prng_seed(0x76427203);
	for (i = 0; i < 100000; i++) {
		u32 n = 1 + prng_below(num);

		CHECK_EQ(state(EVENT_IDX, num, 0, event, used), VB_RINGS_OPEN,
			 "at rest, used %u", used);
		used += n;
		CHECK_EQ(state(EVENT_IDX, num, 0, event, used), VB_RINGS_HELD,
			 "%u more, used %u", n, used);
		taken = used;
		event = taken;
	}
}

/* A driver that asks for one when three quarters of the rest are used. */
static void test_delayed(void)
{
	const u32 num = 256;
	__u16 taken = 65400, used, event;
	u32 rest, n;

	for (; taken != 200; taken++)
		for (rest = 0; rest < num; rest += 15) {
			event = taken + rest * 3 / 4;
			for (n = 0; n <= rest; n++) {
				used = taken + n;
				CHECK_EQ(state(EVENT_IDX, num, 0, event, used),
					 n <= rest * 3 / 4 ? VB_RINGS_OPEN :
					 VB_RINGS_HELD,
					 "taken %u, %u of %u used", taken, n,
					 rest);
			}
		}
}

/* 0 stands for "never": true but where the index is about to get there. */
static void test_never(void)
{
	const u32 num = 256;
	u32 used, open = 0;

	for (used = 0; used < 65536; used++)
		if (state(EVENT_IDX, num, 0, 0, used) == VB_RINGS_OPEN)
			open++;
	CHECK_EQ(open, num, "of 65536");
	CHECK_EQ(state(EVENT_IDX, num, 0, 0, 0), VB_RINGS_OPEN, "unused ring");
	CHECK_EQ(state(EVENT_IDX, num, 0, 0, 1), VB_RINGS_HELD, "first entry");
}

/*
 * Linux' driver and a device, each step at any time: who looks calls the
 * handler for every interrupt that has not led to a call, and, but for what
 * "never" looks like, for no other.
 */
static void test_signal(void)
{
	__u16 used = 65000, taken = used, event = used, old;
	bool triggered = false, polling = false, waits = false, is_new;
	u32 seen = 0, signal, i, calls = 0, hidden = 0, idle = 0, hushed = 0;

	prng_seed(0x76427204);
	for (i = 0; i < 2000000; i++) {
		switch (prng_below(6)) {
		case 0:		/* the device uses some */
			old = used;
			if ((__u16)(used - taken) < 200)
				used += prng_below(20);
			waits |= vring_need_event(event, used, old);
			break;
		case 1:		/* NAPI takes some, or all and asks again */
			if (!polling)
				break;
			taken += prng_below((__u16)(used - taken) + 1);
			if (taken != used)
				break;
			event = taken;
			triggered = false;
			polling = false;
			/* What has interrupted before has been done. */
			waits = false;
			break;
		case 2:		/* start_xmit() or busy polling: no callbacks */
			if (polling || triggered || prng_below(3))
				break;
			event = 0;
			hushed++;
			polling = true;
			break;
		default:	/* somebody looks */
			signal = vb_ring_signal(used, event);
			is_new = vb_signal_is_new(signal, seen);
			hidden += waits && !is_new && event;
			idle += !waits && is_new;
			if (!is_new && !(waits && prng_below(50) == 0))
				break;
			/* The handler is called; NAPI, unless it is on. */
			if (signal)
				seen = signal;
			calls++;
			waits = false;
			triggered = true;
			polling = true;
		}
	}
	CHECK(calls > 10000 && hushed > 10000, "%u calls, %u times never",
	      calls, hushed);
	CHECK_EQ(hidden, 0, "interrupts that nobody would have served");
	CHECK(idle <= hushed, "%u calls for nothing, %u times never", idle,
	      hushed);
	CHECK(vb_signal_is_new(VB_SIGNAL_ANY, VB_SIGNAL_ANY), "not told apart");
	CHECK(!vb_signal_is_new(0, VB_SIGNAL_ANY), "no signal");
	CHECK(!vb_signal_is_new(0, 0), "no signal, none before");
}

static void test_unknown(void)
{
	static const u64 illegible[] = {
		1ULL << 33, 1ULL << 34, 3ULL << 33, VB_RING_F_NOT_SAID,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(illegible); i++) {
		CHECK(!vb_ring_is_legible(illegible[i]), "%#llx",
		      (unsigned long long)illegible[i]);
		CHECK_EQ(state(illegible[i] | EVENT_IDX, 256, 0, 5, 5),
			 VB_RINGS_UNKNOWN, "%u", i);
		CHECK_EQ(state(illegible[i] & ~EVENT_IDX, 256, 1, 5, 5),
			 VB_RINGS_UNKNOWN, "%u", i);
	}
	CHECK_EQ(state(0, 0, 1, 0, 0), VB_RINGS_UNKNOWN, "no size");
	CHECK_EQ(state(EVENT_IDX, 0, 0, 0, 0), VB_RINGS_UNKNOWN, "no size");
	/* VERSION_1 and what a network device has besides. */
	CHECK(vb_ring_is_legible(1ULL << 32 | EVENT_IDX | 0xfffffff), "usual");
}

static void test_join(void)
{
	static const enum vb_rings all[] = {
		VB_RINGS_UNKNOWN, VB_RINGS_HELD, VB_RINGS_OPEN,
	};
	u32 i, j, k;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			for (k = 0; k < 3; k++) {
				int held = (i == 1) + (j == 1) + (k == 1);
				int open = (i == 2) + (j == 2) + (k == 2);
				enum vb_rings got = vb_rings_join(all[i], all[j]);

				got = vb_rings_join(got, all[k]);
				CHECK_EQ(got, held ? VB_RINGS_HELD : open == 3 ?
					 VB_RINGS_OPEN : VB_RINGS_UNKNOWN,
					 "%u %u %u", i, j, k);
			}
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "where things are", test_layout },
		{ "flags", test_flags },
		{ "event index: open when an interrupt will come", test_event },
		{ "a driver that takes and asks", test_driver },
		{ "a driver that asks for a later one", test_delayed },
		{ "never", test_never },
		{ "signals are served once", test_signal },
		{ "what is not known", test_unknown },
		{ "several rings", test_join },
	};

	return ktap_main("rings", tests, ARRAY_SIZE(tests));
}
