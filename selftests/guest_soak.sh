#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Everything at once, for a while: requests, streams and verified block I/O in
# a guest whose vCPUs share one CPU, while modules, parameters, affinities,
# CPUs, vCPUs, other load and the guest's own run come and go in a random
# order. A control phase before has the same without the modules. Runs in the
# lab's L1.
#
#	SOAK_SECONDS	of the phase with the modules (60)
#	SOAK_SEED	of the order; the test prints the one it takes
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/chancelib.sh
. "$KTAP_DIR/chancelib.sh"
: "${SOAK_SECONDS:=60}" "${SOAK_SEED:=$(date +%s)}"
echo "# SOAK_SECONDS=$SOAK_SECONDS SOAK_SEED=$SOAK_SEED"
PORT=7007
IP=$(guest_ip 0)
IP1=$(guest_ip 0 1)
CPU=/sys/devices/system/cpu
GUEST_REMAP=/sys/module/vbalance_guest/parameters/remap
SLICE=$(get_slice)

gstat() { g 0 gstat "$1"; }
uptime_s() { cut -d . -f 1 /proc/uptime; }

# rnd N: R is one of 0 to N - 1
state=$SOAK_SEED
rnd() {
	state=$(((state * 1103515245 + 12345) & 0x7fffffff))
	R=$(((state >> 12) % $1))
}

# ---- what comes and goes ----
# Each takes its turn; most are left for a while in the state that they made.

note() { echo "# $(uptime_s) s: $*"; }

do_host() {
	if loaded vbalance_host; then
		note "host module goes"
		unload vbalance_host || bad="$bad rmmod-host"
		rnd 2
		[ "$R" = 0 ] || return 0
		usleep 300000
	fi
	note "host module comes"
	load vbalance_host || bad="$bad insmod-host"
}

guest_loaded() { guest 0 "[ -e $GUEST_REMAP ]" </dev/null; }

# What it counted goes with it; that all bits were taken it says itself, in the
# log (guest_log_clean).
guest_unload() {
	# shellcheck disable=SC2046 # numbers
	set -- $(guest 0 "sed -n 's/^\(stuck\|host_diverted\|host_posted\) //p' $GUEST/stats" </dev/null)
	note "guest module goes, after $2 + $3 pending bits"
	[ "$1" = 0 ] || bad="$bad stuck"
	guest 0 'rmmod vbalance_guest' </dev/null || bad="$bad rmmod-guest"
}

do_guest() {
	if guest_loaded; then
		guest_unload
		rnd 2
		[ "$R" = 0 ] || return 0
		usleep 300000
	fi
	note "guest module comes"
	guest 0 'insmod /lab/vbalance_guest.ko' </dev/null || bad="$bad insmod-guest"
}

do_remap() {
	guest_loaded || return 0
	rnd 6
	set -- redirect redirect borrow auto affinity none
	shift "$R"
	note "remap=$1"
	guest 0 "echo $1 > $GUEST_REMAP" </dev/null || bad="$bad remap"
}

do_affinity() {
	# shellcheck disable=SC2086 # a list of numbers
	set -- $NET_IRQS
	rnd $#
	shift "$R"
	rnd 5
	cpu=$R
	[ "$cpu" != 4 ] || cpu=0-3
	note "interrupt $1 on CPU $cpu"
	# A CPU that is offline is refused.
	guest 0 "echo $cpu > /proc/irq/$1/smp_affinity_list" </dev/null 2>/dev/null
}

offline=
do_cpu() {
	if [ "$offline" ]; then
		note "CPU $offline comes"
		guest 0 "echo 1 > $CPU/cpu$offline/online && $ONE_QUEUE" </dev/null || bad="$bad online"
		offline=
		burn_all
	else
		rnd 3
		offline=$((R + 1))
		note "CPU $offline goes"
		guest 0 "echo 0 > $CPU/cpu$offline/online && $ONE_QUEUE" </dev/null || bad="$bad offline"
	fi
}

