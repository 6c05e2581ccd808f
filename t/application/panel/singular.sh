#!/bin/bash
# Packages: singular-ui. Needs: Singular
# Groebner bases.
cat >work.sing <<'END'
int k;
for (k = 1; k <= 300; k++) { ring r = 32003, (a, b, c, d, e, f), dp;
  ideal i = a+b+c+d+e+f, a*b+b*c+c*d+d*e+e*f+f*a, a*b*c+b*c*d+c*d*e+d*e*f+e*f*a+f*a*b, a*b*c*d+b*c*d*e+c*d*e*f+d*e*f*a+e*f*a*b+f*a*b*c, a*b*c*d*e+b*c*d*e*f+c*d*e*f*a+d*e*f*a*b+e*f*a*b*c+f*a*b*c*d, a*b*c*d*e*f-k;
  ideal g = std(i); size(g), vdim(g), leadcoef(g[size(g)] + a), deg(g[size(g)]); kill r; }
quit;
END
echo ready
Singular -q --no-rc work.sing </dev/null
echo "status $?"
