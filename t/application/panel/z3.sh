#!/bin/bash
# Packages: z3. Needs: z3
# A solver: a graph to be coloured, then a pigeonhole problem that has no solution.
{
	for k in {1..10}; do for h in {1..9}; do echo "(declare-const p${k}_$h Bool)"; done; done
	for k in {1..10}; do printf '(assert (or'; for h in {1..9}; do printf ' p%d_%d' $k $h; done; echo '))'; done
	for h in {1..9}; do for k in {1..10}; do for ((l = k + 1; l < 11; l++)); do
		echo "(assert (not (and p${k}_$h p${l}_$h)))"
	done; done; done
	echo '(check-sat)(push)(declare-const x (_ BitVec 24))(declare-const y (_ BitVec 24))'
	echo '(assert (= (bvmul x y) #xabcdef))(assert (bvugt x #x000001))(assert (bvugt y #x000001))(check-sat)(pop)'
} >problem
echo ready
z3 -smt2 problem
echo "status $?"
