#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs tests of this folder one after the other and sums up what they say;
# `make run_tests` calls it. Exit status 1 if one failed.
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 skipped=0
out=$(mktemp) || exit 1
trap 'rm -f "$out" "$out.status"' EXIT
trap 'exit 130' INT TERM

for test; do
	echo "# selftests: $test"
	{
		"./$test" 2>&1 < /dev/null
		echo $? > "$out.status"
	} | tee "$out"
	status=$(cat "$out.status")
	ok=$(grep -c '^ok ' "$out")
	skips=$(grep -c '^ok .*# SKIP' "$out")
	bad=$(grep -c '^not ok ' "$out")
	if [ "$status" = 4 ] && [ $((ok + bad)) = 0 ]; then
		skips=1 ok=1
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		echo "not ok - $test: ended with status $status"
		bad=1
	elif [ "$status" = 0 ] && ! grep -q "^1\.\.$((ok + bad))\$" "$out"; then
		echo "not ok - $test: ended before its end"
		bad=$((bad + 1))
	fi
	passed=$((passed + ok - skips))
	failed=$((failed + bad))
	skipped=$((skipped + skips))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ $# -gt 0 ]
