#!/bin/bash
# Packages: povray. Needs: povray
# A picture by rays.
export HOME=$PWD
cat >scene.pov <<'END'
#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 3, -8> look_at 0 }
light_source { <5, 8, -6> rgb 1 }
plane { y, -1 pigment { checker rgb 1 rgb 0.2 } finish { reflection 0.2 } }
#declare k = 0;
#while (k < 60)
  sphere { <4*sin(k*0.7), sin(k), 4*cos(k*0.7)>, 0.5 pigment { rgb <mod(k,3)/3, mod(k,5)/5, 0.6> } finish { reflection 0.3 phong 0.6 } }
  #declare k = k + 1;
#end
END
echo ready
povray +Iscene.pov +Oout.ppm +FP +W1280 +H960 +A0.1 -J +WT1 -D >povray.log 2>&1
echo "status $?"
grep -av "^# " out.ppm | cksum
