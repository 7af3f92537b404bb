#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A boosted thread that the scheduler moves to another CPU (src/kvm_boost_stray.c).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
command -v kvm_boost_stray >/dev/null || skip_all "kvm_boost_stray is not built"
unload vbalance_host

check "load" load vbalance_host
if trace_on vbalance_host/vb_host_boost vbalance_host/vb_host_boost_end \
		sched/sched_switch; then
	embed "stray" kvm_boost_stray "$TRACE"
	trace_off
else
	skip "stray" "no trace events"
fi
check "unload" unload vbalance_host
ktap_end
