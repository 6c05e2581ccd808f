"""cuSOLVER through CuPy: QR, LU, Cholesky, eigenvalues, singular values."""
import cupy
from common import end, show, steps

random = cupy.random.RandomState(1)
for step in steps():
    n = 20 + step * 37 % 300
    a = random.standard_normal((n, n))
    s = a @ a.T + n * cupy.eye(n)
    q, r = cupy.linalg.qr(a)
    show(step, r, cupy.linalg.solve(a, q[0]), cupy.linalg.cholesky(s), cupy.linalg.eigh(s)[0],
         cupy.linalg.svd(a, compute_uv=False))
end(s)
