#!/bin/bash
# Packages: gcc make. Needs: gcc make
mkdir -p src && cd src || exit 1
for ((n = 0; n < 12; n++)); do
	for ((k = 0; k < 150; k++)); do
		echo "int f${n}_$k(int x) { int s = $k; while (x--) s += x * s ^ $n; return s; }"
	done >"$n.c"
done
printf 'all: %s\n\n%%.o: %%.c\n\tgcc -O2 -pipe -c $<\n' "$(echo {0..11}.o)" >Makefile
echo ready
make -s -j3
echo "status $?"
cat {0..11}.o | cksum
