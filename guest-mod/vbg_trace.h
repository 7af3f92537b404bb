/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vbalance_guest

#if !defined(_VBG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _VBG_TRACE_H

#include <linux/tracepoint.h>

#include "vbg.h"

/* Symbols for the numbers, for tools that read the binary format as well. */
#define VBG_TRACE_ENUM(constant, name) TRACE_DEFINE_ENUM(constant);
VBG_REASONS(VBG_TRACE_ENUM)
TRACE_DEFINE_ENUM(VBG_SERVE_OWN);
TRACE_DEFINE_ENUM(VBG_SERVE_STEAL);
TRACE_DEFINE_ENUM(VBG_SERVE_BORROW);
TRACE_DEFINE_ENUM(VBG_SERVE_SWEEP);
TRACE_DEFINE_ENUM(VBG_S_FALLBACK_SELF);
TRACE_DEFINE_ENUM(VBG_S_FALLBACK_GONE);
TRACE_DEFINE_ENUM(VBG_S_FALLBACK_STATUS);

#define VBG_TRACE_SYMBOL(constant, name) { constant, name },
#define vbg_show_reason(r)						\
	__print_symbolic(r, VBG_REASONS(VBG_TRACE_SYMBOL) { -1, "?" })
#define vbg_show_fallback(w)						\
	__print_symbolic(w, { VBG_S_FALLBACK_SELF, "self" },		\
			 { VBG_S_FALLBACK_GONE, "gone" },		\
			 { VBG_S_FALLBACK_STATUS, "status" })

/* Registration of the shared area: ret is the host's answer. */
TRACE_EVENT(vb_guest_register,
	TP_PROTO(u64 cookie, u32 pages, long ret),
	TP_ARGS(cookie, pages, ret),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, pages)
		__field(long, ret)
	),
	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->pages = pages;
		__entry->ret = ret;
	),
	TP_printk("cookie=%#llx pages=%u ret=%ld", __entry->cookie,
		  __entry->pages, __entry->ret)
);

/* A queue's handler was called by us: work says whether it found any. */
TRACE_EVENT(vb_guest_serve,
	TP_PROTO(unsigned int irq, int kind, bool work, u64 ns),
	TP_ARGS(irq, kind, work, ns),
	TP_STRUCT__entry(
		__field(unsigned int, irq)
		__field(int, kind)
		__field(bool, work)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->kind = kind;
		__entry->work = work;
		__entry->ns = ns;
	),
	TP_printk("irq=%u kind=%s work=%d ns=%llu", __entry->irq,
		  __print_symbolic(__entry->kind, { VBG_SERVE_OWN, "own" },
				   { VBG_SERVE_STEAL, "steal" },
				   { VBG_SERVE_BORROW, "borrow" },
				   { VBG_SERVE_SWEEP, "sweep" }),
		  __entry->work, __entry->ns)
);

/* The shared area is dead, steal time takes over. */
TRACE_EVENT(vb_guest_fallback,
	TP_PROTO(int cpu, int why),
	TP_ARGS(cpu, why),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(int, why)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->why = why;
	),
	TP_printk("cpu=%d why=%s", __entry->cpu,
		  vbg_show_fallback(__entry->why))
);

/* State change as the vCPU itself sees it: back after so many ns. */
TRACE_EVENT(vb_guest_back,
	TP_PROTO(int cpu, u64 away_ns, u64 stayed_ns),
	TP_ARGS(cpu, away_ns, stayed_ns),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(u64, away_ns)
		__field(u64, stayed_ns)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->away_ns = away_ns;
		__entry->stayed_ns = stayed_ns;
	),
	TP_printk("cpu=%d away_ns=%llu stayed_ns=%llu", __entry->cpu,
		  __entry->away_ns, __entry->stayed_ns)
);

/* from == to: it stays; observe: decided but not done. */
TRACE_EVENT(vb_guest_decision,
	TP_PROTO(u32 irq, int from, int to, int reason, u64 saved_ns,
		 bool observe),
	TP_ARGS(irq, from, to, reason, saved_ns, observe),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(int, from)
		__field(int, to)
		__field(int, reason)
		__field(u64, saved_ns)
		__field(bool, observe)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->from = from;
		__entry->to = to;
		__entry->reason = reason;
		__entry->saved_ns = saved_ns;
		__entry->observe = observe;
	),
	TP_printk("irq=%u %d -> %d reason=%s saved_ns=%llu observe=%d",
		  __entry->irq, __entry->from, __entry->to,
		  vbg_show_reason(__entry->reason), __entry->saved_ns,
		  __entry->observe)
);

TRACE_EVENT(vb_guest_move,
	TP_PROTO(u32 irq, int from, int to, u64 cost_ns, int err),
	TP_ARGS(irq, from, to, cost_ns, err),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(int, from)
		__field(int, to)
		__field(u64, cost_ns)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->from = from;
		__entry->to = to;
		__entry->cost_ns = cost_ns;
		__entry->err = err;
	),
	TP_printk("irq=%u %d -> %d cost_ns=%llu err=%d", __entry->irq,
		  __entry->from, __entry->to, __entry->cost_ns, __entry->err)
);

/* Somebody else moved the interrupt or changed its mask. */
TRACE_EVENT(vb_guest_foreign,
	TP_PROTO(u32 irq, int ours, int theirs, bool restricted),
	TP_ARGS(irq, ours, theirs, restricted),
	TP_STRUCT__entry(
		__field(u32, irq)
		__field(int, ours)
		__field(int, theirs)
		__field(bool, restricted)
	),
	TP_fast_assign(
		__entry->irq = irq;
		__entry->ours = ours;
		__entry->theirs = theirs;
		__entry->restricted = restricted;
	),
	TP_printk("irq=%u ours=%d theirs=%d restricted=%d", __entry->irq,
		  __entry->ours, __entry->theirs, __entry->restricted)
);

#endif /* _VBG_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE vbg_trace
#include <trace/define_trace.h>
