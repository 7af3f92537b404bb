/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Redirection of interrupts between host and guest: the protocol of struct
 * vb_redirect (include/vbalance/abi.h), host-mod/vbh_redirect.c and the
 * guest's serving side, for spin. README.md says what is left out and what is
 * shown; run.sh has the list of runs.
 *
 * Who has a CPU is not a variable: a vCPU that has none is a process whose
 * turn does not come, and what the host believes about it is a free choice at
 * each decision. That covers any number of running vCPUs, any moment of losing
 * the CPU, and states that are out of date. Only SURVIVE (one vCPU keeps its CPU,
 * the others never get theirs back) says who runs.
 */
#ifndef NV
#define NV	2		/* vCPUs */
#endif
#ifndef NQ
#define NQ	1		/* queues, each with an interrupt */
#endif
#ifndef NI
#define NI	NQ		/* indexes of the key table */
#endif
#ifndef WORK
#define WORK	2		/* what the device produces in each queue */
#endif

/* Addresses of MSIs (destination and vector); vCPU of each. */
#define NA	3
#define CPU(a)	((a) % NV)
#define NONE	255
#define BIT(n)	(1 << (n))

/* ---- shared area ---- */
byte key[NI];			/* address + 1; 0: unused */
bool cookie = true;
byte pending[NV];		/* bit: index */
byte slots;			/* bit: vCPU */
byte loose[NV];			/* set by the host for an MSI delivered as it was */
bool area_freed;

/* ---- host ---- */
bool hook = true;		/* hooks find a registration */
bool inhook[NQ];		/* read sides of the host's RCU */
bool host_gone;			/* said VB_HOST_GONE */

/* ---- devices and interrupt controllers ---- */
byte work[NQ];			/* produced, not consumed */
byte left[NQ];			/* still to be produced */
byte msg[NQ];			/* where the device's MSI goes */
byte inflight[NQ];		/* address + 1 of an MSI under way */
bool again[NQ];			/* an MSI that was held back by the mask */
bool held[NQ];			/* PBA bit */
bool irr[NA];			/* interrupt latched at CPU(a) */
bool irr_redirect[NV];		/* redirection vector latched */

/* ---- guest ---- */
byte vec[NA];			/* queue whose interrupt has that vector */
byte tab[NI];			/* queue of each index */
bool action[NQ];		/* a handler is installed */
bool inprog[NQ], masked[NQ];	/* of the interrupt's descriptor */
bool incb[NQ];			/* in the virtqueue's callback */
bool qfreed[NQ];		/* its memory is gone */
bool in_use = true;		/* the guest uses the area */
bool unloaded;			/* the guest's module is gone */
bool inserve[NV];		/* read sides of the guest's RCU */
byte hand[NV];			/* bits that a vCPU has taken */
byte claim[NV];			/* slot whose bit it cleared, + 1 */
bool retry[NV];			/* timer: look again */
bool offline;			/* vCPU 1 has no redirection vector */

/* ---- for the properties ---- */
short owed;			/* set bits - (served, overtaken, dropped, merged) */
bool frozen;			/* SURVIVE: only one vCPU goes on, namely */
byte survivor;
bool direct[NA];		/* latched there by a direct delivery */

/* One lock-free step of a vCPU, or one section under the descriptor's lock. */
#define STEP	d_step

#define IS_FROZEN(v)	(frozen && (v) != survivor)

/* ---- the interrupt's descriptor ---- */

/* Callback begins: the caller has just set INPROGRESS. */
inline cb_begin(q) {
#ifdef M_NO_INPROGRESS
	assert(!incb[q]);
#else
	assert(!incb[q] && inprog[q]);
#endif
	incb[q] = true
}

/* It takes all that is there. */
inline cb_consume(q) {
	STEP {
		assert(!qfreed[q]);
		work[q] = 0
	}
}

inline unmask(q) {
	masked[q] = false;
	if
	:: held[q] -> held[q] = false; again[q] = true
	:: else
	fi
}

/* Under the lock: again, or done (busy says which). */
inline cb_end(q, busy) {
	assert(!qfreed[q]);
	incb[q] = false;
	if
	:: masked[q] && action[q] -> unmask(q); cb_begin(q); busy = true
	:: else -> inprog[q] = false; busy = false
	fi
}

/* The same by a server, who finds the mark as a mask only. */
inline cb_end_server(q, busy) {
#ifdef M_NO_RERUN
	assert(!qfreed[q]);
	incb[q] = false;
	inprog[q] = false;
	if
	:: masked[q] && action[q] -> unmask(q)
	:: else
	fi;
	busy = false
#else
	cb_end(q, busy)
#endif
}

