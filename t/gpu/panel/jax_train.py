"""A network trained with JAX: convolution, attention, matrix products, random numbers."""
from common import end, set_up_jax, show, steps

set_up_jax()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


def make(key):
    keys = jax.random.split(key, 5)
    shapes = {"conv": (16, 3, 3, 3), "qkv": (16, 48), "up": (16, 256), "down": (256, 16), "head": (16, 10)}
    return {name: jax.random.normal(k, shape) * 0.1 for k, (name, shape) in zip(keys, shapes.items())}


def forward(p, pictures):
    x = jax.lax.conv_general_dilated(pictures, p["conv"], (2, 2), "SAME")
    x = x.reshape(x.shape[0], 16, -1).swapaxes(1, 2)
    q, k, v = jnp.split(x.astype(jnp.bfloat16) @ p["qkv"].astype(jnp.bfloat16), 3, -1)
    scores = jax.nn.softmax((q @ k.swapaxes(1, 2)).astype(jnp.float32) / 4)
    x = x + scores @ v.astype(jnp.float32)
    x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
    return x.mean(1) @ p["head"]


def loss_of(p, pictures, labels):
    guess = jax.nn.log_softmax(forward(p, pictures))
    return -jnp.take_along_axis(guess, labels[:, None], 1).mean()


@jax.jit
def train(p, key):
    key, a, b = jax.random.split(key, 3)
    pictures = jax.random.normal(a, (32, 3, 32, 32))
    labels = jax.random.randint(b, (32,), 0, 10)
    loss, gradient = jax.value_and_grad(loss_of)(p, pictures, labels)
    return jax.tree.map(lambda w, g: w - 0.01 * g, p, gradient), key, loss


def main():
    key = jax.random.PRNGKey(1)
    p = make(key)
    for step in steps():
        p, key, loss = train(p, key)
        show(step, float(loss))
    end(*p.values())


main()
