// SPDX-License-Identifier: GPL-2.0
// Who registers something with the kernel takes it back, in the same file, and
// waits for the probes that run: one that is left calls into a module that is
// gone.

virtual report

@kprobe_off@
@@
unregister_kprobe(...)

@kprobe_on depends on !kprobe_off@
position p;
@@
register_kprobe@p(...)

@script:python depends on report@
p << kprobe_on.p;
@@
coccilib.report.print_report(p[0], "no unregister_kprobe() in this file")

@kretprobe_off@
@@
unregister_kretprobe(...)

@kretprobe_on depends on !kretprobe_off@
position p;
@@
register_kretprobe@p(...)

@script:python depends on report@
p << kretprobe_on.p;
@@
coccilib.report.print_report(p[0], "no unregister_kretprobe() in this file")

@ftrace_off@
@@
unregister_ftrace_function(...)

@ftrace_on depends on !ftrace_off@
position p;
@@
register_ftrace_function@p(...)

@script:python depends on report@
p << ftrace_on.p;
@@
coccilib.report.print_report(p[0], "no unregister_ftrace_function() in this file")

@notifier_off@
@@
unregister_module_notifier(...)

@notifier_on depends on !notifier_off@
position p;
@@
register_module_notifier@p(...)

@script:python depends on report@
p << notifier_on.p;
@@
coccilib.report.print_report(p[0], "no unregister_module_notifier() in this file")

@tracepoint_off@
@@
tracepoint_probe_unregister(...)

@tracepoint_waits@
@@
tracepoint_synchronize_unregister(...)

@tracepoint_on depends on !tracepoint_off || !tracepoint_waits@
position p;
@@
tracepoint_probe_register@p(...)

@script:python depends on report@
p << tracepoint_on.p;
@@
coccilib.report.print_report(p[0], "no tracepoint_probe_unregister() in this file, or nobody waits for probes that run (tracepoint_synchronize_unregister())")
