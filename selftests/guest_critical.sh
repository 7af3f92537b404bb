#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a guest says of its vCPUs, seen from outside: that one moves an
# interrupt; that it serves one, until the soft interrupt behind it is over;
# that a process behind one has not slept again; and nothing at rest. Runs in
# the lab's L1 and drives guest 0 (vCPUs stacked, virtio-net and virtio-blk).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'
guest_module 0 load policy=paper remap=affinity
check "the guest registers" await 60 is_active 0
equal "slot n is CPU n" "$(g 0 'cols $GUEST/vcpus cpu slot' | awk '$1 != $2')" ""
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null

# VB_CRITICAL_* of include/vbalance/abi.h
SAID=1 IRQ=2 MOVE=4 TASK=8
# Which bits each vCPU has in a second: "slot word".
bits() { critical_bits "$(guest_pid 0)" 1; }
some_say() { bits | awk -v bit="$1" 'int($2 / bit) % 2 { n++ } END { exit !n }'; }
all_say() {
	bits > "$KTAP_TMP/bits"
	awk -v word="$1" '$2 != word { bad++ } END { exit bad || !NR }' "$KTAP_TMP/bits"
}

traffic_start "$(guest_ip 0)"
check "a vCPU that moves an interrupt says so" await 120 some_say $MOVE
check "a vCPU that serves one says so" await 120 some_say $IRQ
guest 0 'while :; do dd if=/dev/vda of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null; done &
	echo $! > /tmp/dd.pid' </dev/null
check "a vCPU with a process that waited for one says so" await 120 some_say $TASK
guest 0 'kill $(cat /tmp/dd.pid)' </dev/null

# ---- until the soft interrupt is over ----
# Looks from here, and when NAPI ran there, on one clock. policy=paper moves
# interrupts at rest as well.
parameter remap auto
parameter policy cost
traffic_more 10
offset=$(cat /sys/kernel/debug/kvm/"$(guest_pid 0)"-*/vcpu0/tsc-offset)
: > "$KTAP_TMP/within"
# Some polls and looks; how many of these were within those, and how many of
# those said nothing, goes behind what came before.
look_at_polls() {
	g 0 "TRACE_CLOCK=x86-tsc; trace_on irq/softirq_entry napi/napi_poll"
	critical_bits "$(guest_pid 0)" "$((4 * ${SLOW:-1} - 3))" "$KTAP_TMP/looks" > /dev/null
	g 0 'trace_stop /tmp/trace; cat /tmp/trace' > "$KTAP_TMP/trace"
	# From where it began to what it says itself: "begin end vCPU" of each device.
	sed -n 's/.*\[0*\([0-9][0-9]*\)\].* \([0-9]*\): softirq_entry: vec=3 .*/\1 \2 begin/p
		s/.*\[0*\([0-9][0-9]*\)\].* \([0-9]*\): napi_poll: .* device e.*/\1 \2 end/p' "$KTAP_TMP/trace" |
		awk -v offset="$offset" '$3 == "begin" { begin[$1] = $2; next }
			begin[$1] { printf "%.0f %.0f %d\n", begin[$1] - offset, $2 - offset, $1 }' |
		sort -n > "$KTAP_TMP/polls"
	awk -v irq="$IRQ" '
		NR == FNR { begin[n] = $1; end[n] = $2; cpu[n] = $3; n++; next }
		{ while (first < n && end[first] < $1) first++ }
		{ for (k = first; k < n && begin[k] < $1; k++) {
			if (end[k] <= $2) continue
			within++
			if (int($(3 + cpu[k]) / irq) % 2 == 0) silent++
		} }
		END { print within + 0, silent + 0 }' "$KTAP_TMP/polls" "$KTAP_TMP/looks" >> "$KTAP_TMP/within"
	for file in polls looks; do
		# Not the same time: nothing could have been seen.
		awk -v what="$file" 'NR == 1 { from = $1 } { to = $2 }
			END { print "# " NR " " what " from " from " to " to }' "$KTAP_TMP/$file"
	done
	echo "# looks within a poll, and nothing said: $(tail -n 1 "$KTAP_TMP/within")"
}
# The vCPUs and who looks share CPUs: at times none is seen in a second.
looks_met_polls() {
	look_at_polls
	awk '{ within += $1 } END { exit !(within > 20) }' "$KTAP_TMP/within"
}
check "looks that are within polls" await 120 looks_met_polls
check "it says so until NAPI is done" awk '{ silent += $2 } END { exit !NR || silent }' "$KTAP_TMP/within"

# ---- at rest ----
traffic_stop "every packet is answered once"
guest 0 'killall burn' </dev/null
check "at rest no vCPU says anything" await 60 all_say $SAID
sed 's/^/# vCPU, bits: /' "$KTAP_TMP/bits"
# Since remap=auto they are redirected.
no_base
counters_agree "remap=auto"
guest_module 0 unload
guest_log_clean 0
unload vbalance_host
ktap_end
