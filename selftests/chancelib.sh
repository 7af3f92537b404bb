# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Counts of rare things, and whether chance explains them. Any POSIX shell.

# still_chance N SECONDS RECORD RECORD_SECONDS: RECORD of them (at least one)
# in RECORD_SECONDS were usual; are N in SECONDS nothing else? A false alarm
# in a thousand.
#
# How often they come is not known, only guessed at by the record: then it is a
# negative binomial that says how many there are (Poisson, with a rate of which
# the record is all that is known). With a record as short as one run's the
# number that it allows is large; that is why a longer one helps.
still_chance() {
	awk -v n="$1" -v seconds="$2" -v record="$3" -v of="$4" 'BEGIN {
		share = seconds / (seconds + of)
		# Not every busybox has a power.
		term = 1
		for (k = 0; k < record; k++)
			term *= 1 - share
		tail = 1
		for (k = 0; k < n; k++) {
			tail -= term
			term *= share * (record + k) / (k + 1)
		}
		exit tail < 0.001
	}'
}
