#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A machine with Secure Boot: modules that DKMS has signed with the key that was
# enrolled are loaded and work, no others are. Runs in the lab's L1, which
# lab/packages/test_secure_boot.py boots so; in /lab are the modules as DKMS has
# made them (dkms), of a key of the same name that nobody has enrolled (other),
# with another byte in them (changed), and without a signature (unsigned).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
[ -e /lab/dkms ] || skip_all "there are no modules of DKMS's"
SECURITY=/sys/kernel/security
[ -e $SECURITY/lockdown ] || mount -t securityfs none $SECURITY 2>/dev/null

# Without LOG-SAYS the log says nothing of it.
refused() {	# FOLDER INSMOD-SAYS [LOG-SAYS]
	for module in vbalance_host vbalance_guest; do
		before=$(dmesg | wc -l)
		! insmod "/lab/$1/$module.ko" 2> "$KTAP_TMP/insmod"
		ok $? "$1/$module: refused"
		dmesg | tail -n +$((before + 1)) > "$KTAP_TMP/log"
		check "$1/$module: and insmod says why" grep -q "$2" "$KTAP_TMP/insmod"
		[ -z "$3" ] ||
			check "$1/$module: the log, too" grep -q "$3" "$KTAP_TMP/log"
		sed 's/^/# /' "$KTAP_TMP/insmod" "$KTAP_TMP/log"
	done
}

unload vbalance_host
check "Secure Boot is on" eval 'dmesg | grep -q "[Ss]ecure boot enabled"'
check "and so the kernel is locked down" grep -q '\[integrity\]' $SECURITY/lockdown
refused unsigned "Key was rejected by service" "Loading of unsigned module is rejected"
refused changed "Key was rejected by service"
refused other "Key was rejected by service" "Loading of module with unavailable key is rejected"
VARIANT=dkms
check "the one that DKMS has signed is loaded" load vbalance_host
check "it is on" grep -q '^run_state on' $HOST/features
embed "guests register" kvm_registration
check "and unloaded" unload vbalance_host
# This is no guest of KVM, which is the module's own answer.
! insmod /lab/dkms/vbalance_guest.ko 2> "$KTAP_TMP/insmod"
ok $? "the guest's is no guest's"
check "and not refused for its signature" grep -q "No such device" "$KTAP_TMP/insmod"
ktap_end
