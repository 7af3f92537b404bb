#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_host without memory: each allocation of its init and of its exit
# function fails once, then those that are made for a VM. Needs a kernel with
# fault injection.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/faultlib.sh
. "$KTAP_DIR/faultlib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
need_root
need_module vbalance_host
need_faults
unload vbalance_host

check "loading where a call fails that needs no memory" faulty_calls vbalance_host
hide_btf
for parameters in "" hook=kprobe observe=1; do
	check "loading without memory: ${parameters:-no parameters}" \
		faulty_loads vbalance_host "$parameters"
	check "unloading without memory: ${parameters:-no parameters}" \
		faulty_unloads vbalance_host "$parameters"
done
show_btf
FAULTY_FROM=4
check "loading without memory, while the kernel's description is read" \
	faulty_loads vbalance_host ""
FAULTY_FROM=$FAULTY_ALL

vm_unpinned() {
	[ "$(stat_of "$HOST/stats" pages_pinned)" = "$(stat_of "$HOST/stats" pages_unpinned)" ]
}
# A VM that registers. What is refused may fail its test, not ours.
faulty_vm() {	# KIND SPACE
	fault_next "$1" "$2"
	kvm_registration > "$KTAP_TMP/vm" 2>&1
	vm_status=$?
	fault_happened "$1" && vm_faults=$((vm_faults + 1))
	[ $vm_status -le 1 ] || { echo "# $1 after $2: exit status $vm_status"; return 1; }
	check "$1 after $2: all pages are given back" await 20 vm_unpinned
}
if [ -e /dev/kvm ] && command -v kvm_registration >/dev/null; then
	faulty_begin vbalance_host
	check "load" load vbalance_host
	# shellcheck disable=SC2046 # two words
	faults_below $(module_range vbalance_host)
	vm_faults=0
	for space in 0 200 400 800 1600 3200; do
		faulty_vm failslab $space
	done
	for space in 0 1 2 4 8; do
		faulty_vm fail_page_alloc $space
	done
	echo "# $vm_faults allocations failed"
	check "some allocations failed" [ "$vm_faults" -gt 2 ]
	embed "then a VM finds everything as it should be" kvm_registration
	check "nothing is left" faulty_again vbalance_host
else
	skip "VMs without memory" "no /dev/kvm, or kvm_registration is not built"
fi
no_leak
ktap_end
