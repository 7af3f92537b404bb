#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in an emulated host, or on a real one (bench/hookcost --here): "WHAT HOOK
# REGISTERED NS" lines, one a round, without the module and with each kind of
# hook in alternation.
: "${MODULE:=/lab/vbalance_host.ko}" "${HOOKCOST:=hookcost}"

measure() {	# HOOK no|yes
	word=
	[ "$2" = no ] || word=registered
	for what in switch msi; do
		# shellcheck disable=SC2086
		values=$("$HOOKCOST" $what 20000 3 $word) || return 1
		for v in $values; do echo "$what $1 $2 $v"; done
	done
}

for _ in 1 2 3; do
	measure off no || exit 1
	for hook in ftrace kprobe; do
		insmod "$MODULE" hook=$hook vmm_us=1000000 || exit 1
		measure $hook no && measure $hook yes
		status=$?
		rmmod vbalance_host || exit 1
		[ $status = 0 ] || exit 1
	done
done
