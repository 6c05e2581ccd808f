"""flax, optax and orbax: a network whose own checkpoints are written to files now and then, and read again."""
import os
import shutil

from common import end, set_up_jax, show, steps

set_up_jax()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
import orbax.checkpoint as orbax  # noqa: E402
from flax import linen  # noqa: E402


class Network(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.gelu(linen.Conv(16, (3, 3), (2, 2))(x))
        x = x.reshape(x.shape[0], -1, 16)
        x = linen.LayerNorm()(x + linen.MultiHeadDotProductAttention(4)(x))
        return linen.Dense(10)(x.mean(1))


def main():
    network = Network()
    optimizer = optax.adamw(1e-3)
    weights = network.init(jax.random.PRNGKey(1), jnp.zeros((1, 16, 16, 3)))
    state = optimizer.init(weights)

    @jax.jit
    def train(weights, state, key):
        pictures = jax.random.normal(key, (32, 16, 16, 3))
        labels = jax.random.randint(key, (32,), 0, 10)

        def loss_of(w):
            return optax.softmax_cross_entropy_with_integer_labels(network.apply(w, pictures), labels).mean()
        loss, gradient = jax.value_and_grad(loss_of)(weights)
        change, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, change), state, loss

    with orbax.PyTreeCheckpointer() as files:
        for step in steps():
            weights, state, loss = train(weights, state, jax.random.PRNGKey(step))
            if step % 64 == 63:
                folder = os.path.abspath("saved")
                shutil.rmtree(folder, ignore_errors=True)
                files.save(folder, weights)
                weights = jax.tree.map(jnp.asarray, files.restore(folder))
            show(step, float(loss))
    end(*jax.tree.leaves(weights))


main()
