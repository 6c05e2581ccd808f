#!/bin/bash
# Packages: gromacs gromacs-data. Needs: gmx
# Water, some steps of dynamics that are the same at each run.
data=$(dirname "$(find /usr/share -path '*gromacs/top/spc216.gro' | head -n 1)")
{
	gmx solvate -cs spc216.gro -box 2.2 2.2 2.2 -o water.gro
	n=$(grep -c 'OW' water.gro)
	cat >topol.top <<END
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
SOL $n
END
	cat >run.mdp <<END
integrator = md
dt = 0.002
nsteps = ${STEPS:-1500}
nstenergy = 500
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
gen-vel = yes
gen-temp = 300
gen-seed = 1
ld-seed = 1
constraints = h-bonds
END
	gmx grompp -f run.mdp -c water.gro -p topol.top -o run.tpr
} >prepare.log 2>&1 || { echo "cannot prepare: $data"; exit 1; }
echo ready
gmx mdrun -s run.tpr -deffnm run -ntmpi 1 -ntomp 2 -reprod -pin off >mdrun.log 2>&1
echo "status $?"
cksum <run.gro