# One more than those that the guest was started with.
plugged=0
do_vcpu() {
	if [ $plugged = 1 ]; then
		rnd 2
		first=
		[ "$R" = 0 ] || first=", its CPU goes first"
		note "vCPU $VCPUS is unplugged$first"
		[ ! "$first" ] || guest 0 "echo 0 > $CPU/cpu$VCPUS/online" </dev/null || bad="$bad offline-plugged"
		vcpu_unplug 0 "$VCPUS" || bad="$bad unplug"
		await 300 plugged_gone || bad="$bad unplugged"
		plugged=0
	else
		note "vCPU $VCPUS is plugged"
		# It starts where the others run.
		vcpu_plug 0 "$VCPUS" && guest_pin 0 && await 300 plugged_online ||
			bad="$bad plug"
		plugged=1
	fi
	burn_all
}
plugged_online() {
	guest 0 "{ echo 1 > $CPU/cpu$VCPUS/online; } 2>/dev/null && $ONE_QUEUE" </dev/null
}

# Since 6.10 the guest lets the vCPU go first, then its CPU.
plugged_gone() {
	guest 0 "[ ! -e $CPU/cpu$VCPUS ] && $ONE_QUEUE" </dev/null
}

# One loop for each CPU. Who had to leave one does not come back, so all begin
# anew when a CPU comes.
burn_all() {
	[ "$offline" ] ||
		guest 0 "killall burn 2>/dev/null
			burn $((VCPUS + plugged)) >/dev/null 2>&1 </dev/null &" </dev/null
}

