# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# KTAP for shell tests, and what they share. A test sources this file, calls
# ok/check/skip_all, and ends with ktap_end. Runs on any machine that has the
# modules (built here or installed), and in the lab's busybox.

KTAP_N=0
KTAP_FAILED=0
KTAP_DIR=$(dirname "$0")
DEBUG=/sys/kernel/debug/vbalance
HOST=$DEBUG/host
# shellcheck source=selftests/guestlib.sh
. "$KTAP_DIR/guestlib.sh"
KTAP_TMP=$(mktemp -d /tmp/vbalance-test.XXXXXX)
echo "KTAP version 1"

# However the test ends: show how far a program came that was not to end, stop
# what was started, put back what was there.
ktap_cleanup() {
	[ ! -e "$KTAP_TMP/embedded" ] || sed 's/^/# so far: /' "$KTAP_TMP/embedded"
	busy_stop
	# shellcheck disable=SC2086 # a list of process ids
	[ -z "$KTAP_KILL" ] || { kill $KTAP_KILL; kill -CONT $KTAP_KILL; } 2>/dev/null
	trace_off
	ktap_reload
	rm -rf "$KTAP_TMP"
}
KTAP_KILL=
trap ktap_cleanup EXIT
trap 'exit 143' TERM INT

# Where the time goes, for whoever sees a test that takes too long.
ktap_uptime() {	# s
	read -r ktap_up _ < /proc/uptime
	echo "${ktap_up%.*}"
}

ktap_took() {
	ktap_now=$(ktap_uptime)
	ktap_s=$((ktap_now - ${KTAP_LAST:-ktap_now}))
	[ $ktap_s -lt 10 ] || echo "# after $ktap_s s:"
	KTAP_LAST=$ktap_now
}

ok() {	# STATUS NAME
	KTAP_N=$((KTAP_N + 1))
	ktap_took
	if [ "$1" = 0 ]; then
		echo "ok $KTAP_N - $2"
	else
		echo "not ok $KTAP_N - $2"
		KTAP_FAILED=$((KTAP_FAILED + 1))
	fi
}

# check NAME COMMAND...: passes when the command succeeds
check() {
	ktap_name=$1
	shift
	"$@"
	ok $? "$ktap_name"
}

skip() {	# NAME REASON
	KTAP_N=$((KTAP_N + 1))
	echo "ok $KTAP_N - $1 # SKIP $2"
}

skip_all() {	# REASON
	echo "1..0 # SKIP $1"
	exit 4
}

ktap_end() {
	ktap_kernel_clean
	ok $? "no warning in the kernel log"
	echo "1..$KTAP_N"
	[ "$KTAP_FAILED" = 0 ] || exit 1
	exit 0
}

# embed PREFIX COMMAND...: the results of another KTAP program as ours
embed() {
	ktap_prefix=$1
	shift
	ktap_since=$(cut -d. -f1 /proc/uptime)
	"$@" > "$KTAP_TMP/embedded" 2>&1
	ktap_status=$?
	ktap_expected=0
	# Its lines are ours; its numbers are not.
	while read -r ktap_line; do
		case $ktap_line in
		ok\ *) ok 0 "$ktap_prefix: ${ktap_line#*- }" ;;
		not\ ok\ *) ok 1 "$ktap_prefix: ${ktap_line#*- }" ;;
		"1..0 # SKIP "*)
			skip "$ktap_prefix" "${ktap_line#1..0 # SKIP }"
			ktap_expected=4
			;;
		KTAP* | 1..*) ;;
		*) echo "# $ktap_line" ;;
		esac
	done < "$KTAP_TMP/embedded"
	rm "$KTAP_TMP/embedded"
	echo "# $ktap_prefix: $(($(cut -d. -f1 /proc/uptime) - ktap_since)) s"
	equal "$ktap_prefix: exit status" $ktap_status $ktap_expected
}

# Lines of the kernel log that came since the test began.
KTAP_DMESG=$(dmesg | wc -l)
ktap_new_dmesg() {
	dmesg | tail -n +$((KTAP_DMESG + 1))
}