/* ---- device, and the delivery path of the host ---- */

inline produce(q) {
	STEP { left[q]--; work[q]++ }
}

inline set_bit_of(t, n) {
	STEP {
		assert(!area_freed);
		if
		:: pending[t] & BIT(n)
		:: else -> pending[t] = pending[t] | BIT(n); owed++
		fi
	}
}

inline set_slot_of(t) {
	STEP {
		assert(!area_freed);
		slots = slots | BIT(t)
	}
}

inline host_set_pending(t, n) {
#ifdef M_HOST_SLOT_FIRST
	set_slot_of(t);
	set_bit_of(t, n)
#else
	set_bit_of(t, n);
	set_slot_of(t)
#endif
}

proctype device(byte q)
{
	byte a, n, t;
	bool sent, posted;

end:	do
	:: atomic {
		left[q] && !qfreed[q] && action[q] ->
		produce(q)
	   };
		sent = false;
		goto send
	:: atomic { again[q] -> again[q] = false; sent = false; goto send }
	od;

send:	atomic {
		/* MSI-X: a masked vector is held back in the PBA. */
		if
		:: !action[q] -> sent = true
		:: action[q] && masked[q] -> held[q] = true; sent = true
		:: else -> a = msg[q]; inflight[q] = a + 1
		fi
	};
	if
	:: sent -> goto out
	:: else
	fi;

	/* vbh_on_deliver() */
	atomic {
		if
		:: hook -> inhook[q] = true
		:: else -> goto plain
		fi
	};
	n = 0;
	do
	:: n < NI && key[n] == a + 1 -> break
	:: n < NI && key[n] != a + 1 -> n++
	:: n == NI -> break
	od;
	if
	:: n == NI || !cookie -> n = 0; goto leave
	:: else
	fi;
	/* The owner runs; or not, and another; or nobody. */
	atomic {
		if
		:: !IS_FROZEN(CPU(a)) -> n = 0; goto leave
		:: !frozen || CPU(a) != survivor ->
			if
			:: !frozen -> t = 0
			:: !frozen && !offline -> t = 1
#if NV > 2
			:: !frozen -> t = 2
#endif
			:: frozen -> t = survivor
			:: !frozen -> t = NONE
			fi
		fi
	};
	if
	:: t == NONE ->
		host_set_pending(CPU(a), n);
		posted = true;
#ifdef M_POST_ONLY
		sent = true
#endif
	:: else ->
		host_set_pending(t, n);
#ifndef M_NO_RECHECK
		/* The bit stays: served once more than needed, or never. */
		if
		:: key[n] == a + 1 && !(t == 1 && offline)
		:: else -> STEP { loose[t] = loose[t] | BIT(n); t = 0; n = 0 };
			goto leave
		fi;
#endif
		STEP { irr_redirect[t] = true; sent = true; t = 0; n = 0 }
	fi;
	t = 0; n = 0;

leave:	inhook[q] = false;
plain:	atomic {
		if
		:: !sent -> irr[a] = true; direct[a] = direct[a] || !posted
		:: else
		fi;
		inflight[q] = 0
	};
out:	a = 0;
	sent = false;
	posted = false;
	goto end
}

/* ---- serving in the guest ---- */

inline put_back_slot(v) {
	STEP {
		slots = slots | BIT(v);
#ifndef M_NO_TIMER
		retry[v] = true
#endif
	}
}

inline put_back(v, n) {
#ifdef M_DROP_BUSY
	STEP { owed-- }
#else
#ifdef M_PUT_SLOT_FIRST
	put_back_slot(v);
#endif
	STEP {
		assert(!area_freed);
		if
		:: pending[v] & BIT(n) -> owed--	/* merged */
		:: else -> pending[v] = pending[v] | BIT(n)
		fi
	};
#ifndef M_PUT_SLOT_FIRST
	put_back_slot(v)
#endif
#endif
}

#ifdef M_NO_ACTION_CHECK
#define MAY_CALL(q)	true
#else
#define MAY_CALL(q)	(action[q])
#endif
#ifdef M_NO_INPROGRESS
#define IN_PROGRESS(q)	false
#else
#define IN_PROGRESS(q)	(inprog[q])
#endif

