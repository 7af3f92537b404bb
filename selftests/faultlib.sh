# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Fault injection: what a module does when the kernel has no memory for it, or
# for what it asks the kernel to do. Sourced after ktap.sh.

FAULTS=/sys/kernel/debug
need_faults() {
	if ! [ -e $FAULTS/failslab/require-start ] ||
			! [ -e $FAULTS/fail_page_alloc/require-start ]; then
		skip_all "this kernel has no fault injection (CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC, CONFIG_FAULT_INJECTION_STACKTRACE_FILTER)"
	fi
	command -v failnth >/dev/null || skip_all "failnth is not built"
}

# faults_below FROM TO: only what functions at these addresses ask for, or
# what they call. No report of each. Not what the kernel needs to disarm a
# probe: without it the probe stays where it is.
faults_below() {
	[ $# = 2 ] || { echo "# no such function"; return 1; }
	# shellcheck disable=SC2046 # two words
	faults_reject $(function_range __disarm_kprobe_ftrace)
	for fault in failslab fail_page_alloc; do
		echo 0 > $FAULTS/$fault/verbose
		echo N > $FAULTS/$fault/ignore-gfp-wait
		echo 32 > $FAULTS/$fault/stacktrace-depth
		echo "0x$1" > $FAULTS/$fault/require-start
		echo "0x$2" > $FAULTS/$fault/require-end
	done
	echo N > $FAULTS/fail_page_alloc/ignore-gfp-highmem
	echo 0 > $FAULTS/fail_page_alloc/min-order
}

faults_reject() {	# FROM TO
	[ $# = 2 ] || return 0
	for fault in failslab fail_page_alloc; do
		echo "0x$1" > $FAULTS/$fault/reject-start
		echo "0x$2" > $FAULTS/$fault/reject-end
	done
}

# The allocators report a failure with their caller's stack, those that were
# asked for as well: only the heading of that stack is expected.
ktap_unexpected() {
	awk '/ vmalloc error: / { near = NR }
		near && NR - near <= 5 && / Call Trace:/ { near = 0; next }
		{ print }'
}

# fault_next KIND SPACE: of what is asked for from now on, that fails once which
# comes after so much else: bytes (failslab) or pages (fail_page_alloc)
fault_next() {
	echo 1 > $FAULTS/"$1"/interval
	echo "$2" > $FAULTS/"$1"/space
	echo 1 > $FAULTS/"$1"/times
	echo 100 > $FAULTS/"$1"/probability
}

# Has it? There is none from now on.
fault_happened() {	# KIND
	echo 0 > $FAULTS/"$1"/probability
	[ "$(cat $FAULTS/"$1"/times)" = 0 ]
}

# Addresses of a function of the kernel: its own, and the next one's.
function_range() {	# NAME
	sort /proc/kallsyms | awk -v name="$1" '
		first && $1 != first { print first, $1; exit }
		$3 == name { first = $1 }'
}

# Those of a loaded module's functions.
module_range() {	# MODULE
	awk -v module="[$1]" '$NF == module && tolower($2) == "t" { print $1 }' \
		/proc/kallsyms | sort | sed -n '1p;$p' | tr '\n' ' '
}

# What a module has in the kernel while it is loaded, and must not have after.
# Symbols are apart: to read those of all the kernel takes long on a kernel
# that watches each access, and once is enough: no step leaves more than the last.
traces_of() {	# MODULE
	grep "^$1 " /proc/modules
	cat $FAULTS/kprobes/list
	cat "$TRACING"/enabled_functions
	ls "$DEBUG"
	grep vbalance /sys/devices/system/cpu/hotplug/states
	pidof vbalance_boost
} 2>/dev/null

# Each of the first FAULTY_FROM allocations, then they are the more the farther
# apart: on a debug kernel a step takes half a minute.
FAULTY_ALL=1000000
[ "${SLOW:-1}" = 1 ] || FAULTY_ALL=16
FAULTY_FROM=$FAULTY_ALL
faulty_next() {
	faulty_n=$((faulty_n + 1 + faulty_n / FAULTY_FROM))
}

faulty_begin() {	# MODULE
	faulty_m=$(module_path "$1")
	traces_of "$1" > "$KTAP_TMP/before"
	: > "$KTAP_TMP/seen"
	faulty_n=0
	faulty_tries=0
}

# Nothing of it is left.
faulty_clean() {	# MODULE
	if loaded "$1" && ! rmmod "$1"; then
		echo "# allocation $faulty_n: it cannot be unloaded"
		return 1
	fi
	traces_of "$1" > "$KTAP_TMP/after"
	if ! cmp -s "$KTAP_TMP/before" "$KTAP_TMP/after"; then
		echo "# allocation $faulty_n: what was and what is there:"
		diff "$KTAP_TMP/before" "$KTAP_TMP/after" | sed 's/^/# /'
		return 1
	fi
}

# And it can be loaded: of steps it is the next one that shows it.
faulty_again() {	# MODULE
	faulty_clean "$1" && insmod "$faulty_m" && rmmod "$1" && return
	echo "# allocation $faulty_n: then it cannot be loaded and unloaded"
	return 1
}

no_symbols() {	# MODULE
	! grep -F "[$1]" /proc/kallsyms | sed 's/^/# /' | grep .
}

# faulty_steps MODULE ALLOWED COMMAND...: runs the command with the next
# allocation failing each time, until there is none left to fail. ALLOWED: how
# it may end.
faulty_steps() {
	faulty_name=$1
	faulty_allowed=$2
	shift 2
	while :; do
		faulty_next
		faulty_tries=$((faulty_tries + 1))
		faulty_got=$("$@") || return 1
		faulty_got=$(echo "$faulty_got" | tail -n 1)
		echo "${faulty_got% all}" >> "$KTAP_TMP/seen"
		case " $faulty_allowed " in
		*" ${faulty_got% all} "*) ;;
		*) echo "# allocation $faulty_n: $faulty_got"; return 1 ;;
		esac
		faulty_clean "$faulty_name" || return 1
		case $faulty_got in *" all") break ;; esac
	done
	echo "# $((faulty_tries - 1)) allocations failed: $(sort "$KTAP_TMP/seen" |
		uniq -c | awk '{ n = $1; $1 = ""; printf "%s: %d  ", $0, n }')"
	[ "$faulty_got" = "ok all" ] && faulty_again "$faulty_name" &&
		no_symbols "$faulty_name"
}

