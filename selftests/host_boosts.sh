#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Many short boosts in a row, BOOSTS (1000): apart from host_boost.sh, so that
# there can be ten thousand on a kernel that watches each lock and each access.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
command -v kvm_boost_fair >/dev/null || skip_all "kvm_boost_fair is not built"
unload vbalance_host

check "load" load vbalance_host
check "boosts are offered" grep -q "^boost on" $HOST/features
embed "boosts" kvm_boost_fair many
check "unload" unload vbalance_host
ktap_end
