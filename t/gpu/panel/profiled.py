"""torch.profiler around the first steps; training continues after it."""
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from common import end, set_up_torch, show, steps, weights

device = set_up_torch()
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)


def train():
    rows = torch.randn(64, 256, device=device)
    loss = nn.functional.mse_loss(model(rows), rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    for _ in range(3):
        train()
assert len(seen.events()) > 0
for step in steps():
    show(step, train())
end(weights(model))
