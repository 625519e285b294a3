"""Transformers whose layers are stacked, as large ones are written: their stages are cut across the stacks."""

import functools

import jax
import jax.numpy as jnp

from entry import Draw, entry
from nets import VOCABULARY, attend, block, block_params, causal, cross_entropy, gpt_batch, rms_norm, split_heads

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch"}
RECIPES = "dp zero megatron sequence 2d"


def train(loss_of, params, batch, tx):
    import optax

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), batch)


def clipped_adamw(rate=1e-3):
    import optax
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.1))


def stack(layers):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)


def llama_layer(draw, width=32, hidden=64):
    return {"attn_norm": jnp.ones(width), "mlp_norm": jnp.ones(width),
            "q": draw.weight(width, width), "k": draw.weight(width, width // 2),
            "v": draw.weight(width, width // 2), "o": draw.weight(width, width),
            "gate": draw.weight(width, hidden), "up": draw.weight(width, hidden), "down": draw.weight(hidden, width)}


def rotate(x):
    """Rotary positions, of [batch, token, head, feature]."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama_block(p, x):
    h = rms_norm(p["attn_norm"], x)
    q, k, v = rotate(split_heads(h @ p["q"])), rotate(split_heads(h @ p["k"], 2)), split_heads(h @ p["v"], 2)
    k, v = (jnp.repeat(t, 2, axis=2) for t in (k, v))
    x = x + attend(q, k, v, causal(x.shape[1])) @ p["o"]
    h = rms_norm(p["mlp_norm"], x)
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def llama(wrap, dtype, layers=6, cast_first=False):
    """`dtype` is that of the compute; weights are in 32 bits, and are cast in each layer or, all at once, before."""
    draw = Draw()
    params = {"embed": draw.normal(VOCABULARY, 32, scale=0.1), "norm": jnp.ones(32),
              "layers": stack([llama_layer(draw) for _ in range(layers)]), "head": draw.weight(32, VOCABULARY)}

    def cast(tree):
        return jax.tree.map(lambda leaf: leaf.astype(dtype), tree)

    def loss_of(params, batch):
        def layer(x, p):
            return llama_block(p if cast_first else cast(p), x), None

        stacked = cast(params["layers"]) if cast_first else params["layers"]
        x, _ = jax.lax.scan(wrap(layer), params["embed"].astype(dtype)[batch["ids"]], stacked)
        logits = rms_norm(params["norm"], x.astype(jnp.float32)) @ params["head"]
        return cross_entropy(logits, batch["labels"])

    return train(loss_of, params, gpt_batch(draw), clipped_adamw())


for name, wrap, dtype, options, words in (
        ("stack-llama", lambda layer: layer, jnp.float32, {},
         "LLaMA, 6 stacked layers, AdamW, clipped by the norm of all gradients"),
        ("stack-llama-remat", jax.checkpoint, jnp.float32, {}, "the same with jax.checkpoint"),
        ("stack-llama-bf16", jax.checkpoint, jnp.bfloat16, {}, "the same, computed in bfloat16"),
        ("stack-llama-cast", lambda layer: layer, jnp.bfloat16, {"cast_first": True},
         "the same, with the stacks cast before the scan")):
    entry(name, ROLES, recipes=RECIPES, summary=words)(functools.partial(llama, wrap, dtype, **options))


@entry("stack-two", ROLES, recipes=RECIPES)
def two_scans():
    """two scans, over 3 and over 5 stacked layers of the same shapes"""
    draw = Draw()
    params = {"embed": draw.normal(VOCABULARY, 32, scale=0.1),
              "first": stack([block_params(draw) for _ in range(3)]),
              "second": stack([block_params(draw) for _ in range(5)])}

    def loss_of(params, batch):
        x = params["embed"][batch["ids"]]
        for part in "first", "second":
            x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, params[part])
        return cross_entropy(x @ params["embed"].T, batch["labels"])

    return train(loss_of, params, gpt_batch(draw), clipped_adamw())


@entry("stack-indexed", ROLES, recipes=RECIPES)
def indexed():
    """a Python loop over the rows of stacks"""
    draw = Draw()
    params = {"embed": draw.normal(VOCABULARY, 32, scale=0.1), "layers": stack([llama_layer(draw) for _ in range(4)])}

    def loss_of(params, batch):
        x = params["embed"][batch["ids"]]
        for i in range(4):
            x = llama_block(jax.tree.map(lambda leaf: leaf[i], params["layers"]), x)
        return cross_entropy(x @ params["embed"].T, batch["labels"])

    return train(loss_of, params, gpt_batch(draw), clipped_adamw())


@entry("stack-lamb", ROLES, recipes=RECIPES)
def lamb():
    """stacked layers with LAMB, whose steps go by the norm of each stack"""
    import optax
    draw = Draw()
    params = {"embed": draw.normal(VOCABULARY, 32, scale=0.1), "layers": stack([llama_layer(draw) for _ in range(4)])}

    def loss_of(params, batch):
        x, _ = jax.lax.scan(lambda x, p: (llama_block(p, x), None), params["embed"][batch["ids"]], params["layers"])
        return cross_entropy(x @ params["embed"].T, batch["labels"])

    return train(loss_of, params, gpt_batch(draw), optax.lamb(1e-3))