/* One bit: the queue of index n, by vCPU v. */
inline serve(v, n) {
	q = tab[n];
	atomic {
		assert(!unloaded);
		if
		:: q == NONE || !MAY_CALL(q) -> owed--; ok = true; busy = false
		/* In progress elsewhere, or somebody has the lock. */
		:: q != NONE && MAY_CALL(q) && IN_PROGRESS(q) ->
			ok = false; busy = false
#ifdef CONTENDED
		:: q != NONE && MAY_CALL(q) -> ok = false; busy = false
#endif
		:: q != NONE && MAY_CALL(q) && !IN_PROGRESS(q) ->
			inprog[q] = true;
			cb_begin(q);
			owed--; ok = true; busy = true
		fi
	};
	do
	:: busy ->
		cb_consume(q);
		STEP { cb_end_server(q, busy) }
	:: else -> break
	od;
	if
	:: ok
	:: else -> put_back(v, n)
	fi;
	STEP { hand[v] = hand[v] & ~BIT(n); q = 0; ok = false }
}

inline clear_slot(v, s) {
	STEP {
		assert(!area_freed && !unloaded);
		slots = slots & ~BIT(s);
		claim[v] = s + 1
	}
}

inline take_bits(v, s) {
#ifdef M_XCHG_SPLIT
	STEP { hand[v] = pending[s] };
	STEP { pending[s] = 0; claim[v] = 0 }
#else
	STEP {
		assert(!area_freed && !unloaded);
		hand[v] = pending[s];
		pending[s] = 0;
		claim[v] = 0
	}
#endif
}

/* At every interrupt and tick: own bits, then those of others. */
inline look(v) {
	atomic {
		if
		:: in_use -> inserve[v] = true; k = 0
		:: else -> k = NV
		fi
	};
	do
	:: k == NV -> break
	:: k < NV ->
		s = (v + k) % NV;
		atomic {
			if
			:: slots & BIT(s) -> ok = true
#if !defined(LIVENESS) && !defined(NO_LEAVE)
			/* This vCPU seems to lose its CPU: left for the next. */
			:: slots & BIT(s) ->
				ok = false;
#ifndef M_LEAVE_NO_TIMER
				retry[v] = true
#endif
#endif
			/* It runs, and the bits are fresh. */
			:: k && !IS_FROZEN(s) -> ok = false
			:: !(slots & BIT(s)) -> ok = false
			fi
		};
		if
		:: ok ->
			ok = false;
#ifdef M_SLOT_LATE
			take_bits(v, s);
			clear_slot(v, s);
			claim[v] = 0;
#else
			clear_slot(v, s);
			take_bits(v, s);
#endif
			n = 0;
			do
			:: n < NI && (hand[v] & BIT(n)) -> serve(v, n); n++
			:: n < NI && !(hand[v] & BIT(n)) -> n++
			:: n == NI -> break
			od;
			n = 0
		:: else
		fi;
		k++
	od;
	atomic { inserve[v] = false; k = 0; s = 0 }
}

inline overtake(v, q) {
	STEP {
		n = 0;
		do
		:: n == NI -> break
		:: n < NI && in_use && tab[n] == q && (pending[v] & BIT(n)) ->
			pending[v] = pending[v] & ~BIT(n);
			owed--;
			n++
		:: else -> n++
		od;
		n = 0
	}
}

#ifdef SURVIVE
#define CAN_RUN(v)	(!frozen || (v) == survivor)
#else
#define CAN_RUN(v)	true
#endif

proctype vcpu(byte v) provided (CAN_RUN(_pid - 1 - NQ))
{
	byte a, k, n, q, s;
	bool busy, ok;

end:	do
#ifdef EV_OFFLINE
	/* The vector is taken back, then the bits of before are served. */
	:: atomic { v == 1 && !offline -> offline = true };
		do
		:: look(v);
			if
			:: pending[v]
			:: else -> break
			fi
		od;
		goto down
#endif
	/* The redirection vector. */
	:: atomic { irr_redirect[v] -> irr_redirect[v] = false };
		look(v)

	/* The timer that asks again, or the tick. */
	:: atomic { retry[v] -> retry[v] = false };
		look(v);
#ifdef M_TIMER_SPENT
		/* It may expire in the interrupt that has started it. */
		STEP { retry[v] = false }
#endif
#if defined(SURVIVE)
	:: frozen && in_use && (slots || pending[v]) ->
		look(v)
#elif defined(TICKS)
	:: in_use && (slots || pending[v]) ->
		look(v)
#endif

	/* An interrupt of a device: handle_edge_irq(). */
	:: atomic {
		if
		:: irr[0] && CPU(0) == v -> a = 0
		:: irr[1] && CPU(1) == v -> a = 1
		:: irr[2] && CPU(2) == v -> a = 2
		fi;
#ifdef REAL_WAITS
		/* From Linux 6.17 on the target of the interrupt waits. */
		vec[a] == NONE || !inprog[vec[a]];
#endif
		irr[a] = false;
		direct[a] = false;
		q = vec[a];
		a = 0;
		if
		:: q == NONE -> busy = false
		:: q != NONE && !action[q] -> busy = false
		:: q != NONE && action[q] && inprog[q] ->
			masked[q] = true;
			busy = false
		:: q != NONE && action[q] && !inprog[q] ->
			inprog[q] = true;
			cb_begin(q);
			busy = true
		fi
	   };
#ifdef OVERTAKE_EARLIER
		/* Also when another vCPU has it in progress. */
		overtake(v, q);
#elif !defined(M_OVERTAKEN_LATE)
		if
		:: busy -> overtake(v, q)
		:: else
		fi;
#endif
		do
		:: busy ->
			cb_consume(q);
#ifdef M_OVERTAKEN_LATE
			overtake(v, q);
#endif
			STEP { cb_end(q, busy) }
		:: else -> break
		od;
		q = 0;
		look(v)
	od;
#ifdef EV_OFFLINE
down:	skip
#endif
}

