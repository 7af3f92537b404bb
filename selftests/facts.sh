#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A module that was built for another kernel: it is told from what it takes for
# granted (core/facts.h), of which one is changed in a copy of its file; or from
# the release, the only thing that is left without a description of the kernel.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/btflib.sh
. "$KTAP_DIR/btflib.sh"

unload vbalance_host
[ -e /sys/kernel/btf/kvm ] || skip_all "this kernel has no BTF of kvm"

other_release() { echo "${1%?}X"; }	# RELEASE: of the same length

# host_with OLD NEW: a copy in which that is changed is loaded
host_with() {
	cp "$(module_path vbalance_host)" "$KTAP_TMP/doctored.ko"
	doctor "$KTAP_TMP/doctored.ko" "$1" "$2" || echo "# '$1' is not in the module"
	host_before=$(dmesg | wc -l)
	insmod "$KTAP_TMP/doctored.ko" 2> "$KTAP_TMP/insmod"
}

said() {	# WHAT
	dmesg | tail -n +$((host_before + 1)) |
		sed -n 's/.*vbalance_host: built for another kernel: \(.*\) is .* here, built for .*/\1/p' |
		sort -u > "$KTAP_TMP/said"	# insmod tries twice
	equal "$1: the log says so, and nothing else" "$(cat "$KTAP_TMP/said")" "$1"
}

host_is_refused() {	# OLD NEW WHAT
	if host_with "$1" "$2"; then
		rmmod vbalance_host
		ok 1 "$3 differs: refused"
		return 1
	fi
	check "$3 differs: refused as built for another kernel" \
		grep -qi 'exec format error\|invalid module format' "$KTAP_TMP/insmod"
}

host_refuses() {	# OLD NEW WHAT
	! host_is_refused "$1" "$2" "$3" || said "$3"
}

RELEASE=$(uname -r)
host_refuses_release() {	# WHAT
	host_is_refused "$RELEASE" "$(other_release "$RELEASE")" "$1" || return
	check "$1 differs: the log says so" eval 'dmesg | tail -n +$((host_before + 1)) |
		grep -qF "vbalance_host: built for kernel $(other_release "$RELEASE"), this is $RELEASE: build it again"'
}

host_does_without() {	# OLD NEW WHAT FEATURES
	host_with "$1" "$2"
	ok $? "$3 differs: loaded"
	said "$3"
	equal "$3 differs: $4 is off, and nothing else" "$(host_off)" "$4"
	for feature in $4; do
		check "$3 differs: $feature says why" \
			grep -q "^$feature off ($3: error -8)" $HOST/features
	done
	rmmod vbalance_host
}

load vbalance_host
equal "nothing is off when nothing differs" "$(host_off)" ""
repays=$(grep -c "^boost_repay on" $HOST/features)
unload vbalance_host
host_refuses kvm_vcpu.stat.generic.blocking kvm_vcpu.stat.generic.blockinG \
	kvm_vcpu.stat.generic.blockinG
host_refuses kretprobe.nmissed kretprobe.nmisseD kretprobe.nmisseD
# Of what inline functions of the kernel's use, whatever is on.
host_refuses task_struct.__state task_struct.__statE task_struct.__statE
host_refuses '0(kvm*)' '0(kvM*)' kvm_arch_destroy_vm
host_refuses_release "the release"
hide_btf
host_refuses_release "without BTF the release"
show_btf
# Its description is there, and says nothing to us: newer than we are, perhaps.
for btf in vmlinux kvm; do
	spoil_btf $btf
	host_before=$(dmesg | wc -l)
	if insmod "$(module_path vbalance_host)" 2> "$KTAP_TMP/insmod"; then
		rmmod vbalance_host
		ok 1 "BTF of $btf cannot be read: refused"
	else
		ok 0 "BTF of $btf cannot be read: refused"
	fi
	check "BTF of $btf cannot be read: the log says so" eval 'dmesg | tail -n +$((host_before + 1)) |
		grep -q "vbalance_host: BTF of .* cannot be read: error -74"'
	mend_btf $btf
