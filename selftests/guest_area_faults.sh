#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A guest without memory for the area that it shares with the host: it tells
# nobody but its statistics, goes on with steal time, and asks again. Runs in
# the lab's L1; needs a guest kernel with fault injection.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
f() {	# COMMAND...: in the guest, with the functions of faultlib.sh
	g 0 ". /lab/selftests/faultlib.sh; $*"
}
f '[ -e $FAULTS/failslab/require-start ]' ||
	skip_all "the guest's kernel has no fault injection"
unload vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; insmod /lab/vbalance_guest.ko' </dev/null
f 'faults_below $(module_range vbalance_guest)'

faults=0
for fault in "failslab 0" "failslab 120" "failslab 240" "failslab 480" \
		"fail_page_alloc 0" "fail_page_alloc 1" "fail_page_alloc 4"; do
	f "fault_next $fault"
	check "$fault: host module comes" load vbalance_host
	check "$fault: in the end the guest registers" await 60 source_is 0 page
	f "fault_happened ${fault% *}" && faults=$((faults + 1))
	check "$fault: host module goes" unload vbalance_host
	check "$fault: the guest falls back" await 60 source_is 0 steal
done
echo "# $faults allocations failed"
check "some allocations failed" [ $faults -gt 3 ]
check "the guest module is unloaded" guest 0 'rmmod vbalance_guest' </dev/null
ktap_end
