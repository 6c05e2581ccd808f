#!/bin/bash
# Packages: clasp gringo. Needs: clasp gringo
# Answer sets: a grounder writes into a pipe, a solver with two threads reads.
cat >queens.lp <<'END'
#const n = 9.
1 { q(X, 1..n) } 1 :- X = 1..n.
:- q(X, Y), q(Z, Y), X < Z.
:- q(X, Y), q(Z, W), X < Z, |Y - W| = Z - X.
END
echo ready
{ gringo queens.lp -c n=11; } | clasp -n 0 -q -t 2 --verbose=1 | grep -E '^(SATISFIABLE|Models)'
echo "status ${PIPESTATUS[*]}"
