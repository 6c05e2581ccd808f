#!/bin/bash
# Packages: gap-core. Needs: gap
# Groups: a garbage collector of its own, and much memory.
cat >work.g <<'END'
G := SymmetricGroup(9);; Print(Size(ConjugacyClasses(G)), "\n");
s := 0;; for k in [1..60000] do g := Random(GlobalMersenneTwister, G);; s := (s * 31 + Order(g)) mod 1000003;; od; Print(s, "\n");
H := DirectProduct(AlternatingGroup(6), MathieuGroup(11));; Print(Size(H), " ", Length(NormalSubgroups(H)), "\n");
m := List([1..90], i -> List([1..90], j -> (i * j + i) mod 17 + 1 / (i + j)));; Print(RankMat(m), "\n");
QUIT;
END
echo ready
gap -A -q -r work.g </dev/null
echo "status $?"
