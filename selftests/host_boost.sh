#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Boosts of the vCPUs of VMs of our own (src/kvm_boost*.c): who is boosted and
# how it ends, also late, and how long it takes; what is left of a thread's
# attributes, what lying guests gain; with each kind of hook; while
# vbalance_host or a CPU comes and goes; with observe=1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/stormlib.sh
. "$KTAP_DIR/stormlib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
for p in kvm_boost kvm_boost_attr kvm_boost_bound kvm_boost_cgroup \
		kvm_boost_fair kvm_boost_keep kvm_boost_late kvm_boost_liars \
		kvm_boost_offline kvm_boost_repay kvm_boost_soon; do
	command -v "$p" >/dev/null || skip_all "$p is not built"
done
unload vbalance_host

boosts() { grep -q '^hint [1-9]' "$HOST"/*/boost 2>/dev/null; }

# The engine is the same behind both.
for hook in ftrace ${LONG:+kprobe}; do
	check "load with hook=$hook" load vbalance_host "hook=$hook"
	check "hook=$hook: boosts are offered" grep -q "^boost on" $HOST/features
	embed "hook=$hook" kvm_boost
	if [ "${LONG-}" ]; then
		embed "hook=$hook: storm" storm boosts "kvm_boost_fair storm" "hook=$hook" \
			boost_us=20000 boost_share=50 boost_vcpu_share=50 \
			boost_cpu_share=50
	else
		skip "hook=$hook: storm" "takes long: make test-long"
	fi
	check "unload with hook=$hook" unload vbalance_host
done
[ "${LONG-}" ] || skip "hook=kprobe" "takes long: make test-long"

# The same whatever the hooks are.
if [ "${LONG-}" ]; then set --; else set -- short; fi
check "load" load vbalance_host
probed() { grep -c -e ' __sched_setscheduler+' -e ' set_user_nice+' /sys/kernel/debug/kprobes/list; }
! grep -q "^boost on" $HOST/features || [ "$(probed)" = 2 ]
ok $? "others' changes of threads are probed"
embed "attributes" kvm_boost_attr "$@"
embed "parts of them" kvm_boost_keep
embed "cgroups" kvm_boost_cgroup "$@"
embed "late" kvm_boost_late
if trace_on vbalance_host/vb_host_boost_end; then
	embed "bound" kvm_boost_bound "$TRACE"
	trace_off
	trace_on vbalance_host/vb_host_boost vbalance_host/vb_host_boost_end \
		sched/sched_switch sched/sched_wakeup
	embed "soon" kvm_boost_soon "$TRACE"
	if [ "${LONG-}" ]; then
		embed "offline" kvm_boost_offline "$TRACE"
	else
		skip "offline" "takes a CPU offline: make test-long"
	fi
	trace_off
else
	skip "bound" "no trace events"
	skip "soon" "no trace events"
	skip "offline" "no trace events"
fi
repays=$(grep -c "^boost_repay on" $HOST/features)
embed "paid back" kvm_boost_repay
embed "fairness" kvm_boost_fair "$@"
embed "liars" kvm_boost_liars "$@"
check "unload" unload vbalance_host
# Threads are boosted, but nothing is read of where they queue.
if [ "$repays" = 1 ] && [ -e /sys/kernel/btf/vmlinux ]; then
	cp "$(module_path vbalance_host)" "$KTAP_TMP/doctored.ko"
	doctor "$KTAP_TMP/doctored.ko" cfs_rq.load.weight cfs_rq.load.weighT
	check "the queue differs: load" insmod "$KTAP_TMP/doctored.ko"
	embed "the queue differs" kvm_boost_repay off
	check "the queue differs: unload" unload vbalance_host
else
	skip "the queue differs" "nothing is paid back, or nothing to compare with"
fi
for what in unload unload-asleep; do
	check "$what: load" load vbalance_host
	embed "$what" kvm_boost_late $what
	unload vbalance_host	# had that been skipped
done

check "load with observe=1" load vbalance_host observe=1
check "observe=1: not offered" grep -q "^boost off (observe=1" $HOST/features
equal "observe=1: nobody's changes of threads are probed" "$(probed)" 0
embed "observe=1" kvm_boost off
check "unload with observe=1" unload vbalance_host
ktap_end
