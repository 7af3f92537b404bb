#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in L1, with one vCPU on one CPU and a nanosecond for each instruction:
# sysbench in the guest, in each mode, alone and while pings come in. What it
# printed: $LAB_OUT/overhead/MODE.LOAD.
# shellcheck disable=SC1091
. /lab/lib.sh
OUT=$LAB_OUT/overhead
mkdir -p "$OUT"
# It looks at some pages every 10 s, in 6 ms of whatever is measured just then.
echo 3600000 > /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs || exit 1
# Written to, it looks once more.
sleep 1

measure() {	# MODE
	for load in none ping; do
		pinger=
		if [ $load = ping ]; then
			jping "$(guest_ip 0)" 60000 "$PING_US" 1 > /dev/null &
			pinger=$!
		fi
		guest 0 "sh /lab/bench/mode.sh sysbench 1 $KINDS" < /dev/null \
			> "$OUT/$1.$load" || exit 1
		[ -z "$pinger" ] || kill $pinger
	done
}

measure stock
insmod /lab/vbalance_host.ko || exit 1
measure host-only
guest 0 'insmod /lab/vbalance_guest.ko' < /dev/null || exit 1
measure full
rmmod vbalance_host || exit 1
measure guest-only
