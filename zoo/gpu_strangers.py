"""Steps for one GPU, written from "training steps as people write them" alone. STEPS[name](small) -> (step, (state, batch))."""
import functools
import math
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx, struct
from flax.training import train_state
from jax import lax

STEPS = {}


def register(name):
    def deco(f):
        STEPS[name] = f
        return f
    return deco


def S(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


# --------------------------------------------------------------------------------------
# gemma: interleaved local / global attention, qk norm, soft-capped logits, tied embedding
# --------------------------------------------------------------------------------------
class GemmaRMSNorm(nn.Module):
    eps: float = 1e-6

    @nn.compact
    def __call__(self, x):
        w = self.param("scale", nn.initializers.zeros, (x.shape[-1],), jnp.float32)
        xf = x.astype(jnp.float32)
        y = xf * lax.rsqrt(jnp.mean(xf * xf, -1, keepdims=True) + self.eps)
        return (y * (1.0 + w)).astype(x.dtype)


def gemma_rope(x, positions, base):
    half = x.shape[-1] // 2
    freq = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    ang = positions[..., None].astype(jnp.float32) * freq
    sin, cos = jnp.sin(ang)[:, :, None, :], jnp.cos(ang)[:, :, None, :]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


class GemmaAttention(nn.Module):
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None

    @nn.compact
    def __call__(self, x, positions):
        d = x.shape[-1]
        B, T, _ = x.shape
        proj = functools.partial(nn.DenseGeneral, use_bias=False, dtype=x.dtype)
        q = proj((self.heads, self.head_dim), name="q")(x)
        kv = proj((2, self.kv_heads, self.head_dim), name="kv")(x)
        k, v = kv[:, :, 0], kv[:, :, 1]
        q = GemmaRMSNorm(name="q_norm")(q)
        k = GemmaRMSNorm(name="k_norm")(k)
        base = 10_000.0 if self.window else 1_000_000.0
        q = gemma_rope(q, positions, base) * (self.head_dim ** -0.5)
        k = gemma_rope(k, positions, base)
        q = q.reshape(B, T, self.kv_heads, self.heads // self.kv_heads, self.head_dim)
        logits = jnp.einsum("BTKGH,BSKH->BKGTS", q, k).astype(jnp.float32)
        mask = positions[:, :, None] >= positions[:, None, :]
        if self.window:
            mask &= positions[:, :, None] - positions[:, None, :] < self.window
        logits = jnp.where(mask[:, None, None], logits, -2.3819763e38)
        probs = jax.nn.softmax(logits, axis=-1).astype(x.dtype)
        o = jnp.einsum("BKGTS,BSKH->BTKGH", probs, v).reshape(B, T, self.heads, self.head_dim)
        return nn.DenseGeneral(d, axis=(-2, -1), use_bias=False, dtype=x.dtype, name="o")(o)


class GemmaBlock(nn.Module):
    heads: int
    kv_heads: int
    head_dim: int
    ff: int
    window: int | None

    @nn.compact
    def __call__(self, x, positions):
        h = GemmaAttention(self.heads, self.kv_heads, self.head_dim, self.window, name="attn")(
            GemmaRMSNorm(name="pre_attn")(x), positions)
        x = x + GemmaRMSNorm(name="post_attn")(h)
        y = GemmaRMSNorm(name="pre_ffw")(x)
        gate = nn.Dense(self.ff, use_bias=False, dtype=x.dtype, name="gate")(y)
        up = nn.Dense(self.ff, use_bias=False, dtype=x.dtype, name="up")(y)
        y = nn.Dense(x.shape[-1], use_bias=False, dtype=x.dtype, name="down")(nn.gelu(gate) * up)
        return x + GemmaRMSNorm(name="post_ffw")(y)


class Gemma(nn.Module):
    vocab: int
    d: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ff: int
    window: int
    softcap: float = 30.0

    @nn.compact
    def __call__(self, tokens):
        emb = nn.Embed(self.vocab, self.d, dtype=jnp.bfloat16, name="embedder",
                       embedding_init=nn.initializers.normal(0.02))
        x = emb(tokens) * jnp.asarray(math.sqrt(self.d), jnp.bfloat16)
        positions = jnp.broadcast_to(jnp.arange(tokens.shape[1])[None], tokens.shape)
        for i in range(self.layers):
            window = None if (i + 1) % 6 == 0 else self.window
            x = GemmaBlock(self.heads, self.kv_heads, self.head_dim, self.ff, window,
                           name=f"layer_{i}")(x, positions)
        x = GemmaRMSNorm(name="final_norm")(x)
        logits = emb.attend(x).astype(jnp.float32)
        return jnp.tanh(logits / self.softcap) * self.softcap


@register("gemma-linen")
def gemma(small):
    cfg = (dict(vocab=64, d=16, layers=6, heads=2, kv_heads=1, head_dim=8, ff=32, window=4) if small else
           dict(vocab=262144, d=1152, layers=18, heads=4, kv_heads=1, head_dim=256, ff=6912, window=512))
    B, T = (2, 12) if small else (2, 2048)
    model = Gemma(**cfg)
    sched = optax.warmup_cosine_decay_schedule(0.0, 3e-4, 100, 10_000)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(sched, b2=0.95, weight_decay=0.1,
                    mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)))

    def init():
        p = model.init(jax.random.key(0), jnp.zeros((1, 8), jnp.int32))["params"]
        return train_state.TrainState.create(apply_fn=model.apply, params=p, tx=tx)

    def step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["tokens"][:, :-1])
            ce = optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"][:, 1:])
            w = batch["loss_mask"][:, 1:]
            return jnp.sum(ce * w) / jnp.maximum(w.sum(), 1.0)

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss, optax.global_norm(grads)

    return step, (jax.eval_shape(init), {"tokens": S((B, T + 1), jnp.int32), "loss_mask": S((B, T + 1), jnp.bool_)})


# --------------------------------------------------------------------------------------
# deepseek: multi-head latent attention, routed experts (capacity, scatter), shared expert
# --------------------------------------------------------------------------------------
class DSCfg(NamedTuple):
    V: int; D: int; L: int; H: int; NOPE: int; ROPE: int; VD: int; KV: int; E: int; K: int; F: int; FS: int; CAP: float


def ds_norm(x, g):
    v = jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True)
    return (x * lax.rsqrt(v + 1e-6).astype(x.dtype)) * g.astype(x.dtype)


