#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs spin over redirect.pml as runs.txt says; KTAP on standard output.
#
#	run.sh BUILD [REGEX]	only the runs whose name matches
#
# LONG=1: also what takes minutes. Exit status: 0 passed, 1 failed, 4 skipped (no spin or no compiler).
set -u

build=$1
only=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
TAB=$(printf '\t')

# More than any run needs (1 GB); what does not fit has failed.
MEMORY_MB=2900
# Lines of a trail that are shown: its end says what is lost.
SHOWN=60

for program in spin gcc; do
	command -v "$program" >/dev/null || {
		echo "KTAP version 1"
		echo "1..0 # SKIP $program is not installed"
		exit 4
	}
done
mkdir -p "$build" && cd "$build" || exit 1

# verdict, name and definitions, a tab between
list() {
	grep -v '^#' "$here/runs.txt" | tr -s '\t' | grep -e "$TAB.*$only.*$TAB"
}

# $1: verdict, rest: definitions
compile() {
	verdict=$1
	shift
	rm -f pan pan.* redirect.pml.trail
	cp "$here/redirect.pml" . &&
		spin -a "$@" redirect.pml >spin.log 2>&1 || return
	flags="-DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=$MEMORY_MB"
	case "$*" in
	*LIVENESS*) flags="$flags -DNFAIR=4" ;;
	*) flags="$flags -DSAFETY" ;;
	esac
	# Not meant to go with "provided".
	case "$*" in *SURVIVE*) flags="$flags -DNOREDUCE" ;; esac
	# Those that find something end soon: compiling would take longer.
	case $verdict in finds) flags="-O0 $flags" ;; *) flags="-O2 $flags" ;; esac
	# shellcheck disable=SC2086 # several words
	gcc -w $flags -o pan pan.c >gcc.log 2>&1
}

search() {
	set -- "$*" -m1000000
	case $1 in *LIVENESS*) set -- "$@" -a -f ;; esac
	# Processes without CPU stop anywhere then.
	case $1 in *SURVIVE*) set -- "$@" -E ;; esac
	shift
	./pan "$@" >pan.log 2>&1
}

# A search that was cut short, or that never came to rest, has shown nothing.
is_complete() {
	grep -q 'errors: 0$' pan.log &&
		! grep -Eq 'search depth too small|MEMLIM|out of memory' pan.log &&
		! sed -n '/^unreached in proctype observer/,/states)/p' pan.log |
			grep -q 'assert(excuse)'
}

# An error that the model states, not a mistake in the model.
has_found() {
	grep -Eq '^pan:.*(assertion violated|acceptance cycle)' pan.log
}

show() {
	sed 's/^/# /' spin.log gcc.log 2>/dev/null
	grep -E '^pan|errors:|aborted' pan.log | sed 's/^/# /'
	[ ! -e redirect.pml.trail ] ||
		spin -t -p "$@" redirect.pml 2>&1 | tail -n $SHOWN | sed 's/^/# /'
}

nr=$(list | wc -l)
echo "KTAP version 1"
echo "1..$nr"
[ "$nr" -gt 0 ] || exit 1
list | {
	n=0
	failed=0
	while IFS="$TAB" read -r verdict name defs; do
		n=$((n + 1))
		if [ "$verdict" = long ] && [ -z "${LONG-}" ]; then
			echo "ok $n - redirect: $name # SKIP takes minutes: make model"
			continue
		fi
		rm -f pan.log
		# shellcheck disable=SC2086 # several words
		set -- $defs
		compile "$verdict" "$@" && search "$@"
		touch pan.log
		case $verdict in
		finds) check=has_found name="finds: $name" ;;
		*) check=is_complete ;;
		esac
		if $check; then
			echo "ok $n - redirect: $name"
		else
			show "$@"
			echo "not ok $n - redirect: $name"
			failed=1
		fi
	done
	exit $failed
}