# What a test expects in it is taken out by its own definition of this.
ktap_unexpected() {
	cat
}

ktap_kernel_clean() {
	! ktap_new_dmesg | ktap_unexpected | grep -E 'WARNING:|BUG:|Oops|possible .* (deadlock|locking)|suspicious RCU|rcu.*(stall|detected)|nobody cared|blocked for more than|Call Trace'
}

need_root() {
	[ "$(id -u)" = 0 ] || skip_all "needs root"
}

in_lab() {
	[ -r /lab/config ]
}

# Path of one of our modules: built in this tree, in the lab, or installed; with
# VARIANT the one that the lab has built in that way.
module_path() {	# NAME
	[ -z "${VARIANT-}" ] || { echo "/lab/$VARIANT/$1.ko"; return; }
	for ktap_f in "$KTAP_DIR/../host-mod/$1.ko" \
			"$KTAP_DIR/../guest-mod/$1.ko" "/lab/$1.ko"; do
		[ -e "$ktap_f" ] && { echo "$ktap_f"; return; }
	done
	modinfo -n "$1" 2>/dev/null
}

need_module() {	# NAME
	[ -n "$(module_path "$1")" ] || skip_all "module $1 is not there"
}

loaded() {
	grep -q "^$1 " /proc/modules
}

# What insmod says is kept for those who want to know why it failed.
load() {	# NAME [PARAMETERS...]
	ktap_m=$(module_path "$1")
	shift
	calmly insmod "$ktap_m" "$@" 2> "$KTAP_TMP/insmod"
}

# The same for a test that is of nothing without it: it ends here. A module that
# is there and does not load has failed, but on a machine that it is not for.
load_or_end() {	# NAME [PARAMETERS...]
	load "$@" && return
	! ktap_new_dmesg | grep -q "$1: not a KVM guest" ||
		skip_all "this machine is not a KVM guest"
	sed 's/^/# /' "$KTAP_TMP/insmod"
	ok 1 "$1 is loaded"
	ktap_end
}

# Modules that were loaded before the test, with their parameters.
KTAP_FOUND=
unload() {
	loaded "$1" || return 0
	if [ "$KTAP_FOUND" = "${KTAP_FOUND#* "$1" }" ]; then
		KTAP_FOUND="$KTAP_FOUND $1 "
		for ktap_f in /sys/module/"$1"/parameters/*; do
			echo "${ktap_f##*/}=$(cat "$ktap_f")"
		done > "$KTAP_TMP/parameters-$1"
	fi
	calmly rmmod "$1"
}

idle_kvm() {	# the module to unload before kvm, if that can be
	for vendor in kvm_amd kvm_intel; do
		[ "$(awk '$1 == "kvm" { print $3 }' /proc/modules)" != 1 ] ||
			! grep -q "^$vendor .* 0 " /proc/modules || echo $vendor
	done
}

ktap_reload() {
	for ktap_m in $KTAP_FOUND; do
		! loaded "$ktap_m" || rmmod "$ktap_m"
		xargs insmod "$(module_path "$ktap_m")" < "$KTAP_TMP/parameters-$ktap_m"
	done
}

# await SECONDS COMMAND...: until it succeeds. Generous: machines are slow.
await() {
	ktap_s=$(($1 * ${SLOW:-1}))
	shift
	ktap_until $(($(ktap_uptime) + ktap_s)) "$@"
}

# The end is an argument: what it waits for may wait as well.
ktap_until() {	# UPTIME COMMAND...
	until ktap_rest "$@"; do
		[ "$(ktap_uptime)" -lt "$1" ] || return 1
		sleep 0.2
	done
}

ktap_rest() {
	shift
	"$@"
}

equal() {	# NAME GOT WANTED
	[ "$2" = "$3" ] || echo "# $1: got '$2', expected '$3'"
	[ "$2" = "$3" ]
	ok $? "$1"
}

