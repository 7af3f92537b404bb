#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Interrupts of preempted vCPUs are served by running ones, and none is lost:
# several devices and queues, changing affinity, CPUs, parameters and modules.
# Runs in the lab's L1.
# shellcheck source=selftests/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=selftests/lablib.sh
. "$KTAP_DIR/lablib.sh"
# shellcheck source=selftests/redirectlib.sh
. "$KTAP_DIR/redirectlib.sh"

has_scsi() { g 0 'cols $GUEST/irqs kind' | grep -q -x scsi; }

# ---- two network devices with two queue pairs each, a disk with two queues ----
PARAMS=
scsi_disk
# shellcheck disable=SC2086 # words
begin "split rings" $SCSI
check "the guest has a SCSI disk" await 60 scsi_found
check "its queues are found" await 60 has_scsi
# Those that are not as they should be, or "none" if there are none at all.
unlike() {
	g 0 'cols $GUEST/irqs name redirect' |
		awk -v tx="$1" '{ is_tx = $1 ~ /-output\./; n[is_tx]++ }
			$2 != (is_tx ? tx : "key")
			END { if (!n[0] || !n[1]) print "none" }'
}
alike() { [ -z "$(unlike "$1")" ]; }
equal "every interrupt of a queue has a key" "$(unlike key)" ""
equal "the host is told which are of transmit queues" \
	"$(g 0 'cols $GUEST/irqs name transmit' | awk '
		{ is_tx = $1 ~ /-output\./; n[is_tx]++ }
		$2 != is_tx
		END { if (!n[0] || !n[1]) print "none" }')" ""
equal "managed ones too" "$(of 'virtio[0-9]*-req' affinity | sort -u)" managed
check "network interrupts are redirected" await 120 every_device redirected name 'virtio[0-9]*-input'
check "block interrupts are redirected" await 120 every_device redirected name 'virtio[0-9]*-req'
scsi_served() {
	guest 0 'dd if=/tmp/pattern of=/dev/sda bs=16k oflag=direct &&
		dd if=/dev/sda bs=16k count=16 iflag=direct | cmp - /tmp/pattern' </dev/null 2>/dev/null &&
		every_device redirected kind scsi
}
check "SCSI interrupts are redirected, and what is written is read" await 120 scsi_served
check "those of transmit queues too" await 120 every_device redirected name 'virtio[0-9]*-output'
parameter redirect_tx 0
check "redirect_tx=0: those of transmit queues have none" await 20 alike transmit
before=$(of 'virtio[0-9]*-output' borrowed | awk '{ s += $1 } END { print s }')
tx_borrowed() {
	more 5
	[ "$(of 'virtio[0-9]*-output' borrowed | awk '{ s += $1 } END { print s }')" -gt "$before" ]
}
check "and are served by others all the same" await 120 tx_borrowed
parameter redirect_tx 1
check "redirect_tx=1: all have one again" await 20 alike key
# Where: by the kernel's own table, on CPUs that do not own them, just as often as
# our events say. Read while none comes (the packets pause), each line: irq, owner,
# moves, foreign moves, how often we served it and why, how often it was counted
# on each CPU.
packets() { cat "$KTAP_TMP"/traffic-*.pid | xargs kill "-$1"; }
at_rest_by_cpu() {	# COMMAND: while none comes
	g 0 'now() {
		{ cols $GUEST/irqs irq cpu moves foreign served stolen borrowed swept
		  echo; cat /proc/interrupts; } |
			awk -v cpus="$(cpus)" "
				!table { table = !NF; row[\$1] = \$0; next }
				(irq = \$1 + 0) in row {
					line = row[irq]
					for (i = 0; i < cpus; i++) line = line \" \" \$(i + 2)
					print line
				}"
	}
	for try in 1 2 3 4 5 6 7 8 9 10 11 12; do
		was=$(now)
		'"$1"'
		sleep 1
		[ "$(now)" != "$was" ] || { echo "$was"; exit 0; }
	done
	exit 1'
}
# Prints "elsewhere IRQ TIMES" of each that was not moved, "wrong ..." for a count
# that is not as it should be.
compare_places() {
	awk -v cpus="$VCPUS" '
		FNR == 1 { file++ }
		file == 2 {
			if (!match($0, /\[[0-9]+\]/)) next
			at = substr($0, RSTART + 1, RLENGTH - 2) + 0
			if (!sub(/.*: vb_guest_serve: irq=/, "")) next
			sub("kind=", "", $2)
			place[$1, at]++
			kind[$1, $2]++
			next
		}
		{
			owner[file, $1] = $2 " " $3 " " $4
			for (i = 5; i <= NF; i++) n[file, $1, i] = $i
			irqs[$1] = $2
		}
		END {
			split("own steal borrow sweep", kinds)
			for (irq in irqs) {
				if (owner[1, irq] != owner[3, irq]) continue
				times = 0
				for (i = 0; i < cpus; i++) {
					if (i == irqs[irq]) continue
					counted = n[3, irq, i + 9] - n[1, irq, i + 9]
					times += counted
					if (counted != place[irq, i] + 0)
						print "wrong: irq", irq, "of CPU", irqs[irq], "on CPU", i ":", counted, "but", place[irq, i] + 0, "events"
				}
				for (i = 1; i <= 4; i++) {
					counted = n[3, irq, i + 4] - n[1, irq, i + 4]
					if (counted != kind[irq, kinds[i]] + 0)
						print "wrong: irq", irq, kinds[i] ":", counted, "but", kind[irq, kinds[i]] + 0, "events"
				}
				print "elsewhere", irq, times
			}
		}' "$KTAP_TMP/places" "$KTAP_TMP/trace" "$KTAP_TMP/places_after" > "$KTAP_TMP/elsewhere"
}
served_elsewhere() {
	packets STOP
	at_rest_by_cpu 'trace_on vbalance_guest/vb_guest_serve' > "$KTAP_TMP/places"
	traced=$?
	packets CONT
	[ "$traced" = 0 ] && more 5 || return
	packets STOP
	at_rest_by_cpu 'cat $TRACE/trace > /tmp/trace' > "$KTAP_TMP/places_after" &&
		g 0 'cat /tmp/trace; trace_off' > "$KTAP_TMP/trace"
	traced=$?
	packets CONT
	[ "$traced" = 0 ] && compare_places || return
	grep -q wrong "$KTAP_TMP/elsewhere" && return
	awk '$1 == "elsewhere" && $3 > 0 { n++ } END { exit !n }' "$KTAP_TMP/elsewhere"
}
: > "$KTAP_TMP/elsewhere"
check "interrupts that stay where they are are served by others" await 120 served_elsewhere
sed 's/^/# /' "$KTAP_TMP/elsewhere"
equal "they are counted where they were served" "$(grep wrong "$KTAP_TMP/elsewhere")" ""
[ "$(gstat redirect_irqs)" -gt 0 ]
ok $? "redirection vectors are taken"
some_stolen() { more 5; [ "$(gstat stolen)" -gt 0 ]; }
check "bits of vCPUs that lost their CPU are stolen" await 120 some_stolen

