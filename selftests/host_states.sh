#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The state that vbalance_host shows for a vCPU is what its thread does. Needs
# the lab's guest 0 (a VM whose threads may be stopped and pinned), with
# vbalance_host loaded.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
loaded vbalance_host || load vbalance_host
VM=
find_vm() { VM=$(vm_dir 0); [ -n "$VM" ]; }
check "the VM has a folder named like KVM's" await 20 find_vm

state() { cell "$VM/vcpus" "$1" state; }
is() { [ "$(state "$1")" = "$2" ]; }
all_are() {
	for s in $(seq 0 $((VCPUS - 1))); do is "$s" "$1" || return 1; done
}
all_known() {
	[ "$(cols "$VM/vcpus" slot | sort -n)" = "$(seq 0 $((VCPUS - 1)))" ]
}

guest 0 'killall burn 2>/dev/null; true'
check "every vCPU is listed once, by its slot" await 20 all_known
unknown=$(stat_of $HOST/stats unknown_vcpu)
check "idle guest: all vCPUs are seen halted" await 60 all_are halted

# One vCPU of the guest busy, alone on its CPU: running.
guest 0 'burn 1 >/dev/null 2>&1 </dev/null &'
check "a busy vCPU is seen running" await 60 is 0 running
before=$(cell "$VM/vcpus" 0 preempted_n)

# All threads of the guest busy on one CPU: one runs, the others are preempted.
guest 0 "killall burn 2>/dev/null; burn $VCPUS >/dev/null 2>&1 </dev/null &"
check "all on one CPU" vcpus_on 0 2
seen_stacked() {
	states=$(for s in $(seq 0 $((VCPUS - 1))); do state "$s"; done)
	[ "$(echo "$states" | grep -c running)" = 1 ] &&
		[ "$(echo "$states" | grep -c preempted)" = $((VCPUS - 1)) ]
}
check "stacked vCPUs: one running, the others preempted" await 60 seen_stacked
more_preemptions() { [ "$(cell "$VM/vcpus" 0 preempted_n)" -gt "$((before + 5))" ]; }
check "preemptions are counted" await 60 more_preemptions

# Behind a real-time hog on their CPU nobody runs.
taskset 2 chrt -f 50 sh -c 'while :; do :; done' &
hog=$!
check "behind a real-time hog all are preempted" await 60 all_are preempted
kill $hog
wait $hog 2>/dev/null
check "after the hog one runs again" await 60 seen_stacked

# The whole VMM stopped: every thread leaves KVM_RUN.
kill -STOP "$(guest_pid 0)"
check "a stopped VMM is seen in user space" await 60 all_are vmm
kill -CONT "$(guest_pid 0)"
check "and running again" await 60 seen_stacked
guest 0 'killall burn 2>/dev/null; true'
check "idle again: halted" await 60 all_are halted
equal "no vCPU was put that was not known" "$(stat_of $HOST/stats unknown_vcpu)" "$unknown"
equal "none was overlooked for lack of memory" "$(stat_of $HOST/stats no_memory)" 0
guest_pin 0
ktap_end
