#!/bin/sh
# irqbalance --policyscript: leave to vbalance_guest the interrupts that it
# moves itself. irqbalance calls it with the interrupt's sysfs path and number
# and reads settings from the output (see irqbalance(1)).
irqs=/sys/kernel/debug/vbalance/guest/irqs
[ -r "$irqs" ] || exit 0
while read -r irq _name _kind _vector affinity _rest; do
	[ "$irq" = "$2" ] || continue
	case $affinity in
	free | restricted) echo "ban=true" ;;
	esac
	exit 0
done < "$irqs"
exit 0