# What the guest says of itself makes the host boost, and end boosts. With the
# default shares interrupts can use up all: processes get the lesser half.
SHARES="boost_share boost_vcpu_share boost_cpu_share"
shares() {	# PERCENT...
	for param in $SHARES; do
		echo "$1" > "/sys/module/vbalance_host/parameters/$param"
		shift
	done
}
boosts_of() { more 5; [ "$(stat_of "$(vm_dir 0)/boost" "$1")" -gt 0 ]; }
reads() {	# a process that waits for an interrupt, many times
	guest 0 'dd if=/dev/vda of=/dev/null bs=4k count=64 iflag=direct' </dev/null 2>/dev/null
	boosts_of "$1"
}
were=$(for param in $SHARES; do cat "/sys/module/vbalance_host/parameters/$param"; done)
shares 50 50 50
check "vCPUs are boosted that say that they serve interrupts" await 120 boosts_of hint
check "and for the processes behind them" await 300 reads task
check "boosts end when the guest is done" await 120 boosts_of ended_done
tells() { more 5; [ "$(gstat boosts_ended)" -gt 0 ]; }
check "because it says so" await 120 tells

# Pings are answered by NAPI alone: no process is behind them.
napi_threads() {
	guest 0 "for d in /sys/class/net/[ev]*/threaded; do echo $1 > \$d; done" </dev/null
}
before=$(stat_of "$(vm_dir 0)/boost" task)
pinged() {
	traffic_more 20
	[ "$(stat_of "$(vm_dir 0)/boost" task)" -ge $((before + 5)) ]
}
napi_threads 1
ok $? "threaded NAPI"
check "threaded NAPI: vCPUs are boosted for its threads" await 120 pinged
napi_threads 0
ok $? "NAPI in soft interrupts again"
# shellcheck disable=SC2086 # words
shares $were

# The host compares what the guest publishes.
loads() { more 5; cols "$(vm_dir 0)/vcpus" load_us service_us | awk '$1 > 0 && $2 > 0 { n++ } END { exit !n }'; }
check "the guest publishes its interrupt loads" await 60 loads

# Affinity changes from outside while interrupts come.
irq=$(g 0 'cols $GUEST/irqs irq name handled | grep input' | sort -k 3 -n | tail -n 1 | cut -d ' ' -f 1)
for cpu in 0 1 2 3; do
	guest 0 "echo $cpu > /proc/irq/$irq/smp_affinity_list" </dev/null
	more 3
	ok $? "affinity of a queue's interrupt set to CPU $cpu"