def ds_rotate(x, pos):                      # x [b, s, ..., r] interleaved pairs
    r = x.shape[-1]
    inv = 1.0 / (10000 ** (jnp.arange(0, r, 2) / r))
    ang = pos[:, None] * inv[None]
    c = jnp.cos(ang).astype(x.dtype)
    s = jnp.sin(ang).astype(x.dtype)
    shape = (1, x.shape[1]) + (1,) * (x.ndim - 3) + (r // 2,)
    c, s = c.reshape(shape), s.reshape(shape)
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return jnp.stack([x1 * c - x2 * s, x1 * s + x2 * c], -1).reshape(x.shape)


def ds_mla(p, x, c: DSCfg):
    b, s, _ = x.shape
    pos = jnp.arange(s)
    q = jnp.einsum("bsd,dhk->bshk", x, p["wq"])
    qn, qr = q[..., :c.NOPE], ds_rotate(q[..., c.NOPE:], pos)
    ckv = x @ p["wkv_a"]
    lat, kr = ckv[..., :c.KV], ds_rotate(ckv[..., c.KV:], pos)
    lat = ds_norm(lat, p["kv_norm"])
    kv = jnp.einsum("bsc,chk->bshk", lat, p["wkv_b"])
    kn, v = kv[..., :c.NOPE], kv[..., c.NOPE:]
    sc = jnp.einsum("bqhk,bthk->bhqt", qn, kn) + jnp.einsum("bqhr,btr->bhqt", qr, kr)
    sc = sc.astype(jnp.float32) / np.sqrt(c.NOPE + c.ROPE)
    sc = sc + jnp.triu(jnp.full((s, s), -1e9, jnp.float32), 1)
    pr = jax.nn.softmax(sc, -1).astype(x.dtype)
    o = jnp.einsum("bhqt,bthv->bqhv", pr, v)
    return jnp.einsum("bqhv,hvd->bqd", o, p["wo"])


def ds_moe(p, x, c: DSCfg):
    b, s, d = x.shape
    t = x.reshape(b * s, d)
    n = b * s
    cap = max(4, int(c.CAP * n * c.K / c.E))
    aff = jax.nn.sigmoid(t.astype(jnp.float32) @ p["router"])
    _, idx = lax.top_k(aff + lax.stop_gradient(p["bias"]), c.K)              # [n, k]
    w = jnp.take_along_axis(aff, idx, 1)
    w = w / (w.sum(-1, keepdims=True) + 1e-9)
    flat = idx.reshape(-1)
    oh = jax.nn.one_hot(flat, c.E, dtype=jnp.int32)
    slot = jnp.take_along_axis(jnp.cumsum(oh, 0) - 1, flat[:, None], 1)[:, 0]
    keep = slot < cap
    src = jnp.repeat(jnp.arange(n), c.K)
    buf = jnp.zeros((c.E, cap, d), x.dtype).at[flat, jnp.where(keep, slot, cap)].set(t[src], mode="drop")
    h = jnp.einsum("ecd,edf->ecf", buf, p["wg"])
    u = jnp.einsum("ecd,edf->ecf", buf, p["wu"])
    y = jnp.einsum("ecf,efd->ecd", jax.nn.silu(h) * u, p["wd"])
    back = y.at[flat, slot].get(mode="fill", fill_value=0)
    back = jnp.where(keep[:, None], back, 0) * w.reshape(-1)[:, None].astype(x.dtype)
    out = back.reshape(n, c.K, d).sum(1)
    shared = (jax.nn.silu(t @ p["sg"]) * (t @ p["su"])) @ p["sd"]
    load = oh.sum(0).astype(jnp.float32) / (n * c.K)
    balance = c.E * jnp.sum(load * aff.mean(0))
    return (out + shared).reshape(b, s, d), load, balance


@register("deepseek")
def deepseek(small):
    c = (DSCfg(48, 16, 2, 2, 8, 4, 8, 8, 4, 2, 16, 16, 1.25) if small else
         DSCfg(32768, 1024, 12, 16, 64, 32, 64, 256, 32, 4, 512, 1024, 1.25))
    B, T = (2, 8) if small else (8, 1024)

    def init(key):
        ks = iter(jax.random.split(key, 32))
        def w(*shape, fan):
            return jax.random.normal(next(ks), shape) * fan ** -0.5
        layers = {
            "n1": jnp.ones((c.L, c.D)), "n2": jnp.ones((c.L, c.D)), "kv_norm": jnp.ones((c.L, c.KV)),
            "wq": w(c.L, c.D, c.H, c.NOPE + c.ROPE, fan=c.D), "wkv_a": w(c.L, c.D, c.KV + c.ROPE, fan=c.D),
            "wkv_b": w(c.L, c.KV, c.H, c.NOPE + c.VD, fan=c.KV), "wo": w(c.L, c.H, c.VD, c.D, fan=c.H * c.VD),
            "router": w(c.L, c.D, c.E, fan=c.D),
            "wg": w(c.L, c.E, c.D, c.F, fan=c.D), "wu": w(c.L, c.E, c.D, c.F, fan=c.D), "wd": w(c.L, c.E, c.F, c.D, fan=c.F),
            "sg": w(c.L, c.D, c.FS, fan=c.D), "su": w(c.L, c.D, c.FS, fan=c.D), "sd": w(c.L, c.FS, c.D, fan=c.FS)}
        return {"embed": w(c.V, c.D, fan=2500), "head": w(c.D, c.V, fan=c.D), "norm": jnp.ones((c.D,)), "layers": layers}

    opt = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(0.9, 0.95),
                      optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(2e-4))

    def forward(params, bias, tokens):
        x = params["embed"].astype(jnp.bfloat16)[tokens]

        @jax.checkpoint
        def body(x, lp):
            lp, bias = lp
            router = lp["router"]
            lp = jax.tree.map(lambda a: a.astype(jnp.bfloat16), lp)
            lp = {**lp, "router": router, "bias": bias}
            x = x + ds_mla(lp, ds_norm(x, lp["n1"]), c)
            y, load, bal = ds_moe(lp, ds_norm(x, lp["n2"]), c)
            return x + y, (load, bal)

        x, (load, bal) = lax.scan(body, x, (params["layers"], bias))
        x = ds_norm(x, params["norm"])
        return (x @ params["head"].astype(x.dtype)).astype(jnp.float32), load, bal

    def step(state, batch):
        def loss(params):
            lg, load, bal = forward(params, state["router_bias"], batch["tokens"])
            lse = jax.nn.logsumexp(lg, -1)
            gold = jnp.take_along_axis(lg, batch["targets"][..., None], -1)[..., 0]
            return (lse - gold).mean() + 1e-4 * jnp.square(lse).mean() + 1e-3 * bal.mean(), load
        (l, load), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        upd, opt_state = opt.update(g, state["opt"], state["params"])
        new_bias = state["router_bias"] + 1e-3 * jnp.sign(1.0 / c.E - load)
        return {"params": optax.apply_updates(state["params"], upd), "opt": opt_state,
                "router_bias": new_bias}, l, load.max()

    params = jax.eval_shape(init, jax.random.key(0))
    state = {"params": params, "opt": jax.eval_shape(opt.init, params), "router_bias": S((c.L, c.E))}
    return step, (state, {"tokens": S((B, T), jnp.int32), "targets": S((B, T), jnp.int32)})


