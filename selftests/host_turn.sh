#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What boosts leave to others: their turn.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
command -v kvm_boost_turn >/dev/null || skip_all "kvm_boost_turn is not built"
unload vbalance_host

check "load" load vbalance_host
if trace_on vbalance_host/vb_host_boost vbalance_host/vb_host_boost_end \
		sched/sched_switch sched/sched_wakeup; then
	embed "turn" kvm_boost_turn "$TRACE"
	trace_off
else
	skip "turn" "no trace events"
fi
check "unload" unload vbalance_host
ktap_end
