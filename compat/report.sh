#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# report.sh SRC CONFIG FLAGS PROBE...: what this kernel has and has not, one
# line each. A probe says what either means; of the options in CONFIG (the
# kernel's include/config/auto.conf) only those that are missing are named,
# with what each module does without.
src=$1 config=$2 flags=" $3 "
shift 3

has() {	# OPTION
	grep -q "^CONFIG_$1=[ym]" "$config"
}

need() {	# OPTION WITHOUT-IT
	has "$1" || echo "vbalance: $1: missing: $2"
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
fi
need KPROBES "vbalance_guest: unload it before a kdump"
need KVM_GUEST "vbalance_guest refuses to load: the kernel does not know that it is a guest"
need DEBUG_FS "neither module shows anything there, and irqbalance's policy script leaves all interrupts to irqbalance"
if has DEBUG_INFO_BTF; then
	echo "vbalance: BTF: found: at load the kernel is compared with this one"
	! has KVM || need DEBUG_INFO_BTF_MODULES "if KVM is a module, only the release says what KVM it is"
else
	echo "vbalance: BTF: missing: only its release says what kernel it is"
fi
