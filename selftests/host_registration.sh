#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Registration of shared areas and every refusal, from VMs of our own
# (src/kvm_registration.c), with each kind of hook.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
PROGRAM=$(command -v kvm_registration) || skip_all "kvm_registration is not built"
unload vbalance_host

for hook in ftrace kprobe; do
	check "load with hook=$hook" load vbalance_host hook=$hook
	check "hook=$hook is what is used" \
		grep -q "^run_state on ($hook)" $HOST/features
	embed "hook=$hook" "$PROGRAM"
	check "unload with hook=$hook" unload vbalance_host
done

check "load with observe=1" load vbalance_host observe=1
check "observe=1 offers nothing" grep -q "^registration off" $HOST/features
"$PROGRAM" > "$KTAP_TMP/out" 2>&1
check "observe=1: a guest finds no host module" \
	grep -q "got -1000, expected" "$KTAP_TMP/out"
check "observe=1 still sees vCPUs" [ "$(stat_of $HOST/stats loads)" -gt 0 ]
check "unload with observe=1" unload vbalance_host
ktap_end
