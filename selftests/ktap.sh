# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# KTAP for shell tests, and what they share. A test sources this file, calls
# ok/check/skip_all, and ends with ktap_end. Runs on any machine that has the
# modules (built here or installed), and in the lab's busybox.

KTAP_N=0
KTAP_FAILED=0
DEBUG=/sys/kernel/debug/vbalance
HOST=$DEBUG/host
GUEST=$DEBUG/guest
echo "KTAP version 1"

ok() {	# STATUS NAME
	KTAP_N=$((KTAP_N + 1))
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

# Lines of the kernel log that came since the test began.
KTAP_DMESG=$(dmesg | wc -l)
ktap_new_dmesg() {
	dmesg | tail -n +$((KTAP_DMESG + 1))
}

ktap_kernel_clean() {
	! ktap_new_dmesg | grep -E 'WARNING:|BUG:|Oops|possible .* (deadlock|locking)|suspicious RCU|rcu.*(stall|detected)|nobody cared|blocked for more than|Call Trace'
}

need_root() {
	[ "$(id -u)" = 0 ] || skip_all "needs root"
}

# Path of one of our modules: built in this tree, in the lab, or installed.
module_path() {	# NAME
	ktap_dir=$(dirname "$0")
	for ktap_f in "$ktap_dir/../host-mod/$1.ko" \
			"$ktap_dir/../guest-mod/$1.ko" "/lab/$1.ko"; do
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

load() {	# NAME [PARAMETERS...]
	ktap_m=$(module_path "$1")
	shift
	insmod "$ktap_m" "$@" 2>/dev/null
}

unload() {
	! loaded "$1" || rmmod "$1"
}

# stat FILE NAME: value of a "name value" line
stat_of() {
	sed -n "s/^$2 //p" "$1" 2>/dev/null
}

# await SECONDS COMMAND...: until it succeeds. Generous: machines are slow.
await() {
	ktap_left=$(($1 * 5))
	shift
	until "$@"; do
		ktap_left=$((ktap_left - 1))
		[ $ktap_left -gt 0 ] || return 1
		sleep 0.2
	done
}

equal() {	# NAME GOT WANTED
	[ "$2" = "$3" ] || echo "# $1: got '$2', expected '$3'"
	[ "$2" = "$3" ]
	ok $? "$1"
}

# A refused parameter: -EINVAL, one clear line, module not loaded.
refuses() {	# MODULE PARAMETER=VALUE
	ktap_before=$(dmesg | wc -l)
	if load "$1" "$2"; then
		unload "$1"
		ok 1 "$1 $2 is refused"
		return
	fi
	dmesg | tail -n +$((ktap_before + 1)) |
		grep -q "$1: parameter ${2%%=*}=${2#*=}: not"
	ok $? "$1 $2 is refused with a clear line in the log"
}
