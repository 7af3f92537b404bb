# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Functions for the machine that they run on, without output of their own:
# sourced by ktap.sh, and by what the lab's L1 tests send into a guest.

GUEST=/sys/kernel/debug/vbalance/guest
GUEST_PARAMETERS=/sys/module/vbalance_guest/parameters

# stat_of FILE NAME: value of a "name value" line
stat_of() {
	sed -n "s/^$2 //p" "$1" 2>/dev/null
}

gstat() {	# NAME
	stat_of $GUEST/stats "$1"
}

decided() {	# REASON
	stat_of $GUEST/decisions "$1"
}

# What the host has redirected since the module was loaded, and what of it was
# stuck or missing: four numbers.
redirections() {
	for redirections_n in host_diverted host_posted stuck missing; do
		gstat $redirections_n
	done | xargs
}

# How many packets this machine's devices, softirqs, ICMP and sockets have
# counted: where one was lost shows by comparing two machines.
net_counters() {
	sed '1,2d' /proc/net/dev
	awk '/^Icmp:/ {
		if (!head) {
			head = split($0, name)
			next
		}
		printf "icmp"
		for (i = 2; i <= NF; i++) if ($i) printf " %s %s", name[i], $i
		print ""
	}' /proc/net/snmp
	echo "softirqs (packets, dropped, squeezed) $(cut -d ' ' -f 1-3 /proc/net/softnet_stat | tr '\n' ';')"
	cat /proc/net/raw /proc/net/icmp 2>/dev/null |
		awk '$1 != "sl" { n += $NF } END { print "dropped by sockets " n + 0 }'
}

# cols FILE NAME...: these columns of each row of a table
cols() {
	cols_file=$1
	shift
	awk -v names="$*" '
		NR == 2 {
			for (i = 1; i <= NF; i++) at[$i] = i
			n = split(names, want, " ")
			for (i = 1; i <= n; i++) if (!(want[i] in at)) exit 1
		}
		NR > 2 {
			line = $at[want[1]]
			for (i = 2; i <= n; i++) line = line " " $at[want[i]]
			print line
		}' "$cols_file"
}

# cell FILE KEY NAME: column NAME of the row whose first column is KEY
cell() {
	cols "$1" "$(sed -n '2s/ .*//p' "$1")" "$3" | sed -n "s/^$2 //p"
}

# Interrupts that the module may move.
movable() {
	cols $GUEST/irqs irq affinity | sed -n 's/ free$//p'
}

# The one by which most packets came in.
busiest() {
	cols $GUEST/irqs handled irq name affinity | grep 'input.* free$' |
		sort -n | tail -n 1 | cut -d ' ' -f 2
}

# where IRQ...: "irq CPU" of each, as the kernel sees it
where() {
	for irq; do
		echo "$irq $(cat /proc/irq/"$irq"/effective_affinity_list)"
	done
}

# A changed affinity takes effect in the next interrupt, so one that nothing
# comes through can be elsewhere than its mask says (virtio-net sets masks when
# a link goes up). With a mask of all CPUs it may stay where it is.
settle() {
	for settle_irq in $(sed -n 's/^ *\([0-9]*\):.*virtio.*/\1/p' /proc/interrupts); do
		# Managed ones refuse.
		echo "0-$(($(cpus) - 1))" 2>/dev/null > /proc/irq/"$settle_irq"/smp_affinity_list
	done
}

cpus() {
	grep -c ^processor /proc/cpuinfo
}

# One busy loop for each CPU, which leaves what the test itself needs to it.
busy_start() {
	BUSY=
	for busy_cpu in $(sed -n 's/^processor[^0-9]*//p' /proc/cpuinfo); do
		nice -n 19 taskset -c "$busy_cpu" sh -c 'while :; do :; done' &
		BUSY="$BUSY $!"
	done
}

busy_stop() {
	# shellcheck disable=SC2086 # a list of process ids
	[ -z "${BUSY-}" ] || { kill $BUSY; wait $BUSY; } 2>/dev/null
	BUSY=
}

# Loading and unloading a module waits for all CPUs, which takes seconds when
# busy ones share one: they pause meanwhile. Exit status of COMMAND.
calmly() {	# COMMAND...
	# shellcheck disable=SC2086 # a list of process ids
	[ -z "${BUSY-}" ] || kill -STOP $BUSY
	"$@"
	calmly_status=$?
	# shellcheck disable=SC2086 # a list of process ids
	[ -z "${BUSY-}" ] || kill -CONT $BUSY
	return $calmly_status
}

steal_ticks() {
	awk '$1 == "cpu" { print $9 }' /proc/stat
}

# Does the host take busy CPUs away? Call it while all CPUs are busy.
overcommitted() {
	steal_before=$(steal_ticks)
	sleep 2
	[ "$(steal_ticks)" -gt $((steal_before + 10)) ]
}

# ---- trace events, in a buffer of our own ----

TRACING=/sys/kernel/tracing
[ -e $TRACING/instances ] || TRACING=/sys/kernel/debug/tracing
TRACE=$TRACING/instances/vbalance_test

# trace_on SYSTEM[/EVENT]...: from now on, into an empty buffer. TRACE_KB: of
# that size for each CPU.
trace_on() {
	trace_off
	mkdir -p $TRACE
	# Comparable between CPUs, by default.
	echo "${TRACE_CLOCK:-global}" > $TRACE/trace_clock
	[ -z "${TRACE_KB-}" ] || echo "$TRACE_KB" > $TRACE/buffer_size_kb
	# All from one moment on: enabling one takes a while.
	echo 0 > $TRACE/tracing_on
	for event; do
		echo 1 > "$TRACE/events/$event/enable" || return 1
	done
	echo 1 > $TRACE/tracing_on
}

# trace_stop FILE: the end of recording; what was recorded
trace_stop() {
	# A reader never catches up with a buffer that is being filled.
	echo 0 > $TRACE/tracing_on
	cat $TRACE/trace > "$1"
	trace_off
}

# events NAME [FILE]: what was recorded of it, without the columns before its
# name; without FILE what has been recorded so far
events() {
	sed -n "s/.*: $1: //p" "${2:-$TRACE/trace}"
}

trace_off() {
	[ ! -e $TRACE ] || rmdir $TRACE
}
