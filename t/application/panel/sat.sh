#!/bin/bash
# Packages: cadical minisat. Needs: cadical minisat
# Solvers of propositional formulas: more pigeons than holes, and a random formula.
awk 'BEGIN { n = 8; print "p cnf", (n + 1) * n, (n + 1) + n * (n + 1) * n / 2
	for (p = 0; p <= n; p++) { for (h = 1; h <= n; h++) printf "%d ", p * n + h; print 0 }
	for (h = 1; h <= n; h++) for (p = 0; p <= n; p++) for (q = p + 1; q <= n; q++) print -(p * n + h), -(q * n + h), 0 }' >holes
awk 'BEGIN { s = 7; v = 180; c = 765; print "p cnf", v, c
	for (k = 0; k < c; k++) { for (i = 0; i < 3; i++) { s = (s * 16807) % 2147483647; x = int(s / 97) % v + 1; printf "%d ", int(s / 31) % 2 ? x : -x }; print 0 } }' >random
echo ready
cadical -q holes
echo "status $?"
minisat -verb=0 random answer | grep -v -i time
cat answer
cadical -q random | cksum
