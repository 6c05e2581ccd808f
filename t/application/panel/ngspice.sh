#!/bin/bash
# Packages: ngspice. Needs: ngspice
# A circuit in time: a ring of transistors that swings.
export HOME=$PWD
{
	echo 'ring'
	echo '.model n nmos level=1 vto=0.7 kp=100u'
	echo '.model p pmos level=1 vto=-0.7 kp=50u'
	echo 'vdd vdd 0 3.3'
	for k in {1..31}; do
		echo "mp$k n$((k % 31 + 1)) n$k vdd vdd p w=20u l=1u"
		echo "mn$k n$((k % 31 + 1)) n$k 0 0 n w=10u l=1u"
		echo "c$k n$k 0 50f"
	done
	echo '.ic v(n1)=0 v(n2)=3.3'
	printf '.tran 20p 9000n uic\n.measure tran period trig v(n1) val=1.6 rise=5 targ v(n1) val=1.6 rise=6\n.measure tran mean avg v(n7)\n.end\n'
} >ring.cir
echo ready
ngspice -b ring.cir 2>&1 | grep -E '^(period|mean) '
echo "status ${PIPESTATUS[0]}"
