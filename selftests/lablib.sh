# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What tests share that run in the lab's L1 and drive its guests. Sourced
# after ktap.sh.
[ -r /lab/lib.sh ] || skip_all "runs in the lab only"
# shellcheck source=/dev/null
. /lab/lib.sh
need_root
need_module vbalance_host

# g N COMMAND...: in guest N, with the functions of guestlib.sh
g() {
	lab_n=$1
	shift
	guest "$lab_n" ". /lab/selftests/guestlib.sh; $*" </dev/null && return
	lab_status=$?
	# Nothing that follows could mean anything; this may be a subshell.
	if [ $lab_status = 255 ] && ! guest_running "$lab_n"; then
		echo "Bail out! guest $lab_n has gone" >&2
		kill -TERM $$
	fi
	return $lab_status
}

guests_net() {
	for lab_i in $(seq 0 $((GUESTS - 1))); do
		echo "guest $lab_i:"
		g "$lab_i" net_counters
	done
}

source_is() {	# N SOURCE
	[ "$(g "$1" gstat source)" = "$2" ]
}

# In guest 0's log.
guest_says() {	# REGEX
	guest 0 "dmesg | grep -q 'vbalance_guest: $1'" </dev/null
}

# Folder of guest N in the host's debugfs.
vm_dir() {
	ls -d "$HOST/$(guest_pid "$1")"-* 2>/dev/null
}

vm_folders() {
	find "$HOST" -mindepth 1 -maxdepth 1 -type d | wc -l
}

is_active() {	# N
	grep -q '^active 1' "$(vm_dir "$1")/registration" 2>/dev/null
}

# The VM is seen, but no area of it is registered, or not any more.
is_inactive() {	# N
	grep -q '^active 0' "$(vm_dir "$1")/registration" 2>/dev/null
}

all_unpinned() {
	[ "$(stat_of "$HOST/stats" pages_pinned)" = "$(stat_of "$HOST/stats" pages_unpinned)" ]
}

nothing_left() {
	all_unpinned && [ "$(vm_folders)" = 0 ]
}

# qmp N COMMAND: quiet, but for a refusal
qmp() {
	guest_qmp "$1" "$2" > "$KTAP_TMP/qmp" && return
	sed 's/^/# /' "$KTAP_TMP/qmp"
	return 1
}

has_device() {	# N ID: one that was plugged
	guest_qmp "$1" '{"execute":"qom-list","arguments":{"path":"/machine/peripheral/'"$2"'"}}' > /dev/null
}

vcpu_plug() {	# N I
	qmp "$1" '{"execute":"device_add","arguments":{"driver":"host-x86_64-cpu","id":"cpu'"$2"'","socket-id":0,"core-id":'"$2"',"thread-id":0}}'
}
# QEMU forgets it when the guest has let it go, which may take its time. What takes
# a slow guest's ACPI 30 s it gives up (AE_AML_LOOP_TIMEOUT), with the request: who
# still wants it asks again.
vcpu_unplug() {	# N I
	for lab_try in 1 2 3 4 5; do
		[ $lab_try = 1 ] || echo "# vCPU $2: unplugged for the $lab_try. time"
		qmp "$1" '{"execute":"device_del","arguments":{"id":"cpu'"$2"'"}}' ||
			vcpu_gone "$1" "$2" || return 1
		! await 60 vcpu_gone "$1" "$2" || return 0
	done
	return 1
}
vcpu_gone() { ! has_device "$1" "cpu$2"; }

