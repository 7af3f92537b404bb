#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# report.sh SRC CONFIG FLAGS PROBE...: what this kernel has and has not, one
# line each. A probe says what either means; of the options in CONFIG (the
# kernel's include/config/auto.conf) only those that are missing are named,
# with what each module does without. Of the functions that are hooked those that
# the kernel's module has not, if that is installed (VB_MODULES: where
# instead of /lib/modules/RELEASE), and those that the kernel itself has not, if
# it is the one that runs (VB_KALLSYMS: of one that is taken for it).
src=$1 config=$2 flags=" $3 "
shift 3

has() {	# OPTION
	grep -q "^CONFIG_$1=[ym]" "$config"
}

need() {	# OPTION WITHOUT-IT
	has "$1" || echo "vbalance: $1: missing: $2"
}

# The release as it is: with Debian 12's headers `make kernelrelease` says another.
release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' \
	"${config%/config/auto.conf}/generated/utsrelease.h" 2>/dev/null)
modules=${VB_MODULES:-/lib/modules/$release}/kernel

# Context: a subshell, for its temporary file.
symbols() {	# FILE: of a module, compressed or not
	tmp=$(mktemp) || return
	trap 'rm -f "$tmp"' EXIT
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -dcq "$1" ;;
	*.gz) gzip -dc "$1" ;;
	*) cat "$1" ;;
	esac > "$tmp" 2>/dev/null && nm "$tmp" 2>/dev/null
}

# without FEATURE SAID: by its name in the code
without() {
	case $1 in
	RUN_STATE) echo "$2 refuses to load" ;;
	*) sed -n "s/.*\[VBH_F_$1\] = { \"\(.*\)\",.*/$2: feature \1 is off/p" \
		"$src/host-mod/vbh_hooks.c" ;;
	esac
}

# hooked NAME-IN-vbh_facts.c WHERE SYMBOLS: those that WHERE has not
hooked() {
	sed -n "/vbh_facts_of_$1\[/,/^};/s/.*VB_\(HIDDEN_\)*FUNC(VBH_F_\([A-Z_]*\), \([a-z_0-9]*\).*/\2 \3/p" \
		"$src/host-mod/vbh_facts.c" |
		while read -r feature function; do
			grep -q " [tT] $function\$" <<-END ||
				$3
			END
				without "$feature" "vbalance: $function(): missing in $2: vbalance_host"
		done
}

hooked_in_module() {	# NAME-IN-vbh_facts.c MODULE
	for file in "$modules/$2".ko*; do
		break
	done
	[ -e "$file" ] || return
	found=$(symbols "$file")
	if [ -z "$found" ]; then
		echo "vbalance: ${file##*/}: cannot be read: whether it has all functions that are hooked is seen at load"
		return
	fi
	hooked "$1" "${2##*/}" "$found"
}

hooked_in_kernel() {
	list=$VB_KALLSYMS
	[ "$release" != "$(uname -r)" ] || list=${list:-/proc/kallsyms}
	[ -r "$list" ] || return
	# Without those of its modules, which come behind.
	hooked kernel "the kernel" "$(grep -v '\]$' "$list")"
}

for probe; do
	case $flags in
	*" -DHAVE_$probe "*) answer=found ;;
	*) answer=missing ;;
	esac
	sed -n "s,^// $answer: ,vbalance: $probe: $answer: ,p" \
		"$src/compat/probe/$probe.c"
done
if ! has KVM; then
	need KVM "no vbalance_host"
elif ! has KPROBES; then
	need KPROBES "no vbalance_host: no guest could register with it"
else
	need DYNAMIC_FTRACE "vbalance_host: hooks are kprobes, which cost more"
	need VHOST_NET "vbalance_host: no rings, so guests without vbalance_guest are judged by time alone"
	hooked_in_kernel
	hooked_in_module kvm arch/x86/kvm/kvm
	hooked_in_module vhost drivers/vhost/vhost_net
fi
need KPROBES "vbalance_guest: unload it before a kdump"
need KVM_GUEST "vbalance_guest refuses to load: the kernel does not know that it is a guest"
need DEBUG_FS "neither module shows anything there"
if has DEBUG_INFO_BTF; then
	echo "vbalance: BTF: found: at load the kernel is compared with this one"
	! has KVM || need DEBUG_INFO_BTF_MODULES "if KVM is a module, only the release says what KVM it is"
else
	echo "vbalance: BTF: missing: only its release says what kernel it is"
fi
