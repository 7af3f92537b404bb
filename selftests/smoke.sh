#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Both modules on this pair of kernels, in short: everything is on, interrupts
# of busy vCPUs are redirected, boosts are made, and all goes again.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"

echo "# host $(uname -r), guest $(guest 0 'uname -r' </dev/null)"
unload vbalance_host
check "vbalance_host is loaded" load vbalance_host
sed 's/^/# /' $HOST/features
equal "no feature is off that this kernel allows" \
	"$(grep -v "(not with this kernel's" $HOST/features | grep -c ' off ')" 0
check "KVM is what the module was built for" grep -q '^btf_check on' $HOST/features

check "vbalance_guest is loaded" guest_module 0 load
await 30 is_active 0
ok $? "the guest is registered"
g 0 "cat \$GUEST/features" > "$KTAP_TMP/guest"
sed 's/^/# /' "$KTAP_TMP/guest"
for feature in page steal redirect task btf_check; do
	check "guest: $feature is on" grep -q "^$feature on" "$KTAP_TMP/guest"
done

guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'
traffic_start "$(guest_ip 0)"
boosts() {
	awk '$1 ~ /^(hint|task|holder|waiting|fast_path)$/ { n += $2 } END { exit !n }' \
		"$(vm_dir 0)/boost"
}
redirected() {
	[ "$(host_count diverted)" -gt 0 ]
}
await 120 redirected
ok $? "interrupts are redirected"
await 120 boosts
ok $? "vCPUs are boosted"
traffic_stop "every packet is answered, once"
guest 0 'killall burn' </dev/null

no_base
counters_agree "smoke"
# The check itself: a bit that no look can see.
check "a pending bit is lost" lose_bit "$(guest_pid 0)" 1 511
lost_is_found() { [ "$(g 0 gstat stuck)" = 1 ]; }
await 60 lost_is_found
ok $? "it is found, and counted as stuck"
lost_is_taken() { [ "$(g 0 gstat dropped)" = 1 ]; }
await 60 lost_is_taken
ok $? "and taken"

# The account: bits that are taken away from the guest. One is made up for by
# the one above.
ACCOUNT='the host says that it has set .* pending bits'
guest_log_clean 0
guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'
traffic_start "$(guest_ip 0)"
for n in 1 2 3 4 5; do
	check "a pending bit is taken away ($n)" timeout 120 lose_bit "$(guest_pid 0)"
done
check "all goes on" traffic_more 20
traffic_stop "every packet is answered, once, all the same"
guest 0 'killall burn' </dev/null
check "vbalance_guest is unloaded" guest_module 0 unload
guest 0 "dmesg | grep '$ACCOUNT'" </dev/null > "$KTAP_TMP/account"
sed 's/^/# /' "$KTAP_TMP/account"
equal "it says that bits are missing" "$(wc -l < "$KTAP_TMP/account")" 1
guest 0 'dmesg -c' </dev/null > /dev/null
await 30 all_unpinned
ok $? "its pages are let go"
check "vbalance_host is unloaded" unload vbalance_host
guest_log_clean 0
ktap_end
