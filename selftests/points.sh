#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Calls that fail while the modules work, without lack of memory: what is tried
# is given up or tried again, said and counted, and nothing is lost. Needs
# modules that let them fail when they are asked to (common/fault.h).
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
use_variant faults

SETTINGS=/sys/module/vbalance_host/parameters
host_fails() {	# POINT N
	echo "$1" > "$SETTINGS/fail_point"
	echo "$2" > "$SETTINGS/fail_at"
}
host_failed() { [ "$(cat "$SETTINGS/fail_at")" = 0 ]; }
guest_fails() {	# POINT N
	g 0 "echo $1 > \$GUEST_PARAMETERS/fail_point; echo $2 > \$GUEST_PARAMETERS/fail_at"
}
guest_failed() { [ "$(g 0 'cat $GUEST_PARAMETERS/fail_at')" = 0 ]; }

hstat() { stat_of $HOST/stats "$1"; }
boosts_of() { stat_of "$(vm_dir 0)/boost" "$1"; }

# ---- no debugfs, as with debugfs=off ----
log_lines() { dmesg | grep -c "$1: no debugfs (error -5): nothing is shown there"; }
lines=$(log_lines vbalance_host)
check "debugfs: host module is loaded" load vbalance_host fail_point=debugfs fail_at=1
[ ! -e $HOST ]
ok $? "debugfs: it has no folder"
equal "debugfs: the log says so" "$(log_lines vbalance_host)" $((lines + 1))
guest_module 0 load fail_point=debugfs fail_at=1
check "debugfs: the guest's neither" g 0 '[ ! -e $GUEST ]'
check "debugfs: the guest's log says so" guest 0 \
	"dmesg | grep -q 'vbalance_guest: no debugfs (error -5): nothing is shown there'" </dev/null
# It serves all the same.
traffic_start "$(guest_ip 0)"
traffic_more 20
traffic_stop "debugfs: every packet is answered, once"
check "debugfs: guest module goes" guest_module 0 unload
unload vbalance_host

# ---- pinning ----
# How often the guest's log says that there is no page, and why.
told() { guest 0 "dmesg | grep -c 'vbalance_guest: no page $1'" </dev/null; }
guest_module 0 load
check "host module is loaded, where nobody registers yet" load vbalance_host fail_point=mmap_lock fail_at=1
refused=0
for fault in "mmap_lock 1" "pin 1" "pin 3"; do
	# Set by now for the first of them.
	# shellcheck disable=SC2086 # two words
	[ $refused = 0 ] || host_fails $fault
	refused=$((refused + 1))
	[ $refused = 1 ] || guest_module 0 load
	check "$fault: the guest registers in the end" await 60 is_active 0
	check "$fault: it had failed" host_failed
	equal "$fault: the refusal is counted" "$(hstat refused_efault)" $refused
	check "$fault: by the guest as well" [ "$(g 0 gstat register_failed)" -ge 1 ]
	equal "$fault: its log says so" "$(told "(the host did not register us: error -14)")" $refused
	check "$fault: guest module goes" guest_module 0 unload
	check "$fault: all pages are given back" await 30 all_unpinned
done

