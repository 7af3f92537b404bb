# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# vbalance_host comes and goes under VMs that keep it busy. Sourced after
# ktap.sh.

# storm BUSY COMMAND [PARAM=...]: the command runs until SIGTERM; whenever BUSY
# succeeds the module goes, and comes again with these parameters. Prints
# results, the command's and its own (for embed).
storm() {
	storm_busy=$1
	# shellcheck disable=SC2086 # words
	$2 &
	storm_pid=$!
	KTAP_KILL="$KTAP_KILL $storm_pid"
	shift 2
	storm_n=0
	while storm_is_busy && [ "$storm_n" -lt 8 ]; do
		unload vbalance_host || echo "not ok - unload"
		load vbalance_host "$@" || echo "not ok - load"
		storm_n=$((storm_n + 1))
	done
	kill -TERM "$storm_pid"
	wait "$storm_pid"
}

# Or what the module says. There is nothing to be learnt from further loads then.
storm_is_busy() {
	await 20 "$storm_busy" && return
	echo "not ok - nothing happens after $storm_n loads: $storm_busy"
	grep -rs . "$HOST"
	return 1
}