hogs=
do_hog() {
	# shellcheck disable=SC2086 # a list of process ids
	set -- $hogs
	rnd 2
	# More than two, and it is mostly RCU in the guest that is waited for.
	if [ $# = 2 ] || { [ $# = 1 ] && [ "$R" = 0 ]; }; then
		note "$# hogs go"
		hogs_stop
	else
		note "a hog comes"
		taskset 2 sh -c 'while :; do :; done' &
		hogs="$hogs $!"
		KTAP_KILL="$KTAP_KILL $!"
	fi
}
hogs_stop() {
	# shellcheck disable=SC2086 # a list of process ids
	[ -z "$hogs" ] || { kill $hogs; wait $hogs; } 2>/dev/null
	hogs=
}

# By its VMM, which takes the devices to rest and the guest's clock with them,
# or behind its back.
stop() { qmp 0 '{"execute":"stop"}' || bad="$bad stop"; }
cont() { qmp 0 '{"execute":"cont"}' || bad="$bad cont"; }
stop_behind() { kill -STOP "$(guest_pid 0)"; }
cont_behind() { kill -CONT "$(guest_pid 0)"; }
do_pause() {
	rnd 500
	ms=$R
	rnd 2
	behind=
	[ "$R" = 0 ] || behind=_behind
	note "the guest is paused for $ms ms${behind:+, behind the back of its VMM}"
	"stop$behind"
	usleep $((ms * 1000))
	"cont$behind"
}

balancing=
balancer_runs() { guest 0 'pidof irqbalance' </dev/null > /dev/null; }
balancer_gone() { ! balancer_runs; }
do_irqbalance() {
	if [ "$balancing" ]; then
		note "irqbalance goes"
		# Fails also if it has ended by itself.
		guest 0 'killall irqbalance' </dev/null && await 300 balancer_gone ||
			bad="$bad irqbalance-end"
		balancing=
	else
		note "irqbalance comes"
		guest 0 'irqbalance --foreground -t 1 >/dev/null 2>&1 </dev/null &' </dev/null
		await 300 balancer_runs || bad="$bad irqbalance"
		balancing=1
	fi
}

do_slice() {
	rnd 2
	slice=$SLICE
	[ "$R" = 0 ] || slice=30000000
	note "slice $slice"
	set_slice "$slice"
}

# disturb SECONDS NAME...: each in turn, every round in another order
disturb() {
	until=$(($(uptime_s) + $1))
	shift
	all="$*"
	while :; do
		# shellcheck disable=SC2086 # words
		set -- $all
		while [ $# -gt 0 ]; do
			[ "$(uptime_s)" -lt "$until" ] || return 0
			rnd $#
			while [ "$R" -gt 0 ]; do
				first=$1
				shift
				set -- "$@" "$first"
				R=$((R - 1))
			done
			"do_$1"
			shift
			rnd 1500
			usleep $((R * 1000))
		done
	done
}

# The guest and its CPU as they were; the modules are left as they are.
calm() {
	hogs_stop
	set_slice "$SLICE"
	[ -z "$offline" ] || do_cpu
	[ $plugged = 0 ] || do_vcpu
	[ -z "$balancing" ] || do_irqbalance
	for irq in $NET_IRQS; do
		guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list" </dev/null
	done
}

# ---- load ----

# Of each disk.
disk_requests() { guest 0 "awk '{ print \$1 + \$5 }' /sys/block/vda/stat /sys/block/sda/stat" </dev/null; }
disks_more() {
	# shellcheck disable=SC2046,SC2086 # numbers
	set -- $disks $(disk_requests)
	[ "$3" -gt $(($1 + 50)) ] && [ "$4" -gt $(($2 + 50)) ]
}
# Both, so that no time-out is of a SYN: those are impatient.
streams_up() {
	[ "$(awk -v port=":$(printf %04X "$PORT")" '$4 == "01" && index($2 $3, port)' \
		/proc/net/tcp | wc -l)" = 2 ]
}
# Of commands that have timed out, and of those that have failed (some do when a
# disk is found).
scsi_troubles() { guest 0 'cd /sys/class/scsi_device && cat */device/iotmo_cnt */device/ioerr_cnt' </dev/null | xargs; }
fio_ended() { guest 0 '[ -s /tmp/fio.status ]' </dev/null; }

# client NAME COMMAND...
client() {
	client=$1
	shift
	"$@" > "$KTAP_TMP/$client" 2>&1 </dev/null &
	echo $! > "$KTAP_TMP/$client.pid"
	KTAP_KILL="$KTAP_KILL $!"
}
# client_end NAME: it has been told to
client_end() {
	wait "$(cat "$KTAP_TMP/$1.pid")"
	ok $? "$phase: $1: each request answered once, each byte arrived"
	sed "s/^/# $1: /" "$KTAP_TMP/$1"
}
guest_client() {
	client "$1" guest 0 "echo \$\$ > /tmp/$1.pid; exec $2"
}

# XPS takes the queue of the CPU that sends, and the host answers through the
# queue that it was sent by: a stream changes its queue with each migration,
# packets that wait in the old one are overtaken, and TCP takes them for lost.
# virtio-net sets it again whenever a CPU comes or goes.
ONE_QUEUE='for queue in /sys/class/net/*/queues/tx-*/xps_cpus; do
		[ ! -e ${queue%/tx-*}/tx-1 ] || echo 0 > $queue || exit 1
	done'
# The lab's tests have queues that drop nothing: lab/vblab/suite.py.
LOSSLESS='grep -q "^pfifo_fast$" /proc/sys/net/core/default_qdisc'
lossless() { (eval "$LOSSLESS") && guest 0 "$LOSSLESS && $ONE_QUEUE" </dev/null; }

# With guests' CPUs as crowded as here stock has many time-outs for nothing.
# So TCP shall wait for longer than that takes, and not probe before: then
# nothing but a time-out can help a stream whose packet or interrupt was lost.
# On a debug kernel, without the modules, a reader has owned its socket for 13 s
# while packets waited: none of them is acknowledged meanwhile.
RTO=$((5 * ${SLOW:-1}))
tcp_patience() {
	ip route change "${IP1%.*}.0/24" dev tap0_1 src "${IP1%.*}.1" rto_min "${RTO}s" &&
		echo 0 > /proc/sys/net/ipv4/tcp_early_retrans &&
		guest 0 "echo 0 > /proc/sys/net/ipv4/tcp_early_retrans
			for link in /sys/class/net/*; do
				link=\${link##*/}
				! ip addr show dev \$link | grep -q ' $IP1/' ||
					exec ip route change ${IP1%.*}.0/24 dev \$link src $IP1 rto_min ${RTO}s
			done
			exit 1" </dev/null
}

# Of TCP, here and in the guest.
TIMEOUTS='awk "/^TcpExt:/ && !n { n = split(\$0, name); next }
	/^TcpExt:/ { split(\$0, value)
		for (i = 1; i <= n; i++) if (name[i] == \"TCPTimeouts\") print value[i] }" /proc/net/netstat'
tcp_timeouts() {
	echo $(($(eval "$TIMEOUTS") + $(guest 0 "$TIMEOUTS" </dev/null)))
}

# load_on NAME SECONDS: fio ends after these, the rest is stopped by load_off
load_on() {
	phase=$1
	disks=$(disk_requests)
	# Verification reads what was written shortly before, at random as well; a
	# job beside it reads only. What takes longer than the block layer's usual
	# time-out, which SCSI has and virtio-blk does not, is an error for fio. Less
	# says nothing: without the modules it has taken 7 s.
	guest 0 "rm -f /tmp/fio.status; {
		fio --direct=1 --ioengine=libaio --thread --bs=4k --iodepth=8 \
			--max_latency=30s --time_based --runtime=$2 --group_reporting \
			--rw=randwrite --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
			--name=blk --filename=/dev/vda --numjobs=2 \
			--size=$((BLK_SIZE / 2))m --offset_increment=$((BLK_SIZE / 2))m \
			--name=scsi --filename=/dev/sda --size=${SCSI_SIZE}m \
			--name=reads --new_group --filename=/dev/vda --size=${BLK_SIZE}m \
			--rw=randread --verify=0 > /tmp/fio 2>&1
		echo \$? > /tmp/fio.status
	} >/dev/null 2>&1 </dev/null &" </dev/null
	await 300 disks_more
	ok $? "$phase: block I/O has begun"
	client send-in stream send "$IP1" $PORT
	guest_client send-out "stream send ${IP1%.*}.1 $PORT"
	await 120 streams_up
	ok $? "$phase: streams have begun"
	# Through the other device; one on each side watches TCP's time-outs there.
	client ask-one stream ask "$IP" $PORT 1
	client ask-many stream ask "$IP" $PORT 16 $RTO
	guest_client guest-ask "stream ask ${IP%.*}.1 $PORT 4 $RTO"
	burn_all
	scsi=$(scsi_troubles)
	timeouts=$(tcp_timeouts)
	since=$(uptime_s)
}

# Sets TIMED_OUT, of TCP, in how many PHASE_SECONDS, and how many of these came
# while requests were ANSWERED.
load_off() {
	await $((SOAK_SECONDS + 600)) fio_ended
	guest 0 'cat /tmp/fio' </dev/null > "$KTAP_TMP/fio"
	equal "$phase: block I/O: fio finds no error" \
		"$(guest 0 'cat /tmp/fio.status' </dev/null) $(grep -c 'err= 0' "$KTAP_TMP/fio")" "0 2"
	equal "$phase: block I/O: nothing is left in flight" \
		"$(guest 0 'cat /sys/block/vda/inflight /sys/block/sda/inflight' </dev/null | xargs)" "0 0 0 0"
	equal "$phase: block I/O: no SCSI command has timed out, or failed" "$(scsi_troubles)" "${scsi:-something to be read}"
	sed -n 's/^ *\(issued rwts\|lat (.*max=\)/# fio: &/p' "$KTAP_TMP/fio"
	awk -F '[=,]' '/issued rwts/ && !n++ { back = $2 > 0 && $3 > 0; next }
		/issued rwts/ { read = $2 > 0 }
		END { exit !(back && read) }' "$KTAP_TMP/fio"
	ok $? "$phase: block I/O: it wrote and read back, and read"
	TIMED_OUT=$(($(tcp_timeouts) - timeouts))
	PHASE_SECONDS=$(($(uptime_s) - since))
	for c in ask-one ask-many send-in; do
		kill "$(cat "$KTAP_TMP/$c.pid")"
	done
	guest 0 'kill $(cat /tmp/guest-ask.pid /tmp/send-out.pid)' </dev/null
	for c in ask-one ask-many guest-ask send-in send-out; do
		client_end "$c"
	done
	guest 0 'killall burn' </dev/null
	ANSWERED=$(sed -n 's/^TCP time-outs while .*: //p' "$KTAP_TMP/ask-many" "$KTAP_TMP/guest-ask" |
		awk '{ n += $1 } END { print NR == 2 ? n : "not said" }')
	echo "# $phase: $TIMED_OUT TCP time-outs in $PHASE_SECONDS s, $ANSWERED while requests were answered"
}

unload vbalance_host
scsi_disk
# shellcheck disable=SC2086 # words
guest_start 0 -smp "$VCPUS,maxcpus=$((VCPUS + 1))" $SCSI
check "the guest is up" guest_wait 0
check "the guest has a SCSI disk" await 60 scsi_found
check "the path loses nothing by itself" lossless
check "TCP is patient" tcp_patience
stream serve $PORT > /dev/null 2>&1 &
KTAP_KILL="$KTAP_KILL $!"
guest 0 "stream serve $PORT >/dev/null 2>&1 </dev/null &" </dev/null
NET_IRQS=$(guest 0 "sed -n 's/^ *\([0-9]*\):.*virtio[0-9]*-\(input\|output\).*/\1/p' /proc/interrupts" </dev/null)
bad=

# ---- control ----
control=$((SOAK_SECONDS / 3 + 1))
load_on "control" $control
disturb $control affinity cpu vcpu hog pause irqbalance slice
calm
load_off
control_timeouts=$TIMED_OUT
control_seconds=$PHASE_SECONDS
equal "control: what was asked of the guest was done" "$bad" ""

# ---- soak ----
load_on "soak" "$SOAK_SECONDS"
do_host
do_guest
disturb "$SOAK_SECONDS" host guest remap affinity cpu vcpu hog pause irqbalance slice
calm
equal "soak: what was asked of modules and guest was done, and nothing was stuck" "$bad" ""
# The last registration: what is counted in it must agree.
loaded vbalance_host || load vbalance_host
! guest_loaded || guest_unload
host_base
diverts() { [ "$(host_count diverted)" -gt $((base_diverted + 50)) ]; }
guest 0 'insmod /lab/vbalance_guest.ko' </dev/null
check "soak: after it all, interrupts are redirected" await 120 diverts
load_off
counters_agree "soak"
# A time-out while requests are answered is of a packet or an interrupt of the
# stream's own: none may be. In every other one all stood still for seconds, as
# it does in stock with CPUs as crowded as here, and that must not be more often.
# A control phase is short, and mostly has none. So its record is added to that
# of stock in earlier runs, on a machine with two CPUs. For a minute's soak (two,
# with what it waits for) three are let pass, for ten minutes' nine.
equal "no TCP time-out while requests were answered" "$ANSWERED" 0
STOCK_TIMEOUTS=2 STOCK_SECONDS=860
still_chance "$TIMED_OUT" "$PHASE_SECONDS" $((control_timeouts + STOCK_TIMEOUTS)) \
	$((control_seconds + STOCK_SECONDS))
ok $? "no TCP time-outs that there are not without the modules"
guest 0 'rmmod vbalance_guest' </dev/null
ok $? "the module unloads"
guest_log_clean 0
# Linux 6.12 may warn that something is still enqueued on a CPU that goes, with
# our module and without it. It then lists the threads: none but the one that
# takes the CPU down.
equal "no thread was left on a CPU that went" "$(guest 0 dmesg </dev/null |
	sed -n 's/.*[[:space:]]pid: [0-9]*, name: //p' | grep -v '^migration/')" ""
guest_stop 0
unload vbalance_host
ktap_end
