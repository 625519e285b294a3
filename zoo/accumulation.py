"""Gradients that are added up over parts of a batch, in the ways in which people write it."""

import functools

import jax
import jax.numpy as jnp

from entry import Draw, entry
from nets import cross_entropy, dense, gpt_batch, gpt_loss, gpt_params, mlp_batch, mlp_loss, mlp_params

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch", "rng": "key"}


def cut(batch, parts):
    return jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)


def add(a, b):
    return jax.tree.map(jnp.add, a, b)


def mean_by_scan(loss_of, params, parts, count):
    """Loss and gradient of parts that are stacked in front."""
    def accumulate(carry, part):
        loss, grads = carry
        part_loss, part_grads = jax.value_and_grad(loss_of)(params, part)
        return (loss + part_loss, add(grads, part_grads)), None

    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    (loss, grads), _ = jax.lax.scan(accumulate, zero, parts)
    return loss / count, jax.tree.map(lambda g: g / count, grads)


def by_scan(loss_of, params, batch, count):
    return mean_by_scan(loss_of, params, cut(batch, count), count)


def given_in_parts(loss_of, params, batch, count):
    return mean_by_scan(loss_of, params, batch, count)


def by_fori(loss_of, params, batch, count):
    batch = cut(batch, count)

    def accumulate(i, carry):
        loss, grads = carry
        part = jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False), batch)
        part_loss, part_grads = jax.value_and_grad(loss_of)(params, part)
        return loss + part_loss / count, jax.tree.map(lambda a, g: a + g / count, grads, part_grads)

    return jax.lax.fori_loop(0, count, accumulate, (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)))


def by_slices(loss_of, params, batch, count):
    size = jax.tree.leaves(batch)[0].shape[0] // count
    losses, grads = 0.0, None
    for i in range(count):
        part = jax.tree.map(lambda x: x[i * size:(i + 1) * size], batch)
        loss, part_grads = jax.value_and_grad(loss_of)(params, part)
        losses += loss
        grads = part_grads if grads is None else add(grads, part_grads)
    return losses / count, jax.tree.map(lambda g: g / count, grads)


def build(gradients, count, model):
    import optax
    draw = Draw()
    if model == "gpt":
        params, loss_of, batch = gpt_params(draw), gpt_loss, gpt_batch(draw, size=16)
    else:
        params, loss_of, batch = mlp_params(draw), mlp_loss, mlp_batch(draw, size=32)
    tx = optax.adamw(1e-3)

    def step(params, opt_state, batch):
        loss, grads = gradients(loss_of, params, batch, count)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    if gradients is given_in_parts:
        batch = cut(batch, count)
    return step, (params, tx.init(params), batch)


STYLES = {
    "scan": (by_scan, "the batch reshaped to [M, B/M, ...], a scan over M"),
    "fori": (by_fori, "the batch reshaped to [M, B/M, ...], fori_loop and dynamic_index_in_dim"),
    "given": (given_in_parts, "the batch comes as [M, B/M, ...], a scan over M"),
    "slices": (by_slices, "a Python loop over slices of the batch"),
}

for style, (gradients, words) in STYLES.items():
    for count, model in (2, "gpt"), (4, "mlp"):
        entry(f"accum-{style}-m{count}", ROLES, summary=f"{words}; M = {count}, {model.upper()}",
              donate=style == "scan")(functools.partial(build, gradients, count, model))


@entry("accum-scan-keys", ROLES)
def keys_by_part():
    """a scan over 4 parts of the batch, each with its own key for dropout"""
    import optax
    draw = Draw()
    params, tx = mlp_params(draw), optax.adam(1e-3)

    def loss_of(params, part, rng):
        hidden = jax.nn.relu(dense(params["hidden"], part["x"]))
        keep = jax.random.bernoulli(rng, 0.8, hidden.shape)
        return cross_entropy(dense(params["out"], jnp.where(keep, hidden / 0.8, 0.0)), part["y"])

    def step(params, opt_state, batch, rng):
        def accumulate(grads, part_and_key):
            loss, part_grads = jax.value_and_grad(loss_of)(params, *part_and_key)
            return add(grads, part_grads), loss

        keys = jax.random.split(rng, 4)
        zero = jax.tree.map(jnp.zeros_like, params)
        grads, losses = jax.lax.scan(accumulate, zero, (cut(batch, 4), keys))
        updates, opt_state = tx.update(jax.tree.map(lambda g: g / 4, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    return step, (params, tx.init(params), mlp_batch(draw, size=32), jax.random.PRNGKey(3))
