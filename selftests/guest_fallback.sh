#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest follows vbalance_host coming and going. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
[ -r /lab/lib.sh ] || skip_all "runs in the lab only"
# shellcheck source=/dev/null
. /lab/lib.sh
need_root
need_module vbalance_host
unload vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'

gstat() { guest 0 "sed -n 's/^$1 //p' $GUEST/stats"; }
source_is() { [ "$(gstat source)" = "$1" ]; }
active() { grep -q '^active 1' $HOST/"$(guest_pid 0)"-*/registration 2>/dev/null; }

check "guest module loads without a host module" guest 0 'insmod /lab/vbalance_guest.ko'
equal "then steal time is its source" "$(gstat source)" steal
equal "and it knows why" "$(gstat page_status)" -1000

check "host module comes" load vbalance_host
check "the guest finds it by itself" await 60 source_is page
check "the host says the same" active
check "slots are mapped" guest 0 "grep -q '^page on' $GUEST/features"

guest 0 'burn 4 >/dev/null 2>&1 </dev/null &'
for _ in 1 2 3; do
	check "host module goes under load" unload vbalance_host
	check "the guest falls back" await 60 source_is steal
	check "host module comes back under load" load vbalance_host
	check "the guest is back as well" await 60 source_is page
done
check "fallbacks are counted" [ "$(($(gstat fallback_self) + $(gstat fallback_gone) + $(gstat fallback_status)))" -ge 3 ]
check "registrations are counted" [ "$(gstat registrations)" -ge 4 ]

# A stopped and continued guest is the same guest.
kill -STOP "$(guest_pid 0)"; sleep 3; kill -CONT "$(guest_pid 0)"
check "after a pause the page is the source" await 60 source_is page

guest 0 'killall burn 2>/dev/null; true'
check "guest module unloads" guest 0 'rmmod vbalance_guest'
let_go() { grep -q '^active 0' $HOST/"$(guest_pid 0)"-*/registration; }
check "the host has let go" await 20 let_go
equal "nothing stays pinned" "$(stat_of $HOST/stats pages_pinned)" "$(stat_of $HOST/stats pages_unpinned)"

# source= does what it says.
guest 0 'insmod /lab/vbalance_guest.ko source=steal'
sleep 3
equal "source=steal leaves the host alone" "$(gstat source)" steal
guest 0 'rmmod vbalance_guest; insmod /lab/vbalance_guest.ko source=page'
check "source=page takes the page" await 60 source_is page
unload vbalance_host
check "source=page has none without the host" await 60 source_is none
guest 0 'rmmod vbalance_guest'

# The guest goes while it is registered.
load vbalance_host
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered" await 60 active
guest_stop 0
gone() { [ "$(stat_of $HOST/stats pages_pinned)" = "$(stat_of $HOST/stats pages_unpinned)" ] && ! ls -d $HOST/[0-9]* >/dev/null 2>&1; }
check "a guest that is killed leaves nothing" await 60 gone
guest_start 0
guest_wait 0
# Reboot: the guest says good-bye (and QEMU ends, with -no-reboot).
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered again" await 60 active
guest 0 'reboot -f >/dev/null 2>&1 &' || true
stopped() { ! guest_running 0; }
check "the guest reboots" await 60 stopped
check "nothing is left of it" await 60 gone
guest_start 0
guest_wait 0
unload vbalance_host
ktap_end
