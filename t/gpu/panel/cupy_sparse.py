"""cuSPARSE through CuPy: products and sums of sparse matrices."""
import cupy
import cupyx.scipy.sparse as sparse
from common import end, show, steps

random = cupy.random.RandomState(1)
x = random.standard_normal((2000, 8))
for step in steps():
    n = 2000
    rows = random.randint(0, n, 20000)
    columns = random.randint(0, n, 20000)
    a = sparse.csr_matrix((random.standard_normal(20000), (rows, columns)), shape=(n, n))
    a.sum_duplicates()
    b = a.T.tocsr() + sparse.identity(n, format="csr")
    x = b @ x
    x /= cupy.abs(x).max()
    show(step, x, (a @ b).nnz, b @ x[:, 0])
end(x)
