#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in L1 (the emulated KVM host): goes through the phases of the demo's
# plan in one boot. What it leaves in $LAB_OUT/demo for phase N:
#	N.ping		ping's output
#	N.guest		the guest's report (mode.sh leave)
#	N.host		debugfs of vbalance_host
#	N.sched		/proc/TID/schedstat of the vCPU threads, before and after
#	N.meta		"key value" lines
# shellcheck disable=SC1091
. /lab/lib.sh
set -u
PLAN=/lab/bench/plan
OUT=$LAB_OUT/demo
MODULE=/lab/vbalance_host.ko
IP=$(guest_ip 0)
mkdir -p "$OUT"
# The vCPUs are stacked on CPU 1: all that measures stays away from it.
taskset -p 1 $$ >/dev/null

die() { echo "demo.sh: $*" >&2; exit 1; }

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

enter() {
	case $1 in
	paper|cost)
		[ -e $MODULE ] || die "$MODULE is missing: was it built?"
		insmod $MODULE || {
			dmesg | tail -5 >&2
			die "insmod $MODULE failed"
		}
		;;
	esac
	mode_sh enter "$1" || die "mode $1 cannot be entered"
}

leave() {	# MODE INDEX
	host_report > "$OUT/$2.host"
	mode_sh leave "$1" > "$OUT/$2.guest"
	status=$?
	if grep -q '^vbalance_host ' /proc/modules; then
		rmmod vbalance_host || die "rmmod vbalance_host failed"
	fi
	# 3: some interrupts are still to be put back. They go with the next
	# packet.
	tries=0
	while [ $status = 3 ]; do
		tries=$((tries + 1))
		[ $tries -le 20 ] || die "interrupts stay elsewhere after $1"
		jping "$IP" 15 10000 1 > /dev/null
		mode_sh restore
		status=$?
	done
	[ $status = 0 ] || die "mode $1 cannot be left"
	echo "restore_tries $tries" >> "$OUT/$2.meta"
}

phase() {	# INDEX ROUND SLICE MODE INTERVAL_US PINGS SEED
	case $3 in
	default) slice=$DEFAULT name=default ;;
	*) slice=$3 name="$(($3 / 1000000)) ms" ;;
	esac
	progress "demo phase $1 of $TOTAL: round $2, slice $name, $4"
	t0=$(now)
	set_slice "$slice" || die "cannot set base_slice_ns to $slice"
	enter "$4"
	t1=$(now)
	schedstats > "$OUT/$1.sched"
	jping "$IP" "$6" "$5" "$7" > "$OUT/$1.ping" || die "jping failed"
	echo >> "$OUT/$1.sched"
	schedstats >> "$OUT/$1.sched"
	t2=$(now)
	echo "base_slice_ns $(get_slice)" > "$OUT/$1.meta"
	leave "$4" "$1"
	echo "uptime $t0 $t1 $t2 $(now)" >> "$OUT/$1.meta"
}

# Better now than after a minute.
if grep -q -E ' (paper|cost) ' $PLAN; then
	[ -e $MODULE ] || die "$MODULE is missing: was it built?"
	guest 0 'test -e /lab/vbalance_guest.ko' ||
		die "/lab/vbalance_guest.ko is missing in the guest: was it built?"
fi
if grep -q ' irqbalance ' $PLAN; then
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
progress "demo done"
