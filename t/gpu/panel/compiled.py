"""compiled.py MODE: torch.compile of a training step, two shapes.

What the compiler measures decides in which order sums are taken, and differs from run to run: it is told not to
measure. (That deterministic algorithms are asked for says the same, but not for all that is compiled later.)"""
import sys

import torch
import torch._inductor.config
from torch import nn
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights


def main(mode):
    device = set_up_torch()
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.Linear(64, 256), layer, nn.Linear(256, 64)).to(device)
    options = torch._inductor.list_mode_options(mode) | {"shape_padding": False}
    if hasattr(torch._inductor.config, "deterministic"):
        options["deterministic"] = True
    compiled = torch.compile(model, options=options)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    # Both shapes are compiled, and recorded, in the first few.
    for step in steps(before=10):
        rows = torch.randn(8, 64 if step % 3 else 96, 64, device=device)
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.mse_loss(compiled(rows).float(), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= 0:
            show(step, loss.item())
    end(weights(model))


if __name__ == "__main__":
    main(sys.argv[1])
