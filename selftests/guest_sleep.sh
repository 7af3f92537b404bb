#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest sleeps and wakes up: suspend to RAM (a reset for the host), and
# hibernation, also when the kernel that restores the image had registered an
# area of its own. Runs in the lab's L1; guest 0 needs a block device larger
# than its memory.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
# Drivers delete them before they sleep.
# shellcheck disable=SC2034 # for balanced
QUEUES_GO=1

vm() { stat_of "$(vm_dir 0)/registration" "$1"; }
registrations() { g 0 gstat registrations; }
suspended() { guest_qmp 0 '{"execute":"query-status"}' | grep -q '"suspended"'; }
running() { guest_qmp 0 '{"execute":"query-status"}' | grep -q '"running": true'; }
stopped() { ! guest_running 0; }
# in_use NAME: packets, with interrupts that are redirected, until there are
# enough of these
in_use() {
	was=$(g 0 gstat host_diverted)
	guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
	traffic_start "$(guest_ip 0)"
	check "$1: interrupts are redirected" await 120 redirected
	guest 0 'killall burn' </dev/null
	traffic_stop "$1: every packet is answered once"
}
redirected() {
	traffic_more 5
	[ "$(g 0 gstat host_diverted)" -gt $((was + 10)) ]
}

# rest STATE: the guest goes to sleep a second later (not waited for). Awake again
# it takes its vsock device anew: after two sleeps 6.1 can run out of buffers for
# what we send to it (lab/README.md). Who asked for this is killed as the
# connection breaks.
rest() {
	guest 0 "rm -f /tmp/rested; setsid sh -c '
		sleep 1; echo $1 > /sys/power/state
		cd /sys/bus/virtio/drivers/vmw_vsock_virtio_transport
		for d in virtio*; do echo \$d > unbind; echo \$d > bind; done
		echo $1 > /tmp/rested' >/dev/null 2>&1 </dev/null &" </dev/null
}
# A call that is under way when one kernel replaces the other never ends.
rested() { [ "$(timeout $((10 * ${SLOW:-1})) guest 0 'cat /tmp/rested' </dev/null 2>/dev/null)" = "$1" ]; }

guest 0 'rmmod vbalance_guest 2>/dev/null; insmod /lab/vbalance_guest.ko' </dev/null
check "registered" await 60 source_is 0 page
in_use "before"

# ---- suspend to RAM ----
before=$(registrations)
rest mem
check "the guest is suspended" await 60 suspended
guest_qmp 0 '{"execute":"system_wakeup"}' >/dev/null
check "it is woken up" await 60 running
check "it can be asked again" await 120 rested mem
check "the host has taken it for a reset" await 60 [ "$(vm reset)" = 1 ]
back() { [ "$(registrations)" -gt "$before" ] && source_is 0 page; }
check "it registers again" await 60 back
in_use "suspended and woken up"
no_base
counters_agree "suspended and woken up"

# ---- hibernation ----
guest 0 'mkswap /dev/vda && swapon /dev/vda; echo shutdown > /sys/power/disk' </dev/null >/dev/null
# KVM's clock will begin anew. It comes to this later than the look below is
# waited for.
up() { [ "$(g 0 'cut -d . -f 1 /proc/uptime')" -ge $((70 + 30 * ${SLOW:-1})) ]; }
check "the guest has been up for a while" await 120 up
before=$(registrations)
rest disk
check "the guest hibernates" await 120 stopped
check "nothing of it is left in the host" await 60 all_unpinned
guest_start 0
guest_wait 0
check "the kernel that restores has no image yet" guest 0 '[ ! -e /tmp/rested ]' </dev/null
guest 0 'insmod /lab/vbalance_guest.ko' </dev/null
check "and registers an area of its own" await 60 source_is 0 page
device=$(guest 0 'cat /sys/block/vda/dev' </dev/null)
guest 0 "sleep 1; echo $device > /sys/power/resume" </dev/null >/dev/null 2>&1 &
check "the image is restored" await 120 rested disk
equal "the restoring kernel has said good-bye" "$(vm unregistered)" 1
looks=$(g 0 gstat looks)
looks_on() { [ "$(g 0 gstat looks)" -gt "$looks" ]; }
check "its interrupts are looked at again" await 20 looks_on
check "the image's kernel registers again" await 60 back
# Linux's run queues have no time until then, so what shares a vCPU with a busy
# process gets no turn, RCU's thread as well.
caught_up() {
	guest 0 'echo "<7>what is the time?" > /dev/kmsg; dmesg' </dev/null |
		awk -F '[][]' '$2 + 0 >= max { max = $2 + 0 } { last = $2 + 0 }
			END { exit !NR || last < max }'
}
check "its clock comes to what it was" await 120 caught_up
in_use "hibernated"
# Since its module was loaded; this host has seen only the last of it.
balanced "hibernated"
check "guest module unloads" guest 0 'rmmod vbalance_guest' </dev/null
check "nothing stays pinned" await 60 all_unpinned
guest_log_clean 0
unload vbalance_host
ktap_end
