#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Trace events of vbalance_guest and what they say about each other. Runs in
# any KVM guest with a virtio network device that answers PEER (see
# guest_traffic.sh) and whose host takes CPUs away from it.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
need_peer
unload vbalance_guest
load_or_end vbalance_guest policy=paper remap=affinity observe=1
[ -n "$(movable)" ] || skip_all "no interrupt that may be moved"
busy_start
overcommitted || skip_all "the host does not take CPUs away from this guest: nothing has to be moved"
traffic_start "$PEER"
traffic_more 10

LOG=$KTAP_TMP/trace
# record N EVENT...: what happens on busy CPUs while N packets are answered
record() {
	n=$1
	shift
	trace_on "$@"
	ok $? "switched on: $*"
	traffic_more "$n"
	trace_stop "$LOG"
	busy_stop
	for event; do
		events "${event#*/}" "$LOG" > "$KTAP_TMP/${event#*/}"
	done
	echo "# $(wc -l < "$LOG") lines"
	busy_start
}
# fields EVENT PATTERN: it fired, and each line looks like this
fields() {
	[ -s "$KTAP_TMP/$1" ] || echo "# $1 did not fire"
	[ -s "$KTAP_TMP/$1" ] && ! grep -v -x -E "$2" "$KTAP_TMP/$1" | head -n 5 | sed 's/^/# /' | grep .
	ok $? "$1 fires with plausible fields"
}
irqs=$(cols $GUEST/irqs irq | tr '\n' '|')
irqs="(${irqs%|})"
cpu="($(seq -s '|' 0 $(($(cpus) - 1))))"
reasons="($(sed -n '2,$s/ .*//p' $GUEST/decisions | tr '\n' '|')none)"

# ---- policy=paper remap=affinity ----
record 6 vbalance_guest/vb_guest_decision vbalance_guest/vb_guest_move vbalance_guest/vb_guest_back
fields vb_guest_decision "irq=$irqs $cpu -> $cpu reason=$reasons saved_ns=[0-9]+ observe=1"
fields vb_guest_back "cpu=$cpu away_ns=[1-9][0-9]* stayed_ns=[0-9]+"
# Whoever moves has a reason to, and whoever stays has one to stay.
misfits() {
	awk '{ move = $2 != $4; split($5, r, "=") } move != (r[2] ~ /^move_/) { n++ }
		END { print n + 0 }' "$KTAP_TMP/vb_guest_decision"
}
equal "reasons fit decisions" "$(misfits)" 0
check "observe=1 decides to move" grep -q reason=move_offline "$KTAP_TMP/vb_guest_decision"
equal "observe=1: no vb_guest_move" "$(wc -l < "$KTAP_TMP/vb_guest_move")" 0
echo 0 > $GUEST_PARAMETERS/observe
record 6 vbalance_guest/vb_guest_decision vbalance_guest/vb_guest_move
fields vb_guest_decision "irq=$irqs $cpu -> $cpu reason=$reasons saved_ns=[0-9]+ observe=0"
# Nothing is asked of the chip when the descriptor was locked (-11).
fields vb_guest_move "irq=$irqs $cpu -> $cpu cost_ns=([1-9][0-9]* err=(0|-16)|[0-9]+ err=(-11|-116))"
check "moves succeed" grep -q ' err=0$' "$KTAP_TMP/vb_guest_move"
# Half of a CPU's time is for something else, however long moves take.
hasty() {
	awk '/: vb_guest_move: / {
		match($0, /\[[0-9]+\]/)
		cpu = substr($0, RSTART, RLENGTH)
		match($0, /[0-9.]+: vb_guest_move/)
		end = substr($0, RSTART) * 1e6
		match($0, /cost_ns=/)
		cost = substr($0, RSTART + 8) / 1e3
		if (cpu in pause) {
			pairs++
			# Two clocks.
			hasty += end - cost < pause[cpu] - 20
		}
		# A second is the most.
		pause[cpu] = end + (cost < 1e6 ? cost : 1e6)
	} END { print hasty + 0, "of", pairs + 0 }' "$LOG"
}
found=$(hasty)
echo "# moves that came too soon after the one before: $found"
[ "${found%% *}" = 0 ] && [ "${found##* }" -gt 0 ]
ok $? "no move by a CPU as soon after another one as that took"
equal "no move to where the interrupt is" "$(awk '$2 == $4' "$KTAP_TMP/vb_guest_move" | wc -l)" 0

# ---- somebody else ----
echo 0 > $GUEST_PARAMETERS/backoff_ms
irq=$(busiest)
mask=$(cat /proc/irq/"$irq"/smp_affinity_list)
trace_on vbalance_guest/vb_guest_foreign
echo 1 > /proc/irq/"$irq"/smp_affinity_list
foreign() { events vb_guest_foreign | grep -q -E "^irq=$irq ours=$cpu theirs=$cpu restricted=1$"; }
check "vb_guest_foreign fires when somebody binds an interrupt" await 60 foreign
trace_off
echo "$mask" > /proc/irq/"$irq"/smp_affinity_list

# ---- policy=cost ----
equal "policy=paper: nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
# Without moves their price stays at its estimate.
load vbalance_guest policy=cost observe=1
record 8 vbalance_guest/vb_guest_decision
echo "# $(sed 's/.* reason=\([a-z_]*\) .*/\1/' "$KTAP_TMP/vb_guest_decision" | sort | uniq -c | xargs)"
# Mappings are per interrupt here: each of them pays for one move.
cost=$(gstat move_cost_ns)
saved() {	# REASON OPERATOR: as many where what is saved compares so with its price
	awk -v reason="reason=$1" -v cost="$cost" '$5 == reason { split($6, s, "="); if (s[2] '"$2"' cost) n++ }
		END { print n + 0 }' "$KTAP_TMP/vb_guest_decision"
}
if [ "$(saved stay_saving '<=')" -gt 0 ] && [ "$(saved move_rescue '>')" = 0 ]; then
	skip "policy=cost decides to rescue" "absences are too short here to be worth a move"
else
	[ "$(saved move_rescue '>')" -gt 0 ]
	ok $? "policy=cost decides to rescue"
fi
equal "policy=cost: only for more than it costs" "$(saved move_rescue '<=')" 0
equal "policy=cost: and whenever it would be" "$(saved stay_saving '>')" 0
equal "policy=cost: reasons fit decisions" "$(misfits)" 0
equal "policy=cost observe=1: nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
load vbalance_guest policy=cost remap=affinity
weighs() { [ "$(($(decided stay_useless) + $(decided stay_saving) + $(decided stay_episode) + $(decided move_rescue)))" -gt 20 ]; }
check "policy=cost weighs cost and saving" await 60 weighs
traffic_stop "every packet is answered once"
equal "policy=cost: nothing was redirected" "$(redirections)" "0 0 0 0"
busy_stop
ktap_end
