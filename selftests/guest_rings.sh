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
# As some_served, of a kind of device.
kind_served() {
	more 5
	g 0 'cols $GUEST/irqs kind served stolen' |
		awk -v kind="$1" '$1 == kind && $2 + $3 > 0 { n++ } END { exit !n }'
}

# ---- packed rings (vhost has none), no event index ----
begin "packed" -global virtio-blk-device.packed=on -global virtio-net-device.event_idx=off
check "packed rings: block interrupts are redirected" await 120 some_served 'virtio[0-9]*-req'
check "no event index: network interrupts are redirected" await 120 some_served 'virtio[0-9]*-input'
at_rest
end

# ---- one vector for all queues of a device; no x2APIC: logical destinations,
# in older kernels ----
begin "shared vector" -cpu host,+kvm-steal-time,-x2apic -global virtio-blk-device.event_idx=off \
	-global virtio-blk-pci.vectors=2 -global virtio-net-pci.vectors=2
equal "shared vector: that is what there is" "$(g 0 'cols $GUEST/irqs vector' | sort -u)" "shared"
# Logical (flat) up to some 6.12, physical since.
keys=$(g 0 'cols $GUEST/irqs redirect' | sort -u)
echo "# xAPIC: $keys"
[ "$keys" = key ] || [ "$keys" = key_logical ]
ok $? "xAPIC: every interrupt of a queue has a key"
check "shared vector: network interrupts are redirected" await 120 kind_served net
check "shared vector: block interrupts are redirected" await 120 kind_served blk
at_rest
end

# ---- an IOMMU that remaps interrupts: borrowed, not redirected ----
begin "vIOMMU" -machine q35,kernel-irqchip=split -device intel-iommu,intremap=on
if guest 0 'dmesg | grep -q "Enabled IRQ remapping"' </dev/null; then
	equal "vIOMMU: left alone, and says so" "$(g 0 'cols $GUEST/irqs redirect' | sort -u)" remapped
	check "vIOMMU: all goes on" more 8
	equal "vIOMMU: nothing was redirected" "$(host_count diverted)" 0
else
	skip "vIOMMU: left alone, and says so" "this kernel does not remap interrupts"
fi
traffic_select "$IP"
traffic_stop "vIOMMU: every packet through the first device is answered once"
traffic_select "$IP1"
traffic_stop "vIOMMU: every packet through the second device is answered once"
end

# ---- handlers in threads are left alone ----
APPEND_L2="$APPEND_L2 threadirqs"
begin "threadirqs"
equal "threadirqs: left alone, and says so" "$(g 0 'cols $GUEST/irqs redirect' | sort -u)" threaded
check "threadirqs: all goes on" more 8
equal "threadirqs: nothing was redirected" "$(host_count diverted)" 0
traffic_select "$IP"
traffic_stop "threadirqs: every packet through the first device is answered once"
traffic_select "$IP1"
traffic_stop "threadirqs: every packet through the second device is answered once"
end
unload vbalance_host
ktap_end