# A refused parameter: EINVAL, one clear line, module not loaded.
refuses() {	# MODULE PARAMETER=VALUE
	ktap_before=$(dmesg | wc -l)
	if load "$1" "$2"; then
		unload "$1"
		ok 1 "$1 $2 is refused"
		return
	fi
	ktap_refused "$1" "$2" "$KTAP_TMP/insmod"
	ok $? "$1 $2 is refused: EINVAL and a clear line in the log"
}

# The same for a parameter of a loaded module, which keeps its value.
refuses_live() {	# MODULE PARAMETER=VALUE
	ktap_f=/sys/module/$1/parameters/${2%%=*}
	ktap_value=$(cat "$ktap_f")
	ktap_before=$(dmesg | wc -l)
	# Not echo: the shell does not say which error it got.
	! printf %s "${2#*=}" | dd of="$ktap_f" 2> "$KTAP_TMP/dd" &&
		ktap_refused "$1" "$2" "$KTAP_TMP/dd" &&
		[ "$(cat "$ktap_f")" = "$ktap_value" ]
	ok $? "live: $1 $2 is refused: EINVAL, a clear line, the old value stays"
}

ktap_refused() {	# MODULE PARAMETER=VALUE ERRORS
	grep -qi 'invalid \(argument\|parameter\)' "$3" &&
		dmesg | tail -n +$((ktap_before + 1)) |
		grep -q "$1: parameter ${2%%=*}=${2#*=}: not"
}

# ---- somebody who is not root ----

as_user() {
	if setpriv --help 2>&1 | grep -q -e --reuid; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		su nobody -s /bin/sh -c "$*"
	fi
}

# user_refused NAME COMMAND...: fails for a plain user, for lack of permission
user_refused() {
	ktap_name=$1
	shift
	! as_user "$@" > "$KTAP_TMP/user" 2>&1 &&
		grep -qi 'not permitted\|permission denied' "$KTAP_TMP/user"
	ok $? "$ktap_name"
}

# A plain user can do nothing with a module, which must not be loaded.
user_is_refused() {	# MODULE FILE
	if [ "$(as_user id -u 2>/dev/null)" != 65534 ]; then
		skip "$1: a plain user" "no way to become one"
		return
	fi
	# Where a plain user can read it, so that only loading can fail.
	chmod 755 "$KTAP_TMP"
	cp "$(module_path "$1")" "$KTAP_TMP/user.ko"
	check "$1: a plain user can read the file" as_user test -r "$KTAP_TMP/user.ko"
	user_refused "$1: a plain user cannot load it" \
		"$(command -v insmod)" "$KTAP_TMP/user.ko"
	! loaded "$1"
	ok $? "$1: and it is not loaded"
	load "$1"
	user_refused "$1: a plain user cannot unload it" "$(command -v rmmod)" "$1"
	check "$1: and it is still there" loaded "$1"
	user_refused "$1: a plain user cannot read debugfs" cat "$2"
	for ktap_f in /sys/module/"$1"/parameters/*; do
		user_refused "$1: a plain user cannot write ${ktap_f##*/}" \
			dd if=/dev/null of="$ktap_f"
	done
	unload "$1"
	rm -f "$KTAP_TMP/user.ko"
}

# ---- numbered packets ----

# PEER answers pings: what the user says, else the default gateway.
need_peer() {
	: "${PEER:=$(ip route show default | sed -n 's/.* via \([^ ]*\).*/\1/p' | head -n 1)}"
	[ -n "$PEER" ] || skip_all "nobody to ping: no default gateway; set PEER="
	ping -n -c 3 -W 10 "$PEER" > /dev/null 2>&1 ||
		skip_all "$PEER does not answer pings; set PEER="
}

