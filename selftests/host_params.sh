#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Parameters of vbalance_host, debugfs, repeated loading, kvm.ko coming and
# going.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
need_root
need_module vbalance_host
unload vbalance_host
log_tells() { dmesg | tail -n +$((log_before + 1)) | grep -q "vbalance_host: $1"; }

refuses vbalance_host hook=sometimes
refuses vbalance_host hook=
refuses vbalance_host observe=2
refuses vbalance_host redirect=2
refuses vbalance_host redirect_leaving=2
refuses vbalance_host vmm_us=1000001
refuses vbalance_host threshold=99
refuses vbalance_host boost=2
refuses vbalance_host boost_us=49
refuses vbalance_host boost_share=51
refuses vbalance_host boost_vcpu_share=51
refuses vbalance_host boost_cpu_share=51
refuses vbalance_host boost_row=0
refuses vbalance_host boost_repay=2
refuses vbalance_host holder_us=100001
refuses vbalance_host boost_waiting=2

loads() {
	for _ in 1 2 3 4 5; do
		load vbalance_host && unload vbalance_host || return 1
	done
}
check "loaded and unloaded five times" loads

load vbalance_host
for f in stats features; do
	equal "$f begins with its version" "$(head -n 1 $HOST/$f)" "v: 1"
done
equal "default of hook" "$(cat /sys/module/vbalance_host/parameters/hook)" auto
check "a loaded module cannot be loaded again" sh -c "! insmod $(module_path vbalance_host) 2>/dev/null"

check "redirection is offered" grep -q "^redirect on" $HOST/features
check "boosts are offered" grep -q "^boost on" $HOST/features
check "all hooks of redirection are on, or not there" \
	grep -q -E "^redirect on \((ftrace|kprobe)\)$" $HOST/features
for value in observe=0 redirect=1 redirect_leaving=1 vmm_us=1000 threshold=150 boost=1 boost_us=2000 boost_share=5 boost_vcpu_share=4 boost_cpu_share=10 boost_row=4 boost_repay=1 holder_us=3000 boost_waiting=1; do
	equal "default: $value" "$(cat /sys/module/vbalance_host/parameters/"${value%%=*}")" "${value#*=}"
done
for value in redirect_leaving=0 redirect_leaving=1 vmm_us=0 vmm_us=1000000 threshold=100 boost=0 boost=1 \
		boost_us=50 boost_us=20000 boost_share=0 boost_share=50 \
		boost_vcpu_share=0 boost_vcpu_share=50 boost_row=1 boost_row=100 \
		boost_repay=0 boost_repay=1 \
		boost_waiting=0 boost_waiting=1 holder_us=0 holder_us=100000; do
	echo "${value#*=}" > /sys/module/vbalance_host/parameters/"${value%%=*}"
	equal "live: $value" "$(cat /sys/module/vbalance_host/parameters/"${value%%=*}")" "${value#*=}"
done
refuses_live vbalance_host redirect_leaving=2
refuses_live vbalance_host vmm_us=-1
refuses_live vbalance_host threshold=10001
refuses_live vbalance_host boost=2
refuses_live vbalance_host boost_us=20001
refuses_live vbalance_host boost_share=-1
refuses_live vbalance_host boost_vcpu_share=51
refuses_live vbalance_host boost_cpu_share=51
refuses_live vbalance_host boost_row=101
refuses_live vbalance_host boost_repay=2
refuses_live vbalance_host holder_us=1s
refuses_live vbalance_host boost_waiting=2
unload vbalance_host
load vbalance_host redirect=0
check "redirect=0: not offered" grep -q "^redirect off (redirect=0" $HOST/features

unload vbalance_host
user_is_refused vbalance_host $HOST/stats

