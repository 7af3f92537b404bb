#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A checkout and DKMS, for `make dkms-install` and `make dkms-uninstall`:
#
#	dkms.sh install VERSION [KERNEL]   another version is replaced, when this
#				one has been built
#	dkms.sh mayremove	is what there is not a package's?
#	dkms.sh remove		all versions that this or DKMS knows
#
# Only folders that have MARK are removed from /usr/src: others that are named
# like them (a checkout, say) are somebody's.
cd "$(dirname "$0")/.." || exit
MARK=.from-make-dkms-install
KNOWN=/var/lib/dkms/vbalance

die() {
	for line; do echo "$line" >&2; done
	exit 1
}
tree_of() { echo "/usr/src/vbalance-$1"; }
is_ours() { [ -e "$(tree_of "$1")/$MARK" ]; }
is_known() { [ -e "$KNOWN/$1" ]; }
is_built() { dkms status "vbalance/$1" | grep -qE ': (built|installed)'; }

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
	tree=$(tree_of "$1")
	if is_known "$1"; then
		if ! [ -e "$tree/dkms.conf" ]; then
			[ ! -e "$tree" ] || is_ours "$1" ||
				die "$tree is not from make dkms-install, and has no dkms.conf: move it away."
			mkdir -p "$tree" && : > "$tree/$MARK" &&
				sed "s/^\(PACKAGE_VERSION=\).*/\1$1/" dkms.conf \
					> "$tree/dkms.conf" || exit
		fi
		dkms remove "vbalance/$1" --all || exit
	fi
	if is_ours "$1"; then
		rm -r "$tree" || exit
	elif [ -e "$tree" ]; then
		echo "$tree is not from make dkms-install: left there."
	fi
}

# Kernels that were there before, and need no build by who installs one.
other_kernels() {	# RELEASE
	for build in /lib/modules/*/build; do
		release=${build#/lib/modules/}
		release=${release%/build}
		[ ! -e "$build" ] || [ "$release" = "$1" ] || echo "$release"
	done
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
	if [ -e "$tree" ] && is_known "$version" && is_built "$version"; then
		die "$tree is there already: make dkms-uninstall first."
	fi
	[ ! -e "$tree" ] || is_ours "$version" ||
		die "$tree is not from make dkms-install: move it away, DKMS's copy has to go there."
	others=$(versions | grep -Fxv "$version")
	# What is left of one that failed.
	forget "$version" || exit
	install -d "$tree" && : > "$tree/$MARK" &&
		make -s dkms-source && dkms add "vbalance/$version" || exit
	dkms build "vbalance/$version" -k "$kernel" || {
		status=$?
		kept=${others:+, what was installed before stays}
		echo "No module is installed$kept; the reason is above, or in" \
			"$KNOWN/$version/build/make.log." >&2
		exit $status
	}
	for other in $others; do
		forget "$other"
	done
	dkms install "vbalance/$version" -k "$kernel" || exit
	[ -z "$2" ] || return 0
	for release in $(other_kernels "$kernel"); do
		# 77: not one that it is for
		dkms install "vbalance/$version" -k "$release" || [ $? = 77 ] ||
			echo "For $release no module is installed; the reason is above." >&2
	done
}

case $1 in
install) add_and_install "$2" "$3" ;;
mayremove) not_a_packages ;;
remove)
	for version in $(versions); do
		forget "$version"
	done ;;
*) die "usage: $0 install VERSION [KERNEL] | mayremove | remove" ;;
esac