done
# The key goes with the vector, not with the search that comes every second.
# Printed: moves, and how often the key was another one's after one, and still
# when looked at again (a vCPU may lose its CPU between the two).
follow() {
	# No programs: under load each takes a hundred times what a look may.
	g 0 "irq=$irq"'; n=0; moved=0; bad=0; was=none
	set -- $(sed -n 2p $GUEST/irqs); at=1
	while [ "$1" != key_cpu ]; do at=$((at + 1)); shift || exit; done
	key_cpu() {
		while read -r row; do
			set -- $row
			[ "$1" != $irq ] || { eval "key=\${$at}"; return; }
		done < $GUEST/irqs
	}
	effective() { read -r now < /proc/irq/$irq/effective_affinity_list; }
	differs() {
		effective; before=$now; key_cpu; effective
		[ "$before" = "$now" ] && [ "$key" != "$now" ]
	}
	while [ $((n += 1)) -le 1000 ] && [ $moved -lt 40 ]; do
		# The next one as soon as the last one has taken effect.
		echo $((moved % 4)) > /proc/irq/$irq/smp_affinity_list
		differs && differs && differs && bad=$((bad + 1))
		[ "$now" = "$was" ] || moved=$((moved + 1))
		was=$now
	done
	echo $moved $bad'
}
follow > "$KTAP_TMP/follow"
echo "# moves, wrong keys: $(cat "$KTAP_TMP/follow")"
check "the key follows each move" awk '{ exit !($1 >= 10 && $2 == 0) }' "$KTAP_TMP/follow"
guest 0 "echo 0-3 > /proc/irq/$irq/smp_affinity_list" </dev/null

# Rows whose key is not of the CPU that the interrupt goes to.
misplaced() {
	g 0 'cols $GUEST/irqs irq redirect key_cpu cpu' |
		awk '{ n++ } $2 != "key" || $3 != $4 { print } END { if (!n) print "none" }'
}
in_place() {
	misplaced > "$KTAP_TMP/misplaced"
	[ ! -s "$KTAP_TMP/misplaced" ]
}
keys_fit() {	# WHEN
	await 20 in_place
	ok $? "$1: each interrupt's key is of the CPU that it goes to"
	sed 's/^/# irq, redirect, key_cpu, cpu: /' "$KTAP_TMP/misplaced"
}

# CPUs of the guest go and come.
for cpu in 1 3; do
	guest 0 "echo 0 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
	ok $? "CPU $cpu goes offline"
	check "and all goes on" more 8
	keys_fit "without CPU $cpu"
	guest 0 "echo 1 > /sys/devices/system/cpu/cpu$cpu/online" </dev/null
	check "CPU $cpu comes back" more 8
	keys_fit "with CPU $cpu"
done

# So do they by moves, ours and irqbalance's.
has_grown() { more 3; [ "$(gstat "$1")" -gt "$2" ]; }
parameter policy paper
check "policy=paper: interrupts are moved" await 120 has_grown moves $(($(gstat moves) + 10))
parameter policy cost
keys_fit "moved by us"
before=$(gstat foreign)
guest 0 "irqbalance --foreground -t ${SLOW:-1} >/dev/null 2>&1 </dev/null &" </dev/null
check "irqbalance: interrupts are moved" await 120 has_grown foreign "$before"
check "irqbalance: all goes on" more 20
keys_fit "moved by irqbalance"
check "irqbalance ends" guest 0 'killall irqbalance' </dev/null
g 0 settle

# The parameter, live.
parameter remap none
sleep 2
before=$(host_count diverted)
check "remap=none: all goes on" more 8
equal "and the host redirects nothing" "$(host_count diverted)" "$before"
parameter remap redirect
grows() { more 5; [ "$(host_count diverted)" -gt "$before" ]; }
check "remap=redirect: it does again" await 120 grows

# The machine is paused and goes on.
kill -STOP "$(guest_pid 0)"
sleep 1
kill -CONT "$(guest_pid 0)"
check "and all goes on" more 8
at_rest
keys_fit "at rest"

# ---- the host module goes in the middle, and comes ----
traffic_start "$IP"
traffic_start "$IP1"
for _ in 1 ${LONG:+2}; do
	check "the host module goes" unload vbalance_host
	check "and all goes on" more 8
	load vbalance_host
	check "it comes back" await 60 source_is 0 page
	before=0
	check "and redirects again" await 120 grows
done
name="host module"
all_answered
balanced "$name"

# ---- the guest module goes in the middle, and comes ----
traffic_start "$IP"
traffic_start "$IP1"
for _ in 1 ${LONG:+2}; do
	guest_module 0 unload
	ok $? "the guest module goes"
	check "and all goes on" more 8
	host_base
	guest_module 0 load
	check "it comes back" more 8
done
name="guest module"
before=0
check "and is redirected for again" await 120 grows
at_rest
end
unload vbalance_host
ktap_end
