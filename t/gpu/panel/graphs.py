"""graphs.py capture|callable|whole: CUDA graphs as PyTorch offers them."""
import sys

import torch
from torch import nn
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights

device = set_up_torch()
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, capturable=True)
rows = torch.randn(64, 256, device=device)


def train():
    loss = F.mse_loss(model(rows), rows)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return loss


def warm_up():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def capture():
    """The forward pass, begun and ended by hand; the driver's graph is kept as well."""
    graph, stream = torch.cuda.CUDAGraph(keep_graph=True), torch.cuda.Stream()
    warm_up()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        out = model(rows)
        graph.capture_end()
    graph.instantiate()

    def step():
        graph.replay()
        return F.mse_loss(out, rows)
    return step


def whole():
    """A whole step of training."""
    warm_up()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train()

    def step():
        graph.replay()
        return loss
    return step


def callable_parts():
    """Forward and backward, each a graph."""
    part = torch.cuda.make_graphed_callables(model, (rows,))

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(part(rows), rows)
        loss.backward()
        optimizer.step()
        return loss
    return step


take = {"capture": capture, "callable": callable_parts, "whole": whole}[sys.argv[1]]()
for i in steps():
    rows.copy_(torch.randn(64, 256, device=device))
    show(i, take().item())
end(weights(model))
