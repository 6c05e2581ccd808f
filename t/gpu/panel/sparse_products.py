"""cuSPARSELt: products with a matrix two of whose four values are zero each, in fp16, bf16 and int8. Values are small
whole numbers, so that what comes of them is exact and must equal the product with the same matrix in full."""
import torch
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
from common import end, set_up_torch, show, steps

device = set_up_torch()
assert torch.backends.cusparselt.is_available()
SparseSemiStructuredTensor._FORCE_CUTLASS = False
sizes = [64, 128, 256]
two_of_four = torch.tensor([1, 0, 0, 1], device=device)


def numbers(rows, columns):
    return torch.randint(-1, 2, (rows, columns), device=device)


def pruned(n):
    return numbers(2 * n, n) * two_of_four.repeat(2 * n, n // 4)


def by_layer(weight, rows):
    """As a layer of a model does it."""
    return torch.nn.functional.linear(rows, to_sparse_semi_structured(weight))


def by_call(weight, rows):
    return torch._cslt_sparse_mm(torch._cslt_compress(weight), rows.t(), out_dtype=torch.int32).t()


total = torch.zeros((), dtype=torch.int64, device=device)
for step in steps():
    n = sizes[step % len(sizes)]
    weight, rows = pruned(n), numbers(n, n)
    expected = (rows.float() @ weight.float().t()).long()
    for kind in (torch.float16, torch.bfloat16):
        result = by_layer(weight.to(kind), rows.to(kind))
        assert torch.equal(result.long(), expected), f"{kind} of {n}"
    result = by_call(weight.to(torch.int8), rows.to(torch.int8))
    assert torch.equal(result.long(), expected), f"int8 of {n}"
    total = (total + (expected * torch.arange(2 * n, device=device)).sum()) % 1000003
    show(step, expected, total.item())
end(total.item())
