#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A change of a boosted thread that is allowed in the boost and made after it:
# somebody who is held up in between by a module of our own.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
need_module vb_delay
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
command -v kvm_boost_settle >/dev/null || skip_all "kvm_boost_settle is not built"
unload vbalance_host

check "load" load vbalance_host
grep -q "^boost on" $HOST/features ||
	{ unload vbalance_host; skip_all "there are no boosts"; }
check "who changes threads is held up" insmod "$(module_path vb_delay)"
embed "settle" kvm_boost_settle
check "and is not any more" rmmod vb_delay
check "unload" unload vbalance_host
ktap_end
