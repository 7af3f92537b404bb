#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# report.sh SRC CONFIG FLAGS PROBE...: what this kernel has and has not, one
# line each. A probe says what either means; of the options in CONFIG (the
# kernel's include/config/auto.conf) only those that are missing are named,
# with what each module does without. Of the functions that are hooked those that
# the kernel's module has not, if that is installed (VB_MODULES: where
# instead of /lib/modules/RELEASE), and those that the kernel itself has not, if
# it is the one that runs (VB_KALLSYMS: of one that is taken for it) or if its
# BTF comes with its headers. And what of this cannot be told.
src=$1 config=$2 flags=" $3 "
shift 3

has() {	# OPTION
	grep -q "^CONFIG_$1=[ym]" "$config"
}

need() {	# OPTION WITHOUT-IT
	has "$1" || echo "vbalance: $1: missing: $2"
}

include=${config%/config/auto.conf}
# The release as it is: with Debian 12's headers `make kernelrelease` says another.
release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' \
	"$include/generated/utsrelease.h" 2>/dev/null)
modules=${VB_MODULES:-/lib/modules/$release}/kernel

# A file of its own, $tmp. Context: a subshell, at whose end it goes.
temporary() {
	tmp=$(mktemp) && trap 'rm -f "$tmp"' EXIT
}

# Context: a subshell.
symbols() {	# FILE: of a module, compressed or not
	temporary || return
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

missing() {	# SYMBOLS FUNCTION
	! grep -q " [tT] $2\$" <<-END
		$1
	END
}

unseen() {	# WHAT WHY
	echo "vbalance: $1: $2: whether it has all functions that are hooked is seen at load"
}

# hooked NAME-IN-vbh_facts.c WHERE SYMBOLS: those that WHERE has not
hooked() {
	sed -n "/vbh_facts_of_$1\[/,/^};/s/.*VB_\(HIDDEN_\)*FUNC(VBH_F_\([A-Z_]*\), \([a-z_0-9]*\).*/\2 \3/p" \
		"$src/host-mod/vbh_facts.c" |
		while read -r feature function; do
			! missing "$3" "$function" ||
				without "$feature" "vbalance: $function(): missing in $2: vbalance_host"
		done
	# As vbh_is_one_delivery() in vbh_hooks.c.
	[ "$1" != kvm ] || ! missing "$3" __kvm_irq_delivery_to_apic ||
		! missing "$3" kvm_irq_delivery_to_apic ||
		echo "vbalance: __kvm_irq_delivery_to_apic(): missing in $2: vbalance_host: what may sleep on its way is not redirected"
}

hooked_in_module() {	# NAME-IN-vbh_facts.c MODULE
	for file in "$modules/$2".ko*; do
		break
	done
	if [ ! -e "$file" ]; then
		unseen "${2##*/}" "not installed for this kernel"
		return
	fi
	found=$(symbols "$file")
	if [ -z "$found" ]; then
		unseen "${file##*/}" "cannot be read"
		return
	fi
	hooked "$1" "${2##*/}" "$found"
}

# Functions, without those of its modules: or for these each name in the BTF, by
# which modules are built (Debian since 6.12). One that is of something else is
# seen at load, too. Context: a subshell.
kernel_symbols() {
	list=$VB_KALLSYMS
	[ "$release" != "$(uname -r)" ] || list=${list:-/proc/kallsyms}
	if [ -r "$list" ]; then
		awk 'NF == 3 && $2 ~ /^[tT]$/' "$list"
		return
	fi
	list=${include%/include}/vmlinux
	[ -r "$list" ] && temporary &&
		objcopy -O binary --only-section=.BTF "$list" "$tmp" 2>/dev/null &&
		tr '\0' '\n' < "$tmp" |
		LC_ALL=C grep -axE '[A-Za-z_][A-Za-z0-9_]*' | sed 's/^/0 t /'
}

hooked_in_kernel() {	# NAME-IN-vbh_facts.c
	[ -z "$kernel" ] || hooked "$1" "the kernel" "$kernel"
}

built_in() {	# OPTION
	grep -q "^CONFIG_$1=y" "$config"
}

kernel=$(kernel_symbols)
# What each has: there may be neither functions nor names in what was read.
! missing "$kernel" start_kernel || kernel=
for probe; do
	case $flags in
	*" -DHAVE_$probe "*) answer=found ;;
	*) answer=missing ;;
	esac
	sed -n "s,^// $answer: ,vbalance: $probe: $answer: ,p" \
		"$src/compat/probe/$probe.c"
done
# As VB_HAS_KDUMP in compat/kdump.h.
has_kdump() {
	has KEXEC_CORE && { has CRASH_DUMP || has CRASH_CORE; }
}
if { has KVM && has KPROBES; } || has_kdump; then
	[ -n "$kernel" ] || unseen "the kernel" "neither runs nor comes with its headers"
fi
if ! has KVM; then
	need KVM "no vbalance_host"
elif ! has KPROBES; then
	need KPROBES "no vbalance_host: no guest could register with it"
else
	need DYNAMIC_FTRACE "vbalance_host: hooks are kprobes, which cost more"
	need VHOST_NET "vbalance_host: no rings, so guests without vbalance_guest are judged by time alone"
	hooked_in_kernel kernel
	# As VBH_KVM_BUILT_IN in vbh_facts.c.
	if built_in KVM && ! grep -q "^CONFIG_KVM_X86=m" "$config"; then
		hooked_in_kernel kvm
	else
		hooked_in_module kvm arch/x86/kvm/kvm
	fi
	if built_in VHOST_NET; then
		hooked_in_kernel vhost
	elif has VHOST_NET; then
		hooked_in_module vhost drivers/vhost/vhost_net
	fi
fi
if has_kdump; then
	need KPROBES "vbalance_guest: unload it before a kdump"
	[ -z "$kernel" ] || ! missing "$kernel" machine_crash_shutdown ||
		echo "vbalance: machine_crash_shutdown(): missing in the kernel: vbalance_guest: unload it before a kdump"
fi
need KVM_GUEST "vbalance_guest refuses to load: the kernel does not know that it is a guest"
need DEBUG_FS "neither module shows anything there"
if has MODVERSIONS; then
	echo "vbalance: MODVERSIONS: found: what the functions take that are linked to is compared at load"
else
	echo "vbalance: MODVERSIONS: missing: only the release says what the functions take that are linked to"
fi
if has DEBUG_INFO_BTF; then
	echo "vbalance: BTF: found: at load the kernel is compared with this one"
	! has KVM || need DEBUG_INFO_BTF_MODULES "if KVM is a module, only the release says what KVM it is"
else
	echo "vbalance: BTF: missing: only its release says what kernel it is"
fi