# What follows is about the traffic that was started last, or selected. 20 packets
# a second; of two devices a guest on a debug kernel answers about half as many,
# and its tap device drops the others once its queue is full.
traffic_start() {	# ADDRESS [PACKETS-A-SECOND]
	traffic_select "$1"
	ping -n -i "$(traffic_interval "${2:-20}")" "$1" > "$KTAP_TRAFFIC" 2> "$KTAP_TRAFFIC.err" &
	echo $! > "$KTAP_TRAFFIC.pid"
	KTAP_KILL="$KTAP_KILL $!"
}
traffic_interval() {	# PACKETS-A-SECOND
	LC_ALL=C awk -v slow="${SLOW:-1}" -v rate="$1" 'BEGIN { print slow / rate }'
}

# Unseen: the next one about when the last one has been answered. More (-f sends
# at least 100 a second) a guest that is slow would never be done with, nor allow
# interrupts meanwhile.
flood_start() {	# ADDRESS
	ping -n -q -A "$1" > /dev/null 2>&1 &
	KTAP_FLOODS="$KTAP_FLOODS $!"
	KTAP_KILL="$KTAP_KILL $!"
}
KTAP_FLOODS=

floods_stop() {
	for ktap_ping in $KTAP_FLOODS; do
		{ kill "$ktap_ping"; wait "$ktap_ping"; } 2>/dev/null
		KTAP_KILL=$(echo "$KTAP_KILL " | sed "s/ $ktap_ping / /")
	done
	KTAP_FLOODS=
}

traffic_select() {	# ADDRESS
	KTAP_TRAFFIC=$KTAP_TMP/traffic-$1
}

# Number of the packet that was answered last.
traffic_seen() {
	sed -n 's/.*bytes from.*icmp_seq=\([0-9]*\).*/\1/p' "$KTAP_TRAFFIC" | tail -n 1
}

traffic_passed() {	# N
	ktap_seen=$(traffic_seen)
	[ "${ktap_seen:-0}" -gt "$1" ]
}

# traffic_more N: so many more packets are answered
traffic_more() {
	ktap_seen=$(traffic_seen)
	await 120 traffic_passed $((${ktap_seen:-0} + $1))
}

traffic_sent() {
	KTAP_SENT=$(sed -n 's,.*/\([0-9]*\) packets.*,\1,p' "$KTAP_TRAFFIC.err" | tail -n 1)
	[ -n "$KTAP_SENT" ]
}

# What guests counted; lablib.sh knows some.
guests_net() { :; }

# Those that were sent and not answered once; and how many answers came behind
# later ones.
traffic_bad() {
	awk -v sent="${KTAP_SENT:-0}" -v behind="$KTAP_TRAFFIC.behind" '
		/bytes from/ && match($0, /icmp_seq=[0-9]+/) {
			seq = substr($0, RSTART + 9, RLENGTH - 9) + 0
			if (seq < last) nr_behind++
			else last = seq
			n[seq]++
		}
		END {
			if (!sent) print "nothing sent"
			for (i = 1; i <= sent; i++)
				if (n[i] != 1) print "packet " i ": " n[i] + 0 " answers"
			print nr_behind + 0 > behind
		}' "$KTAP_TRAFFIC"
}
traffic_complete() { [ -z "$(traffic_bad)" ]; }

# Each packet that was sent so far must have been answered, once, while later ones
# are: these may come first, through another queue of the device.
traffic_stop() {	# NAME
	ktap_ping=$(cat "$KTAP_TRAFFIC.pid")
	kill -QUIT "$ktap_ping"
	await 20 traffic_sent
	await 120 traffic_passed "${KTAP_SENT:-0}"
	await 120 traffic_complete
	ktap_net=$(net_counters)
	kill -INT "$ktap_ping"
	wait "$ktap_ping"
	KTAP_KILL=$(echo "$KTAP_KILL " | sed "s/ $ktap_ping / /")
	ktap_bad=$(traffic_bad)
	echo "# $1: ${KTAP_SENT:-0} packets, $(cat "$KTAP_TRAFFIC.behind") of all answered behind later ones"
	equal "$1" "$ktap_bad" ""
	[ -z "$ktap_bad" ] || {
		echo "$ktap_net"
		guests_net
	} | sed 's/^/# /'
}
