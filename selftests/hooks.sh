#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A hook that the kernel does not have, or that must not be probed: its feature
# is off and no other, the log and debugfs say so, and the rest works. Needs
# modules that hook something else when they are asked to (common/fault.h), and
# some whose headers had not all tracepoints.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"
need_variant events
use_variant faults

MISSING=vbalance_is_not_there
# Something that is there.
REFUSED=$(awk 'NF == 2 { print $2; exit }' /sys/kernel/debug/kprobes/blacklist)
check "the kernel has functions that must not be probed" [ -n "$REFUSED" ]

log_from_here() {
	host_before=$(dmesg | wc -l)
}
# What a kernel of this version cannot is said each time.
log_says() {	# REGEX
	dmesg | tail -n +$((host_before + 1)) |
		grep -v "(not with this kernel's" | grep -q "vbalance_host: $1"
}

# host_without HOOK FEATURE [PARAMETER]: another one may need it as well ($also)
host_without() {
	for other in $MISSING "$REFUSED"; do
		what="$1 ${3:+with $3 }is $([ "$other" = $MISSING ] && echo missing || echo refused)"
		log_from_here
		check "$what: loaded" load vbalance_host "other_hook=$1:$other" ${3:+"$3"}
		equal "$what: off is" "$(host_off)" "$2${also:+ $also}"
		check "$what: debugfs says why" grep -q "^$2 off (.*$1: error -" $HOST/features
		check "$what: the log as well" log_says "$2: off (.*$1: error -"
		if [ "$2" = boost ] && [ "$repays" = 1 ]; then
			check "$what: nothing is paid back either" grep -q "^boost_repay off (boost is off: error -6)" $HOST/features
		fi
		if [ "$other" != $MISSING ]; then
			:	# The same in all that follows.
		elif [ "$2" = registration ]; then
			check "$what: the VM is seen" await 60 is_inactive 0
			equal "$what: the guest's source" "$(g 0 gstat source)" steal
		else
			check "$what: the guest registers" await 60 is_active 0
		fi
		check "$what: unloaded" unload vbalance_host
	done
}

# host_refuses HOOK [PARAMETER]: nothing is left without it
host_refuses() {
	what="$1 ${2:+with $2 }is missing"
	log_from_here
	! load vbalance_host "other_hook=$1:$MISSING" ${2:+"$2"}
	ok $? "$what: refused"
	check "$what: the log says so" log_says "no hook on KVM: $1: error -"
	! loaded vbalance_host && [ ! -e $HOST ]
	ok $? "$what: nothing is left"
}

guest_module 0 load
log_from_here
check "with all hooks: loaded" load vbalance_host
equal "with all hooks: off is" "$(host_off)" ""
repays=$(grep -c "^boost_repay on" $HOST/features)
check "with all hooks: the guest registers" await 60 is_active 0
! log_says '.*: \(off\|not\)'
ok $? "with all hooks: the log says nothing"
unload vbalance_host

also=locks
host_without kvm_emulate_hypercall registration
also=
host_without kvm_irq_delivery_to_apic_fast redirect
host_without kvm_irq_delivery_to_apic_fast redirect hook=kprobe
# Of two, one only: what passes the other is not redirected. Older kernels have
# one way, by which they are known; without it there is another one, unknown.
sleeps=$(awk '$3 ~ /^(__)?kvm_irq_delivery_to_apic$/ { print $3; exit }' /proc/kallsyms)
check "the kernel delivers what may sleep" [ -n "$sleeps" ]
while read -r name other word; do
	for hook in ftrace kprobe; do
		what="$name with hook=$hook is $word"
		log_from_here
		check "$what: loaded" load vbalance_host "other_hook=$name:$other" hook=$hook
		equal "$what: off is" "$(host_off)" ""
		check "$what: debugfs says so" grep -q "^redirect on ($hook, but not what may sleep)" $HOST/features
		check "$what: the log as well" log_says "redirect: not what may sleep (__kvm_irq_delivery_to_apic: error -"
		check "$what: unloaded" unload vbalance_host
	done
done <<-END
	__kvm_irq_delivery_to_apic $REFUSED refused
	$sleeps $MISSING missing
END
host_without __sched_setscheduler boost
host_without set_user_nice boost
host_without vhost_net_ioctl rings
host_without vhost_net_release rings
host_without ioeventfd_write kicks
for hook in kvm_arch_vcpu_destroy kvm_arch_destroy_vm kvm_arch_vcpu_put kvm_arch_vcpu_load; do
	host_refuses $hook
done
host_refuses kvm_arch_vcpu_load hook=ftrace
host_refuses kvm_arch_vcpu_load hook=kprobe

