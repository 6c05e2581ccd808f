"""gpytorch: a Gaussian process is fitted, by Cholesky factors and triangular solutions, and asked."""
import gpytorch
import torch
from common import end, set_up_torch, show, steps, weights


class Process(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=3))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


device = set_up_torch()
inputs = torch.rand(600, 3, device=device)
values = torch.sin(6 * inputs).sum(1) + 0.1 * torch.randn(600, device=device)
noise = gpytorch.likelihoods.GaussianLikelihood().to(device)
process = Process(inputs, values, noise).to(device)
optimizer = torch.optim.Adam(process.parameters(), 0.02)
likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(noise, process)
for step in steps():
    process.train(), noise.train()
    optimizer.zero_grad()
    loss = -likelihood(process(inputs), values)
    loss.backward()
    optimizer.step()
    process.eval(), noise.eval()
    with torch.no_grad():
        guess = noise(process(torch.rand(50, 3, device=device)))
        show(step, loss.item(), guess.mean, guess.variance)
end(weights(process))
