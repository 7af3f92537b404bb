/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vbalance_host

#if !defined(_VBH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _VBH_TRACE_H

#include <linux/tracepoint.h>

#define vbh_show_state(s)					\
	__print_symbolic(s, { 0, "off" }, { 1, "running" },	\
			 { 2, "preempted" }, { 3, "halted" }, { 4, "vmm" })

/* A vCPU changed its run state; fires under the run-queue lock. */
TRACE_EVENT(vb_host_state,
	TP_PROTO(int pid, u32 vcpu_id, u32 from, u32 to),
	TP_ARGS(pid, vcpu_id, from, to),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(u32, vcpu_id)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->vcpu_id = vcpu_id;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("vm=%d vcpu=%u %s -> %s", __entry->pid, __entry->vcpu_id,
		  vbh_show_state(__entry->from), vbh_show_state(__entry->to))
);

/* One hypercall of ours: ret is what the guest gets (0 or a negative code). */
TRACE_EVENT(vb_host_hypercall,
	TP_PROTO(int pid, u32 vcpu_id, u64 op, u64 gpa, u64 cookie, long ret),
	TP_ARGS(pid, vcpu_id, op, gpa, cookie, ret),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(u32, vcpu_id)
		__field(u64, op)
		__field(u64, gpa)
		__field(u64, cookie)
		__field(long, ret)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->vcpu_id = vcpu_id;
		__entry->op = op;
		__entry->gpa = gpa;
		__entry->cookie = cookie;
		__entry->ret = ret;
	),
	TP_printk("vm=%d vcpu=%u op=%llu gpa=%#llx cookie=%#llx ret=%ld",
		  __entry->pid, __entry->vcpu_id, __entry->op, __entry->gpa,
		  __entry->cookie, __entry->ret)
);

/*
 * An MSI for a vCPU that does not run, or is about to leave: key number, its
 * vector and vCPU, and the vCPU and vector that it became (vector 0: delivered
 * as it was).
 */
TRACE_EVENT(vb_host_redirect,
	TP_PROTO(int pid, int key, u32 vector, u32 owner, u32 target,
		 u32 new_vector),
	TP_ARGS(pid, key, vector, owner, target, new_vector),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(int, key)
		__field(u32, vector)
		__field(u32, owner)
		__field(u32, target)
		__field(u32, new_vector)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->key = key;
		__entry->vector = vector;
		__entry->owner = owner;
		__entry->target = target;
		__entry->new_vector = new_vector;
	),
	TP_printk("vm=%d key=%d vcpu=%u vector=%u -> vcpu=%u vector=%u",
		  __entry->pid, __entry->key, __entry->owner, __entry->vector,
		  __entry->target, __entry->new_vector)
);

/* A boost begins: why is an index of VBH_BOOST_COUNTS. */
#define vbh_show_boost(why)						\
	__print_symbolic(why, { 1, "hint" }, { 2, "task" },		\
			 { 3, "holder" }, { 4, "fast_path" },		\
			 { 5, "waiting" },				\
			 { 7, "done" }, { 8, "off_cpu" },		\
			 { 9, "bound" }, { 10, "gone" },		\
			 { 11, "moved" })

TRACE_EVENT(vb_host_boost,
	TP_PROTO(int pid, u32 vcpu_id, u32 why),
	TP_ARGS(pid, vcpu_id, why),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(u32, vcpu_id)
		__field(u32, why)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->vcpu_id = vcpu_id;
		__entry->why = why;
	),
	TP_printk("vm=%d vcpu=%u why=%s", __entry->pid, __entry->vcpu_id,
		  vbh_show_boost(__entry->why))
);

/* A boost has ended: why, and how much CPU time the thread got in it. */
TRACE_EVENT(vb_host_boost_end,
	TP_PROTO(int pid, u32 vcpu_id, u32 why, u64 ns),
	TP_ARGS(pid, vcpu_id, why, ns),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(u32, vcpu_id)
		__field(u32, why)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->vcpu_id = vcpu_id;
		__entry->why = why;
		__entry->ns = ns;
	),
	TP_printk("vm=%d vcpu=%u why=%s ran_ns=%llu", __entry->pid,
		  __entry->vcpu_id, vbh_show_boost(__entry->why), __entry->ns)
);

/* An area was mapped (active 1) or let go (active 0). */
TRACE_EVENT(vb_host_area,
	TP_PROTO(int pid, u64 cookie, u32 pages, int active, int err),
	TP_ARGS(pid, cookie, pages, active, err),
	TP_STRUCT__entry(
		__field(int, pid)
		__field(u64, cookie)
		__field(u32, pages)
		__field(int, active)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->pid = pid;
		__entry->cookie = cookie;
		__entry->pages = pages;
		__entry->active = active;
		__entry->err = err;
	),
	TP_printk("vm=%d cookie=%#llx pages=%u active=%d err=%d",
		  __entry->pid, __entry->cookie, __entry->pages,
		  __entry->active, __entry->err)
);

#endif /* _VBH_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE vbh_trace
#include <trace/define_trace.h>