done
host_does_without kvm_memory_slot.userspace_addr kvm_memory_slot.userspace_addR \
	kvm_memory_slot.userspace_addR registration
host_does_without kvm_vcpu.arch.regs kvm_vcpu.arch.regS kvm_vcpu.arch.regS \
	"registration locks"
host_does_without '1(kvm*,kvm_lapic*,kvm_lapic_irq*,' '1(kvm*,kvm_lapic*,kvm_lapic_irQ*,' \
	kvm_irq_delivery_to_apic_fast redirect
host_does_without task_struct.nr_cpus_allowed task_struct.nr_cpus_alloweD \
	task_struct.nr_cpus_alloweD boost
# One that is there, in another place.
host_does_without task_struct.prio task_struct.comm task_struct.comm boost
check "task_struct.comm differs: the log says how" eval 'dmesg | tail -n +$((host_before + 1)) |
	grep -qE "task_struct.comm is offset [0-9]+, size 16 here, built for offset [0-9]+, size 4$"'
# What no header declares; not on kernels whose lag is another.
[ "$repays" = 0 ] || host_does_without cfs_rq.load.weight cfs_rq.load.weighT \
	cfs_rq.load.weighT boost_repay
host_does_without '0(task_struct*,8)' '0(task_struct*,4)' set_user_nice boost
host_does_without '8(file*,4,8)' '8(file*,8,8)' vhost_net_ioctl rings
# By an inline function of the kernel's, of its own BTF and not of vhost's.
host_does_without task_struct.pagefault_disabled task_struct.pagefault_disableD \
	task_struct.pagefault_disableD rings
host_does_without '4(kvm_vcpu*,kvm_io_device*,' '8(kvm_vcpu*,kvm_io_device*,' ioeventfd_write kicks
# vhost_net's is a third description: rings alone need it.
spoil_btf vhost_net
host_before=$(dmesg | wc -l)
load vbalance_host
ok $? "BTF of vhost_net cannot be read: loaded"
equal "BTF of vhost_net cannot be read: rings are off, and nothing else" "$(host_off)" rings
check "BTF of vhost_net cannot be read: rings say why" \
	grep -q "^rings off (BTF that cannot be read: error -8)" $HOST/features
check "BTF of vhost_net cannot be read: the log says so" eval 'dmesg | tail -n +$((host_before + 1)) |
	grep -q "vbalance_host: BTF of the kernel or vhost_net cannot be read: error -74"'
unload vbalance_host
mend_btf vhost_net
# Of what is redirected a part, where the kernel has it.
if grep -qw __kvm_irq_delivery_to_apic /proc/kallsyms; then
	what="__kvm_irq_delivery_to_apic"
	host_with '4(kvm*,kvm_lapic*,kvm_lapic_irq*,' '8(kvm*,kvm_lapic*,kvm_lapic_irq*,'
	ok $? "$what differs: loaded"
	said "$what"
	equal "$what differs: no feature is off" "$(host_off)" ""
	check "$what differs: redirection says what is" \
		grep -q "^redirect on (ftrace, but not what may sleep)" $HOST/features
	rmmod vbalance_host
fi

# ---- the guest ----

guest_with() {	# OLD NEW
	guest 0 ". /lab/selftests/btflib.sh
		cp /lab/vbalance_guest.ko /tmp/doctored.ko &&
		doctor /tmp/doctored.ko '$1' '$2' && insmod /tmp/doctored.ko" \
		</dev/null > "$KTAP_TMP/insmod" 2>&1
}

# Each is said of one copy only.
guest_said() {	# WHAT
	check "guest: $1 differs: the log says so" \
		guest 0 "dmesg | grep -q 'vbalance_guest: built for another kernel: $1 is '"
}

