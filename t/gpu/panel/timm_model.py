"""timm_model.py NAME: a model of timm's is trained in mixed precision."""
import sys

import timm
import torch
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights

device = set_up_torch()
model = timm.create_model(sys.argv[1], pretrained=False, num_classes=10)
model = model.to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for step in steps():
    pictures = torch.randn(16, 3, 128, 128, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (16,), device=device)
    with torch.autocast(device.type, torch.bfloat16):
        loss = F.cross_entropy(model(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(step, loss.item())
end(weights(model))
