#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest on this machine: parameters, finding interrupts, observe,
# loading and unloading. Runs in any KVM guest with virtio devices; elsewhere
# it checks that the module refuses. Unplugs a network device that is down and
# without address; in the lab, or with VBALANCE_DESTRUCTIVE=1, any.
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

# Every virtqueue vector of a network or block device, and no other (but the
# lines of devices without any).
procirqs() {
	for d in /sys/bus/virtio/drivers/virtio_net/virtio* \
			/sys/bus/virtio/drivers/virtio_blk/virtio* \
			/sys/bus/virtio/drivers/virtio_scsi/virtio*; do
		[ -e "$d" ] && grep -E " ${d##*/}-(input|output|req|virtqueues|request)" /proc/interrupts
	done | awk '{ sub(":", "", $1); print $1 }' | sort -n
}
ours() { cols $GUEST/irqs irq vector | sed -n '/ intx$/!s/ .*//p' | sort -n; }
same_irqs() {
	[ "$(procirqs)" = "$(ours)" ]
}
equal "virtqueue interrupts are those of /proc/interrupts" "$(ours)" "$(procirqs)"
if cols $GUEST/irqs kind affinity | grep -q '^blk managed'; then
	equal "virtio-blk interrupts are listed as managed" \
		"$(cols $GUEST/irqs kind vector affinity | grep '^blk' | grep -v intx | cut -d ' ' -f 1,3 | sort -u)" "blk managed"
else
	skip "virtio-blk interrupts are listed as managed" "no virtio-blk device"
fi

# irqbalance asks its policy script once, as soon as it sees an interrupt.
banned() {	# INTERRUPT...
	for irq; do
		[ "$(sh "$KTAP_DIR/irqbalance-policy.sh" /sys "$irq")" != ban=true ] || echo "$irq"
	done
}
vectors() {	# DEVICE ON THE VIRTIO BUS
	for irq in "/sys/bus/virtio/devices/$1/../msi_irqs"/*; do
		echo "${irq##*/}"
	done | sort -n
}
lines=$(awk '$1 ~ /^[0-9]+:/ && !/virtio/ { sub(":", "", $1); print $1 }' /proc/interrupts)
# shellcheck disable=SC2046,SC2086 # numbers
{
equal "irqbalance is told to leave ours alone" "$(banned $(ours))" "$(ours)"
equal "and to balance what is not virtio's" "$(banned $lines)" ""
}
equal "CPUs are listed" "$(cols $GUEST/vcpus cpu | wc -l)" "$(cpus)"