# Nothing is freed that a hook could call.
what="a hook stays for a while"
check "$what: loaded" load vbalance_host hook=ftrace fail_point=unhook fail_at=1
log_from_here
check "$what: unloaded" unload vbalance_host
check "$what: it was waited for" log_says "a hook cannot be removed yet: error -5"

# Probes can be switched off behind our back.
what="host: probes are switched off"
PROBES=/sys/kernel/debug/kprobes/enabled
load vbalance_host
equal "$what: not yet" "$(host_off)" ""
echo 0 > $PROBES
equal "$what: debugfs says so" "$(sed -n 's/^probes //p' $HOST/features)" \
	"off (kprobes are switched off: error -95)"
echo 1 > $PROBES
equal "$what: and on again" "$(host_off)" ""
unload vbalance_host
echo 0 > $PROBES
log_from_here
check "$what: loaded meanwhile" load vbalance_host
check "$what: the log says so" log_says "probes: off (kprobes are switched off: error -95)"
echo 1 > $PROBES
check "$what: on again, they are armed" grep -q "^probes on" $HOST/features
check "$what: the guest registers" await 60 is_active 0
unload vbalance_host
log_from_here
what="host: whether probes are switched off cannot be told"
check "$what: loaded" load vbalance_host fail_point=probed fail_at=1
equal "$what: debugfs says so" "$(host_off)" probes
check "$what: the log as well" \
	log_says "probes: off (not known whether kprobes are switched off: error -5)"
unload vbalance_host

# What headers do not declare is known of kernels that were tried, and of others
# by their BTF.
what="host: no BTF, and a kernel that was not tried"
hide_btf
log_from_here
check "$what: loaded" load vbalance_host fail_point=tried fail_at=-1
repay=" boost_repay"
! grep -q "^boost_repay off (not with this kernel's" $HOST/features || repay=
equal "$what: off is" "$(host_off)" "registration redirect boost$repay rings kicks locks btf_check"
check "$what: debugfs says why" grep -q "^kicks off (ioeventfd_write: error -8)" $HOST/features
check "$what: the log as well" \
	log_says "built for a kernel that was not tried, and nothing tells what ioeventfd_write is here"
check "$what: the VM is seen" await 60 is_inactive 0
unload vbalance_host
show_btf

# ---- the guest ----

# What was there is judged before it goes.
guest_log_from_here() {
	guest_log_clean 0
	guest 0 'dmesg -c' </dev/null > /dev/null
}

set_pending() {
	traffic_more 5
	[ "$(g 0 'echo $(($(gstat host_diverted) + $(gstat host_posted)))')" -gt 0 ]
}

guest_without() {	# HOOK OFF SAID
	guest_log_from_here
	check "guest: $1 is missing: loaded" guest_module 0 load "other_hook=$1:$MISSING"
	check "guest: $1 is missing: it registers" await 60 is_active 0
	equal "guest: $1 is missing: off is" "$(guest_off 0)" "$2"
	check "guest: $1 is missing: debugfs says why" \
		g 0 "grep -q ' off ($1)' \$GUEST/features"
	check "guest: $1 is missing: the log says which" guest_says "tracepoint $1: missing"
	check "guest: $1 is missing: and what is off" guest_says "$3: off ($1)"
	traffic_start "$(guest_ip 0)"
	traffic_more 20
	[ "$2" = redirect ] ||
		check "guest: $1 is missing: its interrupts are redirected" await 120 set_pending
	traffic_stop "guest: $1 is missing: every packet is answered, once"
	case $2 in
	redirect) not_redirected "guest: $1 is missing" ;;
	*) balanced "guest: $1 is missing" ;;
	esac
	check "guest: $1 is missing: unloaded" guest_module 0 unload
}

guest_refuses() {	# HOOK
	guest_log_from_here
	! guest_module 0 load "other_hook=$1:$MISSING" 2> "$KTAP_TMP/insmod"
	ok $? "guest: $1 is missing: refused"
	check "guest: $1 is missing: the log says so" guest_says "tracepoint $1: missing"
	check "guest: $1 is missing: nothing is left" \
		guest 0 '! grep -q ^vbalance_guest /proc/modules && [ ! -e /sys/kernel/debug/vbalance/guest ]' </dev/null
}

guest_module 0 unload
load vbalance_host
# Without other load no vCPU would lose its CPU.
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &' </dev/null
for hook in sched_wakeup sched_switch; do
	# With redirection there is no borrowing.
	guest_without $hook "borrow task" "hints of processes"
done
for hook in x86_platform_ipi_entry x86_platform_ipi_exit vector_config vector_clear; do
	guest_without $hook redirect redirection
