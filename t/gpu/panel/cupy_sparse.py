"""cuSPARSE through CuPy: products and sums of sparse matrices. All values are whole numbers: it adds them up in
any order."""
import cupy
import cupyx.scipy.sparse as sparse
from common import end, show, steps

random = cupy.random.RandomState(1)
x = random.randint(-8, 9, (2000, 8)).astype(cupy.float64)
for step in steps():
    n = 2000
    rows = random.randint(0, n, 20000)
    columns = random.randint(0, n, 20000)
    values = random.randint(-8, 9, 20000).astype(cupy.float64)
    a = sparse.csr_matrix((values, (rows, columns)), shape=(n, n))
    a.sum_duplicates()
    b = a.T.tocsr() + sparse.identity(n, format="csr")
    x = cupy.mod(b @ x, 97)
    show(step, x, (a @ b).nnz, b @ x[:, 0])
end(x)
