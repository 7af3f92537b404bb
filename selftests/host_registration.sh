#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Registration of shared areas, every refusal, and what stands in the areas, from
# VMs of our own (src/kvm_*.c), with each kind of hook.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
PROGRAMS="kvm_registration kvm_refusals kvm_races kvm_states kvm_vms kvm_many"
for p in $PROGRAMS; do
	command -v "$p" >/dev/null || skip_all "$p is not built"
done
unload vbalance_host

for hook in ftrace kprobe; do
	check "load with hook=$hook" load vbalance_host hook=$hook
	check "hook=$hook is what is used" \
		grep -q "^run_state on ($hook)" $HOST/features
	for p in $PROGRAMS; do embed "hook=$hook: $p" "$p"; done
	check "unload with hook=$hook" unload vbalance_host
done

check "load with observe=1" load vbalance_host observe=1
check "observe=1 offers nothing" grep -q "^registration off" $HOST/features
kvm_registration > "$KTAP_TMP/out" 2>&1
check "observe=1: a guest finds no host module" \
	grep -q "got -1000, expected" "$KTAP_TMP/out"
check "observe=1 still sees vCPUs" [ "$(stat_of $HOST/stats loads)" -gt 0 ]
check "unload with observe=1" unload vbalance_host
ktap_end
