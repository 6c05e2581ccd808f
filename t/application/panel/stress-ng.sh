#!/bin/bash
# Packages: stress-ng. Needs: stress-ng
# Stressors that check what they do: write barriers (faults that a handler mends), SEM_UNDO, futexes, pipes, timers.
counts=(cpu=900 vm=15000 pipe=600000 futex=30000 mprotect=300000 sem-sysv=500000 poll=60000 timer=30000)
for count in "${counts[@]}"; do
	options+=("--${count%=*}" 1 "--${count%=*}-ops" "${count#*=}")
done
echo ready
stress-ng --seed 3 --verify --vm-bytes 16m --metrics-brief --temp-path . "${options[@]}" >report 2>&1
echo "status $?"
# Some count in steps that go a little beyond what was asked for.
for count in "${counts[@]}"; do
	awk -v name="${count%=*}" -v least="${count#*=}" \
		'/metrc/ && $4 == name { print name, $5 >= least && $5 < least * 1.1 }' report
done
grep -E 'fail:|error:' report
true
