#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A checkout and DKMS, for `make dkms-install` and `make dkms-uninstall`:
#
#	dkms.sh install VERSION [KERNEL]   another version is replaced, when this
#				one has been built for all kernels that have it
#	dkms.sh mayremove	is what there is not a package's?
#	dkms.sh remove		all versions that this or DKMS knows
#
# Only folders that have MARK are removed from /usr/src: others that are named
# like them (a checkout, say) are somebody's. It needs root.
cd "$(dirname "$0")/.." || exit
MARK=.from-make-dkms-install
# In such a folder, when it was installed for all kernels that it should be.
DONE=.done
KNOWN=/var/lib/dkms/vbalance

die() {
	for line; do echo "$line" >&2; done
	exit 1
}
tree_of() { echo "/usr/src/vbalance-$1"; }
is_ours() { [ "$(cat "$(tree_of "$1")/$MARK" 2>/dev/null)" = "$1" ]; }
mark() { mkdir -p "$(tree_of "$1")" && echo "$1" > "$(tree_of "$1")/$MARK"; }
is_known() { [ -e "$KNOWN/$1" ]; }
is_installed() { dkms status "vbalance/$1" | grep -q ': installed'; }

versions() {
	for folder in "$KNOWN"/[0-9]* /usr/src/vbalance-*/"$MARK"; do
		case $folder in
		*'*'*) continue ;;
		*/"$MARK") folder=${folder%/*}; folder=${folder#/usr/src/vbalance-} ;;
		esac
		echo "${folder##*/}"
	done | sort -u
}

not_a_packages() {
	! dpkg -S '/usr/src/vbalance-*' >/dev/null 2>&1 ||
		die "This is the package's: apt purge vbalance-dkms"
}

# DKMS removes nothing of one whose source is gone: of that it reads dkms.conf
# only.
forget() {	# VERSION
	gone=$(tree_of "$1")
	if is_known "$1"; then
		if ! [ -e "$gone/dkms.conf" ]; then
			[ ! -e "$gone" ] || is_ours "$1" ||
				die "$gone is not from make dkms-install, and has no dkms.conf: move it away."
			mark "$1" && sed "s/^\(PACKAGE_VERSION=\).*/\1$1/" dkms.conf \
				> "$gone/dkms.conf" || exit
		fi
		[ -L "$KNOWN/$1/source" ] || dkms add "vbalance/$1" || exit
		dkms remove "vbalance/$1" --all || exit
	fi
	if is_ours "$1"; then
		rm -r "$gone" || exit
	elif [ -e "$gone" ]; then
		echo "$gone is not from make dkms-install: left there."
	fi
}

# Kernels whose modules can be built; those that have modules of any version.
with_headers() {
	for build in /lib/modules/*/build; do
		release=${build#/lib/modules/}
		[ ! -e "$build" ] || echo "${release%/build}"
	done
}
with_modules() {	# [STATE]
	dkms status vbalance |
		sed -n "s/^[^,]*, \\([^,]*\\), .*: ${1:-installed}.*/\\1/p"
}

# cannot_build STATUS VERSION RELEASE OTHERS: a version that is no good must not
# stay with DKMS, which would build it, as the newest, for the next kernel.
# STATUS: 77: not a kernel that it is for (dkms.conf)
cannot_build() {
	reason="vBalance is for kernels 6.1 to 7.x, x86-64, not real-time"
	if [ "$1" != 77 ]; then
		reason="the reason is above"
		if log=$(mktemp /tmp/vbalance-make.log.XXXXXX) &&
		   cp "$KNOWN/$2/build/make.log" "$log" 2>/dev/null; then
			reason="$reason, or in $log"
		else
			rm -f "$log"
		fi
	fi
	(forget "$2") >&2
	left="No module is installed"
	[ -z "$4" ] || left="What is installed stays"
	echo "Not built for $3. $left; $reason." >&2
	exit "$1"
}

add_and_install() {	# VERSION [KERNEL]
	version=$1 kernel=${2:-$(uname -r)} tree=$(tree_of "$1")
	command -v dkms >/dev/null ||
		die "There is no dkms here (Debian: apt install dkms)."
	for f in /lib/modules/*/updates/host-mod/vbalance_*.ko* \
		 /lib/modules/*/updates/guest-mod/vbalance_*.ko*; do
		[ -e "$f" ] || continue
		release=${f#/lib/modules/}
		die "$f is from make install, and DKMS would leave it there:" \
			"make uninstall KDIR=/lib/modules/${release%%/*}/build (or rm) first."
	done
	not_a_packages
	if [ -e "$tree/$DONE" ] && is_known "$version" && is_installed "$version"; then
		die "$tree is there already: make dkms-uninstall first."
	fi
	[ ! -e "$tree" ] || is_ours "$version" ||
		die "$tree is not from make dkms-install: move it away, DKMS's copy has to go there."
	have=$(with_modules)
	# That had modules of another version until this one was not installed.
	is_ours "$version" && ! [ -e "$tree/$DONE" ] &&
		have=$(echo "$have"; with_modules built)
	others=$(versions | grep -Fxv "$version")
	# What is left of one that failed.
	forget "$version"
	mark "$version" && make -s dkms-source && dkms add "vbalance/$version" || exit

	# No kernel that has modules is left without.
	built=
	must=$(printf '%s\n' "$kernel" "$have")
	for release in $({ echo "$must"; [ -n "$2" ] || with_headers; } |
			awk 'NF && !seen[$0]++'); do
		status=0
		dkms build "vbalance/$version" -k "$release" || status=$?
		if [ $status != 0 ] && echo "$must" | grep -Fxq "$release"; then
			cannot_build $status "$version" "$release" "$others"
		fi
		# 77: not one that it is for
		case $status in
		0) built="$built $release" ;;
		77) ;;
		*) echo "For $release no module is installed; the reason is above." >&2 ;;
		esac
	done
	for other in $others; do
		forget "$other"
	done
	for release in $built; do
		dkms install "vbalance/$version" -k "$release" || {
			status=$?
			echo "Not installed for $release; the reason is above. Call it again then." >&2
			exit $status
		}
	done
	touch "$tree/$DONE"
}

# Before anything that others may not find: Debian has dkms in /usr/sbin.
[ "$(id -u)" = 0 ] || die "This needs root."
case $1 in
install) add_and_install "$2" "$3" ;;
mayremove) not_a_packages ;;
remove)
	for version in $(versions); do
		forget "$version"
	done ;;
*) die "usage: $0 install VERSION [KERNEL] | mayremove | remove" ;;
esac
