#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A guest whose kernel is locked down, as Secure Boot does it, and further: the
# module that is loaded works on, shows what it showed, and goes; one that is not
# signed is refused. Runs in the lab's L1 and drives guest 0 (vCPUs stacked).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
LOCKDOWN=/sys/kernel/security/lockdown
guest 0 "[ -e $LOCKDOWN ] || mount -t securityfs none ${LOCKDOWN%/*}; [ -e $LOCKDOWN ]" </dev/null
# Another status is that of a guest which does not answer.
[ $? != 1 ] ||
	skip_all "the guest's kernel cannot be locked down (CONFIG_SECURITY_LOCKDOWN_LSM)"

unload vbalance_host
load vbalance_host
host_base
check "loaded" guest_module 0 load remap=redirect
check "registered" await 60 is_active 0
# Whoever is asked by debugfs is asked now.
lab_save 0
off=$(guest_off 0)
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
redirected() { [ "$(host_count diverted)" -gt "$was" ]; }
value=100
for level in integrity confidentiality; do
	check "locked down: $level" guest 0 "echo $level > $LOCKDOWN && grep -q '\[$level\]' $LOCKDOWN" </dev/null
	check "$level: debugfs can be read" guest 0 'grep -q "^redirect on" /sys/kernel/debug/vbalance/guest/features' </dev/null
	equal "$level: no other feature went off" "$(guest_off 0)" "$off"
	value=$((value + 100))
	check "$level: parameters can be changed" parameter threshold $value
	equal "$level: and are" "$(guest 0 'cat /sys/module/vbalance_guest/parameters/threshold' </dev/null)" $value
	was=$(host_count diverted)
	traffic_start "$(guest_ip 0)"
	check "$level: interrupts are redirected" await 120 redirected
	traffic_stop "$level: every packet is answered once"
	counters_agree "$level"
done
guest 0 'killall burn' </dev/null
check "unloaded" guest_module 0 unload
check "the host has let go" await 60 is_inactive 0
! guest_module 0 load 2> "$KTAP_TMP/insmod"
ok $? "one that is not signed is refused"
check "and the log says why" guest 0 'dmesg | tail | grep -q "Lockdown: insmod: unsigned module loading is restricted"' </dev/null

# It stays locked down: of the detectors those answer that do not need debugfs.
[ "$SLOW" = 1 ] || lab_ask 0
guest_stop 0 moved
guest_start 0
check "the guest as it was before" guest_wait 0
check "nothing is left" await 60 all_unpinned
unload vbalance_host
ktap_end
