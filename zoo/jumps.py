"""Steps that are not continuous: rounding may send a token to another expert, turn the sign of an update, or choose another
entry of a table. `sheaf verify` must neither call them wrong for that nor let a mistake hide behind it."""

import jax
import jax.numpy as jnp

from attention import EXPERTS, experts_by_capacity, experts_on_all
from entry import Draw, entry
from nets import (LENGTH, WIDTH, attend, block_params, causal, cross_entropy, dense, gpt, gpt_batch, gpt_loss, gpt_params,
                  layer_norm, split_heads)

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch"}
BATCH = 16


def train(make, loss_of, params, batch):
    """A step with an optimizer of optax."""
    import optax
    tx = make(optax)

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), batch)


def mixture(make, experts, dtype=jnp.float32):
    """One block of a transformer with experts."""
    draw = Draw()
    p = block_params(draw)
    params = gpt_params(draw, layers=0) | {
        "norm1": p["norm1"], "attn": p["attn"], "norm2": p["norm2"],
        "moe": {"router": draw.weight(WIDTH, EXPERTS), "w1": draw.weight(EXPERTS, WIDTH, 64),
                "w3": draw.weight(EXPERTS, WIDTH, 64), "w2": draw.weight(EXPERTS, 64, WIDTH)}}

    def loss_of(params, batch):
        params = jax.tree.map(lambda x: x.astype(dtype), params)
        x = params["wte"][batch["ids"]] + params["wpe"]
        h = layer_norm(params["norm1"], x)
        q, k, v = (split_heads(dense(params["attn"][name], h)) for name in "qkv")
        x = x + dense(params["attn"]["o"], attend(q, k, v, causal(LENGTH)))
        mixed, loss = experts(params["moe"], layer_norm(params["norm2"], x))
        logits = layer_norm(params["norm_f"], x + mixed) @ params["wte"].T
        return cross_entropy(logits.astype(jnp.float32), batch["labels"]) + 0.01 * loss

    return train(make, loss_of, params, gpt_batch(draw, BATCH))


def transformer(make):
    draw = Draw()
    return train(make, gpt_loss, gpt_params(draw, layers=1), gpt_batch(draw, BATCH))


@entry("jump-mixtral", ROLES, recipes="dp zero expert")
def mixtral():
    """experts that take a number of tokens each, top-2, with AdamW"""
    return mixture(lambda optax: optax.adamw(1e-3), experts_by_capacity)


@entry("jump-mixtral-lion", ROLES, recipes="dp zero expert")
def mixtral_lion():
    """experts that all look at all tokens, top-2 of them weighted, with Lion"""
    return mixture(lambda optax: optax.lion(1e-4), experts_on_all)


@entry("jump-mixtral-bf16", ROLES, recipes="dp zero expert")
def mixtral_bf16():
    """experts in 16 bits, weights and moments in 32"""
    return mixture(lambda optax: optax.adamw(1e-3), experts_on_all, jnp.bfloat16)


@entry("jump-lion", ROLES, recipes="dp zero megatron sequence 2d")
def lion():
    """a transformer with Lion: an update is the sign of a sum"""
    return transformer(lambda optax: optax.lion(1e-4))


@entry("jump-sign-sgd", ROLES, recipes="dp megatron sequence 2d")
def sign_sgd():
    """a transformer whose updates are the signs of its gradients, and that keeps no state"""
    return transformer(lambda optax: optax.sign_sgd(1e-4))


@entry("jump-adafactor", ROLES, recipes="dp zero megatron sequence 2d")
def adafactor():
    """a transformer with Adafactor, which divides gradients that are zero in mathematics by their size"""
    return transformer(lambda optax: optax.adafactor(1e-3, min_dim_size_to_factor=16))


@entry("jump-muon", ROLES, recipes="dp zero megatron sequence 2d")
def muon():
    """a transformer with Muon: an update is made orthogonal"""
    return transformer(lambda optax: optax.contrib.muon(1e-3))


