#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest and irqbalance: its choices are respected, and with our policy
# script it leaves our interrupts alone. Runs in any KVM guest with a virtio
# network device that answers PEER (see guest_traffic.sh) and whose host takes
# CPUs away from it.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
need_peer
command -v irqbalance > /dev/null || skip_all "irqbalance is not installed"
! pidof irqbalance > /dev/null || skip_all "irqbalance runs here: stop it first"
POLICY=$KTAP_DIR/irqbalance-policy.sh
[ -r "$POLICY" ] || skip_all "no $POLICY"
unload vbalance_guest
load_or_end vbalance_guest policy=paper remap=affinity backoff_ms=600000
IRQS=$(movable)
[ -n "$IRQS" ] || skip_all "no interrupt that may be moved"
for irq in $IRQS; do
	echo "$irq $(cat /proc/irq/"$irq"/smp_affinity_list)"
done > "$KTAP_TMP/masks"
busy_start
overcommitted || skip_all "the host does not take CPUs away from this guest: nothing has to be moved"
traffic_start "$PEER"

# irqbalance looks every 10 s unless told otherwise; --debug makes it talk.
balance() {
	irqbalance --foreground --debug -t 1 "$@" > "$KTAP_TMP/irqbalance" 2>&1 &
	balancer=$!
	KTAP_KILL="$KTAP_KILL $balancer"
}
balance_stop() {
	kill $balancer
	wait $balancer
}
moved() { [ "$(gstat moves)" -gt "$1" ]; }
check "moves without irqbalance" await 60 moved 5

# ---- with the policy script ----
chmod 755 "$KTAP_TMP"
printf '#!/bin/sh\necho "$2" >> %s/asked\nexec sh %s "$@"\n' "$KTAP_TMP" "$(readlink -f "$POLICY")" > "$KTAP_TMP/policy"
chmod 755 "$KTAP_TMP/policy"
balance --policyscript="$KTAP_TMP/policy"
asked() {
	for irq in $IRQS; do
		grep -q -x "$irq" "$KTAP_TMP/asked" || return 1
	done
}
check "irqbalance asks about each of ours" await 60 asked
rounds() { [ "$(grep -c -e '-------------' "$KTAP_TMP/irqbalance")" -gt "$1" ]; }
check "and then goes round" await 120 rounds 6
check "we go on moving" await 60 moved "$(gstat moves)"
equal "it moves none of ours" "$(gstat foreign)" 0
balance_stop
equal "nor binds one" "$(movable)" "$IRQS"

