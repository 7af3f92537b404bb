# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Functions for scripts in the emulated host (L1): `. /lab/lib.sh`.
#
#   guest N CMD...        run CMD by sh -c in guest N (a program: see agent.c)
#   guest_start N [WORD...]   start guest N, with extra words for its QEMU;
#                         does not wait. VHOST=off: without vhost-net
#   guest_wait N [SECONDS]    until it is up and answers, then pin its threads
#   guest_stop N [moved]  end it at once (as if its power had failed); moved: what it
#                         knows has been migrated
#   guest_running N       does its QEMU exist?
#   guest_pid N           process id of its QEMU
#   vcpu_tids N           thread ids of its vCPUs, in their order
#   guest_pin N           pin its threads as --pin says (guest_wait does)
#   guest_qmp N JSON      one QMP command; prints the reply, fails on errors
#   guest_link N true|false   the links of its virtio-net devices, up or down
#   guest_put N SRC DST, guest_get N SRC DST   copy a file, or a folder's content
#   guest_ip N [DEV]      address of the guest's virtio-net device DEV
#   set_slice NS, get_slice   time slice of this host's scheduler
#   progress MSG          a line on lab/lab's output, with the time
#
# and the variables GUESTS, VCPUS, LAB_OUT and those of --env.

# shellcheck source=/dev/null
. /lab/config
: "${LAB_OUT:=/tmp/out}"
export LAB_OUT

# QEMU (11.1) can deliver an injected interrupt twice: when something else stops the
# emulated CPU before the guest's next exit. What vb_events leaves of that is made
# seldom: the EOI is such an exit, and comes soon, unless KVM saves it.
# No guest needs SVM (lab/README.md, "Faults of the emulator").
GUEST_CPU=host,+kvm-steal-time,-kvm-pv-eoi,-svm

LAB_RUN=/run/lab

progress() {
	echo "progress $*" >&9
}

# ---- addresses; the guest computes the same ones from its number ----

lab_net() { echo "10.9.$(($1 * 8 + ${2:-0}))"; }

lab_mac() { printf '52:54:00:%s:%02x:%02x' "$1" "$2" "$3"; }

guest_ip() { echo "$(lab_net "$1" "${2:-0}").2"; }

lab_devices() { [ "$1" -eq 0 ] || seq 0 $(($1 - 1)); }

# All taps of all guests, with neighbour entries that never need ARP.
lab_make_taps() {
	lab_mq=
	[ "$NET_QUEUES" -le 1 ] || lab_mq=multi_queue
	for lab_g in $(lab_devices "$GUESTS"); do
		for lab_d in $(lab_devices "$NET"); do
			lab_tap=tap${lab_g}_$lab_d
			lab_n=$(lab_net "$lab_g" "$lab_d")
			echo "tuntap add dev $lab_tap mode tap vnet_hdr $lab_mq"
			echo "link set $lab_tap address" \
				"$(lab_mac 0a "$lab_g" "$lab_d") up"
			echo "addr add $lab_n.1/24 dev $lab_tap"
			echo "neigh replace $lab_n.2 dev $lab_tap lladdr" \
				"$(lab_mac 09 "$lab_g" "$lab_d") nud permanent"
		done
	done | ip -batch -
}

# ---- guests ----

guest_pid() {
	cat "$LAB_RUN/pid-$1" 2>/dev/null
}

# Its first thread may have ended before others, which still have its files.
guest_running() {
	lab_pid=$(guest_pid "$1") && [ -n "$lab_pid" ] &&
		lab_state=$(sed -n 's/^State:\t\(.\).*/\1/p; s/^Threads:\t//p' \
			"/proc/$lab_pid/status" 2>/dev/null | tr -d '\n') &&
		case $lab_state in '' | [ZX] | [ZX][01]) false ;; esac
}

