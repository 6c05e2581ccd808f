"""attention.py flash|efficient|math|cudnn: attention forward and backward, with lengths that vary."""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from common import end, set_up_torch, show, steps

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
kind = sys.argv[1]
# cuDNN's is not there when algorithms have to be deterministic; only its sums for the queries are not.
device = set_up_torch(strict=kind != "cudnn")
total = 0.0
for step in steps():
    length = 64 + 32 * (step * 29 % 40)
    q, k, v = (torch.randn(2, 8, length, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    with sdpa_kernel(BACKENDS[kind]):
        out = scaled_dot_product_attention(q, k, v, is_causal=step % 2 == 0)
    out.backward(torch.ones_like(out))
    total += out.float().sum().item()
    show(step, length, out, k.grad, v.grad, *([q.grad] if kind != "cudnn" else []))
end(total)
