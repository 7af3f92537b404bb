#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Host and guest whose kernels have been booted with debugfs=off: both modules
# say once that they show nothing there, and work.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"

in_guest() {
	guest 0 "$@" </dev/null
}
SAID='no debugfs (error -1): nothing is shown there'
! grep -q "^[^ ]* $(dirname $DEBUG) " /proc/mounts && ! mkdir $DEBUG 2>/dev/null
ok $? "there is no debugfs"

unload vbalance_host
check "host: load" load vbalance_host
equal "host: the log says what is missing" "$(dmesg | sed -n 's/.*vbalance_host: no/no/p')" "$SAID"
check "guest: load" in_guest 'insmod /lab/vbalance_guest.ko'
equal "guest: the log says the same" \
	"$(in_guest "dmesg | sed -n 's/.*vbalance_guest: no/no/p'")" "$SAID"

# Trace events have a file system of their own.
redirected() {
	events vb_host_redirect | grep -qv 'vector=0$'
}
await_redirected() {
	trace_on vbalance_host/vb_host_redirect && await 120 redirected
}
in_guest 'burn 4 </dev/null >/dev/null 2>&1 &'
traffic_start "$(guest_ip 0)"
check "interrupts are redirected" await_redirected
check "guest: unload" in_guest 'rmmod vbalance_guest'
check "guest: load again" in_guest 'insmod /lab/vbalance_guest.ko'
check "interrupts are redirected again" await_redirected
trace_off
check "host: unload, with the guest's area" unload vbalance_host
traffic_stop "every packet is answered, once"
in_guest 'killall burn; rmmod vbalance_guest'
ok $? "guest: unload"
guest_log_clean 0
ktap_end