/* ---- what else happens ---- */

inline host_grace() {
	skip;
#ifndef M_NO_HOST_GRACE
	!inhook[0];
#if NQ > 1
	!inhook[1];
#endif
#endif
}

inline guest_grace() {
	skip;
#ifndef M_NO_GUEST_GRACE
	!inserve[0];
	!inserve[1];
#if NV > 2
	!inserve[2];
#endif
#endif
}

/* Every registered queue once, by the same protocol; no bit is left. */
inline sweep() {
#ifndef M_NO_SWEEP
	n = 0;
	do
	:: n < NI ->
		q = tab[n];
		atomic {
			if
			:: q == NONE -> busy = false
			:: q != NONE && !action[q] -> busy = false
#ifdef M_SWEEP_SKIPS
			:: q != NONE && inprog[q] -> busy = false
#endif
			:: q != NONE && action[q] && !inprog[q] ->
				inprog[q] = true;
				cb_begin(q);
				busy = true
			fi
		};
		do
		:: busy ->
			cb_consume(q);
			STEP { cb_end_server(q, busy) }
		:: else -> break
		od;
		n++
	:: n == NI -> break
	od;
	n = 0; q = 0;
#endif
	atomic {
		do
		:: n == NV -> break
		:: n < NV ->
			q = 0;
			do
			:: q == NI -> break
			:: q < NI ->
				owed = owed - ((pending[n] >> q) & 1);
				q++
			od;
			pending[n] = 0;
			n++
		od;
		slots = 0;
		n = 0; q = 0
	}
}

inline stop_using() {
	in_use = false;
	guest_grace()
}

#if defined(EV_UNLOAD) || defined(EV_GONE)
/* The guest ends the registration, or finds that the host did. */
proctype maintenance()
{
	byte n, q;
	bool busy;

	if
#ifdef EV_UNLOAD
	:: true ->
		/* A fallback stops using the area first, an unload last. */
		if
		:: in_use = false
		:: true
		fi;
		do
		:: n < NI -> key[n] = 0; n++
		:: else -> n = 0; break
		od;
		cookie = false;
#ifdef M_SWEEP_EARLY
		stop_using();
		sweep();
#endif
		hook = false;
		host_grace();
#endif
#ifdef EV_GONE
	:: host_gone
#endif
	fi;
#ifndef M_SWEEP_EARLY
	stop_using();
	sweep();
#endif
	STEP { area_freed = true; unloaded = true }
}
#endif

#ifdef EV_GONE
proctype host_leaves()
{
	hook = false;
	host_grace();
	host_gone = true
}
#endif

#ifdef EV_MOVE
/*
 * Queue 0 goes from address 0 to 1; the old vector is free when nothing is
 * latched or on its way there, and then becomes queue 1's.
 */
proctype mover()
{
#ifdef M_KEY_LATE
	STEP { vec[1] = 0; msg[0] = 1 };
#else
	vec[1] = 0;
	if
	:: msg[0] = 1; if :: key[0] -> key[0] = 2 :: else fi
	:: if :: key[0] -> key[0] = 2 :: else fi; msg[0] = 1
	fi;
#endif
	STEP { !irr[0] && inflight[0] != 1 -> vec[0] = NONE };
	vec[0] = 1;
	msg[1] = 0;
#if NI > 1
	if :: key[1] -> key[1] = 1 :: else fi;
#endif
#ifdef M_KEY_LATE
	if :: key[0] -> key[0] = 2 :: else fi
#endif
}
#endif

