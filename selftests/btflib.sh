# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What the kernel says of itself (BTF), and what a module takes for granted of
# it. Sourced after ktap.sh, and in guests.

# To read BTF takes some thousand pages.
hide_btf() { mount -t tmpfs none /sys/kernel/btf; }
show_btf() { umount /sys/kernel/btf; }

# The first type of vmlinux or of a module is of a kind that nobody knows.
spoil_btf() {
	spoilt=$(mktemp)
	cp "/sys/kernel/btf/$1" "$spoilt"
	printf '\037' | dd of="$spoilt" bs=1 seek=31 conv=notrunc 2>/dev/null
	mount --bind "$spoilt" "/sys/kernel/btf/$1"
}
mend_btf() {
	umount "/sys/kernel/btf/$1"
	rm -f "$spoilt"
}

# doctor FILE OLD NEW: of the same length; wherever OLD ends a string (a note of
# the linker can have the release, too)
doctor() {
	at=$(strings -t d "$1" | awk -v old="$2" '{
		n = index($0, $1) + length($1) + 1
		s = substr($0, n)
		if (substr(s, length(s) - length(old) + 1) == old)
			print $1 + length(s) - length(old)
	}')
	[ -n "$at" ] && [ ${#2} = ${#3} ] || return
	for offset in $at; do
		printf %s "$3" | dd of="$1" bs=1 seek="$offset" conv=notrunc 2>/dev/null
	done
}
