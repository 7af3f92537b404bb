#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A guest that panics says good-bye. Runs in the lab's L1, in a boot of its
# own: the panic is in the guest's log.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered" await 60 is_active 0
trace_on vbalance_host/vb_host_hypercall vbalance_host/vb_host_area
# It stays where it is after the panic: no reset and no end of the VM that the
# host could have noticed instead.
guest 0 'echo 0 > /proc/sys/kernel/panic; (sleep 1; echo c > /proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &'
check "the guest panics, and the host lets go" await 60 is_inactive 0
check "nothing stays pinned" await 20 all_unpinned
check "the VM is still there" guest_running 0
equal "because the guest said so" \
	"$(events vb_host_hypercall | grep -c -E "^vm=$(guest_pid 0) vcpu=[0-9]+ op=2 .* ret=0$")" 1
equal "and for no other reason" \
	"$(sed -n 's/^\(registered\|unregistered\|reset\) //p' "$(vm_dir 0)/registration" | tr '\n' ' ')" "1 1 0 "
trace_off
guest_stop 0 crashed
check "nothing is left of it" await 60 nothing_left
guest_start 0
guest_wait 0
unload vbalance_host
ktap_end