@entry("jump-argmax", ROLES, recipes="dp zero")
def argmax():
    """an autoencoder whose code is the nearest entry of a table"""
    draw = Draw()
    params = {"down": draw.dense(32, 8), "table": draw.normal(64, 8), "up": draw.dense(8, 32)}

    def loss_of(params, batch):
        z = dense(params["down"], batch["x"])
        distance = ((z[:, None] - params["table"]) ** 2).sum(-1)
        code = params["table"][distance.argmin(-1)]
        out = dense(params["up"], z + jax.lax.stop_gradient(code - z))
        apart = ((jax.lax.stop_gradient(z) - code) ** 2).mean() + 0.25 * ((z - jax.lax.stop_gradient(code)) ** 2).mean()
        return ((out - batch["x"]) ** 2).mean() + apart

    return train(lambda optax: optax.adam(1e-3), loss_of, params, {"x": draw.normal(256, 32)})


@entry("jump-threshold", ROLES, recipes="dp zero megatron")
def threshold():
    """a network that keeps what is above the median of its row, by sorting, and counts what is past a limit"""
    draw = Draw()
    params = {"in": draw.dense(32, 64), "mid": draw.dense(64, 64), "out": draw.dense(64, 8)}

    def loss_of(params, batch):
        h = jax.nn.relu(dense(params["in"], batch["x"]))
        h = dense(params["mid"], h)
        h = jnp.where(h > jnp.sort(h, -1)[:, 32:33], h, 0.0)
        many = (h > 0.5).astype(jnp.float32).mean(0)
        return cross_entropy(dense(params["out"], h * (1 + many)), batch["y"])

    batch = {"x": draw.normal(128, 32), "y": draw.integers(8, 128)}
    return train(lambda optax: optax.adam(1e-3), loss_of, params, batch)


@entry("jump-batch-norm", ROLES | {"stats": "opt_state"}, state=("params", "stats", "opt_state"), recipes="dp zero")
def batch_norm():
    """batch norm behind layers with biases, whose gradients are zero in mathematics, with Adam"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    params = {"in": draw.dense(32, 64), "scale": jnp.ones(64), "shift": jnp.zeros(64), "out": draw.dense(64, 8)}
    stats = {"mean": jnp.zeros(64), "var": jnp.ones(64)}
    batch = {"x": draw.normal(64, 32), "y": draw.integers(8, 64)}

    def loss_of(params, stats, batch):
        h = dense(params["in"], batch["x"])
        mean, var = h.mean(0), h.var(0)
        h = jax.nn.relu((h - mean) * jax.lax.rsqrt(var + 1e-5) * params["scale"] + params["shift"])
        stats = {"mean": 0.9 * stats["mean"] + 0.1 * mean, "var": 0.9 * stats["var"] + 0.1 * var}
        return cross_entropy(dense(params["out"], h), batch["y"]), stats

    def step(params, stats, opt_state, batch):
        (loss, stats), grads = jax.value_and_grad(loss_of, has_aux=True)(params, stats, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), stats, opt_state, loss

    return step, (params, stats, tx.init(params), batch)


@entry("jump-dropout", {"params": "param", "opt_state": "opt_state", "batch": "batch", "rng": "key"},
       recipes="dp zero megatron sequence 2d")
def dropout():
    """a transformer with dropout and Lion"""
    import optax
    draw = Draw()
    tx = optax.lion(1e-4)
    params = gpt_params(draw, layers=1)

    def loss_of(params, batch, rng):
        kept = jax.random.bernoulli(rng, 0.9, params["wpe"].shape)
        logits = gpt(params | {"wpe": jnp.where(kept, params["wpe"] / 0.9, 0.0)}, batch["ids"])
        return cross_entropy(logits, batch["labels"])

    def step(params, opt_state, batch, rng):
        loss, grads = jax.value_and_grad(loss_of)(params, batch, rng)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), gpt_batch(draw, BATCH), jax.random.PRNGKey(3))
