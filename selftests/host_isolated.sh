#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What boosts leave alone: CPUs that are isolated.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
need_root
need_module vbalance_host
[ -e /dev/kvm ] || skip_all "no /dev/kvm"
command -v kvm_boost >/dev/null || skip_all "kvm_boost is not built"
unload vbalance_host

check "load" load vbalance_host
check "boosts are offered" grep -q "^boost on" $HOST/features
embed "aside" kvm_boost aside
check "unload" unload vbalance_host
ktap_end
