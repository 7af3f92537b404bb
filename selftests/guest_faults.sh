#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest without memory: each allocation of its init and of its exit
# function fails once. Needs a kernel with fault injection.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/faultlib.sh
. "$KTAP_DIR/faultlib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
need_root
need_module vbalance_guest
need_faults
unload vbalance_guest

check "loading where a call fails that needs no memory" faulty_calls vbalance_guest
hide_btf
for parameters in "" remap=affinity; do
	check "loading without memory: ${parameters:-no parameters}" \
		faulty_loads vbalance_guest "$parameters"
	check "unloading without memory: ${parameters:-no parameters}" \
		faulty_unloads vbalance_guest "$parameters"
done
show_btf
FAULTY_FROM=4
check "loading without memory, while the kernel's description is read" \
	faulty_loads vbalance_guest ""
FAULTY_FROM=$FAULTY_ALL
no_leak
ktap_end
