# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# A guest under load whose interrupts are redirected, and what must hold when
# it is at rest. Sourced after lablib.sh.
unload vbalance_host
load vbalance_host
IP=$(guest_ip 0)
IP1=$(guest_ip 0 1)
gstat() { g 0 gstat "$1"; }

# begin NAME [WORD...]: a guest under load, with extra words for its QEMU
begin() {
	name=$1
	shift
	guest_start 0 "$@"
	check "$name: the guest is up" guest_wait 0
	no_base
	guest 0 'dd if=/dev/urandom of=/tmp/pattern bs=64k count=4 2>/dev/null' </dev/null
	guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
	# shellcheck disable=SC2086 # words
	guest_module 0 load $PARAMS
	ok $? "$name: the module loads"
	UNUSED=
	count_from_here
	traffic_start "$IP"
	traffic_start "$IP1"
}

# Numbered packets through both devices, and block requests that are verified.
more() {
	traffic_select "$IP" && traffic_more "$1" &&
		traffic_select "$IP1" && traffic_more "$1" &&
		guest 0 'dd if=/tmp/pattern of=/dev/vda bs=16k oflag=direct &&
			dd if=/dev/vda bs=16k count=16 iflag=direct | cmp - /tmp/pattern' \
			</dev/null 2>/dev/null
}

# Columns $2... of the interrupts whose name matches $1.
of() {
	of_match=$1
	shift
	g 0 "cols \$GUEST/irqs name $*" | sed -n "s/^${of_match}[^ ]* //p"
}

irq_counts() { g 0 'cols $GUEST/irqs irq name kind served stolen borrowed'; }
count_from_here() { irq_counts > "$KTAP_TMP/counts_before"; }
# every_device redirected|borrowed name|kind MATCH: with more traffic, of every
# device that has interrupts of such a name or kind, and is not the one that is
# UNUSED, one was served by a vCPU that it was not sent to, for a pending bit or
# without
every_device() {
	more 3
	irq_counts > "$KTAP_TMP/counts"
	awk -v how="$1" -v by="$2" -v match_="$3" -v unused="$UNUSED" -v before="$KTAP_TMP/counts_before" '
		function count() { return how == "redirected" ? $4 + $5 : $6 }
		BEGIN { while ((getline < before) > 0) was[$1] = count() }
		(by == "name" ? $2 : $3) ~ match_ {
			sub("-.*", "", $2)
			if ($2 != unused) n[$2] += count() - was[$1]
		}
		END {
			for (device in n) {
				some++
				if (n[device] <= 0) none++
			}
			exit !some || none
		}' "$KTAP_TMP/counts"
}

all_answered() {
	traffic_select "$IP"
	traffic_stop "$name: every packet through the first device is answered once"
	traffic_select "$IP1"
	traffic_stop "$name: every packet through the second device is answered once"
}

at_rest() {
	all_answered
	counters_agree "$name"
}

# The same where the host redirects nothing.
at_rest_alone() {
	all_answered
	not_redirected "$name"
}

end() {
	guest_module 0 unload
	ok $? "$name: the module unloads"
	guest_log_clean 0
	guest_stop 0
}
