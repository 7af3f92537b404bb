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
#	mode.sh servers [udp] [rr] [tcp:N]	start the servers of these network
#				tests, N of them for TCP; again if they run already
#	mode.sh fio SECONDS DEPTH...	random reads with each queue depth
#	mode.sh sysbench REPEATS KIND...	each of its tests, that often
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
		tail -v -n +1 guest/* /sys/module/vbalance_guest/srcversion \
			/sys/module/vbalance_guest/parameters/*
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

server() {	# NAME PORT COMMAND...
	name=$1 port=$2
	shift 2
	stop "$STATE/$name.pid"
	start "$STATE/$name.pid" "$@"
	ports="$ports $(printf %04X "$port")"
}

servers() {
	mkdir -p $STATE
	ports=
	for word; do
		case $word in
		udp)	server sockperf 11111 sockperf server ;;
		rr)	server rr 5100 rr serve 5100 ;;
		tcp:*)	# One for each test of a phase: iperf3 is busy for a
			# while after a test, and refuses the next one.
			n=0
			while [ $n -lt "${word#tcp:}" ]; do
				server iperf3-$n $((5201 + n)) \
					iperf3 -s -4 -p $((5201 + n))
				n=$((n + 1))
			done
			;;
		*)	die "unknown server: $word" ;;
		esac
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

# Each for about a second in the emulator. Work is given, and the time it takes
# is the figure, as in the CoINT paper.
sysbench_words() {
	case $1 in
	cpu)	echo "cpu --cpu-max-prime=2000 --events=3000" ;;
	memory)	echo "memory --memory-block-size=1K --memory-total-size=250M" ;;
	threads)	echo "threads --thread-yields=50 --thread-locks=4 --events=1300" ;;
	mutex)	echo "mutex --mutex-num=16 --mutex-locks=260000 --mutex-loops=100" ;;
	*)	die "unknown test of sysbench: $1" ;;
	esac
}

run_sysbench() {
	repeats=$1
	shift
	for n in $(seq "$repeats"); do
		for kind; do
			section "$kind.$n"
			# shellcheck disable=SC2046 # words
			timeout 120 sysbench $(sysbench_words "$kind" |
				sed 's/ / --threads=4 --time=0 /') run ||
				die "sysbench $kind failed ($?)"
		done
	done
}

command=${1-}
[ $# = 0 ] || shift
case "$# $command" in
[2-9]" enter")	enter "$@" ;;
"0 leave")	leave ;;
"0 restore")	restore ;;
[1-3]" servers")	servers "$@" ;;
[2-9]" fio")	run_fio "$@" ;;
[2-9]" sysbench")	run_sysbench "$@" ;;
*)		die "usage: see the head of mode.sh" ;;
esac
