#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Trace events of vbalance_host, from one registration of guest 0 to its end.
# Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'
vm=$(guest_pid 0)
vcpu="vcpu=($(seq -s '|' 0 $((VCPUS - 1))))"

trace_on vbalance_host/vb_host_hypercall vbalance_host/vb_host_area
guest 0 'insmod /lab/vbalance_guest.ko'
check "the guest registers" await 60 source_is 0 page
asked() { events vb_host_hypercall | grep -q ' op=3 .* ret=0$'; }
check "and asks whether it still is" await 60 asked
guest 0 'rmmod vbalance_guest'
trace_stop "$KTAP_TMP/trace"
events vb_host_hypercall "$KTAP_TMP/trace" > "$KTAP_TMP/calls"
events vb_host_area "$KTAP_TMP/trace" > "$KTAP_TMP/areas"

# Both kinds of waiting: stacked busy vCPUs, and idle ones.
trace_on vbalance_host/vb_host_state
guest 0 "burn $VCPUS 2"
trace_stop "$KTAP_TMP/trace"
events vb_host_state "$KTAP_TMP/trace" > "$KTAP_TMP/states"

# all FILE PATTERN: lines of this form and no other
all() { [ -s "$1" ] && ! grep -v -x -E "$2" "$1" | sed 's/^/# /' | grep .; }
check "vb_host_hypercall has plausible fields" all "$KTAP_TMP/calls" \
	"vm=$vm $vcpu op=[0-4] gpa=(0|0x[0-9a-f]+) cookie=(0|0x[0-9a-f]+) ret=-?[0-9]+"
cookie=$(sed -n 's/.* op=1 .* cookie=\(0x[0-9a-f]*\) ret=0$/\1/p' "$KTAP_TMP/calls")
equal "the guest registered a page of its own once" \
	"$(grep -c -E " op=1 gpa=0x[0-9a-f]+000 cookie=$cookie ret=0$" "$KTAP_TMP/calls")" 1
equal "and unregistered the same" \
	"$(grep -c " op=2 .* cookie=$cookie ret=0$" "$KTAP_TMP/calls")" 1
equal "vb_host_area: mapped and let go" \
	"$(sed 's/pages=[1-9][0-9]* //' "$KTAP_TMP/areas")" \
	"vm=$vm cookie=$cookie active=1 err=0
vm=$vm cookie=$cookie active=0 err=0"
state='(off|running|preempted|halted|vmm)'
check "vb_host_state has plausible fields" all "$KTAP_TMP/states" \
	"vm=$vm $vcpu $state -> $state"
equal "each state is another than before, and the one that follows it" \
	"$(awk '$3 == $5 || (($2 in was) && was[$2] != $3) { print } { was[$2] = $5 }' "$KTAP_TMP/states" | head -n 3)" ""
for s in running preempted halted; do
	check "a vCPU becomes $s" grep -q -- "-> $s\$" "$KTAP_TMP/states"
done
unload vbalance_host
ktap_end
