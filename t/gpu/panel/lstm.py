"""An LSTM (cuDNN) over sequences of different lengths."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from common import end, set_up_torch, show, steps, weights

device = set_up_torch()
model = nn.LSTM(64, 256, 2, batch_first=True, dropout=0.1, bidirectional=True).to(device)
head = nn.Linear(512, 10).to(device)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], 1e-3)
for step in steps():
    lengths = [20 + (step * 13 + i * 7) % 60 for i in range(32)]
    rows = torch.randn(32, max(lengths), 64, device=device)
    packed = pack_padded_sequence(rows, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    out, _ = pad_packed_sequence(model(packed)[0], batch_first=True)
    labels = torch.randint(0, 10, (32,), device=device)
    loss = F.cross_entropy(head(out.mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(step, loss.item())
end(weights(model))