# Unplug and plug, as the driver sees it. Not the device that SSH comes by.
unused() {	# SYSFS-FOLDER OF THE DEVICE
	in_lab || [ "${VBALANCE_DESTRUCTIVE-}" = 1 ] && return
	for link in "$1"/net/*; do
		[ $(($(cat "$link/flags") & 1)) = 0 ] && [ ! -e "$link/master" ] &&
			[ -z "$(ip -o addr show dev "${link##*/}")" ] || return 1
	done
}
name=
for dev in /sys/bus/virtio/drivers/virtio_net/virtio*; do
	[ -e "$dev" ] && unused "$dev" && name=${dev##*/} && break
done
if [ -n "$name" ]; then
	lost() { ! grep -q " $name-" "$GUEST/irqs"; }
	found() { grep -q " $name-input" "$GUEST/irqs"; }
	echo "$name" > /sys/bus/virtio/drivers/virtio_net/unbind
	check "interrupts of an unbound driver are forgotten" await 20 lost
	echo "$name" > /sys/bus/virtio/drivers/virtio_net/bind
	# shellcheck disable=SC2046 # numbers
	equal "irqbalance is told before they are found" "$(banned $(vectors "$name"))" "$(vectors "$name")"
	check "and found again" await 20 found
	pci=$(basename "$(dirname "$(readlink -f /sys/bus/virtio/devices/"$name")")")
	echo "$pci" > /sys/bus/pci/drivers/virtio-pci/unbind
	check "interrupts of an unplugged device are forgotten" await 20 lost
	echo "$pci" > /sys/bus/pci/drivers/virtio-pci/bind
	found_any() { same_irqs && grep -q ' net queue ' "$GUEST/irqs"; }
	check "and found again when it is plugged" await 20 found_any
else
	skip "unplug and plug" "no virtio-net device that is not in use; VBALANCE_DESTRUCTIVE=1 takes any"
fi
check "unload" unload vbalance_guest
check "debugfs folder is gone" [ ! -e $GUEST ]
# shellcheck disable=SC2046 # numbers
equal "without the module irqbalance may balance all" "$(banned $(procirqs))" ""
user_is_refused vbalance_guest $GUEST/stats

refuses vbalance_guest threshold=99
refuses vbalance_guest threshold=10001
refuses vbalance_guest threshold=high
refuses vbalance_guest policy=best
refuses vbalance_guest mapping=many
refuses vbalance_guest remap=teleport
refuses vbalance_guest source=rumour
refuses vbalance_guest backoff_ms=-1
refuses vbalance_guest observe=maybe
refuses vbalance_guest redirect_tx=2
refuses vbalance_guest borrow_us=100001
refuses vbalance_guest borrow_cpu=101
check "all parameters as documented" load vbalance_guest threshold=150 policy=cost \
	mapping=per-irq remap=auto source=auto backoff_ms=10000 observe=0 redirect_tx=1 borrow_us=500 borrow_cpu=2
P=$GUEST_PARAMETERS
for value in threshold=200 policy=paper mapping=single remap=none remap=borrow backoff_ms=5 borrow_us=0 borrow_cpu=5 redirect_tx=0 redirect_tx=1 observe=1; do
	echo "${value#*=}" > $P/"${value%%=*}"
	got=$(cat $P/"${value%%=*}")
	[ "$got" = 1 ] || [ "$got" = "${value#*=}" ]
	ok $? "live: $value"
done
for value in threshold=99 threshold=10001 threshold=high policy=best mapping=many \
		remap=teleport backoff_ms=3600001 observe=maybe redirect_tx=2; do
	refuses_live vbalance_guest $value
done
# What is off says why, where it could be on. Whether it may be redirected is the
# host's to say.
feature() { sed -n "s/^$1 //p" $GUEST/features; }
features_are() {	# WHY AFFINITY BORROW
	equal "$1: affinity" "$(feature affinity)" "$2"
	if [ "$can_borrow" ]; then
		equal "$1: borrow" "$(feature borrow)" "$3"
	else
		skip "$1: borrow" "this kernel keeps it off"
	fi
	if [ "$can_redirect" ]; then
		feature redirect | grep -qxF -e "off ($1)" -e "off (not offered by the host)"
		ok $? "$1: redirection is off for that reason, or the host's"
	else
		skip "$1: redirection" "this kernel keeps it off"
	fi
}
echo auto > $P/remap
echo 0 > $P/observe
can_borrow=$(feature borrow | grep -x -e on -e "off (redirect is on)")
can_redirect=$(feature redirect | grep -x -e on -e "off (not offered by the host)")
echo 1 > $P/observe
features_are observe=1 "off (observe=1)" "off (observe=1)"
echo 0 > $P/observe
for remap in none affinity borrow; do
	echo $remap > $P/remap
	case $remap in none) on="off (remap=none)" ;; *) on=on ;; esac
	case $remap in borrow) lends=on ;; *) lends="off (remap=$remap)" ;; esac
	[ "$can_borrow" ] || [ $remap != borrow ] || on="off (remap=borrow)"
	features_are "remap=$remap" "$on" "$lends"
done
unload vbalance_guest

loads() {
	for _ in 1 2 3; do
		load vbalance_guest && unload vbalance_guest || return 1
	done
}
check "loaded and unloaded again and again" loads
ktap_end
