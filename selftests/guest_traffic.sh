#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest under network traffic, seen from the guest alone: observing
# moves nothing, moving loses nothing, unloading puts everything back. Runs in
# any KVM guest with a virtio network device. PEER is whom it pings (default:
# the default gateway).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
need_peer
unload vbalance_guest
settle
load_or_end vbalance_guest policy=paper remap=affinity observe=1
IRQS=$(movable)
[ -n "$IRQS" ] || skip_all "no interrupt that may be moved"
# shellcheck disable=SC2086 # a list of numbers
home=$(where $IRQS)
echo "# source $(gstat source)"
unmoved="the host does not take CPUs away from this guest: nothing has to be moved"

# ---- observe ----
busy_start
overcommitted && tight=1 || tight=
traffic_start "$PEER"
before=$(gstat decisions)
check "observe=1: packets are answered" traffic_more 60
[ "$(gstat decisions)" -gt "$before" ]
ok $? "observe=1 decides meanwhile"
observed() { [ "$(gstat observed)" -gt 10 ]; }
if [ "$tight" ]; then
	check "observe=1 counts what it would have moved" await 60 observed
else
	skip "observe=1 counts what it would have moved" "$unmoved"
fi
equal "observe=1 moves nothing" "$(gstat moves) $(gstat ebusy)" "0 0"
# shellcheck disable=SC2086 # a list of numbers
equal "observe=1: interrupts are where they were" "$(where $IRQS)" "$home"
traffic_stop "observe=1: every packet is answered once"
equal "observe=1: nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest

# ---- moving ----
load vbalance_guest policy=paper remap=affinity
moved() { [ "$(gstat moves)" -gt "$before" ]; }
traffic_start "$PEER"
traffic_more 20
if [ "$tight" ]; then
	for _ in 1 2; do
		before=$(gstat moves)
		traffic_more 20 && await 60 moved || break
	done
	check "moves go on between packets" moved
	equal "no move failed for a reason that is not known" "$(gstat failed)" 0

	# Hold still away from home: interrupts are counted there and nowhere else.
	# The peer chooses the queue, by where the answers come from.
	counts() {
		for i in $IRQS; do
			echo "$i $(sed -n "s/^ *$i: *//p" /proc/interrupts)"
		done
	}
	# "irq CPUs" of those that got new interrupts, the busiest last
	new_counts() {
		counts > "$KTAP_TMP/counts2"
		awk -v n="$(cpus)" '
		NR == FNR { for (i = 1; i <= n; i++) was[$1, i] = $(i + 1); next }
		{ got = 0; on = ""
		  for (i = 1; i <= n; i++) if ($(i + 1) > was[$1, i]) {
			got += $(i + 1) - was[$1, i]; on = on i - 1 " " }
		  if (got) print got, $1, on }' "$KTAP_TMP/counts" "$KTAP_TMP/counts2" |
			sort -n | cut -d ' ' -f 2- | sed 's/ $//'
	}
	away() {
		echo 0 > "$GUEST_PARAMETERS/observe"
		traffic_more 10
		echo 1 > "$GUEST_PARAMETERS/observe"
		traffic_more 20	# what was latched before
		counts > "$KTAP_TMP/counts"
		traffic_more 40
		new_counts > "$KTAP_TMP/new"
		rx=$(tail -n 1 "$KTAP_TMP/new" | cut -d ' ' -f 1)
		[ -n "$rx" ] && [ "$(cell "$GUEST/irqs" "$rx" cpu)" != "$(cell "$GUEST/irqs" "$rx" home)" ]
	}
	check "the interrupt that is used is away from home" await 120 away
	# shellcheck disable=SC2046 # a list of numbers
	equal "new interrupts are counted where they have been moved to" \
		"$(cat "$KTAP_TMP/new")" "$(where $(cut -d ' ' -f 1 "$KTAP_TMP/new"))"
	echo 0 > "$GUEST_PARAMETERS/observe"
else
	traffic_more 100
	skip "moves go on between packets" "$unmoved"
fi
traffic_stop "moving: every packet is answered once"
equal "moving: nothing was redirected" "$(redirections)" "0 0 0 0"

# ---- loading and unloading ----
traffic_start "$PEER"
traffic_more 10
for _ in 1 2; do
	unload vbalance_guest
	traffic_more 10
	load vbalance_guest policy=paper remap=affinity
	traffic_more 20
done
check "loads and unloads under traffic" loaded vbalance_guest
equal "loading and unloading: nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
# shellcheck disable=SC2086 # a list of numbers
equal "unloaded: interrupts are back where they were" "$(where $IRQS)" "$home"
traffic_more 20
traffic_stop "loading and unloading: every packet is answered once"
busy_stop
ktap_end
