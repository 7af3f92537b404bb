// SPDX-License-Identifier: GPL-2.0
// Work goes to a workqueue of the module's own. A work item runs once at a time
// only if all queue it in the same one, and which of the system's it is that
// schedule_work() takes differs between kernels.

virtual report

@call@
identifier f = {schedule_work, schedule_work_on, schedule_delayed_work,
                schedule_delayed_work_on, schedule_on_each_cpu,
                execute_in_process_context};
position p;
@@
f@p(...)

@systems@
identifier wq =~ "^system_.*wq$";
position p;
@@
wq@p

@script:python depends on report@
f << call.f;
p << call.p;
@@
import coccilib.report
coccilib.report.print_report(p[0], f"{f}(): one of the system's workqueues")

@script:python depends on report@
wq << systems.wq;
p << systems.p;
@@
import coccilib.report
coccilib.report.print_report(p[0], f"{wq}: one of the system's workqueues")
