"""numpyro: a regression by the No-U-Turn sampler, some draws a step."""
from common import end, set_up_jax, show, steps

set_up_jax()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpyro  # noqa: E402
from numpyro import distributions as dist  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402


def model(x, y):
    slope = numpyro.sample("slope", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    width = numpyro.sample("width", dist.HalfNormal(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ slope, width), obs=y)


def main():
    x = jax.random.normal(jax.random.PRNGKey(1), (500, 4))
    y = x @ jnp.arange(4.0) + 0.5 * jax.random.normal(jax.random.PRNGKey(2), (500,))
    sampler = MCMC(NUTS(model), num_warmup=50, num_samples=4, progress_bar=False)
    sampler.warmup(jax.random.PRNGKey(3), x, y)
    for step in steps():
        sampler.run(sampler.post_warmup_state.rng_key, x, y)
        sampler.post_warmup_state = sampler.last_state
        show(step, *sampler.get_samples().values())
    end(*sampler.get_samples().values())


main()
