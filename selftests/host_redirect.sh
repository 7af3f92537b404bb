#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Where MSIs end, from a VM of our own (src/kvm_redirect.c), with each kind of
# hook; while vbalance_host comes and goes; and with redirect=0.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
for p in kvm_redirect kvm_hold; do
	command -v "$p" >/dev/null || skip_all "$p is not built"
done
unload vbalance_host
kvm_hold &
KTAP_KILL=$!

# What the program prints, between lines about the module.
storm() {
	kvm_redirect storm &
	storm_pid=$!
	KTAP_KILL="$KTAP_KILL $storm_pid"
	storm_n=0
	while [ "$storm_n" -lt 8 ]; do
		await 20 diverts || echo "not ok - nothing is redirected"
		unload vbalance_host || echo "not ok - unload"
		load vbalance_host hook="$hook" || echo "not ok - load"
		storm_n=$((storm_n + 1))
	done
	await 20 diverts || echo "not ok - nothing is redirected"
	kill -TERM "$storm_pid"
	wait "$storm_pid"
}
diverts() { grep -q '^diverted [1-9]' "$HOST"/*/registration 2>/dev/null; }

for hook in ftrace kprobe; do
	check "load with hook=$hook" load vbalance_host hook=$hook
	check "hook=$hook is what is used" \
		grep -q "^redirect on ($hook)" $HOST/features
	embed "hook=$hook" kvm_redirect
	embed "hook=$hook" storm
	check "unload with hook=$hook" unload vbalance_host
done

check "load with redirect=0" load vbalance_host redirect=0
check "redirect=0 is said" grep -q "^redirect off (redirect=0" $HOST/features
embed "redirect=0" kvm_redirect off
check "unload with redirect=0" unload vbalance_host
ktap_end
