#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Modules built for a kernel without CONFIG_DYNAMIC_FTRACE, CONFIG_VHOST_NET and
# CONFIG_KVM_GUEST: what they do without is in the log and in debugfs, and the
# rest works. Needs modules built that way (common/bare.h).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
use_variant bare

log_says() {	# TEXT [MODULE]
	dmesg | grep -qF "${2:-vbalance_host}: $1"
}

unload vbalance_host
modprobe -r vhost_net
! grep -q ^vhost_net /proc/modules
ok $? "vhost_net is not loaded"
check "loaded" load vbalance_host
check "debugfs: kprobes" grep -q "^run_state on (kprobe, not ftrace)$" $HOST/features
check "the log as well" log_says "run_state: not ftrace (CONFIG_DYNAMIC_FTRACE: error -95)"
check "debugfs: no rings" grep -q "^rings off (this kernel has no vhost_net: error -2)$" $HOST/features
check "the log as well" log_says "rings: off (this kernel has no vhost_net: error -2)"
equal "nothing else is off" "$(host_off)" rings
! grep -q "^boost_repay off" $HOST/features ||
	log_says "boost_repay: off (not with this kernel's scheduler: error -95)"
ok $? "nor boost_repay, or the log says so"
embed "guests register" kvm_registration
check "unloaded" unload vbalance_host
! load vbalance_host hook=ftrace
ok $? "hook=ftrace: refused"
check "hook=ftrace: the log says why" log_says "no hook on KVM: CONFIG_DYNAMIC_FTRACE: error -95"
# A hook that comes later, and cannot be set.
(
	use_variant faults
	load vbalance_host other_hook=vhost_net_ioctl:vbalance_is_not_there
)
check "loaded without vhost_net, and a hook on it that is missing" loaded vbalance_host
check "debugfs: it is waited for" grep -q "^rings off (vhost_net is not loaded" $HOST/features
modprobe vhost_net
check "vhost_net comes: debugfs says why rings stay off" \
	grep -q "^rings off (vhost_net_ioctl: error -2)$" $HOST/features
check "the log as well" log_says "rings: off (vhost_net_ioctl: error -2)"
unload vbalance_host
# Nothing to compare with, and then no memory for it: no sign of another kernel.
vendor=$(idle_kvm)
if [ -z "$vendor" ] || ! [ -e /sys/kernel/btf/kvm ]; then
	skip "no memory to read BTF" "KVM is built in or in use, or has no BTF"
else
	rmmod "$vendor" kvm
	hide_btf
	(use_variant faults; load vbalance_host fail_point=btf)
	check "loaded without kvm and BTF" loaded vbalance_host
	show_btf
	echo -1 > /sys/module/vbalance_host/parameters/fail_at
	modprobe "$vendor"
	check "kvm comes, and there is no memory to read BTF: hooks are off" \
		grep -q "^run_state off (.*: error -12)$" $HOST/features
	check "no memory to read BTF: boosts as well" \
		grep -q "^boost off (run_state is off: error -6)$" $HOST/features
	check "the log as well" log_says "BTF of the kernel cannot be read: error -12"
	rmmod "$vendor" kvm
	echo 0 > /sys/module/vbalance_host/parameters/fail_at
	modprobe "$vendor"
	equal "kvm comes again, and there is memory: nothing is off" "$(host_off)" ""
	check "boosts are on" grep -q "^boost on" $HOST/features
	unload vbalance_host
fi
! load vbalance_guest
ok $? "the guest module: refused"
check "the guest module: the log says why" \
	log_says "this kernel has no CONFIG_KVM_GUEST" vbalance_guest
ktap_end