# ---- without it ----
balance
noticed() { [ "$(gstat foreign)" -gt 0 ]; }
check "what irqbalance moves is noticed" await 60 noticed
# Each that it has bound stays there from then on.
bound() { cols $GUEST/irqs irq affinity | sed -n 's/ restricted$//p'; }
some_bound() { [ -n "$(bound)" ]; }
check "its masks bind us" await 60 some_bound
traffic_more 20
theirs=$(bound)
state() {
	for irq in $theirs; do
		echo "$irq $(cell $GUEST/irqs "$irq" moves) $(cell $GUEST/irqs "$irq" foreign)"
	done
}
# A mask takes effect with the next interrupt, and a disk at rest has none.
came() {
	for irq in $theirs; do
		awk -v irq="$irq:" '$1 == irq { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/) n += $i; print irq n }' /proc/interrupts
	done
}
# Nor with that one, if the vector of an earlier move is not yet cleaned up, which
# takes a tick of another CPU: a few have to come, and not all at once.
allowed() {
	judged=
	for line in $(came); do
		irq=${line%%:*}
		rested=${resting##*" $irq:"}
		[ "${line#*:}" -ge $((${rested%% *} + 3)) ] || continue
		judged=1
		[ "$(cat /proc/irq/"$irq"/smp_affinity_list)" = "$(cat /proc/irq/"$irq"/effective_affinity_list)" ] || return 1
	done
	[ "$judged" ]
}
allowed_with_disk() {
	[ ! -b /dev/vda ] ||
		dd if=/dev/vda of=/dev/null bs=4k count=4 iflag=direct 2>/dev/null || return
	allowed
}
balance_stop
resting=" $(came | tr '\n' ' ')"
check "interrupts go where irqbalance wanted them" await 60 allowed_with_disk
before=$(state)
traffic_more 30
equal "and are not moved any more" "$(state)" "$before"
equal "nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
for line in $(came); do
	irq=${line%%:*}
	echo "# $irq: wanted on $(cat /proc/irq/"$irq"/smp_affinity_list), is on $(cat /proc/irq/"$irq"/effective_affinity_list), came ${line#*:} times; $resting"
done
check "nor by unloading" await 60 allowed_with_disk
traffic_stop "every packet is answered once"
put_back() {
	while read -r irq mask; do
		echo "$mask" > /proc/irq/"$irq"/smp_affinity_list
	done < "$KTAP_TMP/masks"
}
put_back

# ---- without a host module: it moves them, and others serve them meanwhile ----
# They begin on one CPU: there is something to be balanced.
traffic_start "$PEER"
for irq in $IRQS; do
	echo 0 > /proc/irq/"$irq"/smp_affinity_list
done
traffic_more 10
load vbalance_guest remap=borrow source=steal backoff_ms=600000
goes_on() { traffic_more 2 && [ "$(gstat "$1")" -gt "$2" ]; }
check "remap=borrow: queues are served by others" await 60 goes_on borrowed 0
balance
# An interrupt goes elsewhere with the next one that comes.
some_left() {
	for irq in $IRQS; do
		[ "$(cell "$GUEST/irqs" "$irq" cpu)" = 0 ] || return 0
	done
	return 1
}
check "remap=borrow: irqbalance moves interrupts that come" await 60 some_left
check "remap=borrow: and queues are served by others all the same" await 60 goes_on borrowed "$(gstat borrowed)"
check "remap=borrow: irqbalance goes round" await 120 rounds 6
balance_stop
# Its last masks take effect.
traffic_more 20
# Whatever stays where it is from here on is counted by the kernel on the CPU
# that it goes to, but for what we count as borrowed: on others. With the
# traffic at rest both tables are of one moment.
table() {
	cols "$GUEST/irqs" irq cpu moves foreign borrowed | sed 's/^/row /'
	sed -n '/virtio/p' /proc/interrupts
}
resting() {
	table > "$1"
	table | cmp -s - "$1"
}
# rests NAME FILE: all that was sent is answered, and the tables
rests() {
	traffic_stop "$1: every packet is answered once"
	await 60 resting "$2"
	ok $? "$1: the counters come to rest"
	traffic_start "$PEER"
}
rests "remap=borrow: with irqbalance" "$KTAP_TMP/first"
traffic_more 120
rests "remap=borrow: after it" "$KTAP_TMP/last"
# Prints interrupt, CPU, borrowed, counted on other CPUs, of each that had one of
# these and was not moved.
awk -v cpus="$(cpus)" '
	FNR == 1 { file++ }
	$1 == "row" { place[file, $2] = $3 " " $4 " " $5; lent[file, $2] = $6; irqs[$2] = 1 }
	$1 ~ /^[0-9]+:$/ { for (i = 0; i < cpus; i++) n[file, $1 + 0, i] = $(i + 2) }
	END {
		for (irq in irqs) {
			if (place[1, irq] != place[2, irq]) continue
			split(place[1, irq], at)
			elsewhere = 0
			for (i = 0; i < cpus; i++)
				if (i != at[1]) elsewhere += n[2, irq, i] - n[1, irq, i]
			ours = lent[2, irq] - lent[1, irq]
			if (ours || elsewhere) print irq, at[1], ours, elsewhere
		}
	}' "$KTAP_TMP/first" "$KTAP_TMP/last" > "$KTAP_TMP/lent"
sed 's/^/# irq, its CPU, borrowed, on other CPUs than its own: /' "$KTAP_TMP/lent"
check "remap=borrow: queues are borrowed of those that irqbalance has moved" \
	awk '$2 != 0 && $3 { n++ } END { exit !n }' "$KTAP_TMP/lent"
equal "remap=borrow: each was served on its own CPU, or borrowed and counted" "$(awk '$3 != $4' "$KTAP_TMP/lent")" ""
equal "remap=borrow: nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
put_back
traffic_more 20
traffic_stop "remap=borrow: every packet is answered once"
busy_stop
ktap_end
