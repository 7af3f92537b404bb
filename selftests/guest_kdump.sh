#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A guest that crashes into another kernel (kdump): the host lets go before that
# one starts. It meets none of the keys, gets its own interrupts, and may
# register in its turn. Runs in the lab's L1 and drives guest 0 (vCPUs stacked);
# the panic is in the guest's log.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
restart() {	# WORD...
	guest_stop 0
	guest_start 0 "$@"
	guest_wait 0
}
append=$APPEND_L2
# Half of it for its detectors, where it has some, and twice its initrd.
APPEND_L2="$append crashkernel=512M"
check "a guest with memory set aside" restart -m 1536
guest_put 0 /lab/l2/vmlinuz /tmp/vmlinuz
guest_put 0 /lab/l2/initrd /tmp/initrd
check "the crash kernel is loaded" guest 0 'kexec -p /tmp/vmlinuz --initrd=/tmp/initrd \
	--command-line="$(sed "s/crashkernel=[^ ]*//" /proc/cmdline) nr_cpus=1 reset_devices lab.crash"' </dev/null
guest 0 'rm /tmp/vmlinuz /tmp/initrd' </dev/null

guest_module 0 load remap=redirect
check "registered" await 60 is_active 0
equal "features: the host is to be told" "$(g 0 "sed -n 's/^kdump //p' \$GUEST/features")" "on (machine_crash_shutdown)"
host_base
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
traffic_start "$(guest_ip 0)"
redirected() { [ "$(host_count diverted)" -gt "$base_diverted" ]; }
check "interrupts are redirected" await 120 redirected
traffic_stop "every packet is answered once"

trace_on vbalance_host/vb_host_hypercall
# Whoever has crashed, or is about to, may not answer.
soon() { timeout $((20 * ${SLOW:-1})) guest 0 "$1" </dev/null; }
soon '(sleep 1; echo c > /proc/sysrq-trigger) >/dev/null 2>&1 </dev/null &'
check "the guest crashes, and the host lets go" await 60 is_inactive 0
check "nothing stays pinned" await 20 all_unpinned
equal "because the guest said so" \
	"$(events vb_host_hypercall | grep -c -E "^vm=$(guest_pid 0) vcpu=[0-9]+ op=2 .* ret=0$")" 1
trace_off
crash_kernel() { guest_wait 0 5 2>/dev/null && soon 'grep -q lab.crash /proc/cmdline'; }
check "the crash kernel comes up" await 240 crash_kernel
traffic_start "$(guest_ip 0)"
traffic_more 50
traffic_stop "it answers each packet, once"
trace_on vbalance_host/vb_host_redirect
guest_module 0 load
check "it registers when it loads the module" await 60 is_active 0
traffic_start "$(guest_ip 0)"
traffic_more 50
traffic_stop "it goes on answering each packet"
equal "of its one vCPU nothing is redirected to another" "$(redirected_away | head -n 1)" ""
trace_off
guest_module 0 unload
check "it unloads the module" await 60 is_inactive 0
equal "the host has let go for no other reason" \
	"$(sed -n 's/^\(registered\|unregistered\|reset\) //p' "$(vm_dir 0)/registration" | tr '\n' ' ')" "2 2 0 "

APPEND_L2=$append
check "the guest as it was before" restart
check "nothing is left" await 60 all_unpinned
unload vbalance_host
ktap_end
