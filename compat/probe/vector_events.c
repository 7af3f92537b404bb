// SPDX-License-Identifier: GPL-2.0
// found: where interrupts go, and that one was redirected, is seen by tracepoints of vectors
// missing: vbalance_guest: redirection is off
/* Only whether they are there: one that has changed must not compile. */
#include <linux/tracepoint.h>
#include <asm/trace/irq_vectors.h>

#ifndef VB_ONLY_HEADERS
const void *vb_probe(int n);
const void *vb_probe(int n)
{
	switch (n) {
	case 0:
		return (void *)check_trace_callback_type_x86_platform_ipi_entry;
	case 1:
		return (void *)check_trace_callback_type_x86_platform_ipi_exit;
	case 2:
		return (void *)check_trace_callback_type_vector_config;
	default:
		return (void *)check_trace_callback_type_vector_clear;
	}
}
#endif
