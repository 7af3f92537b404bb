#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Interrupt load as it is measured, the paper's states, and the threshold at
# work. Runs in any KVM guest with a virtio network device that answers PEER
# (see guest_traffic.sh).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
need_peer
unload vbalance_guest
# At first interrupts stay where they are: load piles up on one CPU.
load_or_end vbalance_guest policy=paper remap=affinity observe=1
[ -n "$(movable)" ] || skip_all "no interrupt that may be moved"

traffic_start "$PEER"
traffic_more 20
rx=$(busiest)
cpu=$(cell $GUEST/irqs "$rx" cpu)
irq_now() { cols $GUEST/irqs irq "$1" | sed -n "s/^$rx //p"; }
cpu_now() { cols $GUEST/vcpus cpu "$1" | sed -n "s/^$cpu //p"; }
for name in handled hard_us soft_us; do
	eval "irq_$name=$(irq_now $name)"
done
for name in hard_n hard_us soft_n soft_us; do
	eval "cpu_$name=$(cpu_now $name)"
done
traffic_more 30
for name in handled hard_us soft_us; do
	before=
	eval "before=\$irq_$name"
	check "traffic makes $name of its interrupt grow" [ "$(irq_now $name)" -gt "$before" ]
done
for name in hard_n hard_us soft_n soft_us; do
	before=
	eval "before=\$cpu_$name"
	check "traffic makes $name of its CPU grow" [ "$(cpu_now $name)" -gt "$before" ]
done
loaded_irq() { [ "$(irq_now load_us)" -gt 0 ]; }
loaded_cpu() { [ "$(cpu_now load_us)" -gt 0 ]; }
check "traffic is load of its interrupt" await 60 loaded_irq
check "traffic is load of its CPU" await 60 loaded_cpu

# ---- the paper's states ----
busy_start
overcommitted && tight=1 || tight=
side_by_side() { [ "$(cols "$GUEST/vcpus" run | grep -c running)" -ge 2 ]; }
parallel=
[ "$(cpus)" = 1 ] || ! await 20 side_by_side || parallel=1
seen() {
	cols "$GUEST/vcpus" alg1 run cpu >> "$KTAP_TMP/states"
	grep -q "^$1 " "$KTAP_TMP/states"
}
check "a CPU that holds interrupts is HOLD" await 60 seen HOLD
if [ "$tight" ]; then
	check "a CPU that does not run is offline" await 60 seen offline
fi
if [ "$tight" ] && [ "$parallel" ]; then
	# Where interrupts move, CPUs are left without, some of them with load
	# from before.
	echo 0 > $GUEST_PARAMETERS/observe
	check "a CPU with little load is LOW" await 60 seen LOW
	check "a CPU that has just given its interrupts away is HIGH" await 60 seen HIGH
	echo 1 > $GUEST_PARAMETERS/observe
else
	skip "CPUs are LOW and HIGH" "needs CPUs that run side by side and lose their CPU to others"
fi
equal "nothing but the four states" "$(cut -d ' ' -f 1 "$KTAP_TMP/states" | grep -v -x -E 'HOLD|LOW|HIGH|offline' | sort -u)" ""
equal "offline is what does not run" "$(awk '($1 == "offline") == ($2 == "running")' "$KTAP_TMP/states")" ""

# ---- threshold ----
if [ "$parallel" ]; then
	echo 100 > $GUEST_PARAMETERS/threshold
	imbalance() { [ "$(decided move_imbalance)" -gt 3 ]; }
	check "threshold=100: imbalance is a reason to move" await 120 imbalance
	echo 10000 > $GUEST_PARAMETERS/threshold
	equal "threshold=10000 is taken" "$(cat $GUEST_PARAMETERS/threshold)" 10000
	traffic_more 10
	imbalances=$(decided move_imbalance)
	balanced=$(decided stay_balanced)
	tolerates() { [ "$(decided stay_balanced)" -gt "$((balanced + 20))" ]; }
	check "threshold=10000: the same imbalance is tolerated" await 120 tolerates
	equal "threshold=10000: it is no reason to move" "$(decided move_imbalance)" "$imbalances"
else
	skip "threshold" "CPUs do not run side by side here"
fi
traffic_stop "every packet is answered once"
equal "nothing was redirected" "$(redirections)" "0 0 0 0"
busy_stop
ktap_end
