#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Without a host module: vCPUs that run serve the queues of those that have lost
# their CPU, at interrupts, at ticks and by a timer that is armed only then.
# Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/redirectlib.sh
. "$KTAP_DIR/redirectlib.sh"
unload vbalance_host

over() { [ "$(gstat "$1")" -gt "$2" ]; }
more_of() {	# NAME: with traffic it grows
	before=$(gstat "$1")
	await 120 goes_on "$1"
}
goes_on() { more 3 && over "$1" "$before"; }
gstats() { g 0 "for n in $1; do gstat \$n; done" | xargs; }
none_of() {	# NAMES TEXT: with traffic they do not
	before=$(gstats "$1")
	more 20
	equal "$2" "$(gstats "$1")" "$before"
}
# It may take a moment until the queues count as idle.
quiet() {
	before=$(gstats "timer_armed timer_fired timer_borrowed")
	sleep 3
	[ "$(gstats "timer_armed timer_fired timer_borrowed")" = "$before" ]
}

# ---- what a guest without a host module gets by itself ----
PARAMS=
begin "guest alone"
check "steal time tells who runs" source_is 0 steal
check "network queues of vCPUs that are away are served" await 120 every_device borrowed name 'virtio[0-9]*-input'
check "block queues too" await 120 every_device borrowed name 'virtio[0-9]*-req'
check "the timer is armed" more_of timer_armed
check "and fires" more_of timer_fired
check "its time is counted" over timer_ns 0
check "queues are served in its interrupts" more_of timer_borrowed
# A queue whose vCPUs are all offline has been shut down with them.
for cpu in 2 3; do
	check "vCPU $cpu goes offline" guest 0 "echo 0 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
done
check "the others go on" more_of borrowed
for cpu in 2 3; do
	check "vCPU $cpu comes back" guest 0 "echo 1 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
done
# Where a tick comes in the same interrupt it would have served them as well.
# Not so here: what was served since the last interrupt's end, on that CPU, by
# the time that this timer expires, and before anything else does.
served_by_timer() {
	g 0 'trace_on irq/irq_handler_exit irq_vectors/local_timer_exit timer/hrtimer_expire_entry vbalance_guest/vb_guest_serve' || return
	more 3
	g 0 'trace_stop /tmp/trace; cat /tmp/trace' > "$KTAP_TMP/trace"
	awk 'match($0, /\[[0-9]+\]/) {
			cpu = substr($0, RSTART, RLENGTH)
			if (/: vb_guest_serve: .* kind=borrow work=1/) served[cpu]++
			else if (/: hrtimer_expire_entry: .* function=vbg_borrow_fn/) ours[cpu] = 1
			else if (/: hrtimer_expire_entry: /) others[cpu] = 1
			else if (/: (local_timer|irq_handler)_exit: /) {
				if (/: local_timer/ && served[cpu] && ours[cpu] && !others[cpu]) n++
				served[cpu] = ours[cpu] = others[cpu] = 0
			}
		}
		END { print "# interrupts of the timer alone in which something was served: " n + 0; exit !n }' "$KTAP_TMP/trace"
}
parameter borrow_cpu 100
check "also where nothing else expires with it" await 120 served_by_timer
# borrow_cpu percent of each vCPU's time: it comes less often where that is
# little. What the emulator itself is kept waiting counts as well: twice that.
timer_now() {
	g 0 'echo $(gstat timer_fired) $(gstat timer_ns) $(awk "{ print int(\$1 * 1000) }" /proc/uptime)'
}
spent() {	# PERCENT: how often it fires, us in it, ms
	parameter borrow_cpu "$1"
	more 5
	{ timer_now; more 40; timer_now; } |
		awk 'NR == 2 { print $1 - n, int(($2 - ns) / 1000), $3 - ms }
			{ n = $1; ns = $2; ms = $3 }'
}
spent 1 > "$KTAP_TMP/spent"
spent 100 >> "$KTAP_TMP/spent"
parameter borrow_cpu 2
sed 's/^/# timer, with 1 % and 100 %: times, us, ms: /' "$KTAP_TMP/spent"
check "borrow_cpu=1: it takes no more than 2 % of the vCPUs" \
	awk 'NR == 1 { exit !($1 > 0 && $2 / 1000 <= $3 * 4 * 0.02) } END { if (!NR) exit 1 }' "$KTAP_TMP/spent"
