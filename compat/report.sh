#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# report.sh SRC KVM BTF FLAGS PROBE...: what this kernel has and has not, one
# line each. A probe says what either means.
src=$1 kvm=$2 btf=$3 flags=" $4 "
shift 4

for probe; do
	case $flags in
	*" -DHAVE_$probe "*) answer=found ;;
	*) answer=missing ;;
	esac
	sed -n "s,^// $answer: ,vbalance: $probe: $answer: ,p" \
		"$src/compat/probe/$probe.c"
done
[ -n "$kvm" ] || echo "vbalance: KVM: missing: no vbalance_host"
if [ -n "$btf" ]; then
	echo "vbalance: BTF: found: at load the kernel is compared with this one"
else
	echo "vbalance: BTF: missing: only its release says what kernel it is"
fi
