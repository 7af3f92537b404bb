#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Moves happen, are counted where they should be, and nothing is lost. Runs in
# the lab's L1 and drives guest 0 (vCPUs stacked, one virtio-net and one
# virtio-blk device).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
[ -r /lab/lib.sh ] || skip_all "runs in the lab only"
# shellcheck source=/dev/null
. /lab/lib.sh
need_root
need_module vbalance_host
unload vbalance_host
load vbalance_host
IP=$(guest_ip 0)
guest 0 'rmmod vbalance_guest 2>/dev/null; true'

gstat() { guest 0 "sed -n 's/^$1 //p' $GUEST/stats"; }
where() { guest 0 'for i in $(sed -n "s/^ *\([0-9]*\):.*virtio[0-9]*-\(input\|output\).*/\1/p" /proc/interrupts); do echo $i $(cat /proc/irq/$i/effective_affinity_list); done'; }
# CPUs on which the device's interrupts were counted: "irq columns"
counted_on() {
	guest 0 'awk "/virtio[0-9]+-(input|output)/ { n = 0; for (i = 2; i <= 5; i++) n += (\$i > 0); if (n > m) m = n } END { print m }" /proc/interrupts'
}
home=$(where)

# ---- observe: decides, moves nothing ----
guest 0 'insmod /lab/vbalance_guest.ko policy=paper observe=1; burn 4 >/dev/null 2>&1 </dev/null &'
observed() { [ "$(gstat observed)" -gt 10 ]; }
ping -i 0.05 -c 60 "$IP" > /tmp/ping.out
check "observe=1 decides and counts" await 60 observed
equal "observe=1 moves nothing" "$(gstat moves) $(gstat ebusy)" "0 0"
equal "interrupts are where they were" "$(where)" "$home"
guest 0 'rmmod vbalance_guest'

# ---- policy=paper under traffic ----
guest 0 'insmod /lab/vbalance_guest.ko policy=paper'
moved() { [ "$(gstat moves)" -gt 5 ]; }
check "policy=paper moves" await 60 moved

# Numbered packets: each answer must come, whatever moves meanwhile.
ping -i 0.05 -c 200 -W 20 "$IP" > /tmp/ping.out
check "200 numbered packets, none lost, none doubled" \
	grep -q '200 packets transmitted, 200 received, 0% packet loss' /tmp/ping.out
[ "$(counted_on)" -ge 2 ]
ok $? "interrupts are counted on more than one CPU"

# Streams with checksums, both ways, and block requests, while it moves.
dd if=/dev/urandom of=/tmp/data bs=64k count=32 2>/dev/null
sum=$(sha256sum < /tmp/data)
guest 0 'dd if=/dev/urandom of=/tmp/pattern bs=64k count=64 2>/dev/null'
guest 0 'for i in 1 2 3; do dd if=/tmp/pattern of=/dev/vda bs=64k oflag=direct 2>/dev/null; dd if=/dev/vda bs=64k count=64 iflag=direct 2>/dev/null | cmp - /tmp/pattern || exit 1; done; echo verified' > /tmp/blk.out 2>&1 &
blk=$!
httpd -p 8001 -h /tmp
guest 0 'httpd -p 8002 -h /tmp'
equal "stream into the guest is intact" \
	"$(guest 0 "wget -T 100 -q -O - http://${IP%.*}.1:8001/data | sha256sum" </dev/null)" "$sum"
equal "stream out of the guest is intact" \
	"$(wget -T 100 -q -O - "http://$IP:8002/pattern" | sha256sum)" \
	"$(guest 0 'sha256sum < /tmp/pattern' </dev/null)"
killall httpd
guest 0 'killall httpd' </dev/null
wait $blk
equal "block requests are intact" "$(tail -n 1 /tmp/blk.out)" verified
equal "no move failed for another reason than the known ones" "$(gstat failed)" 0

# ---- unload under traffic puts everything back ----
ping -i 0.05 -c 400 -W 20 "$IP" > /tmp/ping.out &
pinger=$!
for _ in 1 2 3; do
	check "unload under traffic" guest 0 'rmmod vbalance_guest'
	equal "interrupts are back where they were" "$(where)" "$home"
	guest 0 'insmod /lab/vbalance_guest.ko policy=paper'
	check "moves again" await 60 moved
done
wait $pinger
check "400 packets during that, none lost" \
	grep -q '400 packets transmitted, 400 received, 0% packet loss' /tmp/ping.out

# ---- mapping=single ----
guest 0 'echo single > /sys/module/vbalance_guest/parameters/mapping'
together() { [ "$(where | awk '{ print $2 }' | sort -u | wc -l)" = 1 ]; }
check "mapping=single brings all interrupts to one vCPU" await 60 together
guest 0 'rmmod vbalance_guest'

# ---- somebody else moves ----
irq=$(echo "$home" | awk 'NR == 1 { print $1 }')
guest 0 'insmod /lab/vbalance_guest.ko policy=paper backoff_ms=600000'
check "moves" await 60 moved
guest 0 "echo 2 > /proc/irq/$irq/smp_affinity_list"
ping -i 0.05 -c 100 "$IP" > /dev/null
noticed() { guest 0 "awk '\$1 == $irq && \$5 == \"restricted\" && \$17 > 0 { f = 1 } END { exit !f }' $GUEST/irqs"; }
check "a foreign mask is noticed, counted and binds" await 60 noticed
moved_there() { ping -i 0.05 -c 20 "$IP" > /dev/null; [ "$(guest 0 "cat /proc/irq/$irq/effective_affinity_list")" = 2 ]; }
check "the interrupt goes where the admin wanted it" await 60 moved_there
before=$(guest 0 "awk '\$1 == $irq { print \$13 }' $GUEST/irqs")
ping -i 0.05 -c 100 "$IP" > /dev/null
equal "and stays there" "$(guest 0 "cat /proc/irq/$irq/effective_affinity_list; awk '\$1 == $irq { print \$13 }' $GUEST/irqs" | tr '\n' ' ')" "2 $before "
guest 0 'rmmod vbalance_guest'
equal "also after unloading" "$(guest 0 "cat /proc/irq/$irq/effective_affinity_list")" 2
guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list"

# ---- without the host module ----
unload vbalance_host
guest 0 'insmod /lab/vbalance_guest.ko policy=paper source=steal'
check "moves with steal time as the source" await 60 moved
ping -i 0.05 -c 100 -W 20 "$IP" > /tmp/ping.out
check "and loses nothing" grep -q ' 0% packet loss' /tmp/ping.out

# ---- policy=cost counts its reasons ----
guest 0 'rmmod vbalance_guest; insmod /lab/vbalance_guest.ko policy=cost'
reasons() { guest 0 "awk '/^(stay_useless|stay_saving|stay_episode|move_rescue)/ { n += \$2 } END { exit !(n > 20) }' $GUEST/decisions"; }
ping -i 0.05 -c 60 "$IP" > /dev/null
check "policy=cost weighs cost and saving" await 60 reasons
guest 0 'rmmod vbalance_guest; killall burn 2>/dev/null; true'
guest 0 "dmesg | grep -E 'WARNING: CPU|nobody cared|virtio.*(timeout|reset)'" > /tmp/bad
equal "nothing bad in the guest's log" "$(cat /tmp/bad)" ""
ktap_end
