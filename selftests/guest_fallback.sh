#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The guest follows vbalance_host coming and going, and leaves nothing behind
# when it reboots, migrates or dies. Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
unload vbalance_host
guest 0 'rmmod vbalance_guest 2>/dev/null; true'
gstat() { g 0 gstat "$1"; }

# ---- no host module: asked again after 1, 2, 4, 8, 8, ... seconds ----
NUMBER=0x76424c00	# VB_HYPERCALL; it has no other event while nobody answers
asked() { events kvm_hypercall | grep -c "nr $NUMBER a0 0x0 "; }
asked_often() { [ "$(asked)" -ge 5 ]; }
trace_on kvm/kvm_hypercall
check "guest module loads without a host module" guest 0 'insmod /lab/vbalance_guest.ko'
equal "then steal time is its source" "$(gstat source)" steal
equal "and it knows why" "$(gstat page_status)" -1000
equal "and says so" "$(g 0 'sed -n "s/^page //p" $GUEST/features')" \
	"off (the host has no vbalance_host: error -1000)"
check "it asks for a host module again" await 120 asked_often
equal "with pauses of 1, 2, 4, 8 seconds, or longer ones" \
	"$(sed -n "s/.* \([0-9.]*\): kvm_hypercall: nr $NUMBER a0 0x0 .*/\1/p" $TRACE/trace |
	awk 'BEGIN { pause = 1 }
	NR > 1 && NR < 6 { if ($1 - last < pause * 0.9) print $1 - last " s instead of " pause; pause *= 2 }
	{ last = $1 }')" ""
trace_off

# ---- the host module comes ----
check "host module comes" load vbalance_host
check "the guest finds it by itself" await 60 source_is 0 page
check "the host says the same" is_active 0
check "the page is on" guest 0 "grep -q '^page on' $GUEST/features"
equal "each CPU has a slot of its own" \
	"$(g 0 'cols $GUEST/vcpus slot' | sort -n)" "$(seq 0 $((VCPUS - 1)))"
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &'
one_runs() {
	[ "$(g 0 'cols $GUEST/vcpus run' | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" = \
		"$((VCPUS - 1)) preempted 1 running " ]
}
check "of stacked busy vCPUs one runs, the others are preempted" await 60 one_runs

# ---- and goes, and comes ----
WORK="workqueue/workqueue_queue_work workqueue/workqueue_execute_start workqueue/workqueue_execute_end"
g 0 trace_on vbalance_guest/vb_guest_register vbalance_guest/vb_guest_fallback "$WORK"
# Other work would fill the buffer.
g 0 "address=\$(sed -n 's/ . vbg_maintain\t.*//p' /proc/kallsyms)
	for e in $WORK; do echo \"function == 0x\$address\" > \$TRACE/events/\$e/filter || exit; done"
ok $? "only its own work is traced"
for _ in 1 2 3; do
	check "host module goes under load" unload vbalance_host
	check "the guest falls back" await 60 source_is 0 steal
	check "host module comes back under load" load vbalance_host
	check "the guest is back as well" await 60 source_is 0 page
done
# The host says that it goes; a vCPU that sees its bit clear before that knows,
# and so does who asks once a second, from the moment on that nobody answers.
why() { echo "$(gstat fallback_self) $(gstat fallback_gone) $(gstat fallback_status)"; }
equal "each time the guest saw it, was told, or asked" \
	"$(why | awk '{ print $1 + $2 + $3 }')" 3
equal "and its events say the same" "$(g 0 events vb_guest_fallback | awk '
	/^cpu=[0-9]+ why=self$/ { self++ } /^cpu=[0-9]+ why=gone$/ { gone++ }
	/^cpu=[0-9]+ why=status$/ { status++ }
	END { print self + 0, gone + 0, status + 0 }')" "$(why)"
equal "registrations are counted" "$(gstat registrations)" 4
equal "and traced" "$(g 0 events vb_guest_register | grep -c -E '^cookie=0x[0-9a-f]+ pages=[1-9][0-9]* ret=0$')" 3
# Two workqueues would let it run twice at once: an area would be freed twice. That
# it did not is seen as well, but would mostly not have been with two.
equal "one workqueue has the maintenance" "$(g 0 events workqueue_queue_work |
	sed -n 's/.* function=vbg_maintain .*workqueue=\([^ ]*\) .*/\1/p' | sort -u)" vbalance_guest
g 0 cat '$TRACE/trace' | awk '
	/: workqueue_execute_(start|end): .* function vbg_maintain/ {
		if (!n && / workqueue_execute_end: /) next
		at = / workqueue_execute_start: / ? ++inside : --inside
		if (at < 0 || at > 1) print
		n++
	}
	END { exit n < 4 }' > "$KTAP_TMP/twice"
ok $? "it ran"
equal "never twice at once" "$(cat "$KTAP_TMP/twice")" ""
# When the host says that it goes, the guest is sure of the bits. While it runs it
# mostly notices before that, and hears no more.
settled=$(gstat settled)
echo "# self, gone, status: $(why); settled $settled"
check "the VM is stopped while the host module goes" qmp 0 '{"execute":"stop"}'
check "which it does" unload vbalance_host
check "the VM goes on" qmp 0 '{"execute":"cont"}'
settled_once_more() { [ "$(gstat settled)" = $((settled + 1)) ]; }
check "the guest knows that all bits are there" await 60 settled_once_more
settled=$(gstat settled)
equal "and none was missing" "$(gstat missing)" 0
check "host module comes back once more" load vbalance_host
check "and the guest" await 60 source_is 0 page
g 0 'echo 0 > $TRACE/events/workqueue/enable; echo > $TRACE/trace'