guest_start() {
	lab_g=$1
	shift
	if guest_running "$lab_g"; then
		echo "guest_start: guest $lab_g is running" >&2
		return 1
	fi
	for lab_d in $(lab_devices "$NET"); do
		set -- "$@" -netdev "tap,id=net$lab_d,ifname=tap${lab_g}_$lab_d,script=no,downscript=no,vhost=${VHOST:-on},queues=$NET_QUEUES"
		lab_dev="virtio-net-pci,id=nic$lab_d,netdev=net$lab_d,mac=$(lab_mac 09 "$lab_g" "$lab_d"),romfile="
		[ "$NET_QUEUES" -le 1 ] ||
			lab_dev="$lab_dev,mq=on,vectors=$((2 * NET_QUEUES + 2))"
		set -- "$@" -device "$lab_dev"
	done
	for lab_d in $(lab_devices "$BLK"); do
		lab_file=$LAB_RUN/blk-$lab_g-$lab_d.img
		[ -e "$lab_file" ] || truncate -s "${BLK_SIZE}M" "$lab_file"
		set -- "$@" -blockdev "driver=file,node-name=blk$lab_d,filename=$lab_file" \
			-device "virtio-blk-pci,id=disk$lab_d,drive=blk$lab_d,num-queues=$BLK_QUEUES,serial=blk$lab_d"
	done
	rm -f "$LAB_RUN/pid-$lab_g" "$LAB_RUN/qmp-$lab_g" "$LAB_RUN/up-$lab_g"
	# Wherever its starter is pinned, it boots on one CPU. guest_wait spreads
	# it. Its console is a port, not a file: that reaches lab/lab even if
	# this machine crashes.
	case $PIN in
	none) lab_mask=$(printf '%x' $(((1 << CPUS) - 1))) ;;
	*) lab_mask=2 ;;
	esac
	# shellcheck disable=SC2086 # QEMU_L2 is words
	taskset "$lab_mask" \
		qemu-system-x86_64 -name "guest$lab_g,debug-threads=on" \
		-L /usr/share/qemu -L /usr/share/seabios \
		-nodefaults -no-user-config -display none -vga none -no-reboot \
		-machine pc -accel kvm -cpu "$GUEST_CPU" \
		-smp "$VCPUS" -m "$GUEST_MEM" \
		-kernel /lab/l2/vmlinuz -initrd /lab/l2/initrd \
		-append "console=ttyS0 $KERNEL_ARGS $APPEND_L2 lab.guest=$lab_g" \
		-serial "file:/dev/virtio-ports/l2-$lab_g" \
		-qmp "unix:$LAB_RUN/qmp-$lab_g,server=on,wait=off" \
		-device "vhost-vsock-pci,guest-cid=$((3 + lab_g))" \
		$QEMU_L2 "$@" \
		>>"$LAB_RUN/qemu-l2-$lab_g.log" 2>&1 </dev/null 8>&- 9>&- &
	echo $! >"$LAB_RUN/pid-$lab_g"
}

guest_wait() {
	lab_pid=$(guest_pid "$1") || {
		echo "guest_wait: guest $1 was not started" >&2
		return 1
	}
	if ! agent wait $((3 + $1)) "${2:-$((240 * SLOW))}" "$lab_pid"; then
		tail -n 5 "$LAB_RUN/qemu-l2-$1.log" >&2
		return 1
	fi
	: >"$LAB_RUN/up-$1"
	guest_pin "$1"
}

# What the detectors of guest N have seen, and its log with that. They take all
# that it has for minutes, where nobody else does.
lab_ask() {
	[ -e "$LAB_RUN/up-$1" ] || return 0
	timeout $((120 * SLOW)) guest "$1" 'killall -q burn; leaks; detectors; dmesg' </dev/null \
		>>"$LAB_OUT/l2-$1.dmesg" 2>/dev/null ||
		echo "<3>lab: guest $1 was not asked what its detectors saw" >/dev/kmsg
}