# ---- memory that the host cannot write to ----
guest_module 0 load fail_point=encrypted fail_at=-1
no_page="(guest memory is encrypted: error -95)"
page_is() { [ "$(g 0 'sed -n "s/^page //p" $GUEST/features')" = "$1" ]; }
check "encrypted: debugfs says why there is no page" await 30 page_is "off $no_page"
check "encrypted: the log as well" guest_says "no page $no_page: run states from steal"
equal "encrypted: nothing was registered" "$(g 0 gstat register_failed) $(g 0 gstat source)" "0 steal"
check "encrypted: guest module goes" guest_module 0 unload

# ---- no memory for the area ----
pages=0
for n in 1 2 3; do
	unload vbalance_host
	check "map $n: host module is loaded" load vbalance_host fail_point=map fail_at=$n
	guest_module 0 load
	check "map $n: the guest registers in the end" await 60 is_active 0
	check "map $n: it had failed" host_failed
	equal "map $n: the refusal is counted" "$(hstat refused_enomem)" 1
	pages=$(($(hstat pages_pinned) - $(hstat pages_unpinned)))
	check "map $n: guest module goes" guest_module 0 unload
	check "map $n: all pages are given back" await 30 all_unpinned
done
# Its arrays, the first and another page, what maps them.
for n in 1 2 4 $((pages + 2)); do
	check "area $n: guest module is loaded" guest_module 0 load fail_point=area fail_at=$n
	check "area $n: the guest registers in the end" await 60 is_active 0
	check "area $n: it had failed" guest_failed
	check "area $n: guest module goes" guest_module 0 unload
	check "area $n: all pages are given back" await 30 all_unpinned
done

# ---- a guest is found, and asks ----
unload vbalance_host
check "discover: host module is loaded" load vbalance_host fail_point=discover fail_at=1
guest_module 0 load
check "discover: the guest registers" await 60 is_active 0
check "discover: somebody was faster" host_failed
all_found() { [ "$(cols "$(vm_dir 0)/vcpus" slot | wc -l)" = "$VCPUS" ]; }
check "discover: all vCPUs are found in the end" await 60 all_found
guest_module 0 unload
again=$(hstat refused_eagain)
host_fails absent 1
guest_module 0 load
check "absent: the guest asks until its area is there" await 60 is_active 0
check "absent: it was not" host_failed
equal "absent: the refusals are counted" "$(($(hstat refused_eagain) - again))" 1
equal "absent: the guest has asked again at once" "$(g 0 gstat register_failed)" 0
guest_module 0 unload
check "absent: all pages are given back" await 30 all_unpinned
embed "setup" kvm_overtaken

# A host that takes long to register: the guest gives up, not its pages. Where
# the host did not hear of that, it sets them up all the same.
kept_some() { [ "$(g 0 gstat kept)" -gt 0 ]; }
pages_kept() { [ "$(g 0 gstat kept)" = "$1" ]; }
registration() { stat_of "$(vm_dir 0)/registration" "$1"; }
for heard in yes no; do
	slow="slow, heard: $heard"
	host_fails setup -1
	told_before=$(told "(the host is not done")
	before=$(registration registered) ended=$(registration unregistered)
	fault=
	[ $heard = yes ] || fault="fail_point=unheard fail_at=1"
	# shellcheck disable=SC2086 # none, or two words
	guest_module 0 load $fault
	check "$slow: the guest does not wait for ever" await 60 kept_some
	slow_pages=$(g 0 gstat kept)
	sleep 10	# longer than it waits between two tries
	equal "$slow: it tries nothing else meanwhile" \
		"$(g 0 gstat kept) $(g 0 gstat register_failed)" "$slow_pages 1"
	no_page="(the host is not done with the last request: error -11)"
	check "$slow: debugfs says why" g 0 "grep -q '^page off $no_page\$' \$GUEST/features"
	equal "$slow: the log as well" "$(($(told "$no_page: run states from steal") - told_before))" 1
	host_fails setup 0
	check "$slow: the guest registers in the end" await 60 is_active 0
	check "$slow: it has its pages back" await 60 pages_kept 0
	times=1
	[ $heard = yes ] || times=2
	equal "$slow: so often the host had set an area up" \
		"$(($(registration registered) - before))" $times
	equal "$slow: it was told of one to let go of" \
		"$(($(registration unregistered) - ended))" 1
	guest_module 0 unload
	check "$slow: all pages are given back" await 30 all_unpinned
done

# ---- boosts ----
thread_policies() {
	for tid in $(vcpu_tids 0); do
		chrt -p "$tid" | sed -n 's/.*policy: //p'
	done | sort | uniq -c | awk '{ print $1, $2 }' | xargs
}
for tid in $(vcpu_tids 0); do
	chrt -b -p 0 "$tid"
done
equal "the policy of the vCPUs is" "$(thread_policies)" "$VCPUS SCHED_BATCH"
host_base
guest_module 0 load
await 60 is_active 0
ok $? "the guest is registered"
guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'
traffic_start "$(guest_ip 0)"
boosted() { [ "$(($(boosts_of hint) + $(boosts_of fast_path)))" -gt 0 ]; }
check "vCPUs are boosted" await 120 boosted
refused=$(boosts_of other_policy)
host_fails lift 1
check "lift: a boost is refused" await 120 host_failed
given_up() { [ "$(boosts_of other_policy)" -gt "$refused" ]; }
check "lift: it is counted" await 30 given_up
equal "lift: none was left as it should not be" "$(boosts_of left_normal)" 0
host_fails put_back 1
check "put_back: a thread cannot be put back" await 120 host_failed
left() { [ "$(boosts_of left_normal)" = 1 ]; }
check "put_back: it is counted" await 30 left
check "put_back: the log says so" await 30 eval 'ktap_new_dmesg |
	grep -q "vbalance_host: thread [0-9]* cannot be put back to policy 3: SCHED_NORMAL from now on"'
echo 0 > $SETTINGS/boost
settled() { [ "$(thread_policies)" = "$((VCPUS - 1)) SCHED_BATCH 1 SCHED_OTHER" ]; }
check "put_back: that thread is an ordinary one, the others are as they were" await 60 settled
echo "# $(thread_policies)"
echo 1 > $SETTINGS/boost
# Somebody's change of each thread is under way and does not end: no other
# thread stays lifted for that.
boosts_begun() { echo "$(($(boosts_of hint) + $(boosts_of task) + $(boosts_of holder) + $(boosts_of fast_path) + $(boosts_of waiting)))"; }
boosts_ended() { echo "$(($(boosts_of ended_done) + $(boosts_of ended_off_cpu) + $(boosts_of ended_bound) + $(boosts_of ended_gone) + $(boosts_of ended_moved)))"; }
open_boosts() { echo $(($(boosts_begun) - $(boosts_ended))); }
host_fails settle -1
held() { [ "$(open_boosts)" -ge 3 ]; }
check "settle: several boosts cannot end" await 120 held
check "settle: each thread is put back all the same" await 60 settled
echo "# $(open_boosts) of $VCPUS open, $(thread_policies)"
host_fails settle 0
check "settle: then they end, and boosts go on" eval 'before=$(boosts_ended)
	more() { [ "$(boosts_ended)" -gt $((before + 5)) ]; }
	await 120 more'
check "boosts go on" eval 'before=$(($(boosts_of hint) + $(boosts_of fast_path)))
	more() { [ "$(($(boosts_of hint) + $(boosts_of fast_path)))" -gt $before ]; }
	await 120 more'
traffic_stop "every packet is answered, once"
counters_agree "boosts"

# ---- the guest: a host that does not let go ----
pages=$(hstat pages_pinned)
unpinned=$(hstat pages_unpinned)
pages=$((pages - unpinned))
guest_fails let_go -1
check "let_go: host module goes" unload vbalance_host
check "let_go: the guest falls back" await 60 source_is 0 steal
check "let_go: the pages are kept" await 60 pages_kept "$pages"
guest_said() { guest 0 "dmesg | grep -q 'vbalance_guest: $1'" </dev/null; }
check "let_go: the log says so" guest_said \
	"host does not let go of the shared area: $pages pages are kept until it does"
check "let_go: host module comes" load vbalance_host
sleep 10	# longer than the guest waits between two tries
check "let_go: nothing new is registered" eval '! is_active 0'
check "let_go: they are kept still" pages_kept "$pages"
guest_fails let_go 0
check "let_go: the guest registers with new pages" await 60 is_active 0
check "let_go: the others are free" pages_kept 0
check "let_go: the log says that as well" guest_said "host has let go of the shared area"
balanced "let_go"
# Nobody answers, but what the host has written at last says that it has gone.
guest_fails let_go -1
check "let_go: host module goes again" unload vbalance_host
check "let_go: the pages are kept again" await 60 pages_kept "$pages"
guest_fails let_go 0
check "let_go: a host that has gone needs them no more" await 60 pages_kept 0
check "let_go: host module comes again" load vbalance_host
check "let_go: the guest registers again" await 60 is_active 0
balanced "let_go, gone"
guest_fails let_go -1
check "let_go: guest module goes" guest_module 0 unload
check "let_go: at its end it leaves them behind" guest_said \
	"host does not let go of the shared area: leaking $pages pages"
check "let_go: nothing stays pinned" await 30 all_unpinned
unload vbalance_host

# ---- the guest: a queue is being served and cannot be looked at ----
check "sweep: host module comes" load vbalance_host
guest_module 0 load
check "sweep: the guest registers" await 60 is_active 0
traffic_start "$(guest_ip 0)"
check "sweep: packets are answered" traffic_more 5
equal "sweep: none was late" "$(g 0 gstat sweeps_late)" 0
guest_fails sweep -1
unload vbalance_host
# Before and after the area is dropped.
swept() { [ "$(g 0 gstat sweeps)" -ge 2 ]; }
check "sweep: it ends all the same" await 60 swept
guest_fails sweep 0
equal "sweep: each queue was interrupted once more instead, each time" \
	"$(g 0 gstat sweeps_late)" "$((2 * $(g 0 'cols $GUEST/irqs redirect | grep -c -v no_key')))"
check "sweep: traffic goes on" traffic_more 5
traffic_stop "sweep: every packet is answered, once"
check "sweep: guest module goes" guest_module 0 unload

# ---- the guest: interrupts that go, or that it cannot look at ----
block() { guest 0 "cd /sys/bus/virtio/drivers/virtio_blk; for d in $BLOCK; do echo \$d > $1; done" </dev/null; }
BLOCK=$(guest 0 'cd /sys/bus/virtio/drivers/virtio_blk && echo virtio*' </dev/null)
check "gone: host module comes" load vbalance_host
guest_module 0 load
check "gone: the guest registers" await 60 is_active 0
known() { g 0 'cols $GUEST/irqs name | sort'; }
all_known=$(known)
knows_all() { [ "$(known)" = "$all_known" ]; }
disk_known() { known | grep -q "^${BLOCK%% *}-"; }
disk_forgotten() { ! disk_known; }
check "gone: a disk's interrupts are known" disk_known
late=$(g 0 gstat sweeps_late)
guest_fails sweep -1
check "gone: the disk's driver goes" block unbind
check "gone: its interrupts are forgotten all the same" await 60 disk_forgotten
guest_fails sweep 0
equal "gone: what is not there is not interrupted" "$(g 0 gstat sweeps_late)" "$late"
guest_fails sweep 1
check "gone: the driver comes back" block bind
check "gone: and its interrupts" await 60 knows_all
check "gone: one was just served, and not looked at" await 60 guest_failed
all_swept() { ! g 0 'cols $GUEST/irqs name swept' | grep "^${BLOCK%% *}-" | grep -q ' 0$'; }
check "gone: it is looked at again" await 60 all_swept
traffic_start "$(guest_ip 0)"
check "gone: packets are answered" traffic_more 5
rescans() { [ "$(g 0 gstat rescans)" -gt "$1" ]; }
for point in inspect freed refresh; do
	guest_fails $point -1
	check "$point: all goes on meanwhile" await 60 rescans "$(($(g 0 gstat rescans) + 2))"
	[ $point = refresh ] || equal "$point: none is known" "$(known)" ""
	check "$point: packets are answered meanwhile" traffic_more 10
	guest_fails $point 0
	check "$point: all are known again" await 60 knows_all
	check "$point: packets are answered" traffic_more 10
done
traffic_stop "inspect, freed, refresh: every packet is answered, once"
# The host may have set bits of those that were not known.
QUEUES_GO=1
balanced "inspect, freed, refresh"
QUEUES_GO=
check "refresh: guest module goes" guest_module 0 unload

# ---- the guest: interrupts that it cannot take up ----
guest_module 0 load fail_point=adopt fail_at=1
check "adopt: it had failed" guest_failed
check "adopt: all are known in the end" await 60 knows_all
guest_module 0 unload
guest_module 0 load fail_point=store fail_at=1
check "store: it had failed" guest_failed
lost_irq=$(guest 0 "dmesg | sed -n 's/.*vbalance_guest: no memory: irq \([0-9]*\) is not measured and not redirected.*/\1/p'" </dev/null)
echo "# irq $lost_irq"
check "store: the log says so" g 0 "cols \$GUEST/irqs irq | grep -qx '$lost_irq'"
# It is another one to the next scan.
check "store: the guest registers" await 60 is_active 0
redirects_all() { [ "$(g 0 'cols $GUEST/irqs key_cpu' | grep -c '^[0-9]')" = "$(known | wc -l)" ]; }
check "store: all are redirected in the end" await 60 redirects_all
traffic_start "$(guest_ip 0)"
check "store: packets are answered" traffic_more 20
traffic_stop "store: every packet is answered, once"
balanced "store"
guest_module 0 unload
guest_module 0 load remap=affinity policy=paper fail_point=fixed fail_at=-1
guest_fails fixed 0
equal "fixed: none may be moved" "$(g 0 'cols $GUEST/irqs affinity | sort -u' | xargs)" "fixed managed"
equal "fixed: nor is any" "$(g 0 movable)" ""
traffic_start "$(guest_ip 0)"
traffic_more 20
traffic_stop "fixed: every packet is answered, once"
equal "fixed: none was moved" "$(g 0 gstat moves)" 0
guest_module 0 unload

# ---- the guest: an interrupt that is disabled ----
# What the host had redirected by then comes when it is enabled. Nobody is away
# any more then, whose queues others would look at.
guest_module 0 load
check "disabled: the guest registers" await 60 is_active 0
traffic_start "$(guest_ip 0)"
traffic_more 20
irq=$(g 0 busiest)
kept() { g 0 'dmesg | grep -c "vb_disable: kept by another"'; }
round=0
# Whether it is redirected or delivered to its owner, once a round, is chance.
while [ $round -lt 8 ] || { [ $round -lt 40 ] && [ "$(kept)" = 0 ]; }; do
	round=$((round + 1))
	guest 0 "insmod /lab/vb_disable.ko irq=$irq && sleep 1; killall burn; rmmod vb_disable" </dev/null
	ok $? "disabled: round $round: for a second"
	check "disabled: round $round: it comes again" traffic_more 5
	guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'
	traffic_more 5
done
traffic_stop "disabled: every packet is answered, once"
balanced "disabled"
echo "# $(kept) of $round were redirected and kept"
[ "$(kept)" -gt 0 ]
ok $? "disabled: what is redirected meanwhile is kept until it is enabled"

# ---- the guest: a CPU goes ----
# The keys of its interrupts go before it: no move from there is traced.
keys_of_1() { g 0 'cols $GUEST/irqs key_cpu' | grep -cx 1; }
keyed() { traffic_more 3; [ "$(keys_of_1)" -gt 0 ]; }
traffic_start "$(guest_ip 0)"
guest 0 "echo 1 > /proc/irq/$irq/smp_affinity_list" </dev/null
check "offline: a CPU has keys" await 60 keyed
guest_fails refresh -1
check "offline: it goes" guest 0 'echo 0 > /sys/devices/system/cpu/cpu1/online' </dev/null
equal "offline: its keys have gone" "$(keys_of_1)" 0
check "offline: packets are answered" traffic_more 10
guest_fails refresh 0
check "offline: it comes" guest 0 'echo 1 > /sys/devices/system/cpu/cpu1/online' </dev/null
guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list" </dev/null
check "offline: all have keys again" await 60 redirects_all
traffic_stop "offline: every packet is answered, once"
balanced "offline"
guest_fails offline 1
check "offline: a CPU goes offline" guest 0 'echo 0 > /sys/devices/system/cpu/cpu1/online' </dev/null
check "offline: it had to look again" guest_failed
check "offline: it comes back" guest 0 'echo 1 > /sys/devices/system/cpu/cpu1/online' </dev/null
# It may wait for I/O that waits for the sweep of what a host has left.
cpu_state() { g 0 'cat /sys/devices/system/cpu/cpu1/hotplug/state'; }
online=$(cpu_state)
going() { [ "$(cpu_state)" -lt "$online" ] && ! gone; }
gone() { [ "$(cpu_state)" = 0 ]; }
sweeps=$(g 0 gstat sweeps)
swept() { [ "$(g 0 gstat sweeps)" -ge $((sweeps + 2)) ]; }
guest_fails cpu_off -1
guest 0 'echo 0 > /sys/devices/system/cpu/cpu1/online </dev/null 2>/dev/null &' </dev/null
check "offline: a CPU goes slowly" await 60 going
sleep 2
unload vbalance_host
check "offline: what a host has left is swept meanwhile" await 60 swept
going
ok $? "offline: the CPU is still going"
guest_fails cpu_off 0
check "offline: then it has gone" await 60 gone
check "offline: and comes back" guest 0 'echo 1 > /sys/devices/system/cpu/cpu1/online' </dev/null
check "offline: guest module goes" guest_module 0 unload

# ---- the guest: serving has to wait, and vCPUs become idle meanwhile ----
# Each vCPU that looks is to look again soon, by a timer. It expires before the
# interrupt ends that has started it.
check "busy: host module comes" load vbalance_host
guest_module 0 load
check "busy: the guest registers" await 60 is_active 0
# Few: all that wait are answered at once while nobody reads, and a socket takes
# some hundred answers.
traffic_start "$(guest_ip 0)" 4
guest_fails busy -1
stranded() {	# nothing new comes, and something is pending
	kill -STOP "$(cat "$KTAP_TRAFFIC.pid")"
	sleep 1
	! balance 0 && [ "$(g 0 gstat put_back)" -gt 0 ] && return
	kill -CONT "$(cat "$KTAP_TRAFFIC.pid")"
	return 1
}
ticks() { g 0 'before=$(gstat ticks); sleep 5; echo $(($(gstat ticks) - before))'; }
held() {	# it has stayed so while idle vCPUs were looked at
	stranded || return
	guest 0 'killall burn' </dev/null
	asking=$(ticks)
	! balance 0 && return
	# An interrupt has come after all, and taken it along.
	kill -CONT "$(cat "$KTAP_TRAFFIC.pid")"
	guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'
	return 1
}
check "busy: what is pending is put back" await 480 held
guest_fails busy 0
check "busy: what was set pending is taken in the end" await 60 balance 0
resting=$(ticks)
check "busy: idle vCPUs went on asking ($asking ticks, at rest $resting)" \
	[ "$asking" -gt $((3 * resting)) ]
kill -CONT "$(cat "$KTAP_TRAFFIC.pid")"
traffic_stop "busy: every packet is answered, once"
check "busy: guest module goes" guest_module 0 unload
unload vbalance_host
guest 0 'burn 4 </dev/null >/dev/null 2>&1 &'

# ---- the guest: looks that take long ----
# Half of what a vCPU gets is for others, where its CPU is another one's most of
# the time.
check "look: host module comes" load vbalance_host
guest_module 0 load
check "look: the guest registers" await 60 is_active 0
guest_fails look -1
ran_us() { cols "$(vm_dir 0)/vcpus" running_us | awk '{ n += $1 } END { printf "%.0f", n }'; }
looked_us() { g 0 'cols $GUEST/vcpus look_us' | awk '{ n += $1 } END { printf "%.0f", n }'; }
ran=$(ran_us)
looked=$(looked_us)
sleep 20
looked=$(($(looked_us) - looked))
ran=$(($(ran_us) - ran))
guest_fails look 0
echo "# $ran us, looks $looked us"
check "look: they are long" [ $looked -gt $((ran / 5)) ]
check "look: half of the vCPUs' time is for others" [ $looked -lt $((ran * 11 / 20)) ]
check "look: guest module goes" guest_module 0 unload
unload vbalance_host

# ---- the guest: interrupts that cannot be moved ----
guest_module 0 load policy=paper remap=affinity
moved() { [ "$(g 0 gstat moves)" -gt 0 ]; }
traffic_start "$(guest_ip 0)"
check "move: interrupts are moved" await 120 moved
guest_fails move 1
check "move: one cannot be" await 120 guest_failed
equal "move: it is counted" "$(g 0 gstat failed)" 1
more_moves=$(g 0 gstat moves)
moved_more() { [ "$(g 0 gstat moves)" -gt "$more_moves" ]; }
check "move: others are" await 120 moved_more
traffic_stop "move: every packet is answered, once"
not_redirected "move"
# One that is away, while nobody moves any.
away() {
	g 0 'echo 1 > $GUEST_PARAMETERS/observe; cols $GUEST/irqs affinity irq cpu home' |
		awk '$1 == "free" && $3 != $4 { print $2, $4 }' > "$KTAP_TMP/away"
	[ -s "$KTAP_TMP/away" ] && return
	g 0 'echo 0 > $GUEST_PARAMETERS/observe'
	return 1
}
check "move: one is away" await 120 away
guest_fails move 1
check "move: the module goes, and it cannot be put back at once" guest_module 0 unload
guest 0 'killall burn' </dev/null
equal "move: it is where it belongs" \
	"$(g 0 "where $(cut -d ' ' -f 1 "$KTAP_TMP/away" | xargs)")" "$(cat "$KTAP_TMP/away")"

# ---- the host module goes while VMs do ----
check "setup: host module comes" load vbalance_host fail_point=setup fail_at=-1
vm_begin() {
	kvm_registration > /dev/null 2>&1 &
	KTAP_KILL="$KTAP_KILL $!"
}
vm_end() {
	kill -KILL "$1"
	wait "$1"
} 2>/dev/null
vm_begin
first=$!
pinned() { [ "$(hstat pages_pinned)" -gt 0 ]; }
check "setup: the work item is held at a VM's area" await 60 pinned
vm_begin
second=$!
both_found() { [ "$(hstat vcpus_discovered)" -ge $((VCPUS + 2 + 2)) ]; }
check "setup: another VM comes" await 60 both_found
vm_end $second
rmmod vbalance_host &
rmmod=$!
sleep 2
check "setup: it has gone, and the host module waits for the work item" loaded vbalance_host
echo 0 > $SETTINGS/fail_at
wait $rmmod
ok $? "setup: the host module goes"
vm_end $first
check "setup: host module comes again" load vbalance_host
# A VM is found when one of its vCPUs runs.
is_known() { guest 0 true </dev/null && [ -n "$(vm_dir 0)" ]; }
check "setup: guest 0 is known" await 60 is_known
embed "setup: and works" kvm_registration
unload vbalance_host
guest_log_clean 0
ktap_end
