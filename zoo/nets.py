"""Small networks on nested dictionaries, which several entries share."""

import math

import jax
import jax.numpy as jnp


def dense(p, x):
    return x @ p["kernel"] + p["bias"]


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["bias"]


def rms_norm(scale, x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def cross_entropy(logits, labels):
    logs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logs, labels[..., None], axis=-1).mean()


# An MLP that classifies vectors.

def mlp_params(draw, inputs=16, hidden=64, outputs=8):
    return {"hidden": draw.dense(inputs, hidden), "out": draw.dense(hidden, outputs)}


def mlp(params, x):
    return dense(params["out"], jax.nn.relu(dense(params["hidden"], x)))


def mlp_batch(draw, size=16, inputs=16, outputs=8):
    return {"x": draw.normal(size, inputs), "y": draw.integers(outputs, size)}


def mlp_loss(params, batch):
    return cross_entropy(mlp(params, batch["x"]), batch["y"])


# A causal transformer of two layers.

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH = 32, 32, 2, 4, 16


def block_params(draw, width=WIDTH):
    def norm():
        return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}

    return {"norm1": norm(), "attn": {name: draw.dense(width, width) for name in "qkvo"},
            "norm2": norm(), "up": draw.dense(width, 4 * width), "down": draw.dense(4 * width, width)}


def gpt_params(draw, layers=LAYERS):
    params = {f"layer_{i}": block_params(draw) for i in range(layers)}
    params["wte"] = draw.normal(VOCABULARY, WIDTH, scale=0.1)
    params["wpe"] = draw.normal(LENGTH, WIDTH, scale=0.1)
    params["norm_f"] = {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    return params


def split_heads(x, heads=HEADS):
    return x.reshape(*x.shape[:-1], heads, -1)


def attend(q, k, v, mask=None):
    """Of [batch, token, head, feature]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return out.reshape(*out.shape[:2], -1)


def causal(length):
    return jnp.tril(jnp.ones((length, length), bool))


def block(p, x):
    h = layer_norm(p["norm1"], x)
    q, k, v = (split_heads(dense(p["attn"][name], h)) for name in "qkv")
    x = x + dense(p["attn"]["o"], attend(q, k, v, causal(x.shape[1])))
    h = layer_norm(p["norm2"], x)
    return x + dense(p["down"], jax.nn.gelu(dense(p["up"], h)))


def gpt(params, ids):
    x = params["wte"][ids] + params["wpe"]
    for i in range(sum(name.startswith("layer_") for name in params)):
        with jax.named_scope(f"layer_{i}"):
            x = block(params[f"layer_{i}"], x)
    return layer_norm(params["norm_f"], x) @ params["wte"].T


def gpt_batch(draw, size=8):
    ids = draw.integers(VOCABULARY, size, LENGTH + 1)
    return {"ids": ids[:, :-1], "labels": ids[:, 1:]}


def gpt_loss(params, batch):
    return cross_entropy(gpt(params, batch["ids"]), batch["labels"])


def adam(params, moments, grads, count, rate=1e-3):
    """Adam as people write it by hand: new parameters and new moments, a pair of trees."""
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    nu = jax.tree.map(lambda n, g: 0.999 * n + 0.001 * g * g, moments[1], grads)

    def update(p, m, n):
        return p - rate * (m / (1 - 0.9 ** count)) / (jnp.sqrt(n / (1 - 0.999 ** count)) + 1e-8)

    return jax.tree.map(update, params, mu, nu), (mu, nu)
