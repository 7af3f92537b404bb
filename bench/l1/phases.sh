#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in L1 (the emulated KVM host): goes through the phases of a plan
# (vbbench/plan.py) in one boot. What it leaves in $LAB_OUT/phases for phase N:
#	N.TEST		what the test printed
#	N.guest		the guest's report (mode.sh leave)
#	N.host		debugfs and parameters of vbalance_host
#	N.ping.sched	/proc/TID/schedstat of the vCPU threads, before and after
#	N.TEST.cpu	who had the vCPUs' CPU during a test (watch_cpu)
#	N.failed	names of the tests that failed
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
# The vCPUs are on CPU 1, with SPREAD also on those after it: all that measures
# stays away from them.
taskset -p 1 $$ >/dev/null

die() { echo "phases.sh: $*" >&2; exit 1; }

mode_sh() { guest 0 "sh /lab/bench/mode.sh $*"; }

schedstats() {
	for t in $TIDS; do
		read -r counters < "/proc/$t/schedstat"
		echo "$t $counters"
	done
}

# Every half second: uptime, switches to a task on the vCPUs' CPU so far, CPU
# time of this guest's vCPUs and of all neighbours' so far (ns). Without a
# process of its own: it must not disturb.
cpu_sample() {
	while read -r name _ _ _ _ _ _ _ _ switches _; do
		[ "$name" != cpu1 ] || break
	done < /proc/schedstat
	own=0 others=0
	for t in $TIDS; do
		read -r ns _ < "/proc/$t/schedstat"
		own=$((own + ns))
	done
	for t in $OTHER_TIDS; do
		read -r ns _ < "/proc/$t/schedstat"
		others=$((others + ns))
	done
	read -r up _ < /proc/uptime
	echo "$up $switches $own $others"
}

watch_cpu() {
	while :; do
		cpu_sample
		usleep 500000
	done
}

# Files one after the other, each headed by "==> NAME <==".
host_report() (
	# That folder stays when the module has gone.
	[ -d /sys/kernel/debug/vbalance/host ] &&
		cd /sys/kernel/debug/vbalance &&
		find host /sys/module/vbalance_host/parameters -type f \
			-exec tail -v -n +1 {} +
)

now() {
	read -r up rest < /proc/uptime
	echo "$up"
}

rings_learnt() {
	sed -n 's/^rings_learnt //p' /sys/kernel/debug/vbalance/host/stats
}

# Rings are known to vbalance_host from when a device is set up, as when a guest
# starts: without them it cannot see that an interrupt is over.
learn_rings() {
	{ guest_link 0 false && guest_link 0 true; } || die "no change of the guest's link"
	tries=0
	until [ "$(rings_learnt)" -gt 0 ] && jping "$IP" 1 10000 1 > /dev/null; do
		tries=$((tries + 1))
		[ $tries -le 100 ] || die "vbalance_host does not learn of the guest's rings"
		usleep 100000
	done
}

enter() {	# MODE, as described in modeset.py's modes_file(); sets rivals
	read -r _ host rivals rest <<- EOF
		$(grep "^$1 " $MODES)
	EOF
	if [ "$host" != 0 ]; then
		params=$(echo "${host#1}" | tr , ' ')
		# shellcheck disable=SC2086 # words
		insmod $MODULE $params || {
			dmesg | tail -5 >&2
			die "insmod $MODULE $params failed"
		}
		learn_rings
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

tcp() {	# SECONDS BYTES [WORD...]
	seconds=$1 size=$2 port=$((5201 + tcp_tests))
	shift 2
	tcp_tests=$((tcp_tests + 1))
	timeout $((seconds + 60)) iperf3 -c "$IP" -p $port -t "$seconds" \
		-l "$size" -i 0.25 -J "$@"
}

# What the tools print goes to files, and so does a failure: the figure is then
# missing, and the next test is run.
run_test() {	# FILE KIND ARG...
	file=$1 kind=$2
	shift 2
	case $kind in
	ping)	# INTERVAL_US PINGS SEED
		schedstats > "$file.sched"
		jping "$IP" "$2" "$1" "$3" > "$file" || die "jping failed"
		echo >> "$file.sched"
		schedstats >> "$file.sched"
		;;
	udp)	# SECONDS BYTES; a reply that is lost would stop it until its end
		timeout $(($1 + 60)) sockperf ping-pong -i "$IP" -t "$1" \
			-m "$2" --full-rtt --full-log "$file" > "$file.log" 2>&1
		;;
	tcp-in)	# SECONDS BYTES
		tcp "$@" > "$file" 2> "$file.log"
		;;
	tcp-out)
		tcp "$@" -R > "$file" 2> "$file.log"
		;;
	tcp-rr | udp-rr)	# MS REQUEST/RESPONSE...
		timeout 120 rr "${kind%-rr}" "$IP" 5100 "$@" > "$file" \
			2> "$file.log"
		;;
	fio)	# SECONDS DEPTH...
		mode_sh fio "$@" > "$file" 2> "$file.log"
		;;
	sysbench)	# REPEATS PING_US KIND...
		repeats=$1 ping_us=$2
		shift 2
		pinger=
		if [ "$ping_us" != 0 ]; then
			jping "$IP" 60000 "$ping_us" 1 > /dev/null &
			pinger=$!
		fi
		mode_sh sysbench "$repeats" "$@" > "$file" 2> "$file.log"
		status=$?
		[ -z "$pinger" ] || kill "$pinger"
		return $status
		;;
	*)
		die "unknown test $kind"
		;;
	esac
}

