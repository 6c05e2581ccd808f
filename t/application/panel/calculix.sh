#!/bin/bash
# Packages: calculix-ccx. Needs: ccx
# Finite elements: a beam of many bricks under a load, and its modes.
awk 'BEGIN { nx = 60; ny = nz = 8; print "*NODE,NSET=ALL"
	for (x = 0; x <= nx; x++) for (y = 0; y <= ny; y++) for (z = 0; z <= nz; z++) print 1 + z + (nz + 1) * (y + (ny + 1) * x) "," x "," y "," z
	print "*ELEMENT,TYPE=C3D8,ELSET=E"
	for (x = 0; x < nx; x++) for (y = 0; y < ny; y++) for (z = 0; z < nz; z++) { n = 1 + z + (nz + 1) * (y + (ny + 1) * x); d = (nz + 1) * (ny + 1)
		print ++e "," n "," n + d "," n + d + nz + 1 "," n + nz + 1 "," n + 1 "," n + d + 1 "," n + d + nz + 2 "," n + nz + 2 }
	print "*NSET,NSET=FIX,GENERATE\n1," (ny + 1) * (nz + 1) ",1\n*BOUNDARY\nFIX,1,3\n*MATERIAL,NAME=M\n*ELASTIC\n210000.,.3\n*DENSITY\n7.8E-9\n*SOLID SECTION,ELSET=E,MATERIAL=M"
	print "*STEP\n*STATIC\n*CLOAD\n" 1 + (nz + 1) * (ny + 1) * nx ",2,-50.\n*NODE PRINT,NSET=FIX,TOTALS=ONLY\nRF\n*END STEP"
	print "*STEP\n*FREQUENCY\n8\n*END STEP" }' >beam.inp
echo ready
ccx beam >log 2>&1
echo "status $?"
grep -A3 -i 'total force' beam.dat | awk '{ for (k = 1; k <= NF; k++) printf "%.3g ", $k; print "" }'
awk '/^ +[1-8] +0?\.[0-9]+E/ { printf "%d %.5e\n", $1, $4 }' beam.dat
