#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in the guest: enters and leaves one mode (see plan.py).
#
#	mode.sh enter THREADS GUEST [PARAMS]
#				set the mode up, start the busy threads
#	mode.sh leave		print what the mode did, stop the busy threads,
#				put the guest back as it was; 3: "restore" has
#				to be called until it succeeds
#	mode.sh restore
#	mode.sh servers N	start the servers of the network tests, N of them
#				for TCP; again if they run already
#	mode.sh fio SECONDS DEPTH...	random reads with each queue depth
#
# The busy threads are stopped between modes: loading and unloading a module
# waits for every CPU (RCU), which takes seconds on stacked busy vCPUs.
set -u
PATH=/lab/bin:/usr/sbin:/usr/bin:/sbin:/bin
STATE=/tmp/bench
MODULE=/lab/vbalance_guest.ko

die() { echo "mode.sh: $*" >&2; exit 1; }

# One line an interrupt: number, where it goes now, where it may go. A process
# takes 40 ms to start here, so this and the like do without.
affinities() {
	for d in /proc/irq/[0-9]*; do
		[ -r "$d/effective_affinity" ] || continue
		read -r effective < "$d/effective_affinity"
		read -r mask < "$d/smp_affinity"
		echo "${d##*/} $effective $mask"
	done
}

# Waits at most $1 tenths of a second for the rest of the line to succeed.
await() {
	n=$1; shift
	while ! "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.1
	done
}

gone() { ! kill -0 "$1"; }

start() {	# PIDFILE COMMAND...
	pidfile=$1; shift
	setsid "$@" </dev/null >>$STATE/log 2>&1 &
	echo $! > "$pidfile"
}

stop() {	# PIDFILE
	[ -s "$1" ] || return 0
	read -r pid < "$1"
	kill "$pid" 2>/dev/null
	await 100 gone "$pid" || die "process $pid does not end"
	rm -f "$1"
}

enter() {	# THREADS none|irqbalance|module [PARAM...]
	threads=$1 what=$2
	shift 2
	mkdir -p $STATE
	[ -e $STATE/affinities ] || affinities > $STATE/affinities
	case $what in
	none)
		;;
	irqbalance)
		# Debian starts it like this but for -t (see plan.py).
		start $STATE/irqbalance.pid \
			irqbalance --foreground -t "$IRQBALANCE_S"
		await 20 pidof irqbalance || {
			cat $STATE/log >&2
			die "irqbalance does not run"
		}
		;;
	module)
		[ -e $MODULE ] || die "$MODULE is missing: was it built?"
		insmod $MODULE "$@" || {
			dmesg | tail -5 >&2
			die "insmod $MODULE $* failed"
		}
		;;
	*)
		die "unknown mode: $what"
		;;
	esac
	[ "$threads" = 0 ] || start $STATE/burn.pid burn "$threads"
}

section() { echo "==> $1 <=="; }

report() {
	# Each with a head as section() makes it.
	if [ -d /sys/kernel/debug/vbalance/guest ]; then
		cd /sys/kernel/debug/vbalance || exit
		tail -v -n +1 guest/* /sys/module/vbalance_guest/srcversion
		cd /
	fi
	section affinities_before
	cat $STATE/affinities
	section affinities
	affinities
	section interrupts
	grep -E 'CPU0|virtio' /proc/interrupts
}

# Back to where the interrupts were; 3 when something had to be written.
#
# A new affinity is only noted, and takes effect in the next interrupt (there
# is no interrupt remapping here): the caller sends packets and calls again. A
# change left pending would look like somebody else's to our module in the
# next phase, which then keeps its hands off for a while.
# The CPU first, then the mask: a CPU that is in the new mask is kept.
restore() {
	written=0
	while read -r irq effective mask; do
		d=/proc/irq/$irq
		[ -r "$d/effective_affinity" ] || continue
		read -r e < "$d/effective_affinity"
		read -r m < "$d/smp_affinity"
		if [ "$e" != "$effective" ]; then
			written=3
			echo "$effective" > "$d/smp_affinity"
		elif [ "$m" != "$mask" ]; then
			written=3
			echo "$mask" > "$d/smp_affinity"
		fi
	done < $STATE/affinities 2>/dev/null
	return $written
}

leave() {
	# The busy threads first: what follows is slow while they run.
	stop $STATE/burn.pid
	report
	stop $STATE/irqbalance.pid
	if [ -d /sys/module/vbalance_guest ]; then
		rmmod vbalance_guest || die "rmmod vbalance_guest failed"
		section after_unload
		affinities
	fi
	restore
}

listening() {	# PORT in hexadecimal
	grep -q ":$1 " /proc/net/udp /proc/net/tcp
}

# One for each TCP test of a phase: iperf3 is busy for a while after a test,
# and refuses the next one.
servers() {	# N
	mkdir -p $STATE
	stop $STATE/sockperf.pid
	start $STATE/sockperf.pid sockperf server
	ports=2B67		# 11111
	n=0
	while [ $n -lt "$1" ]; do
		port=$((5201 + n))
		stop "$STATE/iperf3-$n.pid"
		start "$STATE/iperf3-$n.pid" iperf3 -s -4 -p $port
		ports="$ports $(printf %04X $port)"
		n=$((n + 1))
	done
	for port in $ports; do
		await 100 listening "$port" && continue
		cat $STATE/log >&2
		die "nothing listens on port $port (hexadecimal)"
	done
}

run_fio() {	# SECONDS DEPTH...
	seconds=$1 first=$2
	shift
	# It takes seconds to load beside busy threads: they pause meanwhile, and
	# also when it sums up.
	pause=true go=true
	if [ -s $STATE/burn.pid ]; then
		read -r pid < $STATE/burn.pid
		pause="kill -STOP $pid" go="kill -CONT $pid"
	fi
	for depth; do
		set -- "$@" "--name=$depth" --stonewall "--iodepth=$depth"
		shift
		[ "$depth" != "$first" ] || set -- "$@" "--exec_prerun=$go"
	done
	set -- "$@" "--exec_postrun=$pause"
	rm -f $STATE/fio*
	cd $STATE || exit
	$pause
	# The log has the time of every read.
	timeout 120 fio --thread --filename=/dev/vda --readonly --direct=1 \
		--ioengine=libaio --rw=randread --bs=4k --norandommap \
		--time_based --runtime="$seconds" --ramp_time=0.5 \
		--clocksource=clock_gettime --write_lat_log=fio \
		--log_offset=0 --eta=never \
		--output-format=json --output=fio.json "$@" >&2
	status=$?
	$go
	[ $status = 0 ] || die "fio failed ($status)"
	section json
	cat fio.json
	for log in fio_clat.*.log; do
		section "$log"
		cat "$log"
	done
}

command=${1-}
[ $# = 0 ] || shift
case "$# $command" in
[2-9]" enter")	enter "$@" ;;
"0 leave")	leave ;;
"0 restore")	restore ;;
"1 servers")	servers "$1" ;;
[2-9]" fio")	run_fio "$@" ;;
*)		die "usage: mode.sh enter THREADS GUEST [PARAM...] | leave | restore | servers N | fio SECONDS DEPTH..." ;;
esac
