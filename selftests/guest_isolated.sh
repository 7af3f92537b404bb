#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# CPUs of a guest that somebody keeps for something else: nothing that may be
# elsewhere is moved to them or redirected to them, and they borrow nothing.
# Runs in the lab's L1 and starts guest 0: four vCPUs on one CPU, the last one
# isolated (isolcpus=3).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest_start 0
check "the guest is up" guest_wait 0
equal "one of its CPUs is isolated" "$(guest 0 'cat /sys/devices/system/cpu/isolated' </dev/null)" 3
ISO=/sys/fs/cgroup/isolated
# And another one can be. It has something to do, so that it runs, and is one to
# be taken.
check "it has a cgroup with CPU 2" guest 0 "mount -t cgroup2 none /sys/fs/cgroup &&
	echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control &&
	mkdir $ISO && echo 2 > $ISO/cpuset.cpus || exit
	sh -c 'echo \$\$ > $ISO/cgroup.procs; while :; do :; done' >/dev/null 2>&1 </dev/null &
	echo \$! > /tmp/loop" </dev/null
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
# Since then cpu_is_isolated() knows of them, too.
tells=$(guest 0 '[ ! -e /sys/fs/cgroup/cpuset.cpus.isolated ] || echo 1' </dev/null)
partition() {	# isolated|member
	guest 0 "echo $1 > $ISO/cpuset.cpus.partition &&
		[ \"\$(cat $ISO/cpuset.cpus.partition)\" = $1 ]" </dev/null
}

# Where to_MODE says that interrupts went since start_MODE: to all of these CPUs,
# and to none but these.
goes_to() {	# NAME CPUS
	start_"$mode"
	await 200 to_all "$2"
	equal "$mode: $1" "$(sort -u "$KTAP_TMP/to" | xargs)" "$2"
	echo "# $(wc -l < "$KTAP_TMP/to") times"
}
to_all() {	# CPUS
	to_"$mode" > "$KTAP_TMP/to"
	[ "$(wc -l < "$KTAP_TMP/to")" -ge $((60 / ${SLOW:-1})) ] &&
		[ "$(sort -u "$KTAP_TMP/to" | wc -l)" -ge "$(echo "$1" | wc -w)" ]
}
start_moves() { g 0 'trace_on vbalance_guest/vb_guest_move'; }
to_moves() { g 0 'events vb_guest_move' | sed -n 's/.* -> \([0-9]*\) .* err=0$/\1/p'; }
start_redirect() { trace_on vbalance_host/vb_host_redirect; }
to_redirect() { redirected_away | cut -d ' ' -f 2; }
start_borrow() { g 0 'trace_on vbalance_guest/vb_guest_serve'; }
to_borrow() {
	g 0 'sed -n "s/.*\[0*\([0-9][0-9]*\)\].* vb_guest_serve: .* kind=borrow .*/\1/p" $TRACE/trace'
}

# Those of queues; others may not have any to take effect in.
bind_home() {
	for irq in $(guest 0 "sed -n 's/^ *\([0-9]*\):.*virtio.*\(input\|output\).*/\1/p' /proc/interrupts" </dev/null); do
		guest 0 "echo 0 > /proc/irq/$irq/smp_affinity_list" </dev/null
		irqs="$irqs $irq"
	done
}
all_home() { traffic_more 5 && ! g 0 "where $irqs" | grep -v ' 0$' > /dev/null; }

traffic_start "$(guest_ip 0)"
guest_module 0 load policy=paper remap=affinity
for mode in moves redirect borrow; do
	case $mode in
	moves) all="0 1 2" some="0 1" ;;
	*)	# Away from CPU 0, to which they are bound. (That binds moves alone.)
		all="1 2" some=1 irqs=
		guest_module 0 unload
		bind_home
		check "$mode: all interrupts are CPU 0's" await 120 all_home
		guest_module 0 load remap=$mode
		;;
	esac
	goes_to "to all but the isolated CPU" "$all"
	if [ "$tells" ]; then
		check "$mode: another one is isolated" partition isolated
		check "$mode: the host has been told" rescanned
		goes_to "to none of both" "$some"
		check "$mode: it is no more" partition member
		goes_to "and to that one again" "$all"
	else
		skip "$mode: isolated partitions" "this kernel does not tell of them"
	fi
	if [ "$mode" = moves ]; then
		irq=$(g 0 busiest)
		guest 0 "echo 3 > /proc/irq/$irq/smp_affinity_list" </dev/null
		there() { [ "$(guest 0 "cat /proc/irq/$irq/effective_affinity_list" </dev/null)" = 3 ]; }
		check "moves: to the isolated CPU if a mask names it" await 60 there
	fi
done
g 0 trace_off
trace_off
traffic_stop "every packet is answered once"
guest 0 'kill $(cat /tmp/loop); killall burn' </dev/null
guest_module 0 unload
guest_log_clean 0
guest_stop 0
check "nothing is left of the VM" await 60 nothing_left
unload vbalance_host
ktap_end