# --------------------------------------------------------------------------------------
# qwen: GQA + qk-norm, scan over layers, checkpoint, chunked vocabulary loss, lion
# --------------------------------------------------------------------------------------
@register("qwen-chunked")
def qwen(small):
    V, d, L, nq, nkv, hd, ff = (80, 16, 3, 4, 2, 8, 32) if small else (151936, 2048, 12, 16, 8, 128, 6144)
    B, T, chunks = (2, 16, 4) if small else (2, 2048, 8)
    dt = jnp.bfloat16

    def init(rng):
        def dense(i, *s):
            return jax.random.truncated_normal(jax.random.fold_in(rng, i), -2, 2, s) * 0.02
        block = dict(ln_in=jnp.ones((L, d)), ln_post=jnp.ones((L, d)), qn=jnp.ones((L, hd)), kn=jnp.ones((L, hd)),
                     q=dense(0, L, d, nq * hd), k=dense(1, L, d, nkv * hd), v=dense(2, L, d, nkv * hd),
                     o=dense(3, L, nq * hd, d), gate_up=dense(4, L, d, 2 * ff), down=dense(5, L, ff, d))
        return dict(wte=dense(6, V, d), blocks=block, ln_f=jnp.ones((d,)))

    def rms(x, w, eps=1e-6):
        h = x.astype(jnp.float32)
        h = h / jnp.sqrt(jnp.mean(h ** 2, axis=-1, keepdims=True) + eps)
        return (h * w).astype(x.dtype)

    def rope_tables(T):
        inv = 1e6 ** (-jnp.arange(0, hd, 2, dtype=jnp.float32) / hd)
        f = jnp.outer(jnp.arange(T, dtype=jnp.float32), inv)
        f = jnp.concatenate([f, f], -1)
        return jnp.cos(f).astype(dt), jnp.sin(f).astype(dt)

    def rot_half(x):
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([-b, a], -1)

    def layer(x, w, cos, sin):
        h = rms(x, w["ln_in"])
        q = (h @ w["q"].astype(dt)).reshape(B, T, nq, hd)
        k = (h @ w["k"].astype(dt)).reshape(B, T, nkv, hd)
        v = (h @ w["v"].astype(dt)).reshape(B, T, nkv, hd)
        q, k = rms(q, w["qn"]), rms(k, w["kn"])
        c, s = cos[None, :, None], sin[None, :, None]
        q, k = q * c + rot_half(q) * s, k * c + rot_half(k) * s
        a = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + a.reshape(B, T, nq * hd) @ w["o"].astype(dt)
        h = rms(x, w["ln_post"])
        g, u = jnp.split(h @ w["gate_up"].astype(dt), 2, -1)
        return x + (jax.nn.silu(g) * u) @ w["down"].astype(dt)

    def loss_fn(p, ids):
        inp, tgt = ids[:, :-1], ids[:, 1:]
        x = jnp.take(p["wte"], inp, axis=0).astype(dt)
        cos, sin = rope_tables(T)
        f = jax.checkpoint(lambda x, w: (layer(x, w, cos, sin), None),
                           policy=jax.checkpoint_policies.nothing_saveable)
        x, _ = lax.scan(f, x, p["blocks"])
        x = rms(x, p["ln_f"])
        head = p["wte"].astype(dt)
        xc = x.reshape(B, chunks, T // chunks, d).swapaxes(0, 1)
        tc = tgt.reshape(B, chunks, T // chunks).swapaxes(0, 1)

        @jax.checkpoint
        def chunk(tot, xt):
            xi, ti = xt
            lg = jnp.einsum("btd,vd->btv", xi, head, preferred_element_type=jnp.float32)
            m = lax.stop_gradient(lg.max(-1, keepdims=True))
            z = jnp.log(jnp.exp(lg - m).sum(-1)) + m[..., 0]
            return tot + (z - jnp.take_along_axis(lg, ti[..., None], -1).squeeze(-1)).sum(), None

        tot, _ = lax.scan(chunk, jnp.float32(0), (xc, tc))
        return tot / (B * T)

    tx = optax.chain(optax.clip_by_global_norm(1.0),
                     optax.lion(optax.cosine_decay_schedule(1e-4, 20000), b1=0.9, b2=0.98, mu_dtype=dt, weight_decay=0.3))

    def step(state, batch):
        l, g = jax.value_and_grad(loss_fn)(state["params"], batch["ids"])
        u, o = tx.update(g, state["opt"], state["params"])
        ok = jnp.isfinite(l)
        p, o = lax.cond(ok, lambda: (optax.apply_updates(state["params"], u), o),
                        lambda: (state["params"], state["opt"]))
        return {"params": p, "opt": o, "skipped": state["skipped"] + (1 - ok.astype(jnp.int32))}, l

    params = jax.eval_shape(init, jax.random.PRNGKey(0))
    return step, (dict(params=params, opt=jax.eval_shape(tx.init, params), skipped=S((), jnp.int32)),
                  dict(ids=S((B, T + 1), jnp.int32)))


# --------------------------------------------------------------------------------------
# mamba2: SSD in chunks, nn.scan over layers with nn.remat
# --------------------------------------------------------------------------------------
def segsum(a):
    T = a.shape[-1]
    cs = jnp.cumsum(a, -1)
    diff = cs[..., :, None] - cs[..., None, :]
    return jnp.where(jnp.tril(jnp.ones((T, T), bool)), diff, -jnp.inf)


def ssd(x, a, b, c, chunk):
    """x [B,T,H,P], a [B,T,H] (log decay), b/c [B,T,N]"""
    B, T, H, P = x.shape
    K = T // chunk
    x = x.reshape(B, K, chunk, H, P)
    b = b.reshape(B, K, chunk, -1)
    c = c.reshape(B, K, chunk, -1)
    a = a.reshape(B, K, chunk, H).transpose(0, 3, 1, 2)              # B H K l
    acs = jnp.cumsum(a, -1)
    L = jnp.exp(segsum(a)).astype(x.dtype)
    y_diag = jnp.einsum("bkln,bksn,bhkls,bkshp->bklhp", c, b, L, x)
    decay = jnp.exp(acs[..., -1:] - acs).astype(x.dtype)
    states = jnp.einsum("bkln,bhkl,bklhp->bkhpn", b, decay, x)

    def carry(h, inp):
        s, g = inp
        return h * g[..., None, None] + s.astype(jnp.float32), h

    h0 = jnp.zeros((B, H, P, b.shape[-1]), jnp.float32)
    gate = jnp.exp(acs[..., -1]).transpose(2, 0, 1)
    _, prev = lax.scan(carry, h0, (states.swapaxes(0, 1), gate))
    y_off = jnp.einsum("bkln,kbhpn,bhkl->bklhp", c, prev.astype(x.dtype), jnp.exp(acs).astype(x.dtype))
    return (y_diag + y_off).reshape(B, T, H, P)


class Mamba2Block(nn.Module):
    d: int
    state: int
    head: int
    chunk: int
    conv: int = 4

    @nn.compact
    def __call__(self, x, _):
        inner = 2 * self.d
        H = inner // self.head
        res = x
        x = nn.RMSNorm(dtype=jnp.bfloat16)(x)
        zxbcdt = nn.Dense(2 * inner + 2 * self.state + H, use_bias=False, dtype=jnp.bfloat16, name="in_proj")(x)
        z, xbc, dt = jnp.split(zxbcdt, [inner, 2 * inner + 2 * self.state], -1)
        xbc = nn.Conv(xbc.shape[-1], (self.conv,), padding=[(self.conv - 1, 0)],
                      feature_group_count=xbc.shape[-1], dtype=jnp.bfloat16, name="conv")(xbc)
        xbc = nn.silu(xbc)
        xs, b, c = jnp.split(xbc, [inner, inner + self.state], -1)
        A_log = self.param("A_log", lambda k, s: jnp.log(jnp.linspace(1.0, 16.0, s[0])), (H,))
        dt_bias = self.param("dt_bias", nn.initializers.zeros, (H,))
        D = self.param("D", nn.initializers.ones, (H,))
        dt = jax.nn.softplus(dt.astype(jnp.float32) + dt_bias)
        xs = xs.reshape(*xs.shape[:2], H, self.head)
        y = ssd(xs * dt[..., None].astype(xs.dtype), -jnp.exp(A_log) * dt, b, c, self.chunk)
        y = y + xs * D[:, None].astype(xs.dtype)
        y = y.reshape(*y.shape[:2], inner) * nn.silu(z)
        y = nn.RMSNorm(dtype=jnp.bfloat16, name="gated_norm")(y)
        return res + nn.Dense(self.d, use_bias=False, dtype=jnp.bfloat16, name="out_proj")(y), None


class Mamba2LM(nn.Module):
    vocab: int
    d: int
    layers: int
    state: int
    head: int
    chunk: int

    @nn.compact
    def __call__(self, tok):
        x = nn.Embed(self.vocab, self.d, dtype=jnp.bfloat16)(tok)
        stack = nn.scan(nn.remat(Mamba2Block, prevent_cse=False), variable_axes={"params": 0},
                        split_rngs={"params": True}, length=self.layers)
        x, _ = stack(self.d, self.state, self.head, self.chunk, name="stack")(x, None)
        x = nn.RMSNorm(dtype=jnp.bfloat16)(x)
        return nn.Dense(self.vocab, use_bias=False, dtype=jnp.bfloat16)(x)


@register("mamba-ssd")
def mamba_ssd(small):
    model = Mamba2LM(40, 16, 2, 8, 8, 4) if small else Mamba2LM(50288, 1024, 24, 128, 64, 256)
    B, T = (2, 12) if small else (4, 2048)
    tx = optax.adamw(learning_rate=optax.linear_schedule(0, 6e-4, 2000), weight_decay=0.1)

    def train_step(state, batch):
        params, opt_state = state
        x, y = batch

        def f(p):
            lg = model.apply({"params": p}, x)
            logp = jax.nn.log_softmax(lg.astype(jnp.float32))
            return -(jax.nn.one_hot(y, lg.shape[-1], dtype=jnp.float32) * logp).sum(-1).mean()

        l, g = jax.value_and_grad(f)(params)
        up, opt_state = tx.update(g, opt_state, params)
        return (optax.apply_updates(params, up), opt_state), l

    p = jax.eval_shape(model.init, jax.random.PRNGKey(0), S((1, T), jnp.int32))["params"]
    return train_step, ((p, jax.eval_shape(tx.init, p)), (S((B, T), jnp.int32), S((B, T), jnp.int32)))


# --------------------------------------------------------------------------------------
# DiT with flow matching, nnx
# --------------------------------------------------------------------------------------
class DiTBlock(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        kw = dict(dtype=jnp.bfloat16, rngs=rngs)
        self.heads = heads
        self.norm1 = nnx.LayerNorm(d, use_bias=False, use_scale=False, **kw)
        self.norm2 = nnx.LayerNorm(d, use_bias=False, use_scale=False, **kw)
        self.qkv = nnx.Linear(d, 3 * d, **kw)
        self.proj = nnx.Linear(d, d, **kw)
        self.fc1 = nnx.Linear(d, 4 * d, **kw)
        self.fc2 = nnx.Linear(4 * d, d, **kw)
        self.ada = nnx.Linear(d, 6 * d, kernel_init=nnx.initializers.zeros, **kw)

    def __call__(self, x, c):
        s1, b1, g1, s2, b2, g2 = jnp.split(self.ada(nnx.silu(c))[:, None], 6, axis=-1)
        h = self.norm1(x) * (1 + s1) + b1
        B, N, D = h.shape
        qkv = self.qkv(h).reshape(B, N, 3, self.heads, D // self.heads)
        q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        att = (q @ k.swapaxes(-1, -2)) * (D // self.heads) ** -0.5
        att = nnx.softmax(att.astype(jnp.float32), axis=-1).astype(v.dtype)
        h = (att @ v).transpose(0, 2, 1, 3).reshape(B, N, D)
        x = x + g1 * self.proj(h)
        h = self.norm2(x) * (1 + s2) + b2
        return x + g2 * self.fc2(nnx.gelu(self.fc1(h), approximate=True))


class DiT(nnx.Module):
    def __init__(self, size, ch, patch, d, depth, heads, classes, *, rngs):
        self.size, self.ch, self.patch, self.d = size, ch, patch, d
        kw = dict(dtype=jnp.bfloat16, rngs=rngs)
        self.embed = nnx.Conv(ch, d, (patch, patch), strides=(patch, patch), **kw)
        n = (size // patch) ** 2
        self.pos = nnx.Param(jax.random.normal(rngs.params(), (1, n, d)) * 0.02)
        self.t1 = nnx.Linear(256 if d > 64 else 16, d, **kw)
        self.t2 = nnx.Linear(d, d, **kw)
        self.labels = nnx.Embed(classes + 1, d, rngs=rngs)
        self.blocks = nnx.List([DiTBlock(d, heads, rngs=rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(d, use_bias=False, use_scale=False, **kw)
        self.ada = nnx.Linear(d, 2 * d, kernel_init=nnx.initializers.zeros, **kw)
        self.out = nnx.Linear(d, patch * patch * ch, kernel_init=nnx.initializers.zeros, **kw)

    def __call__(self, x, t, y):
        B = x.shape[0]
        h = self.embed(x).reshape(B, -1, self.d) + self.pos[...].astype(jnp.bfloat16)
        half = self.t1.in_features // 2
        f = jnp.exp(-jnp.log(10000.0) * jnp.arange(half) / half)
        a = 1000.0 * t[:, None] * f
        c = self.t2(nnx.silu(self.t1(jnp.concatenate([jnp.cos(a), jnp.sin(a)], -1))))
        c = c + self.labels(y).astype(c.dtype)
        for blk in self.blocks:
            h = blk(h, c)
        s, b = jnp.split(self.ada(nnx.silu(c))[:, None], 2, -1)
        h = self.out(self.norm(h) * (1 + s) + b)
        g, p = self.size // self.patch, self.patch
        return h.reshape(B, g, g, p, p, self.ch).transpose(0, 1, 3, 2, 4, 5).reshape(B, self.size, self.size, self.ch)


@register("dit-flow")
def dit_flow(small):
    B, args = (2, (8, 4, 2, 16, 2, 2, 8)) if small else (64, (32, 4, 2, 1024, 12, 16, 1000))
    model = nnx.eval_shape(lambda: DiT(*args, rngs=nnx.Rngs(0)))
    graphdef, params = nnx.split(model)
    params = nnx.to_pure_dict(params)
    tx = optax.adamw(1e-4, b1=0.9, b2=0.99, weight_decay=0.0)

    def step(state, batch):
        key = jax.random.fold_in(jax.random.key(17), state["step"])
        kt, kn, kd = jax.random.split(key, 3)
        x1 = batch["latent"]
        t = jax.nn.sigmoid(jax.random.normal(kt, (B,)))
        x0 = jax.random.normal(kn, x1.shape)
        tt = t[:, None, None, None]
        xt = (1 - tt) * x0 + tt * x1
        y = jnp.where(jax.random.bernoulli(kd, 0.1, (B,)), args[-1], batch["label"])

        def loss_fn(p):
            st = nnx.split(model)[1]
            nnx.replace_by_pure_dict(st, p)
            net = nnx.merge(graphdef, st)
            v = net(xt.astype(jnp.bfloat16), t, y).astype(jnp.float32)
            return jnp.mean((v - (x1 - x0)) ** 2)

        loss, g = jax.value_and_grad(loss_fn)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        p = optax.apply_updates(state["params"], u)
        ema = jax.tree.map(lambda e, q: e * 0.9999 + q * (1 - 0.9999), state["ema"], p)
        return dict(params=p, ema=ema, opt=o, step=state["step"] + 1), loss, {"t": t.mean()}

    return step, (dict(params=params, ema=params, opt=jax.eval_shape(tx.init, params), step=S((), jnp.int32)),
                  dict(latent=S((B, args[0], args[0], 4)), label=S((B,), jnp.int32)))


# --------------------------------------------------------------------------------------
# diffusion U-Net, nnx, eps-prediction DDPM
# --------------------------------------------------------------------------------------
class ResBlock(nnx.Module):
    def __init__(self, cin, cout, temb, groups, rngs):
        self.gn1 = nnx.GroupNorm(cin, num_groups=groups, rngs=rngs)
        self.conv1 = nnx.Conv(cin, cout, (3, 3), dtype=jnp.bfloat16, rngs=rngs)
        self.temb = nnx.Linear(temb, 2 * cout, dtype=jnp.bfloat16, rngs=rngs)
        self.gn2 = nnx.GroupNorm(cout, num_groups=groups, rngs=rngs)
        self.drop = nnx.Dropout(0.1)
        self.conv2 = nnx.Conv(cout, cout, (3, 3), dtype=jnp.bfloat16, rngs=rngs)
        self.skip = nnx.Conv(cin, cout, (1, 1), dtype=jnp.bfloat16, rngs=rngs) if cin != cout else None

    def __call__(self, x, t, rngs):
        h = self.conv1(nnx.swish(self.gn1(x)))
        scale, shift = jnp.split(self.temb(nnx.swish(t))[:, None, None, :], 2, -1)
        h = nnx.swish(self.gn2(h) * (1 + scale) + shift)
        h = self.conv2(self.drop(h, rngs=rngs, deterministic=False))
        return (x if self.skip is None else self.skip(x)) + h


class SpatialAttention(nnx.Module):
    def __init__(self, c, heads, groups, rngs):
        self.gn = nnx.GroupNorm(c, num_groups=groups, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(heads, c, dtype=jnp.bfloat16, decode=False, rngs=rngs)

    def __call__(self, x):
        B, H, W, C = x.shape
        h = self.gn(x).reshape(B, H * W, C)
        return x + self.attn(h).reshape(x.shape)


class UNet(nnx.Module):
    def __init__(self, cin, ch, mult, blocks, attn_levels, groups, heads, rngs):
        temb = 4 * ch
        self.ch = ch
        self.t1 = nnx.Linear(ch, temb, rngs=rngs)
        self.t2 = nnx.Linear(temb, temb, rngs=rngs)
        self.stem = nnx.Conv(cin, ch, (3, 3), dtype=jnp.bfloat16, rngs=rngs)
        downs, ups, samplers, upsamplers = [], [], [], []
        skips, c = [ch], ch
        for lv, m in enumerate(mult):
            for _ in range(blocks):
                downs.append(ResBlock(c, ch * m, temb, groups, rngs))
                c = ch * m
                downs.append(SpatialAttention(c, heads, groups, rngs) if lv in attn_levels else None)
                skips.append(c)
            if lv + 1 < len(mult):
                samplers.append(nnx.Conv(c, c, (3, 3), strides=(2, 2), dtype=jnp.bfloat16, rngs=rngs))
                skips.append(c)
        self.mid1 = ResBlock(c, c, temb, groups, rngs)
        self.mida = SpatialAttention(c, heads, groups, rngs)
        self.mid2 = ResBlock(c, c, temb, groups, rngs)
        for lv, m in reversed(list(enumerate(mult))):
            for _ in range(blocks + 1):
                ups.append(ResBlock(c + skips.pop(), ch * m, temb, groups, rngs))
                c = ch * m
                ups.append(SpatialAttention(c, heads, groups, rngs) if lv in attn_levels else None)
            if lv:
                upsamplers.append(nnx.Conv(c, c, (3, 3), dtype=jnp.bfloat16, rngs=rngs))
        self.downs, self.ups = nnx.List(downs), nnx.List(ups)
        self.samplers, self.upsamplers = nnx.List(samplers), nnx.List(upsamplers)
        self.levels, self.nb = len(mult), blocks
        self.gn = nnx.GroupNorm(c, num_groups=groups, rngs=rngs)
        self.out = nnx.Conv(c, cin, (3, 3), kernel_init=nnx.initializers.zeros, rngs=rngs)

    def __call__(self, x, t, rngs):
        half = self.ch // 2
        f = t[:, None].astype(jnp.float32) * jnp.exp(-math.log(1e4) / (half - 1) * jnp.arange(half))
        t = self.t2(nnx.swish(self.t1(jnp.concatenate([jnp.sin(f), jnp.cos(f)], 1))))
        x = self.stem(x)
        hs, i = [x], 0
        for lv in range(self.levels):
            for _ in range(self.nb):
                x = self.downs[i](x, t, rngs)
                if self.downs[i + 1] is not None:
                    x = self.downs[i + 1](x)
                hs.append(x)
                i += 2
            if lv + 1 < self.levels:
                x = self.samplers[lv](x)
                hs.append(x)
        x = self.mid2(self.mida(self.mid1(x, t, rngs)), t, rngs)
        i = 0
        for lv in range(self.levels):
            for _ in range(self.nb + 1):
                x = self.ups[i](jnp.concatenate([x, hs.pop()], -1), t, rngs)
                if self.ups[i + 1] is not None:
                    x = self.ups[i + 1](x)
                i += 2
            if lv + 1 < self.levels:
                B, H, W, C = x.shape
                x = jax.image.resize(x, (B, 2 * H, 2 * W, C), "nearest")
                x = self.upsamplers[lv](x)
        return self.out(nnx.swish(self.gn(x)).astype(jnp.float32))


@register("unet-ddpm")
def unet_ddpm(small):
    B, R, cfg = (2, 8, (3, 8, (1, 2), 1, (1,), 4, 2)) if small else (32, 64, (4, 192, (1, 2, 3), 2, (1, 2), 32, 6))
    net = nnx.eval_shape(lambda: UNet(*cfg, rngs=nnx.Rngs(params=0)))
    gdef, params, rest = nnx.split(net, nnx.Param, ...)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-4))

    def step(state, x0):
        betas = jnp.linspace(1e-4, 0.02, 1000, dtype=jnp.float32)
        abar = jnp.cumprod(1.0 - betas)
        rng = jax.random.fold_in(state["rng"], state["n"])
        k1, k2, k3 = jax.random.split(rng, 3)
        t = jax.random.randint(k1, (B,), 0, 1000)
        eps = jax.random.normal(k2, x0.shape)
        a = abar[t][:, None, None, None]
        xt = jnp.sqrt(a) * x0 + jnp.sqrt(1 - a) * eps

        def loss(p):
            m = nnx.merge(gdef, p, state["rest"])
            return optax.l2_loss(m(xt.astype(jnp.bfloat16), t, nnx.Rngs(dropout=k3)), eps).mean()

        l, g = jax.value_and_grad(loss)(state["params"])
        up, opt = tx.update(g, state["opt"], state["params"])
        p = optax.apply_updates(state["params"], up)
        ema = optax.incremental_update(p, state["ema"], 1e-4)
        return {**state, "params": p, "ema": ema, "opt": opt, "n": state["n"] + 1}, l

    st = dict(params=params, rest=rest, ema=params, opt=jax.eval_shape(tx.init, params),
              rng=S((2,), jnp.uint32), n=S((), jnp.int32))
    return step, (st, S((B, R, R, cfg[0])))


# --------------------------------------------------------------------------------------
# SigLIP: ViT + text tower, sigmoid pairwise loss, adafactor
# --------------------------------------------------------------------------------------
class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        d = x.shape[-1]
        return nn.Dense(d, dtype=jnp.bfloat16)(nn.gelu(nn.Dense(4 * d, dtype=jnp.bfloat16)(x)))


class EncBlock(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x, mask=None):
        y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=jnp.bfloat16)(y, y, mask=mask)
        return x + Mlp()(nn.LayerNorm(dtype=jnp.bfloat16)(x))


class MapHead(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):
        d = x.shape[-1]
        probe = self.param("probe", nn.initializers.xavier_uniform(), (1, 1, d))
        p = jnp.tile(probe, (x.shape[0], 1, 1)).astype(x.dtype)
        y = nn.MultiHeadDotProductAttention(self.heads, dtype=jnp.bfloat16)(p, x)
        return (y + Mlp()(nn.LayerNorm(dtype=jnp.bfloat16)(y)))[:, 0]


class SigLIP(nn.Module):
    d: int
    depth: int
    heads: int
    patch: int
    vocab: int

    @nn.compact
    def __call__(self, img, txt):
        p = self.patch
        x = nn.Conv(self.d, (p, p), (p, p), padding="VALID", dtype=jnp.bfloat16, name="patch")(img)
        x = x.reshape(x.shape[0], -1, self.d)
        x = x + self.param("vpos", nn.initializers.normal(0.02), (1, x.shape[1], self.d)).astype(x.dtype)
        for i in range(self.depth):
            x = EncBlock(self.heads, name=f"vis{i}")(x)
        zi = MapHead(self.heads, name="map")(nn.LayerNorm(dtype=jnp.bfloat16)(x)).astype(jnp.float32)
        t = nn.Embed(self.vocab, self.d, dtype=jnp.bfloat16, name="tok")(txt)
        t = t + self.param("tpos", nn.initializers.normal(0.01), (1, t.shape[1], self.d)).astype(t.dtype)
        mask = nn.make_attention_mask(jnp.ones_like(txt), txt > 0)
        for i in range(self.depth):
            t = EncBlock(self.heads, name=f"txt{i}")(t, mask)
        zt = nn.Dense(self.d, name="txt_head")(nn.LayerNorm()(t)[:, -1])
        zi = zi / (jnp.linalg.norm(zi, axis=-1, keepdims=True) + 1e-8)
        zt = zt / (jnp.linalg.norm(zt, axis=-1, keepdims=True) + 1e-8)
        temp = self.param("t", nn.initializers.constant(math.log(10)), ())
        bias = self.param("b", nn.initializers.constant(-10.0), ())
        return jnp.exp(temp) * zi @ zt.T + bias


@register("siglip")
def siglip(small):
    model = SigLIP(16, 2, 2, 4, 50) if small else SigLIP(768, 12, 12, 16, 32000)
    B, R, T = (4, 8, 6) if small else (128, 224, 64)
    tx = optax.adafactor(learning_rate=optax.warmup_cosine_decay_schedule(0, 1e-3, 10_000, 100_000),
                         min_dim_size_to_factor=16 if small else 128, weight_decay_rate=1e-4)
    init = functools.partial(model.init, jax.random.key(0))
    b = dict(image=S((B, R, R, 3)), text=S((B, T), jnp.int32))
    params = jax.eval_shape(init, b["image"], b["text"])["params"]

    def step(state, batch):
        def loss(p):
            lg = model.apply({"params": p}, batch["image"].astype(jnp.bfloat16), batch["text"])
            sign = 2 * jnp.eye(B) - jnp.ones((B, B))
            return -jnp.sum(jax.nn.log_sigmoid(sign * lg)) / B, (jnp.argmax(lg, 1) == jnp.arange(B)).mean()
        (l, acc), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], u), "opt": o}, l, acc

    return step, ({"params": params, "opt": jax.eval_shape(tx.init, params)}, b)


# --------------------------------------------------------------------------------------
# EfficientNet: MBConv, squeeze-excite, batch norm, stochastic depth, rmsprop
# --------------------------------------------------------------------------------------
class MBConv(nn.Module):
    out: int
    expand: int
    kernel: int
    stride: int
    drop: float

    @nn.compact
    def __call__(self, x, train=True):
        cin = x.shape[-1]
        bn = functools.partial(nn.BatchNorm, use_running_average=not train, momentum=0.99, epsilon=1e-3, dtype=jnp.bfloat16)
        conv = functools.partial(nn.Conv, use_bias=False, dtype=jnp.bfloat16)
        h = x
        if self.expand != 1:
            h = nn.swish(bn()(conv(cin * self.expand, (1, 1))(h)))
        m = h.shape[-1]
        h = nn.swish(bn()(conv(m, (self.kernel,) * 2, strides=self.stride, feature_group_count=m)(h)))
        se = h.mean((1, 2), keepdims=True)
        se = nn.swish(nn.Conv(max(1, cin // 4), (1, 1), dtype=jnp.bfloat16)(se))
        h = h * nn.sigmoid(nn.Conv(m, (1, 1), dtype=jnp.bfloat16)(se))
        h = bn()(conv(self.out, (1, 1))(h))
        if self.stride == 1 and cin == self.out:
            if train and self.drop > 0:
                keep = jax.random.bernoulli(self.make_rng("dropout"), 1 - self.drop, (x.shape[0], 1, 1, 1))
                h = jnp.where(keep, h / (1 - self.drop), 0)
            h = h + x
        return h


class EfficientNet(nn.Module):
    stages: tuple
    stem: int
    head: int
    classes: int

    @nn.compact
    def __call__(self, x, train=True):
        bn = functools.partial(nn.BatchNorm, use_running_average=not train, momentum=0.99, dtype=jnp.bfloat16)
        x = nn.swish(bn()(nn.Conv(self.stem, (3, 3), 2, use_bias=False, dtype=jnp.bfloat16)(x)))
        total = sum(s[3] for s in self.stages)
        n = 0
        for e, k, c, r, s in self.stages:
            for j in range(r):
                x = MBConv(c, e, k, s if j == 0 else 1, 0.2 * n / total)(x, train)
                n += 1
        x = nn.swish(bn()(nn.Conv(self.head, (1, 1), use_bias=False, dtype=jnp.bfloat16)(x)))
        x = nn.Dropout(0.2, deterministic=not train)(x.mean((1, 2)))
        return nn.Dense(self.classes)(x.astype(jnp.float32))


class BNState(struct.PyTreeNode):
    step: Any
    params: Any
    batch_stats: Any
    opt_state: Any
    ema: Any


@register("efficientnet")
def efficientnet(small):
    if small:
        model = EfficientNet(((1, 3, 8, 1, 1), (4, 5, 8, 2, 2)), 8, 16, 10)
        B, R = 2, 16
    else:
        model = EfficientNet(((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2),
                              (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)), 32, 1280, 1000)
        B, R = 256, 224
    lr = optax.exponential_decay(0.016, 2400, 0.97, staircase=True)
    tx = optax.chain(optax.add_decayed_weights(1e-5), optax.rmsprop(lr, decay=0.9, eps=1e-3, momentum=0.9))

    def create():
        v = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, jnp.zeros((1, R, R, 3), jnp.bfloat16))
        return BNState(jnp.int32(0), v["params"], v["batch_stats"], tx.init(v["params"]), v["params"])

    def step(state, batch):
        key = jax.random.fold_in(jax.random.PRNGKey(3), state.step)
        img = (batch["image"].astype(jnp.float32) / 127.5 - 1.0).astype(jnp.bfloat16)

        def loss_fn(params):
            lg, mut = model.apply({"params": params, "batch_stats": state.batch_stats}, img,
                                  rngs={"dropout": key}, mutable=["batch_stats"])
            tgt = optax.smooth_labels(jax.nn.one_hot(batch["label"], lg.shape[-1]), 0.1)
            return optax.softmax_cross_entropy(lg, tgt).mean(), (mut["batch_stats"], lg)

        (loss, (bs, lg)), g = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        u, o = tx.update(g, state.opt_state, state.params)
        p = optax.apply_updates(state.params, u)
        d = jnp.minimum(0.9999, (1.0 + state.step) / (10.0 + state.step))
        ema = jax.tree.map(lambda a, b: d * a + (1 - d) * b, state.ema, p)
        return BNState(state.step + 1, p, bs, o, ema), loss, (lg.argmax(-1) == batch["label"]).mean()

    return step, (jax.eval_shape(create), dict(image=S((B, R, R, 3), jnp.uint8), label=S((B,), jnp.int32)))


# --------------------------------------------------------------------------------------
# Swin: shifted windows with relative position bias
# --------------------------------------------------------------------------------------
def window_partition(x, w):
    B, H, W, C = x.shape
    return x.reshape(B, H // w, w, W // w, w, C).transpose(0, 1, 3, 2, 4, 5).reshape(-1, w * w, C)


def window_reverse(x, w, H, W):
    B = x.shape[0] // ((H // w) * (W // w))
    return x.reshape(B, H // w, W // w, w, w, -1).transpose(0, 1, 3, 2, 4, 5).reshape(B, H, W, -1)


def shift_mask(H, W, w, s):
    m = np.zeros((1, H, W, 1), np.float32)
    n = 0
    for a in (slice(0, -w), slice(-w, -s), slice(-s, None)):
        for b in (slice(0, -w), slice(-w, -s), slice(-s, None)):
            m[:, a, b] = n
            n += 1
    m = m.reshape(1, H // w, w, W // w, w, 1).transpose(0, 1, 3, 2, 4, 5).reshape(-1, w * w)
    return np.where(m[:, None] != m[:, :, None], -100.0, 0.0).astype(np.float32)


def rel_index(w):
    c = np.stack(np.meshgrid(np.arange(w), np.arange(w), indexing="ij")).reshape(2, -1)
    r = (c[:, :, None] - c[:, None]).transpose(1, 2, 0) + w - 1
    return (r[..., 0] * (2 * w - 1) + r[..., 1]).astype(np.int32)


class SwinBlock(nn.Module):
    heads: int
    win: int
    shift: int
    rate: float

    @nn.compact
    def __call__(self, x, det):
        B, H, W, C = x.shape
        w, h = self.win, self.heads
        y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        if self.shift:
            y = jnp.roll(y, (-self.shift, -self.shift), (1, 2))
        y = window_partition(y, w)
        qkv = nn.Dense(3 * C, dtype=jnp.bfloat16, name="qkv")(y).reshape(y.shape[0], w * w, 3, h, C // h)
        q, k, v = jnp.moveaxis(qkv, 2, 0)
        att = jnp.einsum("nqhd,nkhd->nhqk", q * (C // h) ** -0.5, k)
        table = self.param("rel", nn.initializers.truncated_normal(0.02), ((2 * w - 1) ** 2, h))
        att = att + table[rel_index(w).reshape(-1)].reshape(w * w, w * w, h).transpose(2, 0, 1)[None].astype(att.dtype)
        if self.shift:
            m = jnp.asarray(shift_mask(H, W, w, self.shift), att.dtype)
            att = (att.reshape(B, -1, h, w * w, w * w) + m[None, :, None]).reshape(att.shape)
        att = jax.nn.softmax(att.astype(jnp.float32)).astype(v.dtype)
        y = jnp.einsum("nhqk,nkhd->nqhd", att, v).reshape(-1, w * w, C)
        y = window_reverse(nn.Dense(C, dtype=jnp.bfloat16, name="proj")(y), w, H, W)
        if self.shift:
            y = jnp.roll(y, (self.shift, self.shift), (1, 2))
        path = nn.Dropout(self.rate, broadcast_dims=(1, 2, 3), deterministic=det)
        x = x + path(y)
        y = nn.gelu(nn.Dense(4 * C, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x)))
        return x + path(nn.Dense(C, dtype=jnp.bfloat16)(y))


class Swin(nn.Module):
    dim: int
    depths: tuple
    heads: tuple
    win: int
    classes: int

    @nn.compact
    def __call__(self, x, det=False):
        x = nn.Conv(self.dim, (4, 4), 4, dtype=jnp.bfloat16)(x)
        x = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        for i, (n, h) in enumerate(zip(self.depths, self.heads)):
            if i:
                x = jnp.concatenate([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
                x = nn.LayerNorm(dtype=jnp.bfloat16)(x)
                x = nn.Dense(x.shape[-1] // 2, use_bias=False, dtype=jnp.bfloat16)(x)
            for j in range(n):
                shift = self.win // 2 if j % 2 and x.shape[1] > self.win else 0
                x = SwinBlock(h, self.win, shift, 0.1)(x, det)
        x = nn.LayerNorm(dtype=jnp.float32)(x).mean((1, 2))
        return nn.Dense(self.classes)(x)


@register("swin")
def swin(small):
    model = Swin(8, (2, 2), (1, 2), 4, 10) if small else Swin(96, (2, 2, 6, 2), (3, 6, 12, 24), 7, 1000)
    B, R = (2, 32) if small else (192, 224)
    sched = optax.join_schedules([optax.linear_schedule(1e-6, 1e-3, 500), optax.cosine_decay_schedule(1e-3, 9500)], [500])
    decay = lambda p: jax.tree_util.tree_map_with_path(lambda k, x: x.ndim > 1 and "rel" not in jax.tree_util.keystr(k), p)
    tx = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(sched, weight_decay=0.05, mask=decay))

    def step(state, batch):
        params, opt, n = state
        k1, k2 = jax.random.split(jax.random.fold_in(jax.random.key(0), n))
        lam = jax.random.beta(k2, 0.8, 0.8)                     # mixup
        x = batch["x"].astype(jnp.bfloat16)
        x = (lam * x + (1 - lam) * x[::-1]).astype(jnp.bfloat16)
        y = jax.nn.one_hot(batch["y"], model.classes)
        y = lam * y + (1 - lam) * y[::-1]

        @jax.value_and_grad
        def vg(p):
            return optax.safe_softmax_cross_entropy(model.apply({"params": p}, x, rngs={"dropout": k1}), y).mean()

        l, g = vg(params)
        u, opt = tx.update(g, opt, params)
        return (optax.apply_updates(params, u), opt, n + 1), l

    v = jax.eval_shape(lambda k, x: model.init(k, x, det=True), jax.random.key(0), S((1, R, R, 3)))["params"]
    return step, ((v, jax.eval_shape(tx.init, v), S((), jnp.int32)), dict(x=S((B, R, R, 3)), y=S((B,), jnp.int32)))


# --------------------------------------------------------------------------------------
# DLRM: embedding bags, pairwise interactions, adagrad on tables and sgd on the MLPs
# --------------------------------------------------------------------------------------
DLRM_ROWS = [4_000_000, 2_000_000, 2_000_000, 1_000_000, 1_000_000, 500_000, 500_000, 250_000, 100_000, 100_000,
             40_000, 40_000, 20_000, 15_000, 10_000, 7_000, 5_000, 3_000, 2_000, 1_000, 500, 200, 100, 60, 30, 4]


@register("dlrm")
def dlrm(small):
    rows = [16, 16, 8, 4, 4, 6] if small else DLRM_ROWS
    E, B, hot = (8, 4, 3) if small else (128, 65536, 8)
    bot, top = ([13, 16, 8], [16, 8, 1]) if small else ([13, 512, 256, 128], [1024, 1024, 512, 256, 1])
    nf = len(rows) + 1
    top = [E + nf * (nf - 1) // 2] + top

    def init(key):
        def mlp(key, sizes):
            out = []
            for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
                out.append((jax.random.normal(jax.random.fold_in(key, i), (a, b)) * (2 / (a + b)) ** 0.5, jnp.zeros((b,))))
            return out
        tabs = [jax.random.uniform(jax.random.fold_in(key, 100 + i), (r, E), minval=-r ** -0.5, maxval=r ** -0.5) for i, r in enumerate(rows)]
        return {"tables": tabs, "bot": mlp(jax.random.fold_in(key, 1), bot), "top": mlp(jax.random.fold_in(key, 2), top)}

    def mlp(ws, x, last):
        for i, (w, b) in enumerate(ws):
            x = x @ w.astype(jnp.bfloat16) + b.astype(jnp.bfloat16)
            if i + 1 < len(ws) or last:
                x = jnp.maximum(x, 0)
        return x

    def logits(p, batch):
        dense = mlp(p["bot"], jnp.log1p(jnp.abs(batch["dense"])).astype(jnp.bfloat16), True)
        # the first table has a bag of ids per example
        bag = p["tables"][0][batch["multi"]]
        live = jnp.arange(hot)[None] < batch["lengths"][:, None]
        first = (bag * live[..., None]).sum(1) / jnp.maximum(batch["lengths"], 1)[:, None]
        rest = [jnp.take(t, batch["sparse"][:, i], axis=0, mode="clip") for i, t in enumerate(p["tables"][1:])]
        feats = jnp.stack([dense] + [e.astype(jnp.bfloat16) for e in [first] + rest], 1)
        inter = jnp.einsum("bie,bje->bij", feats, feats)
        i, j = np.tril_indices(nf, -1)
        z = jnp.concatenate([dense, inter[:, i, j]], -1)
        return mlp(p["top"], z, False)[:, 0].astype(jnp.float32)

    tx = optax.multi_transform({"emb": optax.adagrad(0.01), "mlp": optax.sgd(0.05, momentum=0.9)},
                               {"tables": "emb", "bot": "mlp", "top": "mlp"})

    def step(state, batch):
        def loss(p):
            return optax.sigmoid_binary_cross_entropy(logits(p, batch), batch["click"]).mean()
        l, g = jax.value_and_grad(loss)(state["params"])
        u, o = tx.update(g, state["opt"])
        return dict(params=optax.apply_updates(state["params"], u), opt=o), l

    p = jax.eval_shape(init, jax.random.PRNGKey(0))
    return step, (dict(params=p, opt=jax.eval_shape(tx.init, p)),
                  dict(dense=S((B, 13)), sparse=S((B, len(rows) - 1), jnp.int32), multi=S((B, hot), jnp.int32),
                       lengths=S((B,), jnp.int32), click=S((B,))))


# --------------------------------------------------------------------------------------
# GPT on packed sequences, gradient accumulation, muon
# --------------------------------------------------------------------------------------
@register("gpt-packed")
def gpt_packed(small):
    V, D, L, H = (60, 16, 2, 2) if small else (50304, 1280, 12, 10)
    A, B, T = (2, 2, 8) if small else (4, 4, 1024)

    def init(key):
        k = lambda *n: jax.random.fold_in(key, sum(x * 31 ** i for i, x in enumerate(n)))
        blocks = []
        for i in range(L):
            blocks.append({"attn": {"wqkv": 0.02 * jax.random.normal(k(i, 1), (D, 3 * D)), "wo": jnp.zeros((D, D))},
                           "mlp": {"w1": 0.02 * jax.random.normal(k(i, 2), (D, 4 * D)), "w2": jnp.zeros((4 * D, D))},
                           "lam": jnp.array([1.0, 0.0])})
        return {"wte": jax.random.normal(k(99), (V, D)), "head": jnp.zeros((D, V)), "blocks": blocks}

    def norm(x):
        return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True, dtype=jnp.float32) + 1e-6).astype(x.dtype)

    def rotary(x, pos):                                     # x [T, H, K]; partial rotation
        n = x.shape[-1] // 4
        th = pos[:, None].astype(jnp.float32) * (1 / 1024) ** jnp.linspace(0, 1, n)
        th = jnp.concatenate([th, jnp.zeros_like(th)], -1)
        cos, sin = jnp.cos(th)[:, None].astype(x.dtype), jnp.sin(th)[:, None].astype(x.dtype)
        x1, x2 = jnp.array_split(x, 2, -1)
        return jnp.concatenate([x1 * cos + x2 * sin, x2 * cos - x1 * sin], -1)

    def one(params, tok, seg):                              # one packed row, vmapped
        first = jnp.concatenate([jnp.ones((1,), bool), seg[1:] != seg[:-1]])
        start = lax.cummax(jnp.where(first, jnp.arange(T), 0))
        pos = jnp.arange(T) - start
        same = (start[:, None] == start[None]) & (jnp.arange(T)[:, None] >= jnp.arange(T)[None])
        x = x0 = norm(params["wte"][tok].astype(jnp.bfloat16))
        for blk in params["blocks"]:
            blk = jax.tree.map(lambda w: w.astype(jnp.bfloat16), blk)
            x = blk["lam"][0] * x + blk["lam"][1] * x0
            qkv = (norm(x) @ blk["attn"]["wqkv"]).reshape(T, 3, H, D // H)
            q, k, v = rotary(norm(qkv[:, 0]), pos), rotary(norm(qkv[:, 1]), pos), qkv[:, 2]
            s = jnp.einsum("qhc,khc->hqk", q, k, preferred_element_type=jnp.float32) * (D // H) ** -0.5
            s = jnp.where(same, s, jnp.finfo(jnp.float32).min)
            o = jnp.einsum("hqk,khc->qhc", jax.nn.softmax(s).astype(v.dtype), v)
            x = x + o.reshape(T, D) @ blk["attn"]["wo"]
            x = x + jnp.square(jax.nn.relu(norm(x) @ blk["mlp"]["w1"])) @ blk["mlp"]["w2"]
        lg = (norm(x) @ params["head"].astype(x.dtype)).astype(jnp.float32)
        lg = 15 * lg * lax.rsqrt(lg ** 2 + 225)
        tgt = jnp.roll(tok, -1)
        ok = jnp.concatenate([start[1:] == start[:-1], jnp.zeros((1,), bool)])
        nll = -jnp.take_along_axis(jax.nn.log_softmax(lg), tgt[:, None], 1)[:, 0]
        return jnp.where(ok, nll, 0).sum(), ok.sum()

    def micro_loss(params, tok, seg):
        s, n = jax.vmap(one, (None, 0, 0))(params, tok, seg)
        return s.sum(), n.sum()

    dims = lambda p: jax.tree_util.tree_map_with_path(
        lambda k, x: optax.contrib.MuonDimensionNumbers() if x.ndim == 2 and "blocks" in jax.tree_util.keystr(k) else None, p)
    tx = optax.contrib.muon(0.02, beta=0.95, adam_b1=0.8, adam_b2=0.95, muon_weight_dimension_numbers=dims)

    def step(state, batch):
        params = state["params"]

        def acc(carry, mb):
            g, ls, cnt = carry
            (l, n), gi = jax.value_and_grad(micro_loss, has_aux=True)(params, *mb)
            return (jax.tree.map(jnp.add, g, gi), ls + l, cnt + n), None

        zero = jax.tree.map(jnp.zeros_like, params)
        (g, ls, n), _ = lax.scan(acc, (zero, jnp.float32(0), jnp.int32(0)), (batch["tokens"], batch["segment"]))
        n = jnp.maximum(n, 1).astype(jnp.float32)
        g = jax.tree.map(lambda x: x / n, g)
        u, opt = tx.update(g, state["opt"], params)
        return {"params": optax.apply_updates(params, u), "opt": opt, "tokens_seen": state["tokens_seen"] + n}, ls / n

    p = jax.eval_shape(init, jax.random.key(0))
    return step, ({"params": p, "opt": jax.eval_shape(tx.init, p), "tokens_seen": S(())},
                  {"tokens": S((A, B, T), jnp.int32), "segment": S((A, B, T), jnp.int32)})


# --------------------------------------------------------------------------------------
# fp8 encoder with flax's Fp8DirectDotGeneralOp
# --------------------------------------------------------------------------------------
class Fp8Layer(nn.Module):
    heads: int
    ff: int

    @nn.compact
    def __call__(self, x, pad):
        d = x.shape[-1]
        dense = functools.partial(nn.Dense, dtype=jnp.bfloat16, use_bias=False, dot_general_cls=nn.Fp8DirectDotGeneralOp)
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        sh = (*x.shape[:2], self.heads, d // self.heads)
        q, k, v = (dense(d, name=n)(h).reshape(sh) for n in "qkv")
        a = jax.nn.dot_product_attention(q, k, v, mask=pad[:, None, None, :])
        x = x + dense(d, name="o")(a.reshape(x.shape))
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        return x + dense(d, name="out")(nn.relu(dense(self.ff, name="in")(h)))


class Fp8Encoder(nn.Module):
    vocab: int
    d: int
    layers: int
    heads: int
    ff: int

    @nn.compact
    def __call__(self, tok, pad):
        x = nn.Embed(self.vocab, self.d, dtype=jnp.bfloat16)(tok)
        for _ in range(self.layers):
            x = Fp8Layer(self.heads, self.ff)(x, pad)
        x = nn.LayerNorm(dtype=jnp.float32)(x)
        pooled = (x * pad[..., None]).sum(1) / jnp.maximum(pad.sum(1), 1)[:, None]
        return nn.Dense(2, dtype=jnp.float32)(pooled)


@register("fp8-encoder")
def fp8_encoder(small):
    model = Fp8Encoder(50, 16, 2, 2, 32) if small else Fp8Encoder(32000, 2048, 8, 16, 8192)
    B, T = (2, 16) if small else (16, 512)
    tx = optax.adamw(1e-4)
    v = jax.eval_shape(model.init, jax.random.key(0), S((B, T), jnp.int32), S((B, T), jnp.bool_))

    def step(state, batch):
        def loss(vs):
            lg = model.apply(vs, batch["tok"], batch["pad"])
            return optax.softmax_cross_entropy_with_integer_labels(lg, batch["label"]).mean()
        vs = {"params": state["params"], "_overwrite_with_gradient": state["fp8"]}
        l, g = jax.value_and_grad(loss)(vs)
        u, o = tx.update(g["params"], state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], u), "fp8": g["_overwrite_with_gradient"], "opt": o}, l

    return step, ({"params": v["params"], "fp8": v["_overwrite_with_gradient"], "opt": jax.eval_shape(tx.init, v["params"])},
                  {"tok": S((B, T), jnp.int32), "pad": S((B, T), jnp.bool_), "label": S((B,), jnp.int32)})


# --------------------------------------------------------------------------------------
# Evoformer: MSA row/column attention, outer product mean, triangle updates
# --------------------------------------------------------------------------------------
@register("evoformer")
def evoformer(small):
    R, M, cm, cz, hm, hz, ch, L, B = (6, 4, 16, 8, 2, 2, 4, 2, 2) if small else (256, 128, 256, 128, 8, 4, 32, 6, 2)
    NB = 16 if small else 64
    co = 8 if small else 32

    def shapes():
        def ln(c): return dict(s=(c,), b=(c,))
        def att(c, h, bias=None):
            d = dict(ln=ln(c), q=(c, h, ch), k=(c, h, ch), v=(c, h, ch), g=(c, h, ch), o=(h, ch, c))
            if bias: d["bias"] = (bias, h)
            return d
        def trans(c): return dict(ln=ln(c), w1=(c, 4 * c), w2=(4 * c, c))
        def tri(): return dict(ln=ln(cz), lo=ln(cz), ab=(cz, 2 * cz), gab=(cz, 2 * cz), g=(cz, cz), o=(cz, cz))
        return dict(row=att(cm, hm, cz), col=att(cm, hm), mt=trans(cm), opm=dict(ln=ln(cm), a=(cm, co), b=(cm, co), o=(co, co, cz)),
                    out=tri(), inc=tri(), start=att(cz, hz, cz), end=att(cz, hz, cz), pt=trans(cz), lnz=ln(cz))

    is_shape = lambda x: isinstance(x, tuple)

    def init(key):
        i = [0]
        def mk(s, lead=()):
            i[0] += 1
            return jax.random.normal(jax.random.fold_in(key, i[0]), lead + s) * (0.5 / np.sqrt(s[0]))
        blk = jax.tree.map(lambda s: mk(s, (L,)), shapes(), is_leaf=is_shape)
        return dict(blocks=blk, msa=mk((23, cm)), left=mk((21, cz)), right=mk((21, cz)), rel=mk((65, cz)),
                    mlm=mk((cm, 23)), dist=mk((cz, NB)))

    def ln(p, x):
        x32 = x.astype(jnp.float32)
        mu, var = x32.mean(-1, keepdims=True), x32.var(-1, keepdims=True)
        return ((x32 - mu) * lax.rsqrt(var + 1e-5) * p["s"] + p["b"]).astype(x.dtype)

    def gated_attention(p, x, mask, bias=None):             # x [..., n, c]; mask [..., n]
        x = ln(p["ln"], x)
        q = jnp.einsum("rnc,chd->rhnd", x, p["q"]) * ch ** -0.5
        k, v = (jnp.einsum("rnc,chd->rhnd", x, p[n]) for n in "kv")
        s = jnp.einsum("rhid,rhjd->rhij", q, k).astype(jnp.float32) + (1e9 * (mask - 1.0))[:, None, None, :]
        if bias is not None:
            s = s + bias[None].astype(jnp.float32)
        o = jnp.einsum("rhij,rhjd->rihd", jax.nn.softmax(s, -1).astype(x.dtype), v)
        o = o * jax.nn.sigmoid(jnp.einsum("rnc,chd->rnhd", x, p["g"]))
        return jnp.einsum("rihd,hdc->ric", o, p["o"])

    def triangle(p, z, eq, m):
        zn = ln(p["ln"], z)
        ab = (zn @ p["ab"]) * jax.nn.sigmoid(zn @ p["gab"]) * m[..., None]
        a, b = jnp.split(ab, 2, -1)
        x = ln(p["lo"], jnp.einsum(eq, a, b)) @ p["o"]
        return x * jax.nn.sigmoid(zn @ p["g"])

    def transition(p, x):
        return jax.nn.relu(ln(p["ln"], x) @ p["w1"]) @ p["w2"]

    def block(mz, p, seq_mask):
        m, z = mz
        p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        pm = (seq_mask[:, None] * seq_mask[None]).astype(z.dtype)
        rows = jnp.broadcast_to(seq_mask, (M, R))
        pair_bias = lambda q, z: jnp.einsum("ijc,ch->hij", ln(p["lnz"], z), q)
        m = m + gated_attention(p["row"], m, rows, pair_bias(p["row"]["bias"], z))
        m = m + gated_attention(p["col"], m.swapaxes(0, 1), jnp.ones((R, M))).swapaxes(0, 1)
        m = m + transition(p["mt"], m)
        h = ln(p["opm"]["ln"], m)
        outer = jnp.einsum("sia,sjb->ijab", h @ p["opm"]["a"], h @ p["opm"]["b"]) / M
        z = z + jnp.einsum("ijab,abc->ijc", outer, p["opm"]["o"])
        z = z + triangle(p["out"], z, "ikc,jkc->ijc", pm)
        z = z + triangle(p["inc"], z, "kic,kjc->ijc", pm)
        rr = jnp.broadcast_to(seq_mask, (R, R))
        z = z + gated_attention(p["start"], z, rr, pair_bias(p["start"]["bias"], z))
        zt = z.swapaxes(0, 1)
        z = z + gated_attention(p["end"], zt, rr, pair_bias(p["end"]["bias"], zt)).swapaxes(0, 1)
        return (m, z + transition(p["pt"], z)), None

    def example(params, ex):
        bf = lambda x: x.astype(jnp.bfloat16)
        m = bf(params["msa"])[ex["masked"]]
        off = jnp.clip(jnp.arange(R)[:, None] - jnp.arange(R)[None] + 32, 0, 64)
        z = bf(params["left"][ex["aatype"]][:, None] + params["right"][ex["aatype"]][None] + params["rel"][off])
        (m, z), _ = lax.scan(jax.checkpoint(functools.partial(block, seq_mask=ex["mask"].astype(jnp.float32))), (m, z), params["blocks"])
        lm = jax.nn.log_softmax((m @ bf(params["mlm"])).astype(jnp.float32))
        mlm = -jnp.take_along_axis(lm, ex["msa"][..., None], -1)[..., 0]
        w = (ex["masked"] != ex["msa"]).astype(jnp.float32)
        d = jax.nn.log_softmax(((z + z.swapaxes(0, 1)) @ bf(params["dist"])).astype(jnp.float32))
        dl = -jnp.take_along_axis(d, ex["bins"][..., None], -1)[..., 0]
        return 2.0 * (mlm * w).sum() / (w.sum() + 1e-6) + 0.3 * dl.mean()

    tx = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-3, b2=0.999, eps=1e-6))

    def step(state, batch):
        l, g = jax.value_and_grad(lambda p: jax.vmap(example, (None, 0))(p, batch).mean())(state["params"])
        u, o = tx.update(g, state["opt"])
        p = optax.apply_updates(state["params"], u)
        return dict(params=p, opt=o, ema=jax.tree.map(lambda a, b: a + 0.001 * (b - a), state["ema"], p)), l

    p = jax.eval_shape(init, jax.random.key(0))
    i32 = jnp.int32
    return step, (dict(params=p, opt=jax.eval_shape(tx.init, p), ema=p),
                  dict(aatype=S((B, R), i32), msa=S((B, M, R), i32), masked=S((B, M, R), i32), bins=S((B, R, R), i32), mask=S((B, R), jnp.bool_)))


# --------------------------------------------------------------------------------------
# Fourier neural operator, float32
# --------------------------------------------------------------------------------------
@register("fno")
def fno(small):
    N, W, K, L, B, cin = (16, 8, 4, 2, 2, 3) if small else (256, 64, 24, 4, 32, 3)

    def init(key):
        ks = jax.random.split(key, 8)
        sc = 1 / (W * W)
        return {"lift": {"w": jax.random.normal(ks[0], (cin + 2, W)) * 0.3, "b": jnp.zeros(W)},
                "spec_re": sc * jax.random.uniform(ks[1], (L, 2, W, W, K, K)), "spec_im": sc * jax.random.uniform(ks[2], (L, 2, W, W, K, K)),
                "skip": jax.random.normal(ks[3], (L, W, W)) * W ** -0.5, "skip_b": jnp.zeros((L, W)),
                "p1": {"w": jax.random.normal(ks[4], (W, 2 * W)) * W ** -0.5, "b": jnp.zeros(2 * W)},
                "p2": {"w": jax.random.normal(ks[5], (2 * W, 1)) * W ** -0.5, "b": jnp.zeros(1)}}

    def spectral(x, re, im):                                # x [b, c, n, n]
        w = lax.complex(re, im)
        f = jnp.fft.rfft2(x, axes=(-2, -1))
        out = jnp.zeros(f.shape[:1] + (W,) + f.shape[2:], f.dtype)
        out = out.at[:, :, :K, :K].set(jnp.einsum("bixy,ioxy->boxy", f[:, :, :K, :K], w[0]))
        out = out.at[:, :, -K:, :K].set(jnp.einsum("bixy,ioxy->boxy", f[:, :, -K:, :K], w[1]))
        return jnp.fft.irfft2(out, s=x.shape[-2:], axes=(-2, -1))

    def apply(p, a):
        g = jnp.linspace(0, 1, N)
        gx, gy = jnp.meshgrid(g, g, indexing="ij")
        grid = jnp.broadcast_to(jnp.stack([gx, gy], -1), (a.shape[0], N, N, 2))
        x = jnp.concatenate([a, grid], -1) @ p["lift"]["w"] + p["lift"]["b"]
        x = jnp.moveaxis(x, -1, 1)
        for i in range(L):
            y = spectral(x, p["spec_re"][i], p["spec_im"][i])
            y = y + jnp.einsum("bihw,io->bohw", x, p["skip"][i]) + p["skip_b"][i][None, :, None, None]
            x = jax.nn.gelu(y) if i < L - 1 else y
        x = jnp.moveaxis(x, 1, -1)
        x = jax.nn.gelu(x @ p["p1"]["w"] + p["p1"]["b"])
        return (x @ p["p2"]["w"] + p["p2"]["b"])[..., 0]

    tx = optax.chain(optax.add_decayed_weights(1e-4), optax.adam(optax.exponential_decay(1e-3, 1000, 0.5)))

    def step(state, batch):
        def rel_l2(p):
            d = apply(p, batch["a"]) - batch["u"]
            num = jnp.sqrt((d ** 2).sum((1, 2)) + 1e-12)
            return (num / jnp.sqrt((batch["u"] ** 2).sum((1, 2)) + 1e-12)).mean()
        l, g = jax.value_and_grad(rel_l2)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], u), "opt": o}, l

    p = jax.eval_shape(init, jax.random.PRNGKey(0))
    return step, ({"params": p, "opt": jax.eval_shape(tx.init, p)}, {"a": S((B, N, N, cin)), "u": S((B, N, N))})
