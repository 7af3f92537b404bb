#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in an emulated host under -icount: "HOOK REGISTERED NS" lines, one a
# round, without the module and with each kind of hook in alternation.
# shellcheck disable=SC1091
. /lab/lib.sh

measure() {	# HOOK no|yes
	word=
	[ "$2" = no ] || word=registered
	# shellcheck disable=SC2086
	values=$(hookcost 20000 3 $word) || exit 1
	for v in $values; do echo "$1 $2 $v"; done
}

for _ in 1 2; do
	measure off no
	for hook in ftrace kprobe; do
		insmod /lab/vbalance_host.ko hook=$hook || exit 1
		measure $hook no
		measure $hook yes
		rmmod vbalance_host
	done
done
