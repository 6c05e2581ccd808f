"""torch_geometric: graph convolutions over graphs of different sizes."""
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool
from torch.nn import functional as F
from common import end, set_up_torch, show, steps, weights


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(32, 64), SAGEConv(64, 64)
        self.three, self.head = GATConv(64, 16, heads=4), torch.nn.Linear(64, 8)

    def forward(self, x, edges, batch):
        x = F.relu(self.one(x, edges))
        x = F.relu(self.two(x, edges))
        return self.head(global_mean_pool(self.three(x, edges), batch))


device = set_up_torch()
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for step in steps():
    nodes = 500 + step * 131 % 3000
    x = torch.randn(nodes, 32, device=device)
    edges = torch.randint(0, nodes, (2, nodes * 6), device=device)
    batch = torch.arange(nodes, device=device) * 16 // nodes
    loss = F.cross_entropy(model(x, edges, batch), torch.randint(0, 8, (16,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(step, loss.item())
end(weights(model))
