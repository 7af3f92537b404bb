#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# vbalance_guest in a guest without any virtio network or block device.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_guest
if grep -qE 'virtio[0-9]+-(input|output|req)' /proc/interrupts; then
	skip_all "this machine has virtio devices"
fi
unload vbalance_guest
check "loads" load vbalance_guest
equal "no interrupts" "$(awk '$1 ~ /^[0-9]+$/' $GUEST/irqs | wc -l)" 0
ticks() { [ "$(stat_of "$GUEST/stats" ticks)" -gt 0 ]; }
check "looks at the state all the same" await 20 ticks
check "unloads" unload vbalance_guest
ktap_end
