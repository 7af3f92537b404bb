#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A kernel that is locked down, as Secure Boot does it: a module that is loaded
# works on, its hooks come and go with KVM, and one that is not signed is
# refused. The kernel stays locked down: the last test of a boot. Runs in the
# lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
SECURITY=/sys/kernel/security
[ -e $SECURITY/lockdown ] || mount -t securityfs none $SECURITY 2>/dev/null
[ -e $SECURITY/lockdown ] ||
	skip_all "this kernel cannot be locked down (CONFIG_SECURITY_LOCKDOWN_LSM)"

unload vbalance_host
check "loaded" load vbalance_host
# Whoever is asked by debugfs is asked now.
if in_lab; then
	leaks
	detectors
	coverage "$LAB_OUT/gcov/l1-before"
fi
off=$(host_off)
echo integrity > $SECURITY/lockdown
check "locked down" grep -q '\[integrity\]' $SECURITY/lockdown
check "debugfs can be read" grep -q '^run_state on' $HOST/features
check "statistics as well" grep -q '^loads ' $HOST/stats
check "parameters can be changed" eval 'echo 3 > /sys/module/vbalance_host/parameters/boost_share'
embed "guests register" kvm_registration
vendor=$(sed -n 's/^\(kvm_amd\|kvm_intel\) .*/\1/p' /proc/modules)
if rmmod "$vendor" kvm && modprobe "$vendor" 2>/dev/null; then
	check "KVM has gone and come: hooks are on" grep -q '^run_state on' $HOST/features
	equal "and nothing else is off" "$(host_off)" "$off"
	embed "guests register again" kvm_registration
else
	skip "hooks that come with KVM" "the kernel's own modules are not signed"
fi
check "unloaded" unload vbalance_host
! load vbalance_host 2> "$KTAP_TMP/insmod"
ok $? "one that is not signed is refused"
check "and the log says why" eval 'dmesg | tail | grep -q "Lockdown: insmod: unsigned module loading is restricted"'
ktap_end
