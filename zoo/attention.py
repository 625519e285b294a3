"""Transformers, and what people put in the place of attention."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from entry import Draw, entry
from loops import train
from nets import (HEADS, LENGTH, VOCABULARY, WIDTH, attend, block_params, causal, cross_entropy, dense, gpt,
                  gpt_batch, gpt_params, layer_norm, rms_norm, split_heads)

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch"}
EVERY = "dp zero megatron sequence 2d"


@entry("model-gpt", {"state": "opt_state", "state.params": "param", "batch": "batch"}, state=["state"],
       recipes=EVERY, donate=True, sidecar=True)
def linen_gpt():
    """a GPT in flax linen with MultiHeadDotProductAttention, donated, with a sidecar"""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState
    draw = Draw()

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            h = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=4, name="attn")(h, h, mask=mask)
            h = nn.gelu(nn.Dense(128, name="up")(nn.LayerNorm()(x)))
            return x + nn.Dense(32, name="down")(h)

    class GPT(nn.Module):
        @nn.compact
        def __call__(self, ids):
            wte = nn.Embed(VOCABULARY, 32, name="wte")
            x = wte(ids) + nn.Embed(LENGTH, 32, name="wpe")(jnp.arange(ids.shape[1]))
            mask = nn.make_causal_mask(ids)
            for i in range(2):
                x = Layer(name=f"layer_{i}")(x, mask)
            return wte.attend(nn.LayerNorm(name="norm_f")(x))

    batch, model = gpt_batch(draw), GPT()
    params = jax.jit(model.init)(jax.random.key(0), batch["ids"])["params"]
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    def train_step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["ids"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    return train_step, (state, batch)


@entry("model-vit", {"state": "opt_state", "state.params": "param", "images": "batch", "labels": "batch"},
       state=["state"], recipes="dp zero megatron 2d")
def vision():
    """a ViT in flax linen: patches by a convolution, a class token, labels smoothed"""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState
    draw = Draw()

    class ViT(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.Conv(32, (4, 4), strides=(4, 4), padding="VALID")(images)
            x = x.reshape(x.shape[0], -1, 32)
            token = self.param("cls", nn.initializers.zeros, (1, 1, 32))
            x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], axis=1)
            x = x + self.param("pos", nn.initializers.normal(0.02), (1, x.shape[1], 32))
            for _ in range(2):
                h = nn.LayerNorm()(x)
                x = x + nn.MultiHeadDotProductAttention(num_heads=4)(h, h)
                x = x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))
            return nn.Dense(8)(nn.LayerNorm()(x)[:, 0])

    images, model = draw.normal(8, 16, 16, 3), ViT()
    params = jax.jit(model.init)(jax.random.key(0), images)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-3))

    def train_step(state, images, labels):
        def loss_fn(params):
            wanted = optax.smooth_labels(jax.nn.one_hot(labels, 8), 0.1)
            return optax.softmax_cross_entropy(state.apply_fn({"params": params}, images), wanted).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    return train_step, (state, images, draw.integers(8, 8))


@entry("model-t5", ROLES, recipes="dp zero megatron 2d", sidecar=True)
def encoder_decoder():
    """encoder and decoder with cross attention and biases by relative position, with a sidecar"""
    draw = Draw()

    def attention_params():
        return {name: draw.weight(WIDTH, WIDTH) for name in "qkvo"}

    def feed_forward_params():
        return {"wi": draw.weight(WIDTH, 64), "wo": draw.weight(64, WIDTH)}

    params = {
        "shared": draw.normal(VOCABULARY, WIDTH),
        "encoder": {"bias": draw.normal(HEADS, 2 * LENGTH, scale=0.1), "attn": attention_params(),
                    "ff": feed_forward_params(), "norms": jnp.ones((3, WIDTH))},
        "decoder": {"bias": draw.normal(HEADS, 2 * LENGTH, scale=0.1), "attn": attention_params(),
                    "cross": attention_params(), "ff": feed_forward_params(), "norms": jnp.ones((4, WIDTH))},
    }

    def attention(p, x, memory, bias=0.0, mask=True):
        q, k, v = split_heads(x @ p["q"]), split_heads(memory @ p["k"]), split_heads(memory @ p["v"])
        scores = jnp.where(mask, jnp.einsum("bqhd,bkhd->bhqk", q, k) + bias, -1e9)
        out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return out.reshape(x.shape) @ p["o"]

    def feed_forward(p, x):
        return jax.nn.relu(x @ p["wi"]) @ p["wo"]

    distance = jnp.arange(LENGTH)[:, None] - jnp.arange(LENGTH)[None, :] + LENGTH

    def loss_of(params, batch):
        p = params["encoder"]
        x = params["shared"][batch["inputs"]]
        h = rms_norm(p["norms"][0], x)
        x = x + attention(p["attn"], h, h, p["bias"][:, distance])
        x = x + feed_forward(p["ff"], rms_norm(p["norms"][1], x))
        memory = rms_norm(p["norms"][2], x)
        p = params["decoder"]
        previous = jnp.pad(batch["targets"][:, :-1], ((0, 0), (1, 0)))
        x = params["shared"][previous]
        h = rms_norm(p["norms"][0], x)
        x = x + attention(p["attn"], h, h, p["bias"][:, distance], causal(LENGTH))
        x = x + attention(p["cross"], rms_norm(p["norms"][1], x), memory)
        x = x + feed_forward(p["ff"], rms_norm(p["norms"][2], x))
        logits = rms_norm(p["norms"][3], x) @ params["shared"].T / math.sqrt(WIDTH)
        return cross_entropy(logits, batch["targets"])

    batch = {"inputs": draw.integers(VOCABULARY, 8, LENGTH), "targets": draw.integers(VOCABULARY, 8, LENGTH)}
    return train(loss_of, params, batch)


# LLaMA: two ways to turn queries and keys by their positions.

FREQUENCIES = 10000.0 ** -(np.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS))
ANGLES = np.outer(np.arange(LENGTH), FREQUENCIES).astype(np.float32)


def turn_complex(x):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turned = jax.lax.complex(pairs[..., 0], pairs[..., 1]) * jnp.exp(1j * ANGLES)[None, :, None, :]
    return jnp.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def turn_real(x):
    cos, sin = jnp.cos(ANGLES)[None, :, None, :], jnp.sin(ANGLES)[None, :, None, :]
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def llama(turn, attention):
    draw = Draw()

    def layer():
        return {"wq": draw.weight(WIDTH, WIDTH), "wk": draw.weight(WIDTH, WIDTH), "wv": draw.weight(WIDTH, WIDTH),
                "wo": draw.weight(WIDTH, WIDTH), "w1": draw.weight(WIDTH, 64), "w3": draw.weight(WIDTH, 64),
                "w2": draw.weight(64, WIDTH), "attention_norm": jnp.ones(WIDTH), "ffn_norm": jnp.ones(WIDTH)}

    params = {"tok_embeddings": draw.normal(VOCABULARY, WIDTH), "layers": [layer() for _ in range(2)],
              "norm": jnp.ones(WIDTH), "output": draw.weight(WIDTH, VOCABULARY)}

    def loss_of(params, batch):
        x = params["tok_embeddings"][batch["ids"]]
        for p in params["layers"]:
            h = rms_norm(p["attention_norm"], x)
            q, k, v = (split_heads(h @ p[name]) for name in ("wq", "wk", "wv"))
            x = x + attention(turn(q), turn(k), v) @ p["wo"]
            h = rms_norm(p["ffn_norm"], x)
            x = x + (jax.nn.silu(h @ p["w1"]) * (h @ p["w3"])) @ p["w2"]
        return cross_entropy(rms_norm(params["norm"], x) @ params["output"], batch["labels"])

    return train(loss_of, params, gpt_batch(draw))


@entry("model-rope-complex", ROLES, recipes=EVERY)
def llama_complex():
    """LLaMA with rotary positions as products of complex numbers"""
    return llama(turn_complex, lambda q, k, v: attend(q, k, v, causal(LENGTH)))


@entry("model-rope-real", ROLES, recipes=EVERY)
def llama_real():
    """LLaMA with rotary positions by cosines and sines, and jax.nn.dot_product_attention"""
    def attention(q, k, v):
        out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return out.reshape(*out.shape[:2], -1)

    return llama(turn_real, attention)


@entry("model-attention-bf16", ROLES, recipes=EVERY)
def llama_narrow():
    """the same with attention in bf16"""
    def attention(q, k, v):
        q, k, v = (x.astype(jnp.bfloat16) for x in (q, k, v))
        out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return out.reshape(*out.shape[:2], -1).astype(jnp.float32)

    return llama(turn_real, attention)


@entry("model-attention-shared", ROLES, recipes=EVERY)
def llama_shared():
    """the same in bf16, where two heads share keys and values, and padding is hidden"""
    def attention(q, k, v):
        q, k, v = (x.astype(jnp.bfloat16) for x in (q, k[:, :, ::2], v[:, :, ::2]))
        length = jnp.full(q.shape[0], q.shape[1] - 2, jnp.int32)
        out = jax.nn.dot_product_attention(q, k, v, is_causal=True, key_value_seq_lengths=length)
        return out.reshape(*out.shape[:2], -1).astype(jnp.float32)

    return llama(turn_real, attention)


# Mixtures of experts in the place of the MLP.

EXPERTS = 4


def experts_by_capacity(p, x):
    """Every expert takes so many tokens; a one-hot mask brings tokens to their places and back."""
    tokens = x.reshape(-1, WIDTH)
    capacity = tokens.shape[0] * 2 * 2 // EXPERTS
    probabilities = jax.nn.softmax(tokens @ p["router"])
    weights, chosen = jax.lax.top_k(probabilities, 2)
    weights = weights / weights.sum(-1, keepdims=True)
    mask = jax.nn.one_hot(chosen, EXPERTS, dtype=jnp.int32)
    # Places are given out to all first choices before any second one.
    order = jnp.cumsum(mask.swapaxes(0, 1).reshape(-1, EXPERTS), axis=0) - 1
    place = order.reshape(2, -1, EXPERTS).swapaxes(0, 1)
    slots = jax.nn.one_hot(place, capacity) * mask[..., None]
    dispatch = slots.sum(1)
    combine = jnp.einsum("nk,nkec->nec", weights, slots)
    inputs = jnp.einsum("nec,nd->ecd", dispatch, tokens)
    hidden = jax.nn.silu(jnp.einsum("ecd,edf->ecf", inputs, p["w1"])) * jnp.einsum("ecd,edf->ecf", inputs, p["w3"])
    outputs = jnp.einsum("ecf,efd->ecd", hidden, p["w2"])
    share = mask[:, 0].astype(jnp.float32).mean(0)
    return jnp.einsum("nec,ecd->nd", combine, outputs).reshape(x.shape), EXPERTS * (share * probabilities.mean(0)).sum()


def experts_on_all(p, x):
    """Every expert looks at every token, and most of it is multiplied by zero."""
    weights, chosen = jax.lax.top_k(x @ p["router"], 2)
    mask = jax.nn.one_hot(chosen, EXPERTS, dtype=x.dtype)
    gates = jnp.einsum("btk,btke->bte", jax.nn.softmax(weights), mask)
    hidden = jax.nn.silu(jnp.einsum("btd,edf->btef", x, p["w1"])) * jnp.einsum("btd,edf->btef", x, p["w3"])
    return jnp.einsum("btef,efd,bte->btd", hidden, p["w2"], gates), 0.0


def mixture(experts):
    draw = Draw()

    def layer():
        p = block_params(draw)
        return {"norm1": p["norm1"], "attn": p["attn"], "norm2": p["norm2"],
                "moe": {"router": draw.weight(WIDTH, EXPERTS), "w1": draw.weight(EXPERTS, WIDTH, 64),
                        "w3": draw.weight(EXPERTS, WIDTH, 64), "w2": draw.weight(EXPERTS, 64, WIDTH)}}

    params = gpt_params(draw, layers=0) | {"layers": [layer()]}

    def loss_of(params, batch):
        x, losses = params["wte"][batch["ids"]] + params["wpe"], 0.0
        for p in params["layers"]:
            h = layer_norm(p["norm1"], x)
            q, k, v = (split_heads(dense(p["attn"][name], h)) for name in "qkv")
            x = x + dense(p["attn"]["o"], attend(q, k, v, causal(LENGTH)))
            mixed, loss = experts(p["moe"], layer_norm(p["norm2"], x))
            x, losses = x + mixed, losses + loss
        logits = layer_norm(params["norm_f"], x) @ params["wte"].T
        return cross_entropy(logits, batch["labels"]) + 0.01 * losses

    return train(loss_of, params, gpt_batch(draw))


@entry("model-moe", ROLES, recipes="dp zero expert")
def moe_by_capacity():
    """experts that take a number of tokens each: top-2, one-hot dispatch, einsum"""
    return mixture(experts_by_capacity)


@entry("model-moe-dense", ROLES, recipes="dp zero expert")
def moe_on_all():
    """experts that all look at all tokens, top-2 of them weighted"""
    return mixture(experts_on_all)


@entry("model-dropout", {"state": "opt_state", "state['params']": "param", "state['rng']": "key", "batch": "batch"},
       state=["state"], recipes=EVERY)
def dropout():
    """a GPT with dropout whose key is carried in the state and split in every step"""
    import optax
    draw = Draw()
    tx = optax.adamw(1e-3)
    params = gpt_params(draw)
    state = {"params": params, "opt": tx.init(params), "rng": jax.random.PRNGKey(17)}

    def drop(x, key):
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)

    def loss_of(params, batch, key):
        keys = jax.random.split(key, 2)
        logits = gpt(params | {"wpe": drop(params["wpe"], keys[0])}, batch["ids"])
        return cross_entropy(drop(logits, keys[1]), batch["labels"])

    def step(state, batch):
        rng, key = jax.random.split(state["rng"])
        loss, grads = jax.value_and_grad(loss_of)(state["params"], batch, key)
        updates, opt = tx.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt, "rng": rng}, loss

    return step, (state, gpt_batch(draw))


@entry("model-label-smoothing", {"params": "param", "opt_state": "opt_state", "tokens": "batch", "mask": "batch"},
       recipes="dp zero sequence")
def label_smoothing():
    """words around a word: an embedding, labels smoothed, padding masked out"""
    import optax
    draw = Draw()
    tx = optax.adagrad(0.1)
    params = {"embedding": draw.normal(64, 32), "out": draw.dense(32, 64)}

    def loss_of(params, tokens, mask):
        vectors = params["embedding"][tokens] * mask[..., None]
        context = (vectors.sum(1, keepdims=True) - vectors) / mask.sum(1)[:, None, None]
        logits = dense(params["out"], context)
        wanted = jax.nn.one_hot(tokens, 64) * 0.9 + 0.1 / 64
        losses = -(wanted * jax.nn.log_softmax(logits)).sum(-1)
        return (losses * mask).sum() / mask.sum()

    def step(params, opt_state, tokens, mask):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens, mask)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    mask = (jnp.arange(8) < 4 + draw.integers(5, 16)[:, None]).astype(jnp.float32)
    return step, (params, tx.init(params), draw.integers(64, 16, 8), mask)


@entry("model-ssm", ROLES, recipes="dp zero")
def state_space():
    """a state space model: h = a h + b x over 32 moments with associative_scan"""
    draw = Draw()
    params = {"wte": draw.normal(VOCABULARY, 16), "a": draw.dense(16, 32), "b": draw.dense(16, 32),
              "out": draw.dense(32, VOCABULARY)}

    def join(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]]
        decay = jax.nn.sigmoid(dense(params["a"], x))
        _, h = jax.lax.associative_scan(join, (decay, (1 - decay) * dense(params["b"], x)), axis=1)
        return cross_entropy(dense(params["out"], jax.nn.silu(h)), batch["labels"])

    ids = draw.integers(VOCABULARY, 8, 33)
    return train(loss_of, params, {"ids": ids[:, :-1], "labels": ids[:, 1:]})


@entry("model-linear-attention", ROLES, recipes="dp zero")
def linear_attention():
    """attention without softmax: sums of k v over the past by cumsum"""
    draw = Draw()
    params = {"wte": draw.normal(VOCABULARY, WIDTH), "out": draw.dense(WIDTH, VOCABULARY)}
    params |= {name: draw.weight(WIDTH, WIDTH) for name in "qkv"}

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]]
        q, k, v = (split_heads(x @ params[name]) for name in "qkv")
        q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        memory = jnp.cumsum(jnp.einsum("bthi,bthj->bthij", k, v), axis=1)
        norm = jnp.einsum("bthi,bthi->bth", q, jnp.cumsum(k, axis=1))
        read = jnp.einsum("bthi,bthij->bthj", q, memory) / norm[..., None]
        return cross_entropy(dense(params["out"], x + read.reshape(x.shape)), batch["labels"])

    return train(loss_of, params, gpt_batch(draw))


@entry("model-ctc", ROLES, recipes="dp zero")
def speech():
    """speech: frames to letters by the CTC loss of optax"""
    import optax
    draw = Draw()
    params = {"hidden": draw.dense(16, 32), "out": draw.dense(32, 16)}

    def loss_of(params, batch):
        logits = dense(params["out"], jax.nn.relu(dense(params["hidden"], batch["frames"])))
        return optax.ctc_loss(logits, batch["paddings"], batch["labels"], batch["label_paddings"]).mean()

    batch = {"frames": draw.normal(8, 24, 16), "paddings": jnp.zeros((8, 24)),
             "labels": 1 + draw.integers(15, 8, 6), "label_paddings": jnp.zeros((8, 6))}
    return train(loss_of, params, batch)


@entry("model-bert", ROLES, recipes=EVERY)
def masked_words():
    """words that were masked: attention in both directions, segments, a mask of padding"""
    draw = Draw()
    params = gpt_params(draw, layers=0) | {"layers": [block_params(draw) for _ in range(2)],
                                           "segments": draw.normal(2, WIDTH, scale=0.1)}

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]] + params["wpe"] + params["segments"][batch["segment_ids"]]
        mask = batch["attention_mask"][:, None, None, :] > 0
        for p in params["layers"]:
            q, k, v = (split_heads(dense(p["attn"][name], x)) for name in "qkv")
            x = layer_norm(p["norm1"], x + dense(p["attn"]["o"], attend(q, k, v, mask)))
            x = layer_norm(p["norm2"], x + dense(p["down"], jax.nn.gelu(dense(p["up"], x))))
        logs = jax.nn.log_softmax(x @ params["wte"].T)
        losses = -jnp.take_along_axis(logs, batch["labels"][..., None], -1)[..., 0]
        return jnp.sum(losses * batch["weights"]) / jnp.maximum(batch["weights"].sum(), 1.0)

    batch = {"ids": draw.integers(VOCABULARY, 8, LENGTH), "labels": draw.integers(VOCABULARY, 8, LENGTH),
             "segment_ids": draw.integers(2, 8, LENGTH), "weights": (draw.uniform(8, LENGTH) < 0.2) * 1.0,
             "attention_mask": jnp.tile(jnp.arange(LENGTH) < 12, (8, 1)).astype(jnp.int32)}
    return train(loss_of, params, batch)
