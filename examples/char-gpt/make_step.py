#!/usr/bin/env python3
"""Lowers the training step of a small character GPT to StableHLO: forward, backward and AdamW.

Usage: make_step.py [NAME]     writes NAME.stablehlo.mlir and NAME.json (NAME is "step" unless given)

Needs JAX and nothing else. The model is plain functions on nested dictionaries.
"""

import json
import math
import sys

import jax
import jax.numpy as jnp

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH, BATCH = 128, 128, 3, 4, 64, 16
RATE, WARMUP, DECAY, BETA1, BETA2, EPSILON = 2e-3, 20, 0.01, 0.9, 0.99, 1e-8


def shapes():
    """The parameters: what they are called, and their shapes."""
    def dense(inputs, outputs):
        return {"kernel": (inputs, outputs), "bias": (outputs,)}

    def norm():
        return {"scale": (WIDTH,), "bias": (WIDTH,)}

    def layer():
        return {"norm1": norm(), "attn": {name: dense(WIDTH, WIDTH) for name in "qkvo"},
                "norm2": norm(), "up": dense(WIDTH, 4 * WIDTH), "down": dense(4 * WIDTH, WIDTH)}

    tree = {f"layer_{i}": layer() for i in range(LAYERS)}
    return tree | {"wte": {"embedding": (VOCABULARY, WIDTH)}, "wpe": {"embedding": (LENGTH, WIDTH)},
                   "norm_f": norm()}


def dense(p, x):
    return x @ p["kernel"] + p["bias"]


def norm(p, x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def attention(p, x):
    def heads(name):
        with jax.named_scope(name):
            return dense(p[name], x).reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS)

    q, k, v = heads("q"), heads("k"), heads("v")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(WIDTH // HEADS)
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    with jax.named_scope("o"):
        return dense(p["o"], jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape))


def mlp(p, x):
    with jax.named_scope("up"):
        x = jax.nn.gelu(dense(p["up"], x))
    with jax.named_scope("down"):
        return dense(p["down"], x)


def loss_of(params, batch):
    with jax.named_scope("wte"):
        x = params["wte"]["embedding"][batch["ids"]] + params["wpe"]["embedding"]
    for i in range(LAYERS):
        p = params[f"layer_{i}"]
        with jax.named_scope(f"layer_{i}"):
            with jax.named_scope("attn"):
                x = x + attention(p["attn"], norm(p["norm1"], x))
            with jax.named_scope("mlp"):
                x = x + mlp(p, norm(p["norm2"], x))
    with jax.named_scope("head"):
        logits = norm(params["norm_f"], x) @ params["wte"]["embedding"].T
        logs = jax.nn.log_softmax(logits)
        wanted = jax.nn.one_hot(batch["labels"], VOCABULARY, dtype=logs.dtype)
        return -(wanted * logs).sum(-1).mean()


def adamw(params, opt, grads):
    count = opt["count"] + 1
    t = count.astype(jnp.float32)
    rate = RATE * jnp.minimum(1.0, t / WARMUP)
    mu = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, opt["mu"], grads)
    nu = jax.tree.map(lambda n, g: BETA2 * n + (1 - BETA2) * g * g, opt["nu"], grads)

    def update(p, m, n):
        m, n = m / (1 - BETA1 ** t), n / (1 - BETA2 ** t)
        return p - rate * (m / (jnp.sqrt(n) + EPSILON) + DECAY * p)

    return jax.tree.map(update, params, mu, nu), {"count": count, "mu": mu, "nu": nu}


def step(params, opt, batch):
    loss, grads = jax.value_and_grad(loss_of)(params, batch)
    params, opt = adamw(params, opt, grads)
    return params, opt, loss


def main(name):
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    params = jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), shapes(),
                          is_leaf=lambda x: isinstance(x, tuple))
    opt = {"count": jax.ShapeDtypeStruct((), jnp.int32), "mu": params, "nu": params}
    ids = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    arguments = (params, opt, {"ids": ids, "labels": ids})
    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(*arguments)
    with open(f"{name}.stablehlo.mlir", "w") as file:
        file.write(lowered.as_text(debug_info=True))
    leaves = jax.tree_util.tree_flatten_with_path(arguments)[0]
    roles = ["param", "opt_state", "batch"]
    entries = [{"name": jax.tree_util.keystr(path[1:]), "role": roles[path[0].idx],
                "shape": list(leaf.shape), "dtype": str(leaf.dtype)} for path, leaf in leaves]
    with open(f"{name}.json", "w") as file:
        file.write('{"args": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]}\n")
    count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
    print(f"{count} parameters, {BATCH * LENGTH} tokens in a batch")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "step")