# Where ftrace is switched off hooks would never be called.
FTRACE=/proc/sys/kernel/ftrace_enabled
set_ftrace() { sh -c "echo $1 > $FTRACE" 2>/dev/null; }
log_before=$(dmesg | wc -l)
if set_ftrace 0; then
	check "ftrace is switched off: does not load" \
		sh -c "! insmod $(module_path vbalance_host) 2>/dev/null"
	check "ftrace is switched off: the log says why" \
		log_tells "no hook on KVM: ftrace is switched off (sysctl kernel.ftrace_enabled): error -16"
	set_ftrace 1
	load vbalance_host
	check "ftrace cannot be switched off meanwhile" sh -c "! echo 0 2>/dev/null > $FTRACE"
	equal "ftrace is still on" "$(cat $FTRACE)" 1
	unload vbalance_host
elif [ -e $FTRACE ]; then
	skip "ftrace is switched off" "it cannot be switched off here"
fi

# With no VM running, KVM itself can go and come back.
load vbalance_host
vendor=$(idle_kvm)
if [ -z "$vendor" ]; then
	skip "kvm.ko unloaded and loaded again" "KVM is built in or in use"
else
	check "kvm is unloaded under us" rmmod "$vendor" kvm
	check "hooks are off" grep -q "^run_state off (kvm is not loaded" $HOST/features
	check "kvm is loaded again" modprobe "$vendor"
	check "hooks are on again" grep -q "^run_state on" $HOST/features
	if PROGRAM=$(command -v hookcost); then
		before=$(stat_of $HOST/stats loads)
		check "a VM registers after that" "$PROGRAM" switch 10 1 registered
		check "its loads are seen" [ "$(stat_of $HOST/stats loads)" -gt "$before" ]
	fi
	# And the other way round: we come first.
	unload vbalance_host
	rmmod "$vendor" kvm
	check "loaded without kvm" load vbalance_host
	check "says what it waits for" grep -q "^run_state off (kvm is not loaded" $HOST/features
	modprobe "$vendor"
	check "hooks come with kvm" grep -q "^run_state on" $HOST/features
	if [ -e /sys/kernel/btf/kvm ]; then
		check "and it is what the module was built for" grep -q "^btf_check on" $HOST/features
		# What the module needs differs, and nothing said so before kvm
		# comes.
		unload vbalance_host
		rmmod "$vendor" kvm
		cp "$(module_path vbalance_host)" "$KTAP_TMP/doctored.ko"
		doctor "$KTAP_TMP/doctored.ko" kretprobe.nmissed kretprobe.nmisseD
		hide_btf
		check "loaded without kvm and BTF" insmod "$KTAP_TMP/doctored.ko"
		show_btf
		modprobe "$vendor"
		check "what differs is seen when kvm comes, and keeps the hooks off" \
			grep -q "^run_state off (kretprobe.nmisseD: error -8)" $HOST/features
		equal "nothing that needs them is on" "$(sed -n '/^btf_check/d; s/ on .*//p' $HOST/features)" ""
	fi
fi
check "unloaded" unload vbalance_host

# Nothing to compare with is not the same as nothing that differs.
BTF=/sys/kernel/btf
others_off() { sed -n '/^btf_check/d; s/^\([a-z_]*\) off.*/\1/p' $HOST/features; }
not_compared() {	# WHAT
	log_before=$(dmesg | wc -l)
	check "no BTF of $1: loaded" load vbalance_host
	check "no BTF of $1: debugfs says so" \
		grep -q "^btf_check off (no BTF of $1, only the release is checked" $HOST/features
	equal "no BTF of $1: nothing else is off" "$(others_off)" "$were_off"
	check "no BTF of $1: the log says so" log_tells "no BTF of $1 to compare with (error -"
	check "no BTF of $1: unloaded" unload vbalance_host
}
if [ -e $BTF/kvm ]; then
	load vbalance_host
	were_off=$(others_off)
	unload vbalance_host
	cp $BTF/vmlinux "$KTAP_TMP/vmlinux"
	hide_btf
	cp "$KTAP_TMP/vmlinux" $BTF
	not_compared kvm
	rm $BTF/vmlinux
	not_compared "the kernel"
	show_btf
else
	skip "nothing to compare kvm with" "this kernel has no BTF for modules"
fi
check "debugfs folder is gone" [ ! -e $HOST ]
ktap_end
