"""Steps whose text computes something again: jax.checkpoint in the ways in which people use it.

Sheaf takes that for a hint, so each step here computes what it would without."""

import functools

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from entry import Draw, entry
from loops import ROLES, stacked, train
from nets import (LENGTH, VOCABULARY, attend, block, block_params, causal, cross_entropy, dense, gpt_batch, gpt_params,
                  layer_norm, mlp_batch, rms_norm, split_heads)

POLICIES = jax.checkpoint_policies
RECIPES = "dp zero megatron sequence 2d"


@entry("again-mlp", ROLES, recipes="dp zero megatron")
def mlp():
    """an MLP of four layers, each under jax.checkpoint"""
    draw = Draw()
    params = {f"layer_{i}": draw.dense(32, 32) for i in range(4)} | {"in": draw.dense(16, 32), "out": draw.dense(32, 8)}

    def loss_of(params, batch):
        x = dense(params["in"], batch["x"])
        for i in range(4):
            with jax.named_scope(f"layer_{i}"):
                x = jax.checkpoint(lambda p, x: x + jnp.tanh(dense(p, x)))(params[f"layer_{i}"], x)
        return cross_entropy(dense(params["out"], x), batch["y"])

    return train(loss_of, params, mlp_batch(draw))


def named_block(p, x):
    """A block that names what policies may keep."""
    h = layer_norm(p["norm1"], x)
    q, k, v = (split_heads(dense(p["attn"][name], h)) for name in "qkv")
    x = x + checkpoint_name(dense(p["attn"]["o"], attend(q, k, v, causal(x.shape[1]))), "attention")
    h = checkpoint_name(dense(p["up"], layer_norm(p["norm2"], x)), "up")
    return x + dense(p["down"], jax.nn.gelu(h))


def blocks(wrap):
    draw = Draw()

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]] + params["wpe"]
        for i in range(3):
            with jax.named_scope(f"layer_{i}"):
                x = wrap(named_block)(params[f"layer_{i}"], x)
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    return train(loss_of, gpt_params(draw, layers=3), gpt_batch(draw))


def by_policy(policy):
    return functools.partial(jax.checkpoint, policy=policy)


for name, wrap, words in (
        ("again-nowhere", lambda layer: layer, "three blocks without jax.checkpoint"),
        ("again-blocks", jax.checkpoint, "the same, each under jax.checkpoint"),
        ("again-dots", by_policy(POLICIES.dots_saveable), "the same, products kept"),
        ("again-weights", by_policy(POLICIES.dots_with_no_batch_dims_saveable), "the same, products with weights kept"),
        ("again-names", by_policy(POLICIES.save_only_these_names("attention")), "the same, what has a name kept"),
        ("again-except", by_policy(POLICIES.save_anything_except_these_names("up")),
         "the same, all but what has a name kept"),
        ("again-everything", by_policy(POLICIES.everything_saveable), "the same, everything kept")):
    entry(name, ROLES, recipes=RECIPES, summary=words)(functools.partial(blocks, wrap))


@entry("again-nested", ROLES, recipes=RECIPES)
def nested():
    """four blocks, two by two under jax.checkpoint, and each by itself within"""
    draw = Draw()

    def pair(first, second, x):
        return jax.checkpoint(block)(second, jax.checkpoint(block)(first, x))

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]] + params["wpe"]
        for i in range(0, 4, 2):
            x = jax.checkpoint(pair)(params[f"layer_{i}"], params[f"layer_{i + 1}"], x)
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    return train(loss_of, gpt_params(draw, layers=4), gpt_batch(draw))


entry("again-scan", ROLES, recipes=RECIPES, summary="a scan over layers under jax.checkpoint without barriers")(
    functools.partial(stacked, functools.partial(jax.checkpoint, prevent_cse=False)))


@entry("again-scan-of-scans", ROLES, recipes=RECIPES)
def scan_of_scans():
    """six layers as a scan of three over scans of two, both under jax.checkpoint"""
    draw = Draw()
    params = gpt_params(draw, layers=0)
    params["layers"] = jax.tree.map(lambda *leaves: jnp.stack(leaves).reshape(3, 2, *leaves[0].shape),
                                    *(block_params(draw) for _ in range(6)))
    again = functools.partial(jax.checkpoint, prevent_cse=False)

    def loss_of(params, batch):
        @again
        def layer(x, p):
            return block(p, x), None

        @again
        def group(x, p):
            return jax.lax.scan(layer, x, p)

        x = params["wte"][batch["ids"]] + params["wpe"]
        x, _ = jax.lax.scan(group, x, params["layers"])
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    return train(loss_of, params, gpt_batch(draw))


