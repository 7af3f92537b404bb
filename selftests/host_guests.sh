#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Several guests at once: each has its own area and its own tables, and one
# that goes does not disturb the others. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
[ "$GUESTS" -ge 2 ] || skip_all "needs two guests"
unload vbalance_host
load vbalance_host
ALL=$(seq 0 $((GUESTS - 1)))

state_count() { cols "$(vm_dir "$1")/vcpus" state | grep -c -x "$2"; }
# Each of them, not all at once: on a slow host something is always to be done.
halted() {
	cols "$(vm_dir "$1")/vcpus" slot state | sed -n 's/ halted$//p' >> "$KTAP_TMP/halted"
	[ "$(sort -u "$KTAP_TMP/halted" | wc -l)" = "$VCPUS" ]
}
rests() {
	: > "$KTAP_TMP/halted"
	await 60 halted "$1" && return
	echo "# guest $1 burns: $(guest "$1" 'pidof burn'), load: $(guest "$1" 'cat /proc/loadavg')"
	return 1
}
busy() { [ "$(($(state_count "$1" running) + $(state_count "$1" preempted)))" = "$VCPUS" ]; }

for g in $ALL; do
	guest "$g" 'rmmod vbalance_guest 2>/dev/null; insmod /lab/vbalance_guest.ko policy=paper'
done
for g in $ALL; do
	check "guest $g has registered" await 60 source_is "$g" page
done
equal "a folder for each VM" "$(vm_folders)" "$GUESTS"

# What one guest does shows in its own table only.
check "guest 1 idle" rests 1
guest 0 "burn $VCPUS >/dev/null 2>&1 </dev/null &"
check "guest 0 busy" await 60 busy 0
check "guest 1 still idle" rests 1
guest 1 "burn $VCPUS >/dev/null 2>&1 </dev/null &"
check "both busy" await 60 busy 1

moved() { [ "$(g "$1" gstat moves)" -gt 0 ]; }
for g in $ALL; do
	traffic_start "$(guest_ip "$g")"
done
for g in $ALL; do
	traffic_select "$(guest_ip "$g")"
	check "guest $g answers" traffic_more 100
	check "guest $g: interrupts are moved" await 60 moved "$g"
done
for g in $ALL; do
	traffic_select "$(guest_ip "$g")"
	traffic_stop "guest $g answers every packet once"
	balanced "guest $g" "$g"
done

# One goes without a word.
before=$(g 1 gstat registrations)
guest_stop 0
one_folder() { [ "$(vm_folders)" = $((GUESTS - 1)) ]; }
check "a killed guest's folder goes" await 60 one_folder
equal "the other keeps its page" "$(g 1 gstat source) $(g 1 gstat registrations)" "page $before"
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
	guest_log_clean "$g"
done
check "nothing stays pinned" await 60 all_unpinned
unload vbalance_host
ktap_end
