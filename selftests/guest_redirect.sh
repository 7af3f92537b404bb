#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Interrupts of preempted vCPUs are served by running ones, and none is lost:
# several devices and queues, changing affinity, CPUs, parameters and modules.
# Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/redirectlib.sh
. "$KTAP_DIR/redirectlib.sh"

has_scsi() { g 0 'cols $GUEST/irqs kind' | grep -q -x scsi; }

# ---- two network devices with two queue pairs each, a disk with two queues ----
PARAMS=
SCSI=$LAB_RUN/scsi.img
truncate -s 16M "$SCSI"
begin "split rings" -device virtio-scsi-pci,id=scsi,num_queues=2 \
	-blockdev "driver=file,node-name=sd0,filename=$SCSI" -device scsi-hd,drive=sd0
check "the guest has a SCSI disk" guest 0 'modprobe -a virtio_scsi sd_mod && until [ -b /dev/sda ]; do sleep 0.1; done' </dev/null
check "its queues are found" await 60 has_scsi
# Those that are not as they should be, or "none" if there are none at all.
unlike() {
	g 0 'cols $GUEST/irqs name redirect' |
		awk -v tx="$1" '{ is_tx = $1 ~ /-output\./; n[is_tx]++ }
			$2 != (is_tx ? tx : "key")
			END { if (!n[0] || !n[1]) print "none" }'
}
alike() { [ -z "$(unlike "$1")" ]; }
redirect_tx() {
	guest 0 "echo $1 > /sys/module/vbalance_guest/parameters/redirect_tx" </dev/null
}
equal "every interrupt of a queue has a key" "$(unlike key)" ""
equal "managed ones too" "$(of 'virtio[0-9]*-req' affinity | sort -u)" managed
check "network interrupts are redirected" await 120 some_served 'virtio[0-9]*-input'
check "block interrupts are redirected" await 120 some_served 'virtio[0-9]*-req'
scsi_served() {
	guest 0 'dd if=/tmp/pattern of=/dev/sda bs=16k oflag=direct &&
		dd if=/dev/sda bs=16k count=16 iflag=direct | cmp - /tmp/pattern' </dev/null 2>/dev/null &&
		g 0 'cols $GUEST/irqs kind served stolen' |
			awk '$1 == "scsi" && $2 + $3 > 0 { n++ } END { exit !n }'
}
check "SCSI interrupts are redirected, and what is written is read" await 120 scsi_served
check "those of transmit queues too" await 120 some_served 'virtio[0-9]*-output'
redirect_tx 0
check "redirect_tx=0: those of transmit queues have none" await 20 alike transmit
before=$(of 'virtio[0-9]*-output' borrowed | awk '{ s += $1 } END { print s }')
tx_borrowed() {
	more 5
	[ "$(of 'virtio[0-9]*-output' borrowed | awk '{ s += $1 } END { print s }')" -gt "$before" ]
}
check "and are served by others all the same" await 120 tx_borrowed
redirect_tx 1
check "redirect_tx=1: all have one again" await 20 alike key
# Where: the kernel's own table has counts on CPUs that do not own them.
equal "they are counted where they were served" \
	"$(g 0 'cols $GUEST/irqs irq served stolen cpu | while read irq own stolen cpu; do
		[ $((own + stolen)) -gt 0 ] || continue
		sed -n "s/^ *$irq: *//p" /proc/interrupts | awk -v c="$cpu" -v n="$(cpus)" -v irq="$irq" \
			"{ for (i = 1; i <= n; i++) if (i != c + 1) s += \$i } END { if (!s) print irq }"
	done')" ""
[ "$(gstat redirect_irqs)" -gt 0 ]
ok $? "redirection vectors are taken"

# Affinity changes from outside while interrupts come.
irq=$(g 0 'cols $GUEST/irqs irq name handled | grep input' | sort -k 3 -n | tail -n 1 | cut -d ' ' -f 1)
for cpu in 0 1 2 3; do
	guest 0 "echo $cpu > /proc/irq/$irq/smp_affinity_list" </dev/null
	more 3
	ok $? "affinity of a queue's interrupt set to CPU $cpu"
done
guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list" </dev/null

# CPUs of the guest go and come.
for cpu in 1 3; do
	guest 0 "echo 0 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
	ok $? "CPU $cpu goes offline"
	check "and all goes on" more 8
	guest 0 "echo 1 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
	check "CPU $cpu comes back" more 8
done

# The parameter, live.
remap none
sleep 2
before=$(host_count diverted)
check "remap=none: all goes on" more 8
equal "and the host redirects nothing" "$(host_count diverted)" "$before"
remap redirect
grows() { more 5; [ "$(host_count diverted)" -gt "$before" ]; }
check "remap=redirect: it does again" await 120 grows

# The machine is paused and goes on.
kill -STOP "$(guest_pid 0)"
sleep 1
kill -CONT "$(guest_pid 0)"
check "and all goes on" more 8
at_rest

# ---- the host module goes in the middle, and comes ----
traffic_start "$IP"
traffic_start "$IP1"
for _ in 1 ${LONG:+2}; do
	check "the host module goes" unload vbalance_host
	check "and all goes on" more 8
	load vbalance_host
	check "it comes back" await 60 source_is 0 page
	before=0
	check "and redirects again" await 120 grows
done
traffic_select "$IP"
traffic_stop "host module: every packet through the first device is answered once"
traffic_select "$IP1"
traffic_stop "host module: every packet through the second device is answered once"

# ---- the guest module goes in the middle, and comes ----
traffic_start "$IP"
traffic_start "$IP1"
for _ in 1 ${LONG:+2}; do
	guest_module 0 unload
	ok $? "the guest module goes"
	check "and all goes on" more 8
	host_base
	guest_module 0 load
	check "it comes back" more 8
done
name="guest module"
before=0
check "and is redirected for again" await 120 grows
at_rest
end
unload vbalance_host
ktap_end
