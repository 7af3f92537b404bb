#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Several guests at once: each has its own area and its own tables, and one
# that goes does not disturb the others. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
[ -r /lab/lib.sh ] || skip_all "runs in the lab only"
# shellcheck source=/dev/null
. /lab/lib.sh
need_root
need_module vbalance_host
[ "$GUESTS" -ge 2 ] || skip_all "needs two guests"
unload vbalance_host
load vbalance_host
ALL=$(seq 0 $((GUESTS - 1)))

gstat() { guest "$1" "sed -n 's/^$2 //p' $GUEST/stats"; }
source_is() { [ "$(gstat "$1" source)" = "$2" ]; }
table() { echo $HOST/"$(guest_pid "$1")"-*; }
state_count() { awk -v s="$2" '$3 == s' "$(table "$1")/vcpus" | wc -l; }
halted() { [ "$(state_count "$1" halted)" = "$VCPUS" ]; }
busy() { [ "$(($(state_count "$1" running) + $(state_count "$1" preempted)))" = "$VCPUS" ]; }

for g in $ALL; do
	guest "$g" 'rmmod vbalance_guest 2>/dev/null; insmod /lab/vbalance_guest.ko policy=paper'
done
for g in $ALL; do
	check "guest $g has registered" await 60 source_is "$g" page
done
equal "a folder for each VM" "$(ls -d $HOST/[0-9]*-* | wc -l)" "$GUESTS"

# What one guest does shows in its own table only.
check "guest 1 idle" await 60 halted 1
guest 0 "burn $VCPUS >/dev/null 2>&1 </dev/null &"
check "guest 0 busy" await 60 busy 0
check "guest 1 still idle" await 60 halted 1
guest 1 "burn $VCPUS >/dev/null 2>&1 </dev/null &"
check "both busy" await 60 busy 1

for g in $ALL; do
	ping -i 0.1 -c 100 -W 20 "$(guest_ip "$g")" > "/tmp/ping$g.out" &
done
wait
for g in $ALL; do
	check "guest $g: 100 packets, none lost" \
		grep -q '100 packets transmitted, 100 received, 0% packet loss' "/tmp/ping$g.out"
	moved() { [ "$(gstat "$1" moves)" -gt 0 ]; }
	check "guest $g: interrupts were moved" await 60 moved "$g"
done

# One goes without a word.
before=$(gstat 1 registrations)
guest_stop 0
one_folder() { [ "$(ls -d $HOST/[0-9]*-* | wc -l)" = $((GUESTS - 1)) ]; }
check "a killed guest's folder goes" await 60 one_folder
equal "the other keeps its page" "$(gstat 1 source) $(gstat 1 registrations)" "page $before"
guest_start 0
guest_wait 0
guest 0 'insmod /lab/vbalance_guest.ko'
check "a new one registers" await 60 source_is 0 page

# The host module goes and comes back for all of them.
unload vbalance_host
for g in $ALL; do
	check "guest $g falls back" await 60 source_is "$g" steal
done
load vbalance_host
for g in $ALL; do
	check "guest $g is back" await 60 source_is "$g" page
	guest "$g" 'killall burn 2>/dev/null; rmmod vbalance_guest'
done
released() { [ "$(stat_of $HOST/stats pages_pinned)" = "$(stat_of $HOST/stats pages_unpinned)" ]; }
check "nothing stays pinned" await 60 released
unload vbalance_host
ktap_end
