#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# An interrupt for a guest that sleeps, beside one that is busy on the same CPU:
# the fast path; on an idle CPU nothing. Runs in the lab's L1, changes nothing.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
[ "$GUESTS" -ge 2 ] || skip_all "needs two guests"

boost() { stat_of "$(vm_dir 0)/boost" "$1"; }
tried() { echo "$(($(boost fast_path) + $(boost waiting) + $(boost not_needed)))"; }
more() { [ "$(boost "$1")" -gt "$2" ]; }
say() { echo "# $1: $(grep -v ' 0$' "$(vm_dir 0)/boost" | tail -n +2 | tr '\n' ',')"; }

unload vbalance_host
check "load" load vbalance_host boost_share=50 boost_vcpu_share=50 boost_cpu_share=50
traffic_start "$(guest_ip 0)"
traffic_more 5
guest 1 "burn $VCPUS >/dev/null 2>&1 </dev/null &"
n=$(boost fast_path)
check "a busy neighbour: the one that sleeps is boosted" await 120 more fast_path $((${n:-0} + 20))
off=$(boost ended_off_cpu)
check "until it sleeps again" await 120 more ended_off_cpu "$off"
say "beside a busy one"

echo 0 > /sys/module/vbalance_host/parameters/boost
traffic_more 5
n=$(tried)
traffic_more 40
equal "boost=0: not thought of" "$(tried)" "$n"
echo 1 > /sys/module/vbalance_host/parameters/boost

# Another vCPU of it runs, the first one, to which its interrupts cannot be
# redirected: all go to the second one.
guest 0 'cd /proc/irq
	for i in [0-9]*; do
		echo "$i $(cat $i/smp_affinity_list)"
		echo 1 > $i/smp_affinity_list
	done > /tmp/affinity 2>/dev/null
	burn 1 >/dev/null 2>&1 </dev/null &'
n=$(boost waiting)
check "one of its vCPUs is busy: the one that sleeps is boosted" await 120 more waiting $((${n:-0} + 20))
say "one is busy"
guest 0 'killall burn
	while read -r i list; do
		echo "$list" > /proc/irq/$i/smp_affinity_list
	done < /tmp/affinity 2>/dev/null'

check "the busy neighbour is quiet" guest 1 'killall burn'
sleep 1
traffic_more 5
# Of all CPUs since boot, ticks: all, idle.
ticks() { awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print all, $5 + $6 }' /proc/stat; }
n=$(tried)
before=$(ticks)
traffic_more 60
n=$(($(tried) - n))
idle=$(echo "$before $(ticks)" | awk '{ printf "%d", 100 * ($4 - $2) / ($3 - $1) }')
echo "# idle $idle %, tried $n times"
if [ "$idle" -lt 40 ]; then
	# Slow hosts have enough to do with what guests do now and then.
	skip "an idle CPU: not thought of" "the CPUs are idle for $idle % only"
else
	# The CPU does something now and then.
	[ "$n" -lt 30 ]
	ok $? "an idle CPU: not thought of"
fi
say "alone"
traffic_stop "every packet is answered, once"
check "unload" unload vbalance_host
guest_log_clean 0
guest_log_clean 1
ktap_end