check "borrow_cpu=1: it fires at most half as often as with 100" \
	awk 'NR == 2 { exit 2 * rate > $1 / $3 } { rate = $1 / $3 } END { if (NR < 2) exit 1 }' "$KTAP_TMP/spent"

# As often as it is put off for that is counted.
parameter borrow_us 1
parameter borrow_cpu 1
check "borrow_us=1 borrow_cpu=1: it is put off" more_of timer_limited
# An interrupt counts as 8 ms at most: far less than that.
parameter borrow_us 100000
parameter borrow_cpu 100
more 3
limited=$(gstat timer_limited)
check "borrow_us=100000 borrow_cpu=100: it is armed" more_of timer_armed
more 20
equal "borrow_us=100000 borrow_cpu=100: and never put off" "$(gstat timer_limited)" "$limited"
parameter borrow_cpu 2

parameter borrow_us 0
more 3
none_of "timer_armed timer_fired timer_borrowed" "borrow_us=0: the timer is not armed, and serves nothing"
check "borrow_us=0: queues are served at interrupts and ticks" more_of borrowed
parameter borrow_us 500
check "borrow_us=500: it is armed again" more_of timer_armed
parameter borrow_cpu 0
more 3
none_of "timer_armed timer_fired timer_borrowed" "borrow_cpu=0: the timer is not armed, and serves nothing"
parameter borrow_cpu 2

parameter remap none
more 3
none_of borrowed "remap=none: nothing is borrowed"
none_of timer_armed "remap=none: the timer is not armed"
parameter remap borrow
check "remap=borrow: it goes on" more_of borrowed

at_rest_alone
check "without traffic the timer is not armed and serves nothing, with all vCPUs busy" await 60 quiet

# Hardly ever away is a vCPU that comes before all others here. It has the
# queues that are used, and the others have other things to do.
name="the owner runs"
guest 0 'killall burn' </dev/null
g 0 'for irq in $(cols $GUEST/irqs irq name | sed -n "s/ virtio[0-9]*-\(input\|output\).*//p"); do
	echo 0 > /proc/irq/$irq/smp_affinity_list; done'
renice -n -10 -p "$(vcpu_tids 0 | head -n 1)"
ok $? "$name: vCPU 0 comes before the others"
guest 0 'for cpu in 1 2 3; do
	taskset -c $cpu sh -c "while :; do :; done" >/dev/null 2>&1 </dev/null &
	echo $!; done > /tmp/loops' </dev/null
traffic_start "$IP"
traffic_start "$IP1"
packets() { traffic_select "$IP" && traffic_more "$1" && traffic_select "$IP1" && traffic_more "$1"; }
# Timers, and interrupts of the others.
counts() {
	g 0 'echo $(gstat timer_armed) $(cols $GUEST/vcpus cpu hard_n |
		awk "\$1 { n += \$2 } END { print n }")'
}
# An interrupt goes where it should from the next one on.
packets 20
counts > "$KTAP_TMP/counts"
packets 100
counts >> "$KTAP_TMP/counts"
sed 's/^/# armed, interrupts of the others: /' "$KTAP_TMP/counts"
check "$name: the others have interrupts in which they look" \
	awk 'NR == 2 { exit $2 - n < 100 } { n = $2 } END { if (NR < 2) exit 1 }' "$KTAP_TMP/counts"
# It is away now and then, and for the two commands: one in 60 of these arms a
# timer, in 16 on a debug kernel. If the owner did not matter one in three would,
# there in six.
check "$name: few of them arm a timer" \
	awk 'NR == 2 { exit 8 * ($1 - n) >= $2 - m } { n = $1; m = $2 } END { if (NR < 2) exit 1 }' "$KTAP_TMP/counts"
guest 0 'kill $(cat /tmp/loops)' </dev/null
renice 0 -p "$(vcpu_tids 0 | head -n 1)"
at_rest_alone
equal "the host was not needed" "$(gstat page_status)" -1000
end

# ---- the same source as with a host module, and that goes ----
load vbalance_host
PARAMS="source=page remap=borrow"
begin "source=page"
check "the host's page tells who runs" await 60 source_is 0 page
check "queues are borrowed" more_of borrowed
check "the timer is armed" more_of timer_armed
unload vbalance_host
check "nobody tells any more" await 60 source_is 0 none
check "and all goes on" more 8
none_of borrowed "nothing is borrowed then"
none_of timer_armed "nor is the timer armed"
at_rest_alone
end
ktap_end