# A stopped and continued guest is the same guest.
registrations=$(gstat registrations)
before=$(why)
kill -STOP "$(guest_pid 0)"
sleep 3
kill -CONT "$(guest_pid 0)"
check "after a pause the page is the source" await 60 source_is 0 page
equal "the same page" "$(gstat registrations)" "$registrations"

# ---- migration: nobody tells the guest that its page is dead ----
check "the VM is stopped" qmp 0 '{"execute":"stop"}'
check "and migrated to a file" qmp 0 '{"execute":"migrate","arguments":{"uri":"exec:cat > /tmp/vm"}}'
migrated() { guest_qmp 0 '{"execute":"query-migrate"}' | grep -q '"status": "completed"'; }
check "completely" await 120 migrated
guest_stop 0 moved
guest_start 0 -incoming 'exec:cat /tmp/vm'
arrived() { guest_qmp 0 '{"execute":"query-status"}' 2>/dev/null | grep -q '"status": "paused"'; }
check "it arrives" await 120 arrived
check "and goes on" qmp 0 '{"execute":"cont"}'
guest_wait 0
rm -f /tmp/vm
again() { [ "$(gstat registrations)" = $((registrations + 1)) ]; }
check "which registers again" await 60 again
equal "because it saw for itself that its page was dead" \
	"$(why)" "$(echo "$before" | awk '{ print $1 + 1, $2, $3 }')"
equal "and the event says so" \
	"$(g 0 events vb_guest_fallback | sed 's/cpu=[0-9]* //')" why=self
check "the page is the source again" await 60 source_is 0 page
equal "what it took along is not counted" "$(gstat settled) $(gstat missing)" "$settled 0"
g 0 trace_off

guest 0 'killall burn 2>/dev/null; true'
check "guest module unloads" guest 0 'rmmod vbalance_guest'
check "the host has let go" await 20 is_inactive 0
check "nothing stays pinned" await 20 all_unpinned

# ---- source= does what it says ----
guest 0 'insmod /lab/vbalance_guest.ko source=steal'
sleep 3
equal "source=steal leaves the host alone" "$(gstat source) $(gstat registrations)" "steal 0"
equal "source=steal: that is why there is no page" "$(g 0 'sed -n "s/^page //p" $GUEST/features')" \
	"off (source=steal)"
guest 0 'rmmod vbalance_guest; insmod /lab/vbalance_guest.ko source=page'
check "source=page takes the page" await 60 source_is 0 page
unload vbalance_host
check "source=page has none without the host" await 60 source_is 0 none
guest 0 'rmmod vbalance_guest'
guest_log_clean 0

# ---- the guest goes while it is registered ----
load vbalance_host
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered" await 60 is_active 0
guest_stop 0
check "a guest that is killed leaves nothing" await 60 nothing_left

# ---- it reboots in the same VM ----
guest_start 0 -action reboot=reset
guest_wait 0
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered in a VM that may reboot" await 60 is_active 0
counts() { sed -n 's/^\(registered\|unregistered\|reset\) //p' "$(vm_dir 0)/registration" | tr '\n' ' '; }
equal "once" "$(counts)" "1 0 0 "
vm=$(vm_dir 0)
guest 0 'reboot -f >/dev/null 2>&1 &'
check "before it reboots it unregisters" await 60 is_inactive 0
rebooted() { guest_wait 0 5 2>/dev/null && guest 0 '! grep -q ^vbalance_guest /proc/modules'; }
check "the guest is up again" await 120 rebooted
equal "it unregistered itself: there was nothing left to reset" "$(counts)" "1 1 0 "
guest 0 'insmod /lab/vbalance_guest.ko'
check "and registers again" await 60 is_active 0
equal "in the same VM" "$(vm_dir 0) $(counts)" "$vm 2 1 0 "
guest 0 'rmmod vbalance_guest'

# Without its good-bye, the reset of the VM ends the host's writes.
guest 0 'insmod /lab/vbalance_guest.ko'
check "registered a third time" await 60 is_active 0
check "the VM is reset" qmp 0 '{"execute":"system_reset"}'
check "the host lets go" await 60 is_inactive 0
equal "because of the reset" "$(counts)" "3 2 1 "
guest_wait 0
guest_stop 0
check "nothing is left of it" await 60 nothing_left
unload vbalance_host

# ---- a host that offers no steal time either ----
guest_start 0 -cpu "$GUEST_CPU,-kvm-steal-time"
guest_wait 0
guest 0 'burn 4 >/dev/null 2>&1 </dev/null &'
check "no steal time: the module loads" guest 0 'insmod /lab/vbalance_guest.ko'
equal "no steal time: and says so" "$(g 0 'sed -n "s/^steal //p" $GUEST/features')" \
	"off (host offers no steal time)"
equal "no steal time: there is no source" "$(gstat source)" none
knows_nothing() { [ "$(gstat no_source)" -gt "$1" ]; }
check "no steal time: it looks, and nothing is known" await 60 knows_nothing 0
equal "no steal time: so nobody is away" "$(g 0 'cols $GUEST/vcpus run' | sort -u)" running
check "no steal time: a host module comes" load vbalance_host
check "no steal time: its page is the source" await 60 source_is 0 page
check "no steal time: of stacked busy vCPUs one runs" await 60 one_runs
check "no steal time: the host module goes" unload vbalance_host
check "no steal time: there is no source again" await 60 source_is 0 none
check "no steal time: and nothing is known" await 60 knows_nothing "$(gstat no_source)"
check "no steal time: the module unloads" guest 0 'rmmod vbalance_guest'
guest_log_clean 0
guest_stop 0
guest_start 0
guest_wait 0
ktap_end
