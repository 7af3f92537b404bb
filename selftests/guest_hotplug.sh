#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vCPUs and devices come and go under a registered guest whose interrupts are
# being moved. Runs in the lab's L1 and starts guest 0 itself: 4 vCPUs of 6.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest_stop 0
guest_start 0 -smp 4,maxcpus=6
guest_wait 0
IP=$(guest_ip 0)
CPUS=/sys/devices/system/cpu

gstat() { g 0 gstat "$1"; }
guest_cpus() { g 0 'cols $GUEST/vcpus cpu' | tr '\n' ' '; }
lists() { [ "$(guest_cpus)" = "$1 " ]; }
host_slots() { cols "$(vm_dir 0)/vcpus" slot | sort -n | tr '\n' ' '; }
# Column NAME of the interrupt of DEVICE's input queue.
column() { g 0 "cols \$GUEST/irqs name $2" | sed -n "s/^$1-input[^ ]* //p"; }

guest_module 0 load policy=paper remap=affinity
check "the guest has registered" await 60 source_is 0 page
guest 0 'burn 6 >/dev/null 2>&1 </dev/null &'
traffic_start "$IP"

# ---- vCPUs ----
# The host numbers them as they come, a guest (since 6.9) as its firmware has
# listed them.
for i in 5 4; do
	check "vCPU $i is plugged" vcpu_plug 0 $i
done
for i in 4 5; do
	check "the guest has CPU $i" await 60 guest 0 "[ -e $CPUS/cpu$i/online ] && echo 1 > $CPUS/cpu$i/online"
done
guest_pin 0
check "the guest module lists them" await 60 lists "0 1 2 3 4 5"
equal "so does the host" "$(host_slots)" "0 1 2 3 4 5 "
equal "in the area that was there" "$(gstat source) $(gstat registrations)" "page 1"
# "APIC-id slot" of each, as either sees it.
guest_apic_slots() {
	g 0 'awk "/^processor/ { cpu = \$3 } /^apicid/ { print cpu, \$3 }" /proc/cpuinfo
		cols $GUEST/vcpus cpu slot' |
		awk '$1 in apic { print apic[$1], $2; next } { apic[$1] = $2 }' | sort -n
}
same_slots() { [ "$(guest_apic_slots)" = "$(cols "$(vm_dir 0)/vcpus" apic_id slot | sort -n)" ]; }
check "each knows its slot" await 60 same_slots
guest_apic_slots | sed 's/^/# APIC id, slot: /'
equal "with a slot each" "$(stat_of "$(vm_dir 0)/registration" slot_beyond_area)" 0
on_new() {
	guest 0 'awk "/virtio[0-9]+-(input|output)/ && \$6 + \$7 > 0 { f = 1 } END { exit !f }" /proc/interrupts'
}
check "interrupts are counted on a vCPU that was plugged" await 120 on_new

# What the guest calls a vCPU: it is online.
cpu_of() {
	guest 0 'awk "/^processor/ { cpu = \$3 } /^apicid/ && \$3 == '"$1"' { print cpu }" /proc/cpuinfo'
}
# A CPU that goes offline takes no interrupt with it.
numbers="$(cpu_of 4) $(cpu_of 5)"
for i in $numbers; do
	check "CPU $i goes offline" guest 0 "echo 0 > $CPUS/cpu$i/online"