done
for other in $MISSING "$REFUSED"; do
	guest_log_from_here
	what="guest: machine_crash_shutdown is $([ "$other" = $MISSING ] && echo missing || echo refused)"
	check "$what: loaded" guest_module 0 load "other_hook=machine_crash_shutdown:$other"
	check "$what: it registers" await 60 is_active 0
	equal "$what: off is" "$(guest_off 0)" "borrow kdump"
	check "$what: debugfs says why" \
		g 0 "grep -q '^kdump off (machine_crash_shutdown: error -' \$GUEST/features"
	check "$what: the log as well" guest_says "no probe on machine_crash_shutdown (error -"
	check "$what: unloaded" guest_module 0 unload
done
what="guest: no BTF, and a kernel that was not tried"
guest_log_from_here
g 0 '. /lab/selftests/btflib.sh; hide_btf'
check "$what: loaded" guest_module 0 load fail_point=tried fail_at=-1
check "$what: it registers" await 60 is_active 0
equal "$what: off is" "$(guest_off 0)" "affinity redirect borrow btf_check"
check "$what: moves are, with remap=auto" g 0 'grep -q "^affinity off (remap=auto)" $GUEST/features'
check "$what: the log says so" \
	guest_says "built for a kernel that was not tried, and nothing tells what IRQS_PENDING is here"
check "$what: unloaded" guest_module 0 unload
check "$what: loaded to move" guest_module 0 load fail_point=tried fail_at=-1 remap=affinity
check "$what: loaded to move: it registers" await 60 is_active 0
equal "$what: loaded to move: off is" "$(guest_off 0)" "redirect borrow btf_check"
check "$what: loaded to move: unloaded" guest_module 0 unload
g 0 '. /lab/selftests/btflib.sh; show_btf'
# Probes can be switched off behind our back.
what="guest: probes are switched off"
kdump() { g 0 "sed -n 's/^kdump //p' \$GUEST/features"; }
guest_module 0 load
equal "$what: not yet" "$(kdump)" "on (machine_crash_shutdown)"
g 0 'echo 0 > /sys/kernel/debug/kprobes/enabled'
equal "$what: all" "$(kdump)" "off (kprobes are switched off: error -95)"
g 0 'echo 1 > /sys/kernel/debug/kprobes/enabled; echo 0 2>/dev/null > /proc/sys/kernel/ftrace_enabled'
# Newer kernels refuse that, whoever uses ftrace, and say so.
if g 0 'dmesg | grep -q "ftrace_enabled file is deprecated"'; then
	skip "$what: those that are ftrace's" "this kernel does not switch ftrace off"
else
	equal "$what: those that are ftrace's" "$(kdump)" "off (kprobes are switched off: error -95)"
	g 0 'echo 1 > /proc/sys/kernel/ftrace_enabled'
fi
equal "$what: and on again" "$(kdump)" "on (machine_crash_shutdown)"
guest_module 0 unload
guest_log_from_here
g 0 'echo 0 > /sys/kernel/debug/kprobes/enabled'
check "$what: loaded meanwhile" guest_module 0 load
check "$what: the log says so" guest_says "kprobes are switched off (error -95): unload before a kdump"
g 0 'echo 1 > /sys/kernel/debug/kprobes/enabled'
equal "$what: on again, they are armed" "$(kdump)" "on (machine_crash_shutdown)"
guest_module 0 unload
guest_log_from_here
what="guest: whether probes are switched off cannot be told"
check "$what: loaded" guest_module 0 load fail_point=probed fail_at=1
equal "$what: debugfs says so" "$(kdump)" \
	"off (not known whether kprobes are switched off: error -5)"
check "$what: the log as well" \
	guest_says "not known whether kprobes are switched off (error -5): unload before a kdump"
check "$what: unloaded" guest_module 0 unload
for hook in irq_handler_entry irq_handler_exit softirq_entry softirq_exit local_timer_entry local_timer_exit cpu_idle; do
	guest_refuses $hook
done

# ---- and when the headers that it was built with did not have them ----

guest_log_from_here
what="guest: headers without tracepoints"
GUEST_VARIANT=events
check "$what: loaded" guest_module 0 load
check "$what: it registers" await 60 is_active 0
equal "$what: off is" "$(guest_off 0)" "redirect task"
while read -r feature said why; do
	check "$what: debugfs says why $feature is" \
		g 0 "grep -q '^$feature off (headers without $why' \$GUEST/features"
	check "$what: the log says what is" \
		guest_says "$(echo "$said" | tr _ ' '): off (headers without $why"
done <<-END
	redirect redirection x86_platform_ipi_entry,
	task hints_of_processes sched_wakeup or sched_switch
END
! guest_says '.*built for another kernel'
ok $? "$what: and nothing else"
traffic_start "$(guest_ip 0)"
traffic_more 20
traffic_stop "$what: every packet is answered, once"
not_redirected "$what"
check "$what: unloaded" guest_module 0 unload
unload vbalance_host
guest_log_clean 0
ktap_end
