#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest on this machine: parameters, finding interrupts, observe,
# loading and unloading. Runs in any KVM guest with virtio devices; elsewhere
# it checks that the module refuses.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
unload vbalance_guest

if ! load vbalance_guest; then
	ktap_new_dmesg | grep -q 'vbalance_guest: not a KVM guest'
	ok $? "outside KVM it says so and does not load"
	ktap_end
fi
for f in stats decisions vcpus irqs features; do
	equal "$f begins with its version" "$(head -n 1 $GUEST/$f)" "v: 1"
done

# Every virtqueue vector of a network or block device, and no other.
procirqs() {
	for d in /sys/bus/virtio/drivers/virtio_net/virtio* \
			/sys/bus/virtio/drivers/virtio_blk/virtio* \
			/sys/bus/virtio/drivers/virtio_scsi/virtio*; do
		[ -e "$d" ] && grep -E " ${d##*/}-(input|output|req|virtqueues|request)" /proc/interrupts
	done | awk '{ sub(":", "", $1); print $1 }' | sort -n
}
ours() { awk '$1 ~ /^[0-9]+$/ { print $1 }' $GUEST/irqs | sort -n; }
same_irqs() {
	[ "$(procirqs)" = "$(ours)" ]
}
equal "virtqueue interrupts are those of /proc/interrupts" "$(ours)" "$(procirqs)"
managed=$(awk '$3 == "blk" && $5 != "managed" { print $1 }' $GUEST/irqs)
equal "virtio-blk interrupts are listed as managed" "$managed" ""
equal "CPUs are listed" "$(awk '$1 ~ /^[0-9]+$/' $GUEST/vcpus | wc -l)" "$(grep -c ^processor /proc/cpuinfo)"

# Unplug and plug, as the driver sees it.
dev=$(ls -d /sys/bus/virtio/drivers/virtio_net/virtio* 2>/dev/null | head -n 1)
if [ -n "$dev" ]; then
	name=${dev##*/}
	lost() { ! grep -q " $name-" $GUEST/irqs; }
	found() { grep -q " $name-input" $GUEST/irqs; }
	echo "$name" > /sys/bus/virtio/drivers/virtio_net/unbind
	check "interrupts of an unbound driver are forgotten" await 20 lost
	echo "$name" > /sys/bus/virtio/drivers/virtio_net/bind
	check "and found again" await 20 found
	pci=$(basename "$(dirname "$(readlink -f /sys/bus/virtio/devices/"$name")")")
	echo "$pci" > /sys/bus/pci/drivers/virtio-pci/unbind
	check "interrupts of an unplugged device are forgotten" await 20 lost
	echo "$pci" > /sys/bus/pci/drivers/virtio-pci/bind
	found_any() { same_irqs && grep -q ' net queue ' $GUEST/irqs; }
	check "and found again when it is plugged" await 20 found_any
else
	skip "unplug and plug" "no virtio-net device"
fi
check "unload" unload vbalance_guest
check "debugfs folder is gone" [ ! -e $GUEST ]

refuses vbalance_guest threshold=99
refuses vbalance_guest threshold=10001
refuses vbalance_guest threshold=high
refuses vbalance_guest policy=best
refuses vbalance_guest mapping=many
refuses vbalance_guest remap=teleport
refuses vbalance_guest source=rumour
refuses vbalance_guest backoff_ms=-1
refuses vbalance_guest observe=maybe
check "all parameters as documented" load vbalance_guest threshold=150 policy=cost \
	mapping=per-irq remap=affinity source=auto backoff_ms=10000 observe=0
P=/sys/module/vbalance_guest/parameters
for value in threshold=200 policy=paper mapping=single remap=none backoff_ms=5 observe=1; do
	echo "${value#*=}" > $P/"${value%%=*}"
	got=$(cat $P/"${value%%=*}")
	[ "$got" = 1 ] || [ "$got" = "${value#*=}" ]
	ok $? "live: $value"
done
check "live: a wrong value is refused" sh -c "! echo 5 2>/dev/null > $P/threshold"
equal "and changes nothing" "$(cat $P/threshold)" 200
unload vbalance_guest

loads() {
	for _ in 1 2 3; do
		load vbalance_guest && unload vbalance_guest || return 1
	done
}
check "loaded and unloaded again and again" loads
ktap_end
