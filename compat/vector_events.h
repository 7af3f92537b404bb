/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of vectors: which are given to interrupts, and the redirection's. */
#ifndef _VB_COMPAT_VECTOR_EVENTS_H
#define _VB_COMPAT_VECTOR_EVENTS_H

#ifdef HAVE_vector_events
#include <linux/tracepoint.h>
#include <asm/trace/irq_vectors.h>

/* What the headers did not have, or NULL. */
#define VB_VECTOR_EVENTS_MISSING	NULL

/* To be compared with the running kernel (core/facts.h). */
#define VB_VECTOR_EVENT_FACTS(group)					\
	VB_TRACE(group, x86_platform_ipi_entry, "0(*,4"),		\
	VB_TRACE(group, x86_platform_ipi_exit, "0(*,4"),		\
	VB_TRACE(group, vector_config, "0(*,4,4,4,4"),			\
	VB_TRACE(group, vector_clear, "0(*,4,4,4,4,4"),

/* Does not compile when a prototype has changed. */
#define vb_vector_events_canary(on_entry, on_exit, on_config, on_clear)	\
do {									\
	check_trace_callback_type_x86_platform_ipi_entry(on_entry);	\
	check_trace_callback_type_x86_platform_ipi_exit(on_exit);	\
	check_trace_callback_type_vector_config(on_config);		\
	check_trace_callback_type_vector_clear(on_clear);		\
} while (0)
#else
#define VB_VECTOR_EVENTS_MISSING	\
	"headers without x86_platform_ipi_entry, x86_platform_ipi_exit, vector_config or vector_clear"
#define VB_VECTOR_EVENT_FACTS(group)

static inline void vb_vector_events_canary(void *on_entry, void *on_exit,
					   void *on_config, void *on_clear)
{
}
#endif

#endif /* _VB_COMPAT_VECTOR_EVENTS_H */