# Those that the plan needs, and as many for TCP as one of its phases.
servers() {
	words=$(awk '/ udp:/ { w["udp"] } / (tcp|udp)-rr:/ { w["rr"] }
		{ n = gsub(/ tcp-(in|out):/, "&"); if (n > m) m = n }
		END { for (i in w) print i; if (m) print "tcp:" m }' $PLAN)
	[ -z "$words" ] || mode_sh servers "$(echo "$words" | tr '\n' ' ')" ||
		die "the guest's servers cannot be started"
}

# Loading and unloading modules waits for all vCPUs, which takes a minute beside
# busy neighbours or hogs: they pause meanwhile.
send() {	# STOP|CONT PID...
	signal=$1
	shift
	for pid; do
		kill -"$signal" "$pid"
	done
}

# Guest N in cgroup vmN, its vCPU I in vmN/vcpuI, of cgroup v2.
cgroups() {
	root=/sys/fs/cgroup
	mountpoint -q $root || mount -t cgroup2 none $root || return
	echo +cpu > $root/cgroup.subtree_control || return
	vm=0
	while [ $vm -lt "$GUESTS" ]; do
		mkdir $root/vm$vm && guest_pid $vm > $root/vm$vm/cgroup.procs ||
			return
		vcpu=0
		for t in $(vcpu_tids $vm); do
			group=$root/vm$vm/vcpu$vcpu
			# Threads of one process may be in several that are so.
			mkdir "$group" && echo threaded > "$group/cgroup.type" &&
				echo +cpu > $root/vm$vm/cgroup.subtree_control &&
				echo "$t" > "$group/cgroup.threads" || return
			vcpu=$((vcpu + 1))
		done
		vm=$((vm + 1))
	done
}

# Each vCPU to a CPU of its own, with a hog (stopped for now).
spread() {
	cpu=1
	for t in $TIDS; do
		mask=$(printf %x $((1 << cpu)))
		taskset -p "$mask" "$t" > /dev/null || return
		taskset "$mask" sh -c 'while :; do :; done' &
		HOGS="$HOGS $!"
		cpu=$((cpu + 1))
	done
	# shellcheck disable=SC2086 # words
	send STOP $HOGS
}

# Slices end at ticks, which all CPUs have at once: left alone, the rotations of
# two CPUs keep the distance that they happen to have. So the turn of a hog is
# cut short now and then, not always at the same distance of time.
shake() {
	while :; do
		for us in 130000 210000 170000 250000; do
			usleep $us
			send STOP "${HOGS##* }"
			send CONT "${HOGS##* }"
		done
	done
}

phase() {	# INDEX ROUND SLICE MODE TEST...
	case $3 in
	default) slice=$DEFAULT name=default ;;
	*) slice=$3 name="$(($3 / 1000000)) ms" ;;
	esac
	index=$1 mode=$4 tcp_tests=0
	progress "phase $1 of $TOTAL: round $2, slice $name, $4"
	t0=$(now)
	set_slice "$slice" || die "cannot set base_slice_ns to $slice"
	# shellcheck disable=SC2086 # words
	send STOP $OTHER_PIDS
	enter "$mode"
	# shellcheck disable=SC2086
	send CONT $OTHER_PIDS
	shaker=
	if [ -n "$HOGS" ] && [ "$rivals" = 1 ]; then
		# shellcheck disable=SC2086
		send CONT $HOGS
		shake &
		shaker=$!
	fi
	t1=$(now)
	shift 4
	for test; do
		# As the name in plan.py: the numbers of some are no part of it.
		case $test in
		ping:* | *-rr:* | sysbench:*) name=${test%%:*} ;;
		*) name=$(echo "$test" | cut -d : -f 1,3- | tr : -) ;;
		esac
		watcher=
		if [ -n "$OTHER_TIDS" ]; then
			watch_cpu > "$OUT/$index.$name.cpu" &
			watcher=$!
		fi
		# shellcheck disable=SC2046
		run_test "$OUT/$index.$name" $(echo "$test" | tr : ' ') || {
			progress "phase $index: $name failed ($?)"
			echo "$name" >> "$OUT/$index.failed"
			servers
		}
		[ -z "$watcher" ] || kill "$watcher"
	done
	t2=$(now)
	echo "base_slice_ns $(get_slice)" > "$OUT/$index.meta"
	[ -z "$shaker" ] || kill $shaker
	# shellcheck disable=SC2086
	send STOP $OTHER_PIDS $HOGS
	leave "$index" "$mode"
	# shellcheck disable=SC2086
	send CONT $OTHER_PIDS
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

servers

# The other guests are neighbours: all their vCPUs are busy, all the time.
OTHER_TIDS='' OTHER_PIDS=''
other=1
while [ $other -lt "$GUESTS" ]; do
	guest $other "burn $VCPUS </dev/null >/dev/null 2>&1 &" </dev/null ||
		die "guest $other cannot be kept busy"
	OTHER_TIDS="$OTHER_TIDS $(vcpu_tids $other)"
	OTHER_PIDS="$OTHER_PIDS $(guest_pid $other)"
	other=$((other + 1))
done

TIDS=$(vcpu_tids 0) HOGS=
[ "$SPREAD" = 0 ] || spread || die "the vCPUs cannot be spread"
[ "$CGROUPS" = 0 ] || cgroups || die "no cgroups for the guests"
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
