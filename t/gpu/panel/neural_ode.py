"""diffrax, equinox and optax: a differential equation with a network in it is fitted to a spiral."""
from common import end, set_up_jax, show, steps

set_up_jax()

import diffrax  # noqa: E402
import equinox  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402


class Field(equinox.Module):
    network: equinox.nn.MLP

    def __call__(self, t, y, args):
        return self.network(y)


def solve(field, start, times):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), times[0], times[-1], 0.05, start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5)).ys


def loss_of(field, starts, times, spirals):
    return jnp.mean((jax.vmap(solve, (None, 0, None))(field, starts, times) - spirals) ** 2)


def main():
    field = Field(equinox.nn.MLP(2, 2, 64, 2, jnp.tanh, key=jax.random.PRNGKey(1)))
    optimizer = optax.adabelief(3e-3)
    state = optimizer.init(equinox.filter(field, equinox.is_inexact_array))
    times = jnp.linspace(0, 2, 20)

    @equinox.filter_jit
    def train(field, state, key):
        angles = jax.random.uniform(key, (32, 1)) * 6 + 2 * times
        spirals = jnp.exp(-0.3 * times)[None, :, None] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], -1)
        loss, gradient = equinox.filter_value_and_grad(loss_of)(field, spirals[:, 0], times, spirals)
        change, state = optimizer.update(gradient, state)
        return equinox.apply_updates(field, change), state, loss

    key = jax.random.PRNGKey(2)
    for step in steps():
        key, now = jax.random.split(key)
        field, state, loss = train(field, state, now)
        show(step, float(loss))
    end(*jax.tree.leaves(equinox.filter(field, equinox.is_array)))


main()
