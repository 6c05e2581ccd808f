#!/bin/bash
# Packages: pari-gp. Needs: gp
# Number theory on a stack that it has mapped itself.
echo ready
gp -q -f -s 64M <<'END'
{ s = 0;
for(k = 1, 60, s += vecsum(factor(2^(101 + k) - 1)[, 1]) % 1000003);
print(s);
print(vecsum([qfbclassno(-d) | d <- [3..300000], isfundamental(-d)]));
print(polclass(-2 * 10^5 + 1) % 1000003 == 0, " ", bnfinit(y^5 - y + 77, 1).cyc) }
END
echo "status $?"
