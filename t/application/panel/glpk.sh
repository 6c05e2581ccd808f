#!/bin/bash
# Packages: glpk-utils coinor-cbc. Needs: glpsol cbc
# Integer programs by two solvers: a knapsack with several bounds.
for seed in {1..12}; do awk -v s=$((seed * 1117)) 'BEGIN { print "Maximize\n value:"
	for (k = 1; k <= 70; k++) { s = (s * 16807) % 2147483647; printf " + %d x%d\n", s % 90 + 10, k }
	print "Subject To"
	for (r = 1; r <= 5; r++) { printf " c%d:", r; for (k = 1; k <= 70; k++) { s = (s * 16807) % 2147483647; printf " + %d x%d\n", s % 60 + 5, k }; print " <= 500" }
	print "Binary"; for (k = 1; k <= 70; k++) print " x" k; print "End" }' >problem"$seed".lp; done
echo ready
for seed in {1..12}; do
	glpsol --lp problem"$seed".lp -o answer >/dev/null
	grep -E 'Status|Objective' answer
	cbc problem"$seed".lp solve solution answer2 >/dev/null
	head -1 answer2 | cut -c1-60
done
echo "status $?"
