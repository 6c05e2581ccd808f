"""e3nn: tensor products of spherical harmonics over the edges of a cloud of points."""
import torch
from common import end, set_up_torch, show, steps, weights
from e3nn import o3
from e3nn.nn import FullyConnectedNet


class Layer(torch.nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.sphere = o3.Irreps.spherical_harmonics(2)
        self.product = o3.FullyConnectedTensorProduct(before, self.sphere, after, shared_weights=False)
        self.radial = FullyConnectedNet([8, 32, self.product.weight_numel], torch.nn.functional.silu)

    def forward(self, features, places):
        apart = places[:, None] - places[None]
        far = apart.norm(dim=-1, keepdim=True)
        rings = torch.exp(-(far - torch.linspace(0, 2, 8, device=places.device)) ** 2)
        harmonics = o3.spherical_harmonics(self.sphere, apart, True, "component")
        n = len(places)
        out = self.product(features[None].expand(n, n, -1), harmonics, self.radial(rings.reshape(n * n, 8)).reshape(
            n, n, -1))
        return out.mean(1)


device = set_up_torch()
first = Layer("4x0e", "8x0e + 4x1o").to(device)
second = Layer("8x0e + 4x1o", "1x0e").to(device)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 1e-3)
for step in steps():
    places, kinds = torch.randn(24, 3, device=device), torch.randn(24, 4, device=device)
    loss = (second(first(kinds, places), places).sum() - places.norm()) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(step, loss.item())
end(weights(first), weights(second))
