"""torchdiffeq: a differential equation with a network in it, solved with adaptive steps, by the adjoint method."""
import torch
from common import end, set_up_torch, show, steps, weights
from torchdiffeq import odeint_adjoint

device = set_up_torch()


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))

    def forward(self, t, y):
        return self.network(y ** 3)


field = Field().to(device)
optimizer = torch.optim.RMSprop(field.parameters(), 1e-3)
times = torch.linspace(0, 2, 10, device=device)
for step in steps():
    start = torch.randn(64, 2, device=device)
    end_at = odeint_adjoint(field, start, times, method="dopri5")
    loss = (end_at - start * torch.exp(-times)[:, None, None]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(step, loss.item())
end(weights(field))
