"""Training with rows from the workers of a DataLoader, and a child process that has nothing to do
with a GPU and answers questions; prints losses and answers to the last bit."""
import subprocess
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

CHILD = """
import sys
state = 1
for line in sys.stdin:
    state = (state * 31 + int(line)) % 1000003
    print(state, flush=True)
"""


class Rows(Dataset):
    def __init__(self, steps):
        self.count = steps * 64

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(64, generator=generator), i % 10


steps = int(sys.argv[1])
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
child = subprocess.Popen(
    [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
for step, (rows, labels) in enumerate(DataLoader(Rows(steps), 64, num_workers=2)):
    optimizer.zero_grad()
    loss = cross_entropy(model(rows.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    print(step, file=child.stdin, flush=True)
    answer = child.stdout.readline().strip()
    if step % (steps // 20) == 0:
        print(step, loss.item().hex(), answer, flush=True)
child.stdin.close()
print("end", loss.item().hex(), answer, child.wait(), flush=True)
