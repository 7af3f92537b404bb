#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Rings of network devices are reset and get another size (ethtool -G) while
# packets come and other vCPUs serve them. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/redirectlib.sh
. "$KTAP_DIR/redirectlib.sh"
VIRTIO_F_RING_RESET=40

# Interfaces of the devices that have these addresses.
links() {
	guest 0 "for link in /sys/class/net/*; do
		link=\${link##*/}
		! ip addr show dev \$link | grep -q ' \($IP\|$IP1\)/' || echo \$link
		done" </dev/null | xargs
}
# Of all rings, of all queues: one word if they agree.
sizes() {
	guest 0 "for link in $LINKS; do ethtool -g \$link | sed '1,/Current/d' | sed -n 's/^[RT]X:[^0-9]*//p'; done" </dev/null |
		sort -u | xargs
}
# A ring that is reset loses what is in it, with any driver and without us: what
# is under way meanwhile is not judged.
traffic_forget() {
	for address in "$IP" "$IP1"; do
		traffic_select "$address"
		kill -INT "$(cat "$KTAP_TRAFFIC.pid")"
		wait "$(cat "$KTAP_TRAFFIC.pid")"
		tail -n 2 "$KTAP_TRAFFIC" | sed -n 's/^.*packets transmitted/# '"$address"': &/p'
	done
}
# resized redirected|borrowed ROUNDS: an odd number, so that the size is another one afterwards
resized() {
	check "$name: network interrupts are $1" await 120 every_device "$1" name 'virtio[0-9]*-input'
	# More of them: while one ring is reset others are served, and itself until then.
	for address in "$IP" "$IP1"; do
		flood_start "$address"
	done
	failed=
	for round in $(seq "$2"); do
		size=$((round % 2 ? 64 : 256))
		# A queue is stopped meanwhile: not for as long as busy vCPUs have
		# other processes to run, which the device's watchdog reports.
		guest 0 "for link in $LINKS; do nice -n -20 ethtool -G \$link rx $size tx $size || exit 1; done" </dev/null &&
			[ "$(sizes)" = $size ] && more 1 || failed="$failed $round"
		echo "# $(ktap_uptime) s: $size"
	done
	equal "$name: rings get another size $2 times, and packets go on" "$failed" ""
	floods_stop
	traffic_forget
	traffic_start "$IP"
	traffic_start "$IP1"
	more 20
	count_from_here
	check "$name: network interrupts are $1 afterwards" await 120 every_device "$1" name 'virtio[0-9]*-input'
}
# Bits of a ring that is being reset are of no interrupt.
QUEUES_GO=1

PARAMS="remap=redirect"
begin "remap=redirect"
if [ "$(guest 0 "cut -c $((VIRTIO_F_RING_RESET + 1)) /sys/bus/virtio/drivers/virtio_net/virtio*/features" </dev/null | sort -u)" != 1 ]; then
	skip "rings get another size" "these devices do not offer VIRTIO_F_RING_RESET"
	all_answered
	end
	unload vbalance_host
	ktap_end
fi
LINKS=$(links)
echo "# $LINKS: $(sizes)"
resized redirected 9
at_rest
end

PARAMS="remap=borrow source=steal"
begin "remap=borrow"
resized borrowed 9
at_rest_alone
end
unload vbalance_host
ktap_end
