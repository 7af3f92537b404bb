#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What shows only where two vCPUs run side by side: mappings, the threshold;
# and irqbalance. Runs in the lab's L1 and drives guest 0 (two virtio-net
# devices), whose four vCPUs share two CPUs.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'
check "vCPUs share two CPUs" vcpus_on 0 1 2
embed "side by side" guest 0 'exec /lab/selftests/guest_load.sh'
grep -q 'ok .*no reason to move' "$KTAP_TMP/embedded"
ok $? "side by side: the threshold was looked at"

# ---- mapping ----
guest 0 'insmod /lab/vbalance_guest.ko policy=paper; burn 4 >/dev/null 2>&1 </dev/null &'
irqs=$(g 0 movable | tr '\n' ' ')
[ "$(echo "$irqs" | wc -w)" -ge 3 ]
ok $? "three interrupts or more may be moved"
traffic_start "$(guest_ip 0)"
# How many CPUs hold them, in some samples one after the other.
spread() { g 0 "for i in 1 2 3 4 5; do where $irqs | cut -d ' ' -f 2 | sort -u | wc -l; done" | tr '\n' ' '; }
apart() { spread | grep -q '[2-9]'; }
together() { [ "$(spread)" = "1 1 1 1 1 " ]; }
check "mapping=per-irq: they are on several vCPUs" await 60 apart
guest 0 'echo single > /sys/module/vbalance_guest/parameters/mapping'
check "mapping=single brings them to one vCPU" await 120 together
moves=$(g 0 gstat moves)
moved() { [ "$(g 0 gstat moves)" -gt "$moves" ]; }
check "mapping=single goes on moving" await 60 moved
check "mapping=single keeps them together" await 60 together
guest 0 'echo per-irq > /sys/module/vbalance_guest/parameters/mapping'
check "mapping=per-irq parts them again" await 120 apart
traffic_stop "every packet is answered once"
guest 0 'rmmod vbalance_guest; killall burn'

# ---- irqbalance ----
guest_pin 0
embed "irqbalance" guest 0 'exec /lab/selftests/guest_irqbalance.sh'
guest_log_clean 0
unload vbalance_host
ktap_end
