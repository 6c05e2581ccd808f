"""One process on two GPUs: a model whose halves are on one each, and copies between them."""
import torch
from torch import nn
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights

set_up_torch()
first = nn.Sequential(nn.Linear(256, 1024), nn.ReLU()).to("cuda:0")
second = nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 10)).to("cuda:1")
optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], 1e-3)
for step in steps():
    rows = torch.randn(128, 256, device="cuda:0")
    labels = torch.randint(0, 10, (128,), device="cuda:1")
    loss = F.cross_entropy(second(first(rows).to("cuda:1")), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    back = rows.to("cuda:1").to("cuda:0")
    assert torch.equal(rows, back)
    show(step, loss.item())
end(weights(first), weights(second))
