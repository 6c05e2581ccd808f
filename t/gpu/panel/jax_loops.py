"""JAX: loops whose end the data decides, with choices of two and of four in them, on the device."""
from common import end, set_up_jax, show, steps

set_up_jax()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


@jax.jit
def advance(state, key):
    """A walk of random length."""
    length = jax.random.randint(key, (), 3, 12)

    def go_on(loop):
        return loop[0] < length

    def body(loop):
        i, x = loop
        way = (jnp.abs(x.sum() * 1000).astype(jnp.int32) + i) % 4
        x = jax.lax.switch(way, [
            lambda x: jnp.tanh(x @ x.T / 64),
            lambda x: x * 0.9 + 0.1,
            lambda x: jnp.roll(x, 1, axis=0) - x.mean(),
            lambda x: jnp.sort(x, axis=1)], x)
        x = jax.lax.cond(x[0, 0] > 0, lambda x: x - 0.01, lambda x: x * 1.01, x)
        return i + 1, x

    return jax.lax.while_loop(go_on, body, (0, state))


def main():
    key = jax.random.PRNGKey(1)
    state = jax.random.normal(key, (64, 64))
    for step in steps():
        count = 0
        for _ in range(20):
            key, now = jax.random.split(key)
            rounds, state = advance(state, now)
            count += int(rounds)
        show(step, count, state)
    end(state)


main()
