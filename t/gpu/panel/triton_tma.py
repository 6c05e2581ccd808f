"""Triton: a product of matrices through tensor descriptors (TMA), made on the host and on the device, and a
softmax."""
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
from common import end, set_up_torch, show, steps

M, N, K = 512, 384, 256


@triton.jit
def product_host(a, b, c, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([j, k]).T, total)
    c.store([i, j], total.to(tl.bfloat16))


@triton.jit
def product_device(a, b, c, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    first = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    second = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(first.load([i, k]), second.load([j, k]).T, total)
    out.store([i, j], total.to(tl.bfloat16))


@triton.jit
def softmax(x, y, n: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, n)
    row = tl.load(x + at).to(tl.float32)
    e = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, e / tl.sum(e, 0))


def scratch(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


device = set_up_torch()
triton.set_allocator(scratch)
BM, BN, BK = 128, 128, 64
grid = (M // BM, N // BN)
for step in steps():
    a, b = (torch.randn(n, K, device=device).bfloat16() for n in (M, N))
    c, d = (torch.empty(M, N, device=device, dtype=torch.bfloat16) for _ in range(2))
    product_host[grid](
        TensorDescriptor.from_tensor(a, [BM, BK]), TensorDescriptor.from_tensor(b, [BN, BK]),
        TensorDescriptor.from_tensor(c, [BM, BN]), K, BM, BN, BK)
    product_device[grid](a, b, d, M, N, K, BM, BN, BK)
    e = torch.empty(M, 256, device=device)
    softmax[(M,)](a, e, 256)
    assert torch.equal(c, d)
    show(step, c, e)
end(c)
