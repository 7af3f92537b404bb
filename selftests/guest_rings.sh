#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Redirection with every kind of ring, vector and destination that virtio and
# x86 have, or their being left alone. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/redirectlib.sh
. "$KTAP_DIR/redirectlib.sh"

PARAMS=
# What the column `redirect` says, of all of them.
states() { g 0 'cols $GUEST/irqs redirect' | sort -u; }
states_are() { [ "$(states)" = "$1" ]; }
# Is this feature on in the network and block devices? One word if they agree.
feature() {
	guest 0 "cut -c $(($1 + 1)) /sys/bus/virtio/drivers/virtio_net/virtio*/features /sys/bus/virtio/drivers/virtio_blk/virtio*/features" \
		</dev/null | sort -u
}
both_redirected() {
	check "$name: network interrupts are redirected" await 120 every_device redirected name 'virtio[0-9]*-input'
	check "$name: block interrupts are redirected" await 120 every_device redirected name 'virtio[0-9]*-req'
}
# Nobody is told of them: looked after by whoever runs.
both_borrowed() {
	check "$name: network interrupts are borrowed" await 120 every_device borrowed name 'virtio[0-9]*-input'
	check "$name: block interrupts are borrowed" await 120 every_device borrowed name 'virtio[0-9]*-req'
	check "$name: a timer bounds their wait" await 120 armed
}
armed() { more 3; [ "$(gstat timer_armed)" -gt 0 ]; }
# What a guest without a host module would get of these rings.
or_borrowed() {
	check "$name: or borrowed" parameter remap borrow
	count_from_here
	check "$name: network interrupts are borrowed" await 120 every_device borrowed name 'virtio[0-9]*-input'
	check "$name: block interrupts are borrowed" await 120 every_device borrowed name 'virtio[0-9]*-req'
}
goes_on_alone() {
	check "$name: all goes on" more 8
	equal "$name: nothing was redirected" "$(host_count diverted) $(host_count posted)" "0 0"
}
# Left alone by the host, and listed as $1.
left_alone() {
	equal "$name: left alone, and says so" "$(states)" "$1"
	goes_on_alone
}

# ---- packed rings; vhost has none ----
export VHOST=off	# for guest_start
begin "packed rings" -global virtio-blk-device.packed=on -global virtio-net-device.packed=on
unset VHOST
equal "packed rings: that is what there is" "$(feature 34)" 1
both_redirected
before=$(gstat timer_armed)
check "packed rings: all goes on" more 8
equal "packed rings: without the timer" "$(gstat timer_armed)" "$before"
or_borrowed
at_rest
parameter remap none
check "remap=none: listed as off" await 20 states_are off
end

# Their flag, in an area of the driver's own, says on or off only.
export VHOST=off
begin "packed, no event index" -global virtio-blk-device.packed=on -global virtio-net-device.packed=on \
	-global virtio-blk-device.event_idx=off -global virtio-net-device.event_idx=off
unset VHOST
equal "packed, no event index: that is what there is" "$(feature 29) $(feature 34)" "0 1"
both_redirected
or_borrowed
at_rest
end

# ---- no event index: the driver's flag tells whether it is to be interrupted ----
begin "no event index" -global virtio-blk-device.event_idx=off -global virtio-net-device.event_idx=off
equal "no event index: that is what there is" "$(feature 29) $(feature 34)" "0 0"
both_redirected
or_borrowed
at_rest
end

# ---- one vector for all queues of a device; no x2APIC: logical destinations,
# in older kernels ----
begin "shared vector" -cpu "$GUEST_CPU,-x2apic" -global virtio-blk-device.event_idx=off \
	-global virtio-blk-pci.vectors=2 -global virtio-net-pci.vectors=2
equal "shared vector: that is what there is" "$(g 0 'cols $GUEST/irqs vector' | sort -u)" "shared"
# Kernels that have a driver for logical ones ("flat") take it for so few CPUs.
if guest 0 'grep -q " apic_flat$" /proc/kallsyms' </dev/null; then
	keys=key_logical
else
	keys=key
fi
equal "xAPIC: every interrupt of a queue has a key, with its kind of destination" "$(states)" $keys
echo "# xAPIC: $keys"
check "shared vector: network interrupts are redirected" await 120 every_device redirected kind net
check "shared vector: block interrupts are redirected" await 120 every_device redirected kind blk
check "shared vector: or borrowed" parameter remap borrow
count_from_here
check "shared vector: network interrupts are borrowed" await 120 every_device borrowed kind net
check "shared vector: block interrupts are borrowed" await 120 every_device borrowed kind blk
at_rest
end

