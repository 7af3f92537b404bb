#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Moves happen, are counted where they should be, and nothing is lost. Runs in
# the lab's L1 and drives guest 0 (vCPUs stacked, virtio-net and virtio-blk).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
load vbalance_host
IP=$(guest_ip 0)
guest 0 'rmmod vbalance_guest 2>/dev/null; true'

guest_module 0 load policy=paper remap=affinity
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &'
moved() { [ "$(g 0 gstat moves)" -gt "$1" ]; }
check "policy=paper remap=affinity moves" await 60 moved 5
# moving NAME COMMAND...: it works while interrupts are being moved
moving() {
	name=$1
	shift
	moves=$(g 0 gstat moves)
	"$@"
	ok $? "$name"
	moved "$moves"
	ok $? "$name: moves meanwhile"
}

# Numbered packets: each answer must come, whatever moves meanwhile.
traffic_start "$IP"
moving "packets from outside are answered" traffic_more 200
traffic_stop "every packet is answered once"

# Streams with checksums, both ways, and block requests.
dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null
guest 0 'dd if=/dev/urandom of=/tmp/pattern bs=64k count=16 2>/dev/null'
sum=$(sha256sum < /tmp/data)
pattern=$(guest 0 'sha256sum < /tmp/pattern')
httpd -p 8001 -h /tmp
guest 0 'httpd -p 8002 -h /tmp'
into() { [ "$(guest 0 "wget -T 100 -q -O - http://${IP%.*}.1:8001/data | sha256sum")" = "$sum" ]; }
out() { [ "$(wget -T 100 -q -O - "http://$IP:8002/pattern" | sha256sum)" = "$pattern" ]; }
block() {
	guest 0 'for i in 1 2; do
		dd if=/tmp/pattern of=/dev/vda bs=64k oflag=direct &&
		dd if=/dev/vda bs=64k count=16 iflag=direct | cmp - /tmp/pattern || exit 1
		done' 2>/dev/null
}
moving "a stream into the guest is intact" into
moving "a stream out of the guest is intact" out
moving "block requests are intact" block
killall httpd
guest 0 'killall httpd'
equal "no move failed for another reason than the known ones" "$(g 0 gstat failed)" 0
not_redirected "remap=affinity"
guest_module 0 unload

# ---- somebody else moves ----
guest_module 0 load policy=paper remap=affinity backoff_ms=600000
check "moves" await 60 moved 5
effective() { guest 0 "cat /proc/irq/$irq/effective_affinity_list"; }
irq_row() { g 0 "cell \$GUEST/irqs $irq $1"; }
traffic_start "$IP"
traffic_more 20
irq=$(g 0 busiest)
guest 0 "echo 2 > /proc/irq/$irq/smp_affinity_list"
noticed() { [ "$(irq_row affinity)" = restricted ] && [ "$(irq_row foreign)" -gt 0 ]; }
check "a foreign mask is noticed, counted and binds" await 60 noticed
moved_there() { [ "$(effective)" = 2 ]; }
check "the interrupt goes where the admin wanted it" await 60 moved_there
before=$(irq_row moves)
traffic_more 100
equal "and stays there" "$(effective) $(irq_row moves)" "2 $before"
not_redirected "a foreign mask"
guest_module 0 unload
equal "also after unloading" "$(effective)" 2
guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list"
traffic_stop "and loses nothing"

# ---- without the host module ----
unload vbalance_host
guest_module 0 load policy=paper remap=affinity source=steal
traffic_start "$IP"
moving "source=steal: packets are answered" traffic_more 100
traffic_stop "source=steal: every packet is answered once"
not_redirected "source=steal"
guest 0 'killall burn 2>/dev/null; rmmod vbalance_guest; true'
guest_log_clean 0
ktap_end
