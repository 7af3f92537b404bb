#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What needs three CPUs: a boosted thread that is moved to another one
# (src/kvm_boost_stray.c), a VM one of whose vCPUs runs while others compete.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
for p in kvm_boost kvm_boost_stray; do
	command -v "$p" >/dev/null || skip_all "$p is not built"
done
unload vbalance_host

check "load" load vbalance_host
if trace_on vbalance_host/vb_host_boost_end; then
	embed "stray" kvm_boost_stray "$TRACE"
	trace_off
else
	skip "stray" "no trace events"
fi
embed "third" kvm_boost third
check "unload" unload vbalance_host
ktap_end