vcpus_on() {	# N MASK...: vCPU i on the CPUs of mask i, again from the first
	lab_n=$1
	shift
	lab_masks="$*"
	for lab_tid in $(vcpu_tids "$lab_n"); do
		[ $# -gt 0 ] || eval "set -- $lab_masks"
		taskset -p "$1" "$lab_tid" > /dev/null || return 1
		shift
	done
}

# Warnings are judged by the lab, which can allow a whole report.
guest_log_clean() {	# N
	guest "$1" "dmesg | grep -E 'BUG: |pending bits, [0-9]+ were taken|nobody cared|virtio.*(timeout|reset)|I/O error|blocked for more than|NETDEV WATCHDOG'" \
		</dev/null > "$KTAP_TMP/bad"
	equal "nothing bad in guest $1's log" "$(cat "$KTAP_TMP/bad")" ""
}

# The words for guest_start of a SCSI disk with two queues, whose image is made.
SCSI_SIZE=16
scsi_disk() {
	truncate -s ${SCSI_SIZE}M "$LAB_RUN/scsi.img"
	# shellcheck disable=SC2034 # for the caller
	SCSI="-device virtio-scsi-pci,id=scsi,num_queues=2
		-blockdev driver=file,node-name=sd0,filename=$LAB_RUN/scsi.img
		-device scsi-hd,drive=sd0"
}
# Only where it is: to look for 254 others takes nine minutes on a debug kernel.
scsi_found() {
	guest 0 'modprobe scsi_mod scan=manual && modprobe -a virtio_scsi sd_mod &&
		echo "0 0 0" > /sys/class/scsi_host/host0/scan && [ -b /dev/sda ]' </dev/null
}

# need_variant NAME: modules that the lab has built in another way as well
need_variant() {
	[ -e "/lab/$1/vbalance_host.ko" ] ||
		skip_all "the lab has no modules for it (--variant $1)"
	unload vbalance_host
}
# The same, and from now on it is these that are loaded.
use_variant() {	# NAME
	need_variant "$1"
	# shellcheck disable=SC2034 # for module_path
	VARIANT=$1
	GUEST_VARIANT=$1
}

# Features that are off; vhost_net and BTF are there.
host_off() {
	grep -v "(not with this kernel's\|(boost is off:" "$HOST/features" |
		sed -n 's/^\([a-z_]*\) off.*/\1/p' | xargs
}

guest_off() {	# N
	g "$1" "sed -n 's/^\([a-z_]*\) off.*/\1/p' \$GUEST/features" | xargs
}

# guest_module N load [PARAM...], guest_module N unload: as calmly() does; with
# GUEST_VARIANT the one that the lab has built in that way
guest_module() {
	lab_n=$1
	case $2 in
	load)
		shift 2
		lab_do="insmod /lab/${GUEST_VARIANT:+$GUEST_VARIANT/}vbalance_guest.ko $*"
		;;
	unload)
		lab_do="rmmod vbalance_guest"
		;;
	esac
	guest "$lab_n" "BUSY=\$(pidof burn); . /lab/selftests/guestlib.sh; calmly $lab_do" </dev/null
}

# parameter NAME VALUE: of the module in guest 0
parameter() { guest 0 "echo $2 > /sys/module/vbalance_guest/parameters/$1" </dev/null; }

# ---- counters of redirection, of guest 0 ----

host_count() { stat_of "$(vm_dir 0)/registration" "$1"; }
# Before the guest registers: the host counts on from there.
host_base() {
	base_diverted=$(host_count diverted)
	base_posted=$(host_count posted)
}
# A guest that was just started.
no_base() { base_diverted=0 base_posted=0; }

# Every bit that the host has set for guest N was taken once: both sides count
# alike.
balance() {	# N
	g "$1" 'for n in host_diverted host_posted served stolen overtaken merged dropped left; do
		echo "$n $(gstat $n)"; done' > "$KTAP_TMP/balance"
	awk '/^host/ { set += $2; next } { taken += $2 }
		END { exit set != taken || set == 0 }' "$KTAP_TMP/balance"
}

# The guest's view of the host's counts; a stray packet may come in between.
same_bits() {
	{
		echo "$(($(host_count diverted) - base_diverted)) $(($(host_count posted) - base_posted))"
		echo "$(g 0 gstat host_diverted) $(g 0 gstat host_posted)"
	} > "$KTAP_TMP/bits"
	[ "$(uniq "$KTAP_TMP/bits" | wc -l)" = 1 ]
}

# The guest has looked for interrupts, and told the host what it may do, in rounds
# that begin from now on.
rescanned() {
	lab_rescans=$(($(g 0 gstat rescans) + 3))
	await 60 lab_rescanned
}
lab_rescanned() { [ "$(g 0 gstat rescans)" -ge "$lab_rescans" ]; }

# "owner target" of each that went to another vCPU, as traced so far
# (vbalance_host/vb_host_redirect).
redirected_away() {
	events vb_host_redirect |
		sed -n 's/.* vcpu=\([0-9]*\) vector=[0-9]* -> vcpu=\([0-9]*\) vector=[1-9].*/\1 \2/p' |
		awk '$1 != $2'
}

# balanced NAME [N]: of all registrations since guest N's (0) module was loaded,
# with its traffic stopped. Bits of interrupts that are not there are taken, too,
# but only a test whose devices lose their queues meanwhile (QUEUES_GO=1) may
# have any: neither CPUs nor modules take an interrupt away that has bits. (A
# managed one stops with the last of its CPUs, and always has another one here.)
balanced() {
	await 30 balance "${2:-0}"
	ok $? "$1: what was set pending was taken, each bit once"
	sed 's/^/# /' "$KTAP_TMP/balance"
	equal "$1: none was stuck, nor missing" "$(g "${2:-0}" 'gstat stuck; gstat missing')" "0
0"
	[ "${QUEUES_GO-}" ] ||
		equal "$1: none was of an interrupt that is not there" "$(g "${2:-0}" gstat dropped)" 0
}

# not_redirected NAME [N]: nothing ever was, nor is anything stuck
not_redirected() {
	equal "$1: nothing was redirected" "$(g "${2:-0}" redirections)" "0 0 0 0"
}

# counters_agree NAME: and of those since the base
counters_agree() {
	balanced "$1"
	await 30 same_bits
	ok $? "$1: the host counts the same bits"
	sed 's/^/# /' "$KTAP_TMP/bits"
}
