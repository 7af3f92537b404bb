#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Holders of guests without vbalance_guest: vhost-net's rings are found, end
# boosts, and are forgotten; not so those of a guest that was there first.
# Runs in the lab's L1 and leaves guest 1 ended.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
[ "$GUESTS" -ge 2 ] || skip_all "needs two guests"
RINGS=$((2 * NET * NET_QUEUES))
[ $RINGS -gt 0 ] || skip_all "needs a network device"

# Each interrupt makes a holder for long, were it not for the rings; and plenty
# of tokens.
load_host() {
	load vbalance_host holder_us=100000 boost_share=50 \
		boost_vcpu_share=50 boost_cpu_share=50
}
HOST_PARAMETERS=/sys/module/vbalance_host/parameters
boost() { stat_of "$(vm_dir "$1")/boost" "$2"; }
rings_are() { [ "$(boost "$1" rings)" = "$2" ]; }
# some N NAME: it was counted in guest N
some() {
	some_n=$(boost "$1" "$2")
	[ "${some_n:-0}" -gt 0 ]
}
say() {	# N
	echo "# guest $1: $(grep -v ' 0$' "$(vm_dir "$1")/boost" | tail -n +2 | tr '\n' ',')"
}

all_forgotten() {
	[ "$(stat_of "$HOST/stats" rings_learnt)" = "$(stat_of "$HOST/stats" rings_forgotten)" ]
}

busy() {	# N: all its vCPUs
	guest "$1" "killall burn 2>/dev/null; burn $VCPUS >/dev/null 2>&1 </dev/null &"
}
idle() { guest "$1" 'killall burn' </dev/null; }	# N

unload vbalance_host
check "load, with guests there" load_host
check "rings are watched" grep -q "^rings on" $HOST/features
check "guest 0 was there first: no ring is known" await 20 rings_are 0 0
check "guest 1 was there first: no ring is known" await 20 rings_are 1 0

guest_stop 0
guest_start 0
guest_wait 0
check "a guest that starts: its rings are known" await 60 rings_are 0 $RINGS
equal "guest 1: no ring is known" "$(boost 1 rings)" 0

for n in 0 1; do
	busy $n
	flood_start "$(guest_ip $n)"
done
check "guest 0: holders are boosted" await 120 some 0 holder
check "guest 0: they are done when the rings allow interrupts" await 120 some 0 ended_done
check "guest 0: with the rings open there is no holder" await 120 some 0 no_holder
check "guest 0: so are those that an interrupt waits for" await 120 some 0 waiting
check "guest 1: holders are boosted" await 120 some 1 holder
equal "guest 1: no ring, nobody is done" "$(boost 1 ended_done) $(boost 1 no_holder)" "0 0"
say 0
say 1

# Holders are none of these: what ends here was the fast path.
more_than() { [ "$(boost "$1" "$2")" -gt "$3" ]; }
boost_us=$(cat $HOST_PARAMETERS/boost_us)
echo 0 > $HOST_PARAMETERS/holder_us
# What serves at leisure, as debug kernels do, is done within one boost.
echo 20000 > $HOST_PARAMETERS/boost_us
sleep 1
fast=$(boost 0 fast_path) done=$(boost 0 ended_done)
check "guest 0: the fast path" await 120 more_than 0 fast_path "$fast"
check "guest 0: it is done when the rings allow interrupts" await 120 more_than 0 ended_done "$done"
echo "$boost_us" > $HOST_PARAMETERS/boost_us
echo 100000 > $HOST_PARAMETERS/holder_us
say 0

# As its guest stops and starts the device.
check "guest 1: link down" guest_link 1 false
check "guest 1: link up" guest_link 1 true
check "guest 1: rings set up anew are known" await 60 rings_are 1 $RINGS
check "guest 1: its holders are done, too" await 120 some 1 ended_done
say 1
check "guest 1: link down again" guest_link 1 false
check "guest 1: the rings of a device that is stopped are forgotten" await 20 rings_are 1 0
equal "guest 0: its rings are not" "$(boost 0 rings)" $RINGS
check "guest 1: link up again" guest_link 1 true

# Boosts, looks at rings, and changes of rings under way.
for n in 1 2; do
	check "$n: unload under traffic" unload vbalance_host
	check "$n: load under traffic" load_host
	check "$n: guest 0: no ring is known" await 20 rings_are 0 0
	check "$n: guest 0: link down" guest_link 0 false
	check "$n: guest 0: link up" guest_link 0 true
	check "$n: guest 0: its rings are known" await 60 rings_are 0 $RINGS
	check "$n: guest 0: holders are done" await 120 some 0 ended_done
done

floods_stop
# Detectors of debug kernels look through all memory when it is asked to stop.
idle 0
idle 1
guest_stop 1
one_folder() { [ "$(vm_folders)" = 1 ]; }
check "guest 1 ends" await 60 one_folder
equal "guest 0: its rings are still known" "$(boost 0 rings)" $RINGS
busy 0
traffic_start "$(guest_ip 0)"
check "guest 0 answers" traffic_more 20
traffic_stop "guest 0 answers every packet once"
# Nobody asked for it: the guests do not have the module.
equal "guest 0: nothing was redirected" "$(host_count diverted) $(host_count posted)" "0 0"
say 0
idle 0
guest_log_clean 0
guest_stop 0
check "all guests end" await 60 nothing_left
check "and their rings are forgotten" await 20 all_forgotten
[ "$(stat_of "$HOST/stats" rings_learnt)" -gt 0 ]
ok $? "there were some"

# vhost_net goes and comes.
check "vhost_net is unloaded" rmmod vhost_net
check "rings: off, and why" grep -q "^rings off (vhost_net is not loaded" $HOST/features
check "vhost_net is loaded" modprobe vhost_net
check "rings are watched again" grep -q "^rings on" $HOST/features
guest_start 0
guest_wait 0
check "and found" await 60 rings_are 0 $RINGS
unload vbalance_host
check "load with observe=1" load vbalance_host observe=1
check "observe=1: rings are not watched" grep -q "^rings off (observe=1" $HOST/features
unload vbalance_host
ktap_end
