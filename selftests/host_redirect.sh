#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Where MSIs end, from a VM of our own (src/kvm_redirect*.c), with each kind of
# hook; while vbalance_host comes and goes; and with redirect=0.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/stormlib.sh
. "$KTAP_DIR/stormlib.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
for p in kvm_redirect kvm_redirect_choice kvm_redirect_stays \
		kvm_redirect_storm; do
	command -v "$p" >/dev/null || skip_all "$p is not built"
done
unload vbalance_host

diverts() { grep -q '^diverted [1-9]' "$HOST"/*/registration 2>/dev/null; }

for hook in ftrace kprobe; do
	check "load with hook=$hook" load vbalance_host hook=$hook
	check "hook=$hook is what is used" \
		grep -q "^redirect on ($hook)" $HOST/features
	embed "hook=$hook" kvm_redirect
	embed "hook=$hook: choice" kvm_redirect_choice
	embed "hook=$hook" storm diverts kvm_redirect_storm hook=$hook
	check "unload with hook=$hook" unload vbalance_host
done

# The same whatever the hook is.
check "load" load vbalance_host
embed "stays" kvm_redirect_stays
embed "x2APIC" kvm_redirect x2apic
embed "x2APIC, ids around 255" kvm_redirect 255
check "unload" unload vbalance_host

check "load with redirect=0" load vbalance_host redirect=0
check "redirect=0 is said" grep -q "^redirect off (redirect=0" $HOST/features
embed "redirect=0" kvm_redirect off
check "unload with redirect=0" unload vbalance_host
ktap_end
