#!/bin/bash
# Packages: openscad. Needs: openscad
export HOME=$PWD XDG_RUNTIME_DIR=$PWD QT_QPA_PLATFORM=offscreen
cat >part.scad <<'END'
module tooth(a) { rotate([0, 0, a]) translate([20, 0, 0]) rotate([0, 0, 45]) cube([4, 4, 8], center = true); }
difference() {
	union() { cylinder(r = 20, h = 6, $fn = 60, center = true); for (a = [0 : 15 : 345]) tooth(a); }
	for (a = [0 : 60 : 300]) rotate([0, 0, a]) translate([11, 0, 0]) sphere(r = 4, $fn = 16);
	cylinder(r = 4, h = 20, $fn = 30, center = true);
}
END
echo ready
openscad -q -o part.stl part.scad 2>&1 | grep -v -i display
sort part.stl | cksum
