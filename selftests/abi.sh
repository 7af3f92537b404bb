#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A host and a guest of different times: the version of the ABI of one of them
# is another one. The guest goes on with steal time, and says why. Needs modules
# with another number (the lab's variant "abi").
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
need_variant abi

version() {	# of a module's file
	strings "$1" | sed -n 's/^abi_version=//p'
}
OURS=$(version /lab/vbalance_host.ko)
OTHER=$(version /lab/abi/vbalance_host.ko)
[ -n "$OTHER" ] && [ "$OURS" != "$OTHER" ]
ok $? "the versions of the two are $OURS and $OTHER"

hypercalls() { stat_of $HOST/stats hypercalls; }
# Asked again, and again.
asked_more() { [ "$(hypercalls)" -ge $((asked + 3)) ]; }

# strangers NAME HOST GUEST: versions; both are loaded
strangers() {
	asked=$(hypercalls)
	check "$1: the guest asks again and again" await 120 asked_more
	equal "$1: its source is" "$(g 0 gstat source)" steal
	equal "$1: the last answer was" "$(g 0 gstat page_status)" -71
	check "$1: debugfs says why" \
		g 0 "grep -q '^page off (the host has another ABI version: error -71)' \$GUEST/features"
	equal "$1: the log says so, once" "$(guest 0 'dmesg' </dev/null |
		sed -n 's/.*vbalance_guest: the host has \(.*\)/\1/p')" \
		"version $2 of the ABI, this is $3: run states from steal"
	check "$1: the guest borrows" g 0 "grep -q '^borrow on' \$GUEST/features"
	traffic_start "$(guest_ip 0)"
	traffic_more 40
	traffic_stop "$1: every packet is answered, once"
	not_redirected "$1"
	check "$1: the VM is seen, and not registered" is_inactive 0
	equal "$1: nothing is pinned" "$(stat_of $HOST/stats pages_pinned)" 0
}

guest 0 'dmesg -c' </dev/null > /dev/null
check "older host: loaded" load vbalance_host
GUEST_VARIANT=abi
check "older host: the guest module as well" guest_module 0 load
strangers "older host" "$OURS" "$OTHER"

check "it goes" unload vbalance_host
VARIANT=abi
check "one of the same version comes" load vbalance_host
check "the guest registers by itself" await 60 is_active 0
check "and the page is its source" await 60 source_is 0 page
check "guest module goes" guest_module 0 unload
check "nothing stays pinned" await 30 all_unpinned
unload vbalance_host

guest 0 'dmesg -c' </dev/null > /dev/null
GUEST_VARIANT=
check "newer host: loaded" load vbalance_host
check "newer host: the guest module as well" guest_module 0 load
strangers "newer host" "$OTHER" "$OURS"
check "it goes" unload vbalance_host
VARIANT=
check "one of the same version comes" load vbalance_host
check "the guest registers by itself" await 60 is_active 0
check "guest module goes" guest_module 0 unload
unload vbalance_host
guest_log_clean 0
ktap_end