# What would be lost with it.
lab_save() {
	[ "$SLOW" = 1 ] || lab_ask "$1"
	[ "$COVERAGE" = 1 ] || return 0
	lab_dir=$LAB_OUT/gcov/l2-$1-$(cut -d ' ' -f 1 /proc/uptime)
	timeout $((60 * SLOW)) guest "$1" 'coverage /tmp/gcov' </dev/null >/dev/null 2>&1 &&
		timeout $((60 * SLOW)) guest "$1" 'tar -C /tmp/gcov -cf - .' </dev/null |
		{ mkdir -p "$lab_dir" && tar -C "$lab_dir" -xf -; } 2>/dev/null
}

guest_stop() {
	guest_running "$1" || return 0
	# moved, crashed: nobody is there to be asked.
	[ -n "${2:-}" ] || lab_save "$1"
	lab_pid=$(guest_pid "$1")
	kill "$lab_pid"
	for lab_try in $(seq 100); do
		guest_running "$1" || break
		[ "$lab_try" -lt 80 ] || kill -9 "$lab_pid"
		usleep 50000
	done
	wait "$lab_pid" 2>/dev/null
	rm -f "$LAB_RUN/pid-$1"
}

vcpu_tids() {
	lab_pid=$(guest_pid "$1") || return 1
	for lab_t in "/proc/$lab_pid/task/"*; do
		read -r lab_cpu lab_i <"$lab_t/comm"
		# "CPU 3/KVM"
		[ "$lab_cpu" != CPU ] || echo "${lab_i%%/*} ${lab_t##*/}"
	done 2>/dev/null | sort -n | cut -d' ' -f2
}

guest_pin() {
	[ "$PIN" != none ] || return 0
	lab_pid=$(guest_pid "$1") || return 1
	# Everything that is not a vCPU; since 6.4 that includes vhost's
	# threads, which were kernel threads of that name before.
	taskset -a -p 1 "$lab_pid" >/dev/null 2>&1
	for lab_t in $(pidof "vhost-$lab_pid"); do
		taskset -p 1 "$lab_t" >/dev/null 2>&1
	done
	lab_i=0
	for lab_t in $(vcpu_tids "$1"); do
		case $PIN in
		stacked) lab_cpu=1 ;;
		spread) lab_cpu=$((1 + lab_i % (CPUS - 1))) ;;
		esac
		taskset -p "$(printf '%x' $((1 << lab_cpu)))" "$lab_t" \
			>/dev/null || return 1
		lab_i=$((lab_i + 1))
	done
}

guest_qmp() { agent qmp "$LAB_RUN/qmp-$1" "$2"; }

guest_link() {	# N true|false
	for lab_d in $(lab_devices "$NET"); do
		lab_reply=$(guest_qmp "$1" "{\"execute\":\"set_link\",\"arguments\":{\"name\":\"nic$lab_d\",\"up\":$2}}") || {
			echo "$lab_reply" >&2
			return 1
		}
	done
}

guest_put() {
	if [ -d "$2" ]; then
		tar -C "$2" -cf - . |
			guest "$1" "mkdir -p '$3' && tar -C '$3' -xf -"
	else
		lab_mode=$(stat -c %a "$2") &&
			guest "$1" "cat >'$3' && chmod $lab_mode '$3'" <"$2"
	fi
}

guest_get() {
	if guest "$1" "test -d '$2'" </dev/null; then
		mkdir -p "$3" &&
			guest "$1" "tar -C '$2' -cf - ." </dev/null |
			tar -C "$3" -xf -
	else
		guest "$1" "cat '$2'" </dev/null >"$3"
	fi
}

# ---- scheduler ----

LAB_SCHED=/sys/kernel/debug/sched

get_slice() {
	cat $LAB_SCHED/base_slice_ns 2>/dev/null ||
		cat $LAB_SCHED/min_granularity_ns
}

set_slice() {
	if [ -e $LAB_SCHED/base_slice_ns ]; then
		echo "$1" >$LAB_SCHED/base_slice_ns
	else
		# Before 6.6: the slice is latency/threads, but no less than
		# the granularity.
		echo "$1" >$LAB_SCHED/min_granularity_ns &&
			echo "$1" >$LAB_SCHED/latency_ns
	fi
}
