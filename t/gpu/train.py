"""Trains two small networks and prints losses to the last bit; time per step goes to stderr."""
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
dense = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
convolution = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
).cuda()
optimizer = torch.optim.AdamW([*dense.parameters(), *convolution.parameters()], 1e-3)
rows = torch.randn(256, 512, device="cuda")
row_labels = torch.randint(0, 10, (256,), device="cuda")
pictures = torch.randn(64, 3, 32, 32, device="cuda")
picture_labels = torch.randint(0, 10, (64,), device="cuda")


def step(both):
    optimizer.zero_grad()
    loss = cross_entropy(dense(rows), row_labels)
    if both:
        loss = loss + cross_entropy(convolution(pictures), picture_labels)
    loss.backward()
    optimizer.step()
    return loss


for i in range(200):
    loss = step(both=True)
    if i % 50 == 0:
        print(loss.item().hex())
torch.cuda.synchronize()
start = time.perf_counter()
for i in range(1000):
    loss = step(both=False)
torch.cuda.synchronize()
# microseconds, of a thousand steps
print(f"step {(time.perf_counter() - start) * 1e3:.1f}", file=sys.stderr)
print(loss.item().hex())