# ---- an IOMMU that remaps interrupts: borrowed, not redirected ----
begin "vIOMMU" -machine q35,kernel-irqchip=split -device intel-iommu,intremap=on
if guest 0 'dmesg | grep -q "Enabled IRQ remapping"' </dev/null; then
	left_alone remapped
	both_borrowed
	at_rest_alone
else
	skip "vIOMMU: left alone, and says so" "this kernel does not remap interrupts"
	all_answered
fi
end

# ---- more queues than keys: those that come last are borrowed ----
# The device with 512 comes first, and is not used.
ip tuntap add dev many0 mode tap vnet_hdr multi_queue
# shellcheck disable=SC3045 # busybox's has it
ulimit -n 4096
begin "many queues" -netdev tap,id=many,ifname=many0,script=no,downscript=no,queues=256 \
	-device virtio-net-pci,netdev=many,mq=on,vectors=514,ioeventfd=off,romfile=
keyless() { g 0 'cols $GUEST/irqs redirect name' | sed -n 's/^no_key //p'; }
keyless | sed 's/^/# no key: /'
equal "many queues: as many have a key as there are" \
	"$(g 0 'cols $GUEST/irqs redirect' | grep -c -x key)" 512
equal "many queues: the others say that they have none" "$(keyless | wc -l)" \
	$(($(g 0 'cols $GUEST/irqs irq' | wc -l) - 512))
check "many queues: those that are used have none" \
	awk '/-input/ { n++ } /-req/ { b++ } END { exit !(n > 1 && b) }' <<-EOF
		$(keyless)
	EOF
goes_on_alone
UNUSED=$(g 0 'cols $GUEST/irqs redirect name' | sed -n 's/^key \(.*\)-.*/\1/p' | sort -u)
both_borrowed
# One vCPU has vectors for some 200: others are tried, too. In one look, 64.
follow() { [ "$(g 0 'cols $GUEST/irqs last_reason' | grep -c -x move_follow)" -gt 200 ]; }
parameter mapping single
check "many queues: mapping=single: more follow than one look judges" await 300 follow
parameter mapping per-irq
check "many queues: all goes on after that" more 8
at_rest_alone
end

# ---- no MSI-X ----
begin "INTx" -global virtio-blk-pci.vectors=0 -global virtio-net-pci.vectors=0
equal "INTx: each device is listed" "$(g 0 'cols $GUEST/irqs kind vector affinity' | sort)" \
"blk intx fixed
net intx fixed
net intx fixed"
equal "INTx: with its own line of /proc/interrupts" \
	"$(g 0 'cols $GUEST/irqs irq name | while read -r irq name; do
		grep -q "^ *$irq:.*[ ,]$name\(,\|\$\)" /proc/interrupts || echo "$irq $name"; done')" ""
equal "INTx: and irqbalance may have it" \
	"$(g 0 'for irq in $(cols $GUEST/irqs irq); do sh /lab/selftests/irqbalance-policy.sh "" $irq; done')" ""
left_alone intx
at_rest_alone
end

# ---- vCPUs whose APIC id needs more than 8 bits of an MSI's address ----
APPEND_L2="$APPEND_L2 possible_cpus=4"
begin "ids above 255" -machine q35,kernel-irqchip=split -smp 2,sockets=2,cores=256,maxcpus=512 \
	-device host-x86_64-cpu,socket-id=1,core-id=0,thread-id=0 \
	-device host-x86_64-cpu,socket-id=1,core-id=1,thread-id=0
equal "ids above 255: that is what there is" \
	"$(guest 0 'sed -n "s/^apicid.*: //p" /proc/cpuinfo' </dev/null | tr '\n' ' ')" "0 1 256 257 "
equal "ids above 255: every interrupt of a queue has a key" "$(states)" key
# Those that are not managed go there.
g 0 'for irq in $(cols $GUEST/irqs irq name | sed -n "s/ virtio[0-9]*-input.*//p"); do
	echo 2 > /proc/irq/$irq/smp_affinity_list; done'
far() { more 3; [ "$(of 'virtio[0-9]*-input' key_cpu | sort -u)" = 2 ]; }
check "ids above 255: keys of interrupts that are moved to 256" await 60 far
far_sum() { of 'virtio[0-9]*-input' served stolen | awk '{ n += $1 + $2 } END { print n }'; }
far_before=$(far_sum)
far_more() { more 5; [ "$(far_sum)" -gt "$far_before" ]; }
check "ids above 255: they are redirected" await 120 far_more
at_rest
end

# ---- handlers in threads ----
APPEND_L2="$APPEND_L2 threadirqs"
begin "threadirqs"
left_alone threaded
equal "threadirqs: nor served by anybody else" "$(of '' served stolen borrowed swept | sort -u)" "0 0 0 0"
at_rest_alone
end
unload vbalance_host
ktap_end
