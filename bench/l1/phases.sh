#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in L1 (the emulated KVM host): goes through the phases of a plan
# (vbbench/plan.py) in one boot. What it leaves in $LAB_OUT/phases for phase N:
#	N.TEST		what the test printed
#	N.guest		the guest's report (mode.sh leave)
#	N.host		debugfs of vbalance_host
#	N.sched		/proc/TID/schedstat of the vCPU threads, before and after
#			the pings
#	N.meta		"key value" lines
# shellcheck disable=SC1091
. /lab/lib.sh
set -u
PLAN=/lab/bench/plan
MODES=/lab/bench/modes
OUT=$LAB_OUT/phases
MODULE=/lab/vbalance_host.ko
IP=$(guest_ip 0)
mkdir -p "$OUT"
# The vCPUs are on CPU 1: all that measures stays away from it.
taskset -p 1 $$ >/dev/null

die() { echo "phases.sh: $*" >&2; exit 1; }

mode_sh() { guest 0 "sh /lab/bench/mode.sh $*"; }

schedstats() {
	for t in $TIDS; do
		read -r counters < "/proc/$t/schedstat"
		echo "$t $counters"
	done
}

host_report() {
	for f in /sys/kernel/debug/vbalance/host/* \
			/sys/kernel/debug/vbalance/host/*/*; do
		[ -f "$f" ] || continue
		echo "==> ${f#/sys/kernel/debug/vbalance/} <=="
		cat "$f"
	done
}

now() {
	read -r up rest < /proc/uptime
	echo "$up"
}

enter() {	# MODE, as described in plan.py's modes_file()
	read -r _ host rest <<- EOF
		$(grep "^$1 " $MODES)
	EOF
	if [ "$host" = 1 ]; then
		insmod $MODULE || {
			dmesg | tail -5 >&2
			die "insmod $MODULE failed"
		}
	fi
	mode_sh enter "$rest" || die "mode $1 cannot be entered"
}

leave() {	# INDEX MODE
	host_report > "$OUT/$1.host"
	mode_sh leave > "$OUT/$1.guest"
	status=$?
	if grep -q '^vbalance_host ' /proc/modules; then
		rmmod vbalance_host || die "rmmod vbalance_host failed"
	fi
	# 3: some interrupts are still to be put back. They go with the next
	# packet.
	tries=0
	while [ $status = 3 ]; do
		tries=$((tries + 1))
		[ $tries -le 20 ] || die "interrupts stay elsewhere after $2"
		jping "$IP" 15 10000 1 > /dev/null
		mode_sh restore
		status=$?
	done
	[ $status = 0 ] || die "mode $2 cannot be left"
	echo "restore_tries $tries" >> "$OUT/$1.meta"
}

run_test() {	# INDEX KIND ARG...
	case $2 in
	ping)	# INTERVAL_US PINGS SEED
		schedstats > "$OUT/$1.sched"
		jping "$IP" "$4" "$3" "$5" > "$OUT/$1.ping" ||
			die "jping failed"
		echo >> "$OUT/$1.sched"
		schedstats >> "$OUT/$1.sched"
		;;
	*)
		die "unknown test $2"
		;;
	esac
}

phase() {	# INDEX ROUND SLICE MODE TEST...
	case $3 in
	default) slice=$DEFAULT name=default ;;
	*) slice=$3 name="$(($3 / 1000000)) ms" ;;
	esac
	index=$1 mode=$4
	progress "phase $1 of $TOTAL: round $2, slice $name, $4"
	t0=$(now)
	set_slice "$slice" || die "cannot set base_slice_ns to $slice"
	enter "$mode"
	t1=$(now)
	shift 4
	for test; do
		# shellcheck disable=SC2046
		run_test "$index" $(echo "$test" | tr : ' ')
	done
	t2=$(now)
	echo "base_slice_ns $(get_slice)" > "$OUT/$index.meta"
	leave "$index" "$mode"
	echo "uptime $t0 $t1 $t2 $(now)" >> "$OUT/$index.meta"
}

# Better now than after a minute.
if grep -q ' module' $MODES; then
	[ -e $MODULE ] || die "$MODULE is missing: was it built?"
	guest 0 'test -e /lab/vbalance_guest.ko' ||
		die "/lab/vbalance_guest.ko is missing in the guest: was it built?"
fi
if grep -q ' irqbalance' $MODES; then
	guest 0 'command -v irqbalance >/dev/null' ||
		die "irqbalance is missing in the guest"
fi

TIDS=$(vcpu_tids 0)
DEFAULT=$(get_slice)
TOTAL=$(wc -l < $PLAN)
{
	echo "default_slice_ns $DEFAULT"
	echo "l1_kernel $(uname -r)"
	echo "l2_kernel $(guest 0 uname -r)"
	echo "qemu_l2 $(qemu-system-x86_64 --version | head -n 1)"
	echo "irqbalance $(guest 0 'irqbalance --version 2>&1 | head -n 1')"
	echo "l1_clocksource $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
} > "$OUT/machine"

# The plan is read on another descriptor: nothing in a phase may eat it.
while read -r line <&3; do
	# shellcheck disable=SC2086
	phase $line
done 3< $PLAN
progress "phases done"
