#!/bin/bash
# Packages: nwchem. Needs: nwchem
# Quantum chemistry with Global Arrays.
export HOME=$PWD OMP_NUM_THREADS=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat >water.nw <<'END'
start water
memory 200 mb
geometry units angstrom noautosym
  O 0.0 0.0 0.0
  H 0.0 0.76 0.59
  H 0.0 -0.76 0.59
  O 2.7 0.1 0.2
  H 3.1 0.86 0.6
  H 3.2 -0.66 0.5
end
basis
  * library 6-31g*
end
scf
  direct
  thresh 1e-8
end
task scf gradient
task mp2 energy
END
echo ready
nwchem water.nw >log 2>err.log
echo "status $?"
grep -E 'Total (SCF|MP2) energy' log
