#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Mappings, what policy=cost does in an absence of the holder, and irqbalance.
# Runs in the lab's L1, which needs three CPUs, and drives guest 0 (two
# virtio-net devices), whose four vCPUs share one CPU.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'
# But for their load: there two share each of two CPUs.
pinning=$PIN
PIN=spread
guest_pin 0
embed "load" guest 0 'exec /lab/selftests/guest_load.sh'
PIN=$pinning
guest_pin 0
guest 0 'rmmod vbalance_guest 2>/dev/null; true'

# ---- mapping ----
guest_module 0 load policy=paper remap=affinity
irqs=$(g 0 movable | tr '\n' ' ')
[ "$(echo "$irqs" | wc -w)" -ge 3 ]
ok $? "three interrupts or more may be moved"
traffic_start "$(guest_ip 0)"
# How many CPUs hold them, in some samples one after the other.
spread() { g 0 "for i in 1 2 3 4 5; do where $irqs | cut -d ' ' -f 2 | sort -u | wc -l; done" | tr '\n' ' '; }
apart() { spread | grep -q '[2-9]'; }
together() { [ "$(spread)" = "1 1 1 1 1 " ]; }
moved() { [ "$(g 0 gstat moves)" -gt "$1" ]; }
busy() { guest 0 "killall burn 2>/dev/null; burn $1 >/dev/null 2>&1 </dev/null &"; }
# All take turns: each interrupt has its own way.
busy 4
check "mapping=per-irq moves them" await 60 moved 5
# policy=cost leaves them alone here but for bringing them together. Their own
# ways may have met just when it begins: then nobody would have to follow.
left_apart() { parameter policy paper; apart && parameter policy cost && ! together; }
check "mapping=per-irq: they are on several vCPUs" await 60 left_apart
parameter mapping single
check "mapping=single brings all to one vCPU" await 120 together
follows() { [ "$(g 0 decided move_follow)" -gt 0 ]; }
check "mapping=single: one leads, the others follow" follows
# Of those that follow, the one that most comes through.
leader=${irqs%% *}
bound=$(g 0 'cols $GUEST/irqs handled irq affinity' | sed -n 's/ free$//p' |
	sort -n | cut -d ' ' -f 2 | grep -v -x "$leader" | tail -n 1)
place() { g 0 "where $1" | cut -d ' ' -f 2; }
elsewhere=$((($(place "$leader") + 1) % 4))
guest 0 "echo $elsewhere > /proc/irq/$bound/smp_affinity_list"
goes() { [ "$(place "$bound")" = "$elsewhere" ]; }
check "mapping=single: one is bound to another vCPU, and goes there" await 60 goes
traffic_more 50
equal "mapping=single: it stays there" "$(place "$bound")" "$elsewhere"
guest 0 "echo 0-3 > /proc/irq/$bound/smp_affinity_list"
check "mapping=single: it follows again when it may" await 120 together
parameter mapping per-irq
parameter policy paper
check "mapping=per-irq parts them again" await 60 apart
traffic_stop "every packet is answered once"
not_redirected "remap=affinity"
guest 0 'killall burn; rmmod vbalance_guest'

# ---- policy=cost: one attempt in each absence of the holder ----
# Both machines' events on one clock: the guest's is the host's and an offset.
guest_pin 0
guest_module 0 load policy=cost observe=1
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &'
check "run states come from the page" await 60 source_is 0 page
equal "slot n is CPU n" "$(g 0 'cols $GUEST/vcpus cpu slot' | awk '$1 != $2')" ""
# Slices of a tick, also where they end between ticks: a rescue that brings
# less than it costs is none.
slice=$(get_slice)
set_slice 4000000
export TRACE_CLOCK=x86-tsc
# For minutes of a slow machine.
TRACE_KB=8192
trace_on vbalance_host/vb_host_state
TRACE_KB=
g 0 "TRACE_CLOCK=x86-tsc; trace_on vbalance_guest/vb_guest_decision"
traffic_start "$(guest_ip 0)"
traffic_more 30
# The slower the machine, the fewer.
decides() { traffic_more 5; [ "$(g 0 decided move_rescue)" -gt 10 ]; }
check "policy=cost decides to rescue" await 120 decides
g 0 'trace_stop /tmp/trace; cat /tmp/trace' > "$KTAP_TMP/guest"
trace_stop "$KTAP_TMP/host"
traffic_stop "policy=cost: every packet is answered once"
not_redirected "policy=cost observe=1"
equal "policy=cost observe=1: nor borrowed, nor moved" "$(g 0 'gstat borrowed; gstat moves' | xargs)" "0 0"
offset=$(cat /sys/kernel/debug/kvm/"$(guest_pid 0)"-*/vcpu0/tsc-offset)
{
	# time, what, holder, interrupt
	sed -n 's/.* \([0-9]*\): vb_guest_decision: \(irq=[0-9]*\) \([0-9]*\) -> .* reason=move_rescue .*/\1 rescue \3 \2/p' "$KTAP_TMP/guest" |
		awk -v offset="$offset" '{ printf "%.0f %s %s %s\n", $1 - offset, $2, $3, $4 }'
	sed -n 's/.* \([0-9]*\): vb_host_state: .* vcpu=\([0-9]*\) [a-z]* -> running$/\1 runs \2/p' "$KTAP_TMP/host"
} | sort -n > "$KTAP_TMP/both"
rescues=$(grep -c rescue "$KTAP_TMP/both")
echo "# $rescues rescues, $(grep -c runs "$KTAP_TMP/both") times on a CPU"
[ "$rescues" -gt 10 ]
ok $? "policy=cost: their events are recorded"
equal "policy=cost: never twice while the holder is away" \
	"$(awk '$2 == "runs" { ran[$3]++ }
	$2 == "rescue" { if (($3, $4) in at && at[$3, $4] == ran[$3] + 0) print; at[$3, $4] = ran[$3] + 0 }' "$KTAP_TMP/both" | head -n 3)" ""
set_slice "$slice"
guest 0 'killall burn; rmmod vbalance_guest'

# ---- irqbalance ----
embed "irqbalance" guest 0 'exec /lab/selftests/guest_irqbalance.sh'
guest_log_clean 0
unload vbalance_host
ktap_end