def rotate(x):
    """Rotary positions, of [batch, token, head, feature]."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None, None] / 100.0 ** (jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), a * jnp.sin(angles) + b * jnp.cos(angles)], -1)


@entry("again-llama", ROLES, recipes=RECIPES)
def llama():
    """a LLaMA: RMS norms, rotary positions and gated layers, a scan over layers that keeps products with weights"""
    draw = Draw()

    def layer_params():
        return {"norm1": jnp.ones(32), "norm2": jnp.ones(32), "qkv": draw.weight(32, 96), "o": draw.weight(32, 32),
                "gate": draw.weight(32, 64), "up": draw.weight(32, 64), "down": draw.weight(64, 32)}

    params = {"layers": jax.tree.map(lambda *leaves: jnp.stack(leaves), *(layer_params() for _ in range(4))),
              "wte": draw.normal(VOCABULARY, 32, scale=0.1), "norm": jnp.ones(32), "head": draw.weight(32, VOCABULARY)}

    @functools.partial(jax.checkpoint, prevent_cse=False, policy=POLICIES.dots_with_no_batch_dims_saveable)
    def layer(x, p):
        q, k, v = (split_heads(part) for part in jnp.split(rms_norm(p["norm1"], x) @ p["qkv"], 3, axis=-1))
        x = x + attend(rotate(q), rotate(k), v, causal(LENGTH)) @ p["o"]
        h = rms_norm(p["norm2"], x)
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None

    def loss_of(params, batch):
        x, _ = jax.lax.scan(layer, params["wte"][batch["ids"]], params["layers"])
        return cross_entropy(rms_norm(params["norm"], x) @ params["head"], batch["labels"])

    return train(loss_of, params, gpt_batch(draw))


@entry("again-dropout", ROLES | {"rng": "key"}, recipes=RECIPES)
def dropout():
    """blocks with dropout under jax.checkpoint, which drop the same again"""
    import optax
    draw = Draw()
    params, tx = gpt_params(draw, layers=3), optax.adam(1e-3)

    @jax.checkpoint
    def dropping(p, x, key):
        x = block(p, x)
        return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0.0)

    def loss_of(params, batch, rng):
        x = params["wte"][batch["ids"]] + params["wpe"]
        for i in range(3):
            x = dropping(params[f"layer_{i}"], x, jax.random.fold_in(rng, i))
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    def step(params, opt_state, batch, rng):
        loss, grads = jax.value_and_grad(loss_of)(params, batch, rng)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), gpt_batch(draw), jax.random.PRNGKey(5))


@entry("again-accum", ROLES, recipes=RECIPES)
def accumulation():
    """a scan over 4 parts of the batch, of blocks under jax.checkpoint"""
    import optax
    draw = Draw()
    params, tx = gpt_params(draw), optax.adam(1e-3)

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]] + params["wpe"]
        for i in range(2):
            with jax.named_scope(f"layer_{i}"):
                x = jax.checkpoint(block)(params[f"layer_{i}"], x)
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    def step(params, opt_state, batch):
        def accumulate(grads, part):
            loss, part_grads = jax.value_and_grad(loss_of)(params, part)
            return jax.tree.map(jnp.add, grads, part_grads), loss

        parts = jax.tree.map(lambda x: x.reshape(4, -1, *x.shape[1:]), batch)
        grads, losses = jax.lax.scan(accumulate, jax.tree.map(jnp.zeros_like, params), parts)
        updates, opt_state = tx.update(jax.tree.map(lambda g: g / 4, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    return step, (params, tx.init(params), gpt_batch(draw, size=16))


@entry("again-loop", ROLES, recipes="dp zero")
def loop():
    """layers under jax.checkpoint that each have a loop until something has settled, which stays"""
    draw = Draw()
    params = {"cells": [draw.dense(16, 16) for _ in range(2)], "head": draw.dense(16, 8)}

    @jax.checkpoint
    def settle(p, x):
        fixed = jax.lax.stop_gradient((p, x))

        def turn(now):
            z = jnp.tanh(0.5 * dense(fixed[0], now[0]) + fixed[1])
            return z, jnp.abs(z - now[0]).max()

        z, _ = jax.lax.while_loop(lambda now: now[1] > 1e-3, turn, (jnp.zeros_like(x), jnp.float32(1)))
        return x + jnp.tanh(dense(p, z))

    def loss_of(params, batch):
        x = batch["x"]
        for p in params["cells"]:
            x = settle(p, x)
        return cross_entropy(dense(params["head"], x), batch["y"])

    return train(loss_of, params, mlp_batch(draw))