faulty_load() {	# PARAMETERS
	failnth "$faulty_n" load "$faulty_m" "$1"
}

faulty_unload() {	# MODULE PARAMETERS
	insmod "$faulty_m" "$2" && failnth "$faulty_n" unload "$1"
}

# faulty_calls MODULE: init functions that fail for another reason
faulty_calls() {
	faulty_begin "$1"
	grep -q 'parm=fail_at:' "$faulty_m" || {
		echo "# it was not built with VB_FAULTS=y"
		return 1
	}
	while :; do
		faulty_n=$((faulty_n + 1))
		faulty_got=$(failnth 0 load "$faulty_m" "fail_at=$faulty_n") || return 1
		[ "$faulty_got" = "EIO" ] || break
		faulty_clean "$1" || return 1
	done
	echo "# $((faulty_n - 1)) calls failed, then: $faulty_got"
	[ "${faulty_got% all}" = ok ] && faulty_again "$1" && no_symbols "$1" &&
		[ "$faulty_n" -gt 1 ]
}

# faulty_loads MODULE PARAMETERS: its init function without memory. It says so
# or does without.
faulty_loads() {
	faulty_begin "$1"
	# shellcheck disable=SC2046 # two words
	faults_below $(function_range do_one_initcall) &&
		faulty_steps "$1" "ok ENOMEM" faulty_load "$2" &&
		[ "$faulty_n" -gt 1 ]
}

# The same of its exit function, which cannot fail.
faulty_unloads() {	# MODULE PARAMETERS
	faulty_begin "$1"
	# shellcheck disable=SC2046 # two words
	faults_below $(function_range __x64_sys_delete_module) &&
		faulty_steps "$1" ok faulty_unload "$1" "$2"
}

no_leak() {
	if ! [ -e $FAULTS/kmemleak ]; then
		skip "no leak" "this kernel does not look for them (CONFIG_DEBUG_KMEMLEAK)"
		return
	fi
	leaks
	! sed 's/^/# /' $FAULTS/kmemleak | grep .
	ok $? "no leak"
}
