#!/bin/bash
# Packages: maxima. Needs: maxima
# Algebra by computer, on GNU Common Lisp, which maps its heap over the program.
export HOME=$PWD
cat >work.mac <<'END'
display2d: false$
p: expand((x + 2*y - 3*z + 1)^18)$
print(length(p), factor(p))$
print(ratsimp(integrate(1/(x^3 + 1), x)))$
s: 0$ for k: 1 thru 1200000 do s: mod(s * 31 + ifactors(k + 10^6)[1][1], 1000003)$
print(s)$
print(gcd(expand((x^7 + y)^9), expand((x^7 + y)^5 * (x - z)^3)))$
END
echo ready
maxima --very-quiet -r "batchload(\"work.mac\")$ quit()$" </dev/null
echo "status ${?}"