done
check "and from the table" await 60 lists "0 1 2 3"
for i in 4 5; do
	check "vCPU $i is unplugged" vcpu_unplug 0 $i
	check "and gone" await 60 guest 0 "[ ! -e $CPUS/cpu${numbers%% *} ]"
	numbers=${numbers#* }
done
check "CPU 1 goes offline" guest 0 "echo 0 > $CPUS/cpu1/online"
check "and comes back" guest 0 "echo 1 > $CPUS/cpu1/online"
check "and is looked at again" await 60 lists "0 1 2 3"
equal "the page is still the source" "$(gstat source) $(gstat registrations)" "page 1"

# ---- devices ----
ip tuntap add dev hot0 mode tap vnet_hdr
ip addr add 10.99.0.1/24 dev hot0
ip link set hot0 up
for round in 1 2; do
	check "round $round: a back end is plugged" qmp 0 '{"execute":"netdev_add","arguments":{"type":"tap","id":"hotnet","ifname":"hot0","script":"no","downscript":"no","vhost":true}}'
	check "round $round: a network device is plugged" qmp 0 '{"execute":"device_add","arguments":{"driver":"virtio-net-pci","id":"hotnic","netdev":"hotnet","mac":"52:54:00:99:00:01","romfile":""}}'
	new=
	find_new() {
		new=$(guest 0 'grep -l 52:54:00:99:00:01 /sys/class/net/*/address')
		new=${new%/address}
		[ -n "$new" ] && virtio=$(basename "$(guest 0 "readlink $new/device")")
	}
	check "round $round: the guest has it" await 60 find_new
	found() { [ "$(column "$virtio" vector)" = queue ]; }
	check "round $round: its interrupts are found" await 60 found
	guest 0 "ip addr add 10.99.0.2/24 dev ${new##*/}; ip link set ${new##*/} up"
	traffic_start 10.99.0.2
	check "round $round: it works" traffic_more 100
	moved() { [ "$(column "$virtio" moves)" -gt 0 ] 2>/dev/null; }
	check "round $round: its interrupts are moved" await 60 moved
	# As while it is bound or unbound: it cannot be asked for its interrupts.
	known() { g 0 'cols $GUEST/irqs irq name' | grep " $virtio-"; }
	known > "$KTAP_TMP/known"
	check "round $round: somebody holds its lock" guest 0 "insmod /lab/vb_lock.ko device=\$(basename \$(dirname \$(readlink -f $new/device)))"
	check "round $round: interrupts are looked for meanwhile" rescanned
	equal "round $round: those that it had are still known" "$(known)" "$(cat "$KTAP_TMP/known")"
	traffic_more 20
	ok $? "round $round: and it works"
	check "round $round: its lock is free again" guest 0 'rmmod vb_lock'
	traffic_stop "round $round: and loses nothing"
	traffic_select "$IP"
	check "round $round: it is unplugged" qmp 0 '{"execute":"device_del","arguments":{"id":"hotnic"}}'
	forgotten() { guest 0 "! grep -q ' $virtio-' $GUEST/irqs"; }
	check "round $round: its interrupts are forgotten" await 60 forgotten
	# The guest lets go first; QEMU frees the name when it ejects the device.
	gone() { ! has_device 0 hotnic; }
	check "round $round: and the device is gone" await 60 gone
	check "round $round: and its back end" qmp 0 '{"execute":"netdev_del","arguments":{"id":"hotnet"}}'
done
ip link del hot0
traffic_stop "every packet during all that is answered once"
not_redirected "remap=affinity"

# ---- vCPUs, with interrupts being redirected ----
redirected() {
	guest_module 0 unload
	guest_module 0 load remap=redirect
	check "redirect: the guest has registered" await 60 source_is 0 page
	traffic_start "$IP"
	# Of queues: counted on a vCPU that does not own them, so far.
	taken() {	# VCPU
		g 0 'cols $GUEST/irqs irq cpu | awk -v cpu='"$1"' "
			NR == FNR { if (\$2 != cpu) others[\$1 \":\"]; next }
			\$1 in others { n += \$(cpu + 2) }
			END { print n + 0 }" - /proc/interrupts'
	}
	taken_by() {	# VCPU TAKEN
		traffic_more 5
		[ "$(taken "$1")" -gt "$2" ]
	}
	served() { [ $(($(gstat served) + $(gstat stolen))) -gt "$1" ]; }
	for i in 4 5; do
		check "redirect: vCPU $i is plugged" vcpu_plug 0 $i
	done
	for i in 4 5; do
		check "redirect: the guest has CPU $i" await 60 guest 0 "[ -e $CPUS/cpu$i/online ] && echo 1 > $CPUS/cpu$i/online"
	done
	guest_pin 0
	guest 0 'killall burn; burn 6 >/dev/null 2>&1 </dev/null &'
	for i in 4 5; do
		# The moves above may have left some, too.
		check "redirect: vCPU $i takes interrupts of others" await 120 taken_by $i "$(taken $i)"
	done
	for i in 4 5; do
		number=$(cpu_of $i)
		check "redirect: CPU $number goes offline" guest 0 "echo 0 > $CPUS/cpu$number/online"
		check "redirect: vCPU $i is unplugged" vcpu_unplug 0 $i
		check "redirect: and gone" await 60 guest 0 "[ ! -e $CPUS/cpu$number ]"
	done
	more_served() { traffic_more 5; served "$before"; }
	before=$(($(gstat served) + $(gstat stolen)))
	check "redirect: the others go on" await 120 more_served
	traffic_stop "redirect: every packet is answered once"
	no_base
	counters_agree "redirect"
}
if [ "${LONG-}" ]; then
	redirected
else
	skip "vCPUs that come and go while interrupts are redirected" "takes long: make test-long"
fi

guest 0 'killall burn 2>/dev/null; true'
check "the guest module unloads" guest_module 0 unload
guest_log_clean 0
guest_stop 0
check "nothing is left of the VM" await 60 nothing_left
unload vbalance_host
ktap_end
