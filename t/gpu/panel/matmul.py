"""Products of matrices in bf16, fp16, tf32 and fp8, of even and of odd sizes, with what cuBLASLt adds."""
import torch
from common import end, set_up_torch, show, steps

device = set_up_torch()
torch.backends.cuda.matmul.allow_tf32 = True
sizes = [64, 96, 127, 256, 500, 1024, 2048]
weight = torch.randn(2048, 2048, device=device)
total = torch.zeros((), device=device)
for step in steps():
    n = sizes[step % len(sizes)]
    a = torch.randn(n, n, device=device)
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        b = weight[:n, :n].to(kind)
        c = a.to(kind) @ b / n ** 0.5
        c = torch.nn.functional.linear(c, b, c[0])
        c = torch.nn.functional.gelu(torch.addmm(c[0], c, b)) / n
        c = torch.bmm(c.expand(3, n, n), b.expand(3, n, n)).sum(0)
        total += c.float().sum()
    if n % 16 == 0 and device.type == "cuda":
        one = torch.ones((), device=device)
        x = a.to(torch.float8_e4m3fn)
        c = torch._scaled_mm(x, x.t().contiguous().t(), one, one, out_dtype=torch.bfloat16)
        total += c.float().sum() / n
    show(step, c, total.item())
end(total.item())