guest_is_refused() {	# OLD NEW WHAT
	! guest_with "$1" "$2"
	ok $? "guest: $3 differs: refused"
	check "guest: $3 differs: as built for another kernel" \
		grep -qi 'exec format error\|invalid module format' "$KTAP_TMP/insmod"
	guest 0 'rmmod vbalance_guest 2>/dev/null'
}

guest_does_without() {	# OLD NEW WHAT FEATURES
	guest_with "$1" "$2"
	ok $? "guest: $3 differs: loaded"
	guest_said "$3"
	await 60 source_is 0 page
	equal "guest: $3 differs: what is off" "$(guest_off 0)" "$4"
	case $4 in *redirect*)
		equal "guest: $3 differs: no interrupt has a key" \
			"$(g 0 'cols $GUEST/irqs redirect key_cpu' | sort -u)" "off -1" ;;
	esac
	case $4 in *redirect*borrow*)
		# The first round of each looks into the rings that are idle.
		equal "guest: $3 differs: none is served or looked into" \
			"$(g 0 'cols $GUEST/irqs served stolen borrowed swept' | sort -u)" "0 0 0 0" ;;
	esac
	guest_module 0 unload
}

load vbalance_host
guest_module 0 load
await 60 source_is 0 page
equal "guest: all is on" "$(guest_off 0)" borrow
check "guest: with redirection there is no borrowing" \
	g 0 'grep -q "^borrow off (redirect is on)" $GUEST/features'
guest_module 0 unload
guest_is_refused irq_desc.irqs_unhandled irq_desc.irqs_unhandleD \
	irq_desc.irqs_unhandleD
guest_said irq_desc.irqs_unhandleD
# By an inline function of the kernel's.
guest_is_refused task_struct.flags task_struct.flagS task_struct.flagS
guest_said task_struct.flagS
# What the kernel says of itself counts for more than its name.
guest_release=$(guest 0 'uname -r' </dev/null)
guest_other=$(other_release "$guest_release")
guest_with "$guest_release" "$guest_other"
ok $? "guest: the release differs and nothing else: loaded"
guest_module 0 unload
g 0 '. /lab/selftests/btflib.sh; hide_btf'
guest_module 0 load
ok $? "guest: without BTF: loaded"
check "guest: without BTF: the log says so" \
	guest 0 "dmesg | grep -q 'vbalance_guest: no BTF to compare with (error -2): only the release is checked'" </dev/null
check "guest: without BTF: debugfs says so" g 0 'grep -q "^btf_check off (no BTF" $GUEST/features'
guest_module 0 unload
guest_is_refused "$guest_release" "$guest_other" "without BTF the release"
check "guest: without BTF the release differs: the log says so" \
	guest 0 "dmesg | grep -qF 'vbalance_guest: built for kernel $guest_other, this is $guest_release: build it again'" </dev/null
g 0 '. /lab/selftests/btflib.sh; show_btf; spoil_btf vmlinux'
! guest_module 0 load 2> "$KTAP_TMP/insmod"
ok $? "guest: BTF cannot be read: refused"
check "guest: BTF cannot be read: the log says so" \
	guest 0 "dmesg | grep -q 'vbalance_guest: BTF of the kernel cannot be read: error -74'" </dev/null
g 0 '. /lab/selftests/btflib.sh; mend_btf vmlinux'
guest_does_without IRQS_PENDING IRQS_PENDINK IRQS_PENDINK \
	"affinity redirect borrow"
check "guest: remap=auto moves nothing then: the log says so" \
	guest 0 "dmesg | grep -q 'vbalance_guest: remap=auto moves no interrupts then, remap=affinity does'" </dev/null
guest_does_without virtqueue.reset virtqueue.reseT virtqueue.reseT \
	"affinity redirect borrow"
guest_does_without '0(*,4,4,4,4' '0(*,4,4,4,8' vector_config redirect
guest_does_without irq_data.parent_data irq_data.parent_datA irq_data.parent_datA \
	redirect
guest_does_without 0\(*,task_struct* 0\(*,task_strucT* sched_wakeup "borrow task"
unload vbalance_host
ktap_end
