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
load vbalance_guest policy=paper remap=affinity backoff_ms=600000 || skip_all "the module does not load: $(cat "$KTAP_TMP/insmod")"
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
allowed() {
	judged=
	for line in $(came); do
		case " $resting " in *" $line "*) continue ;; esac
		irq=${line%%:*} judged=1
		[ "$(cat /proc/irq/"$irq"/smp_affinity_list)" = "$(cat /proc/irq/"$irq"/effective_affinity_list)" ] || return 1
	done
	[ "$judged" ]
}
balance_stop
resting=$(came | tr '\n' ' ')
check "interrupts go where irqbalance wanted them" await 60 allowed
before=$(state)
traffic_more 30
equal "and are not moved any more" "$(state)" "$before"
equal "nothing was redirected" "$(redirections)" "0 0 0 0"
unload vbalance_guest
check "nor by unloading" allowed
while read -r irq mask; do
	echo "$mask" > /proc/irq/"$irq"/smp_affinity_list
done < "$KTAP_TMP/masks"
traffic_more 20
traffic_stop "every packet is answered once"
busy_stop
ktap_end
