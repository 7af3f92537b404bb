#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# irqbalance --policyscript: leave the interrupts of virtio network, block and
# SCSI devices to vbalance_guest while it is loaded. irqbalance calls it once for
# each interrupt, with a sysfs path and the interrupt's number, and reads
# settings from the output (see irqbalance(1)).
#
# The device says what an interrupt is, not the module's own list: irqbalance
# may ask before the module has looked at a device that has just come.
[ -d /sys/module/vbalance_guest ] || exit 0
for dev in /sys/bus/virtio/devices/*; do
	[ -e "$dev/../msi_irqs/$2" ] || continue
	case $(cat "$dev/device") in
	0x0001 | 0x0002 | 0x0008) echo "ban=true" ;;
	esac
done
