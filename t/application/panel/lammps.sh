#!/bin/bash
# Packages: lammps openmpi-bin. Needs: lmp mpirun
# Two processes of MPI.
cat >in.lj <<END
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 500
thermo_modify flush yes
run ${STEPS:-3000}
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
echo ready
mpirun --oversubscribe -np 2 lmp -in in.lj -log none >lammps.out 2>lammps.err
echo "status $?"
sed -n '/^ *Step/,/^Loop/p' lammps.out | grep -v Loop