#ifdef EV_REMOVE
/* Queue 0 goes, and queue 1 gets its index. */
proctype remover()
{
	key[0] = 0;
	STEP { action[0] = false; vec[0] = NONE };
#ifndef M_FREE_NOWAIT
	!inprog[0];
#endif
	qfreed[0] = true;
	tab[0] = 1;
	/* Under the mutex that unregistering takes as well. */
	atomic {
		if
		:: in_use && cookie -> key[0] = msg[1] + 1
		:: else
		fi
	}
}
#endif

#ifdef EV_FORGET
/* Queue 0 lives on, but its index becomes queue 1's. */
proctype forgetter()
{
	byte n, q;
	bool busy;

	key[0] = 0;
#ifndef M_FORGET_AT_ONCE
	/* Whoever still has a bit of it: it is meant for queue 0. */
	tab[0] = 0;
	do
	:: n < NV ->
		STEP {
			owed = owed - (pending[n] & 1);
			pending[n] = pending[n] & ~1
		};
		n++
	:: else -> n = 0; break
	od;
	guest_grace();
	atomic { !inprog[0] -> inprog[0] = true; cb_begin(0); busy = true };
	do
	:: busy -> cb_consume(0); STEP { cb_end_server(0, busy) }
	:: else -> break
	od;
#endif
	tab[0] = 1;
	key[0] = msg[1] + 1
}
#endif

#ifdef LIVENESS
/* With a fair scheduler all that is produced is consumed some day. */
ltl served { [] (work[0] -> <> !work[0]) }
#endif

#ifdef SURVIVE
proctype freezer()
{
	atomic {
		if
		:: survivor = 0
		:: survivor = 1
#if NV > 2
		:: survivor = 2
#endif
		fi;
		frozen = true
	}
}
#endif

/* ---- properties at rest: nobody can do anything any more ---- */

/* Somebody who lost the CPU in the middle has it in his hands. */
#define HOLDS(v, n) \
	((hand[v] & BIT(n)) || (claim[v] && (pending[claim[v] - 1] & BIT(n))))
#if NI > 1
#define HELD_BY(v, q) (IS_FROZEN(v) && \
	(tab[0] == (q) && HOLDS(v, 0) || tab[1] == (q) && HOLDS(v, 1)))
#else
#define HELD_BY(v, q) (IS_FROZEN(v) && tab[0] == (q) && HOLDS(v, 0))
#endif

proctype observer()
{
	byte q, v;
	bool excuse;

	timeout;
	atomic {
		q = 0;
		do
		:: q < NQ ->
			excuse = qfreed[q] || !work[q];
			if
			:: frozen && inprog[q] -> excuse = true
			:: else
			fi;
			/* Went straight to a vCPU that was thought to run. */
			v = 0;
			do
			:: v < NA ->
				if
				:: direct[v] && vec[v] == q && IS_FROZEN(CPU(v)) ->
					excuse = true
				:: else
				fi;
				v++
			:: else -> break
			od;
			v = 0;
			do
			:: v < NV ->
				if
				:: HELD_BY(v, q) -> excuse = true
				:: else
				fi;
				v++
			:: else -> break
			od;
			assert(excuse);		/* no work is lost */
			q++
		:: else -> break
		od;
		if
		:: frozen
		:: else ->
			v = 0;
			do
			:: v < NV ->
				assert(!(pending[v] & ~loose[v]));
				owed = owed - (pending[v] & 1) -
					((pending[v] >> 1) & 1);
				v++
			:: else -> break
			od;
			assert(owed == 0);	/* every set bit accounted for */
			q = 0;
			do
			:: q < NQ ->
				assert(!inprog[q] && (!masked[q] || !action[q]));
				q++
			:: else -> break
			od
		fi
	}
}

init {
	byte i;

	atomic {
		i = 0;
		do
		:: i < NA -> vec[i] = NONE; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NQ ->
			left[i] = WORK;
			action[i] = true;
			/* Addresses 0 and 2: room to move. */
			msg[i] = 2 * i;
			vec[2 * i] = i;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NI -> tab[i] = i; key[i] = msg[i] + 1; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NQ -> run device(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < NV -> run vcpu(i); i++
		:: else -> break
		od;
#if defined(EV_UNLOAD) || defined(EV_GONE)
		run maintenance();
#endif
#ifdef EV_GONE
		run host_leaves();
#endif
#ifdef EV_MOVE
		run mover();
#endif
#ifdef EV_REMOVE
		run remover();
#endif
#ifdef EV_FORGET
		run forgetter();
#endif
#ifdef SURVIVE
		run freezer();
#endif
		run observer()
	}
}
