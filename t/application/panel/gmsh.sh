#!/bin/bash
# Packages: gmsh minizinc. Needs: gmsh minizinc
# A mesh (with several threads another each time), and a puzzle by a compiler that starts a solver.
export HOME=$PWD
cat >part.geo <<'END'
SetFactory("OpenCASCADE");
Box(1) = {0, 0, 0, 2, 1, 1};
Sphere(2) = {1, 0.5, 1, 0.4};
Cylinder(3) = {0.5, 0.5, 0, 0, 0, 1, 0.2};
BooleanDifference{ Volume{1}; Delete; }{ Volume{2, 3}; Delete; }
Mesh.CharacteristicLengthMax = 0.05;
Mesh.Algorithm3D = 1;
END
cat >queens.mzn <<'END'
int: n = 14;
array[1..n] of var 1..n: q;
predicate differ(array[int] of var int: x) = forall(i, j in index_set(x) where i < j)(x[i] != x[j]);
constraint differ(q) /\ differ([q[i] + i | i in 1..n]) /\ differ([q[i] - i | i in 1..n]);
solve :: int_search(q, input_order, indomain_min) maximize sum(i in 1..n)(i * q[i] * (i mod 3));
output ["\(q) \(sum(i in 1..n)(i * q[i] * (i mod 3)))\n"];
END
echo ready
gmsh -3 -v 2 -nt 1 part.geo -o part.msh >gmsh.log 2>&1
echo "status $?"
cksum part.msh
minizinc --solver gecode queens.mzn 2>&1 | tail -n 3
