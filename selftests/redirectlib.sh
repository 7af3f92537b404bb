# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# A guest under load whose interrupts are redirected, and what must hold when
# it is at rest. Sourced after lablib.sh.
unload vbalance_host
load vbalance_host
IP=$(guest_ip 0)
IP1=$(guest_ip 0 1)
gstat() { g 0 gstat "$1"; }
remap() { guest 0 "echo $1 > /sys/module/vbalance_guest/parameters/remap" </dev/null; }

# begin NAME [WORD...]: a guest under load, with extra words for its QEMU
begin() {
	name=$1
	shift
	guest_start 0 "$@"
	check "$name: the guest is up" guest_wait 0
	base_diverted=0 base_posted=0
	guest 0 'dd if=/dev/urandom of=/tmp/pattern bs=64k count=4 2>/dev/null' </dev/null
	guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
	guest 0 "insmod /lab/vbalance_guest.ko $PARAMS" </dev/null
	ok $? "$name: the module loads"
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
	g 0 "cols \$GUEST/irqs name $*" | sed -n "s/^$of_match[^ ]* //p"
}

# One of these interrupts was served by a vCPU that it was not sent to.
some_served() {
	more 10
	[ -n "$(of "$1" served stolen | awk '$1 + $2 > 0')" ]
}

# Every bit that the host has set was taken once: both sides count alike.
balance() {
	g 0 'for n in host_diverted host_posted served stolen overtaken merged dropped; do
		echo "$n $(gstat $n)"; done' > "$KTAP_TMP/balance"
	awk '/^host/ { set += $2; next } { taken += $2 }
		END { exit set != taken || set == 0 }' "$KTAP_TMP/balance"
}
host_count() { stat_of "$(vm_dir 0)/registration" "$1"; }
# Before the guest registers: the host counts on from there.
host_base() {
	base_diverted=$(host_count diverted)
	base_posted=$(host_count posted)
}

at_rest() {
	traffic_select "$IP"
	traffic_stop "$name: every packet through the first device is answered once"
	traffic_select "$IP1"
	traffic_stop "$name: every packet through the second device is answered once"
	await 30 balance
	ok $? "$name: what was set pending was taken, each bit once"
	sed 's/^/# /' "$KTAP_TMP/balance"
	equal "$name: the host counts the same bits" \
		"$(($(host_count diverted) - base_diverted)) $(($(host_count posted) - base_posted))" \
		"$(gstat host_diverted) $(gstat host_posted)"
	equal "$name: none was stuck" "$(gstat stuck)" 0
}

end() {
	guest 0 'rmmod vbalance_guest' </dev/null
	ok $? "$name: the module unloads"
	guest_log_clean 0
	guest_stop 0
}
