#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Holders and the rings of vhost-net: VMs and rings of our own
# (src/kvm_boost_rings.c).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
[ -e /dev/vhost-net ] || skip_all "no /dev/vhost-net"
command -v kvm_boost_rings >/dev/null || skip_all "kvm_boost_rings is not built"
unload vbalance_host

check "load" load vbalance_host
check "rings are watched" grep -q "^rings on" $HOST/features
check "kicks are watched" grep -q "^kicks on" $HOST/features
if trace_on vbalance_host/vb_host_boost vbalance_host/vb_host_boost_end \
		sched/sched_switch; then
	embed "rings" kvm_boost_rings "$TRACE"
	trace_off
else
	embed "rings" kvm_boost_rings
fi
check "unload" unload vbalance_host
ktap_end
