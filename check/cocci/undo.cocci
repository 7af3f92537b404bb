// SPDX-License-Identifier: GPL-2.0
// Who registers something with the kernel takes it back, in the same file, and
// waits for what runs or is to run: what is left calls into a module that is
// gone.

virtual report

@initialize:python@
@@
import coccilib.report

UNDO = {
    "register_kprobe": ("unregister_kprobe",),
    "register_kretprobe": ("unregister_kretprobe",),
    "register_ftrace_function": ("unregister_ftrace_function",),
    "tracepoint_probe_register": ("tracepoint_probe_unregister",
                                  "tracepoint_synchronize_unregister"),
    "register_module_notifier": ("unregister_module_notifier",),
    "register_reboot_notifier": ("unregister_reboot_notifier",),
    "register_pm_notifier": ("unregister_pm_notifier",),
    "bus_register_notifier": ("bus_unregister_notifier",),
    "atomic_notifier_chain_register": ("atomic_notifier_chain_unregister",),
    "alloc_ordered_workqueue": ("destroy_workqueue",),
    "alloc_workqueue": ("destroy_workqueue",),
    "queue_delayed_work": ("cancel_delayed_work_sync",),
    "mod_delayed_work": ("cancel_delayed_work_sync",),
    "irq_work_queue": ("irq_work_sync",),
    "irq_work_queue_on": ("irq_work_sync",),
    "hrtimer_start": ("hrtimer_cancel",),
    "hrtimer_start_range_ns": ("hrtimer_cancel",),
    "kthread_run": ("kthread_stop",),
    "cpuhp_setup_state": ("cpuhp_remove_state",),
    "cpuhp_setup_state_nocalls": ("cpuhp_remove_state_nocalls",),
    "debugfs_create_dir": ("debugfs_remove",),
    "vb_debugfs_get": ("debugfs_remove",),
}
called = []     # (function, its position)

@call@
identifier f;
position p;
@@
f@p(...)

@script:python depends on report@
f << call.f;
p << call.p;
@@
called.append((f, p[0]))

@finalize:python depends on report@
@@
there = {(p.file, f) for f, p in called}
for f, p in called:
    for undo in UNDO.get(f, ()):
        if (p.file, undo) not in there:
            coccilib.report.print_report(p, f"{f}(), but no {undo}() in this file")
