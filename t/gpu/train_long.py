"""Trains two small networks and prints losses to the last bit: what a restart must not change."""
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

kind, steps = sys.argv[1], int(sys.argv[2])
torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
if kind == "dense":
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1024, 10))
    data = torch.randn(256, 512)
else:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(256, 10))
    data = torch.randn(64, 3, 32, 32)
model, data = model.cuda(), data.cuda()
labels = torch.randint(0, 10, (len(data),), device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for step in range(steps):
    optimizer.zero_grad()
    noise = torch.randn_like(data) * 0.1
    loss = cross_entropy(model(data + noise), labels)
    loss.backward()
    optimizer.step()
    if step % (steps // 20) == 0:
        print(step, loss.item().hex(), flush=True)
print("end", loss.item().hex(), flush=True)
