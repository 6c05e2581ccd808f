#!/bin/bash
# Packages: scilab-cli. Needs: scilab-cli
export HOME=$PWD TMPDIR=$PWD
cat >work.sce <<'END'
rand("seed", 7);
n = 120; s = 0;
A = rand(n, n);
for k = 1:60
  [Q, R] = qr(A + k * eye(n, n));
  s = s + norm(Q * R - A - k * eye(n, n)) + max(abs(spec(A(1:40, 1:40) * k)));
  A = modulo(A * 31 + 0.1, 1);
end
function dy = f(t, y), dy = [y(2); -y(1) - 0.1 * y(2)]; endfunction
y = ode([1; 0], 0, 0:0.01:200, f);
mprintf("%.12g %.12g\n", s, sum(y(1, :)));
exit(0)
END
echo ready
scilab-cli -nb -f work.sce 2>err.log
echo "status $?"
