"""More steps for one GPU, written in the same way, by which nothing was tuned. STEPS[name](small) -> (step, (state, batch))."""
from functools import partial
from typing import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training.train_state import TrainState

SDS = jax.ShapeDtypeStruct
f32, bf16, f16, i32 = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32
STEPS = {}


# ---------------------------------------------------------------- minGRU language model
class MinGRU(nn.Module):
    width: int
    dtype: jnp.dtype = bf16

    @nn.compact
    def __call__(self, x):
        gate, hidden = jnp.split(nn.Dense(2 * self.width, use_bias=False, dtype=self.dtype)(x), 2, axis=-1)
        gate, hidden = gate.astype(f32), hidden.astype(f32)
        log_coeff = -jax.nn.softplus(gate)
        log_z = -jax.nn.softplus(-gate)
        log_g = jnp.where(hidden >= 0, jnp.log(jax.nn.relu(hidden) + 0.5), -jax.nn.softplus(-hidden))

        def combine(left, right):
            al, bl = left
            ar, br = right
            return al + ar, jnp.logaddexp(ar + bl, br)

        _, log_h = jax.lax.associative_scan(combine, (log_coeff, log_z + log_g), axis=1)
        return nn.Dense(x.shape[-1], use_bias=False, dtype=self.dtype)(jnp.exp(log_h).astype(self.dtype))


class MinGRULM(nn.Module):
    vocab: int
    dim: int
    depth: int
    expand: float = 1.5
    dropout: float = 0.1

    @nn.compact
    def __call__(self, ids, deterministic):
        x = nn.Embed(self.vocab, self.dim, dtype=bf16)(ids)
        for i in range(self.depth):
            h = nn.RMSNorm(dtype=bf16)(x)
            h = nn.Conv(self.dim, (3,), padding="CAUSAL", feature_group_count=self.dim, dtype=bf16)(h)
            h = nn.Conv(self.dim, (1,), dtype=bf16)(h)
            x = x + h
            x = x + nn.remat(MinGRU)(int(self.dim * self.expand))(nn.RMSNorm(dtype=bf16)(x))
            h = nn.gelu(nn.Dense(4 * self.dim, dtype=bf16)(nn.RMSNorm(dtype=bf16)(x)))
            h = nn.Dropout(self.dropout)(h, deterministic=deterministic)
            x = x + nn.Dense(self.dim, dtype=bf16)(h)
        return nn.Dense(self.vocab, use_bias=False, dtype=bf16)(nn.RMSNorm(dtype=bf16)(x))


def mingru(small):
    model, (B, T) = (MinGRULM(32, 16, 2), (2, 9)) if small else (MinGRULM(16384, 1024, 10), (8, 2048))
    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(optax.cosine_onecycle_schedule(20_000, 1e-3), weight_decay=1e-2))

    def make(ids):
        params = model.init(jax.random.PRNGKey(0), ids, True)["params"]
        return TrainState.create(apply_fn=model.apply, params=params, tx=tx)

    def step(state, ids):
        rng = jax.random.fold_in(jax.random.PRNGKey(42), state.step)

        def loss(params):
            out = state.apply_fn({"params": params}, ids[:, :-1], False, rngs={"dropout": rng}).astype(f32)
            return optax.softmax_cross_entropy_with_integer_labels(out, ids[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    ids = SDS((B, T + 1), i32)
    return step, (jax.eval_shape(make, ids), ids)


STEPS["mingru"] = mingru


# ---------------------------------------------------------------- masked autoencoder
class TransformerLayer(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x):
        b, n, d = x.shape
        y = nn.LayerNorm(epsilon=1e-6, dtype=bf16, name="ln1")(x)
        q, k, v = (nn.DenseGeneral((self.heads, d // self.heads), dtype=bf16, name=s)(y) for s in ("query", "key", "value"))
        y = nn.dot_product_attention(q, k, v, dtype=bf16)
        x = x + nn.DenseGeneral(d, axis=(-2, -1), dtype=bf16, name="proj")(y)
        y = nn.Dense(4 * d, dtype=bf16)(nn.LayerNorm(epsilon=1e-6, dtype=bf16, name="ln2")(x))
        return x + nn.Dense(d, dtype=bf16)(nn.gelu(y, approximate=False))


def sincos(n, d):
    s = int(n ** 0.5)
    y, x = np.meshgrid(np.arange(s), np.arange(s), indexing="ij")
    om = 1.0 / 10000 ** (np.arange(d // 4) / (d // 4))
    out = np.concatenate([f(p.reshape(-1, 1) * om) for p in (x, y) for f in (np.sin, np.cos)], 1)
    return out.astype(np.float32)[None]


class MAE(nn.Module):
    patch: int
    dim: int
    depth: int
    heads: int
    ddim: int
    ddepth: int
    ratio: float = 0.75

    @nn.compact
    def __call__(self, patches):
        b, n, pd = patches.shape
        keep = int(n * (1 - self.ratio))
        x = nn.Dense(self.dim, dtype=bf16, name="embed")(patches) + sincos(n, self.dim).astype(bf16)
        noise = jax.random.uniform(self.make_rng("mask"), (b, n))
        shuffle = jnp.argsort(noise, axis=1)
        restore = jnp.argsort(shuffle, axis=1)
        x = jnp.take_along_axis(x, shuffle[:, :keep, None], axis=1)
        cls = self.param("cls", nn.initializers.normal(0.02), (1, 1, self.dim))
        x = jnp.concatenate([jnp.broadcast_to(cls, (b, 1, self.dim)).astype(bf16), x], 1)
        for i in range(self.depth):
            x = TransformerLayer(self.heads, name=f"enc{i}")(x)
        x = nn.Dense(self.ddim, dtype=bf16)(nn.LayerNorm(dtype=bf16)(x))
        tok = self.param("mask_token", nn.initializers.normal(0.02), (1, 1, self.ddim)).astype(bf16)
        y = jnp.concatenate([x[:, 1:], jnp.tile(tok, (b, n - keep, 1))], 1)
        y = jnp.take_along_axis(y, restore[..., None], axis=1) + sincos(n, self.ddim).astype(bf16)
        y = jnp.concatenate([x[:, :1], y], 1)
        for i in range(self.ddepth):
            y = TransformerLayer(self.heads, name=f"dec{i}")(y)
        pred = nn.Dense(pd, dtype=f32, name="pred")(nn.LayerNorm(dtype=f32)(y))[:, 1:]
        mask = (restore >= keep).astype(f32)
        return pred, mask


def mae(small):
    if small:
        model, B, R = MAE(4, 16, 2, 2, 8, 1), 2, 16
    else:
        model, B, R = MAE(16, 1024, 24, 16, 512, 8), 128, 224
    p = model.patch
    sched = optax.warmup_cosine_decay_schedule(0, 1.5e-4 * 4, 40, 800)
    tx = optax.adamw(sched, b1=0.9, b2=0.95, weight_decay=0.05, mask=lambda t: jax.tree.map(lambda a: a.ndim >= 2, t))

    def patchify(x):
        b, h, w, c = x.shape
        x = x.reshape(b, h // p, p, w // p, p, c)
        return jnp.einsum("nhpwqc->nhwpqc", x).reshape(b, (h // p) * (w // p), p * p * c)

    def step(state, images):
        k = jax.random.fold_in(jax.random.key(7), state["step"])

        def loss_fn(params):
            tgt = patchify(images)
            pred, mask = model.apply({"params": params}, tgt.astype(bf16), rngs={"mask": k})
            mu, var = tgt.mean(-1, keepdims=True), tgt.var(-1, keepdims=True)
            err = jnp.square(pred - (tgt - mu) / jnp.sqrt(var + 1e-6)).mean(-1)
            return (err * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(state["params"])
        upd, opt = tx.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], upd), "opt": opt, "step": state["step"] + 1}, loss, optax.tree.norm(grads)

    def init():
        v = model.init({"params": jax.random.key(0), "mask": jax.random.key(1)}, patchify(jnp.zeros((1, R, R, 3))))
        return {"params": v["params"], "opt": tx.init(v["params"]), "step": jnp.int32(0)}

    return step, (jax.eval_shape(init), SDS((B, R, R, 3), f32))


STEPS["mae"] = mae


# ---------------------------------------------------------------- conformer + CTC, nnx
class ConvModule(nnx.Module):
    def __init__(self, d, k, rngs):
        self.ln = nnx.LayerNorm(d, rngs=rngs, dtype=bf16)
        self.pw1 = nnx.Conv(d, 2 * d, (1,), rngs=rngs, dtype=bf16)
        self.dw = nnx.Conv(d, d, (k,), feature_group_count=d, rngs=rngs, dtype=bf16)
        self.bn = nnx.BatchNorm(d, momentum=0.9, rngs=rngs)
        self.pw2 = nnx.Conv(d, d, (1,), rngs=rngs, dtype=bf16)

    def __call__(self, x, valid):
        h = self.pw1(self.ln(x))
        h = nnx.glu(h, axis=-1) * valid[..., None].astype(h.dtype)
        return self.pw2(nnx.silu(self.bn(self.dw(h)).astype(bf16)))


class FF(nnx.Module):
    def __init__(self, d, rngs):
        self.ln = nnx.LayerNorm(d, rngs=rngs, dtype=bf16)
        self.up, self.down = nnx.Linear(d, 4 * d, rngs=rngs, dtype=bf16), nnx.Linear(4 * d, d, rngs=rngs, dtype=bf16)

    def __call__(self, x):
        return self.down(nnx.silu(self.up(self.ln(x))))


class RelAttention(nnx.Module):
    """Transformer-XL relative attention with the shift trick."""

    def __init__(self, d, h, rngs):
        self.h, self.k = h, d // h
        self.ln = nnx.LayerNorm(d, rngs=rngs, dtype=bf16)
        self.qkv = nnx.Linear(d, 3 * d, rngs=rngs, dtype=bf16)
        self.pos = nnx.Linear(d, d, use_bias=False, rngs=rngs, dtype=bf16)
        self.u = nnx.Param(jnp.zeros((h, d // h)))
        self.v = nnx.Param(jnp.zeros((h, d // h)))
        self.o = nnx.Linear(d, d, rngs=rngs, dtype=bf16)

    def __call__(self, x, pe, valid):
        B, T, D = x.shape
        q, k, v = jnp.split(self.qkv(self.ln(x)).reshape(B, T, self.h, 3 * self.k), 3, -1)
        r = self.pos(pe).reshape(2 * T - 1, self.h, self.k)
        ac = jnp.einsum("bthk,bshk->bhts", q + self.u[...].astype(bf16), k)
        bd = jnp.einsum("bthk,rhk->bhtr", q + self.v[...].astype(bf16), r)
        bd = jnp.pad(bd, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(B, self.h, 2 * T, T)[:, :, 1:]
        bd = bd.reshape(B, self.h, T, 2 * T - 1)[..., :T]
        s = (ac + bd).astype(f32) / np.sqrt(self.k)
        s = jnp.where(valid[:, None, None], s, -1e30)
        a = jax.nn.softmax(s, where=valid[:, None, None], axis=-1).astype(bf16)
        return self.o(jnp.einsum("bhts,bshk->bthk", a, v).reshape(B, T, D))


class ConformerBlock(nnx.Module):
    def __init__(self, d, h, k, rngs):
        self.ff1, self.ff2 = FF(d, rngs), FF(d, rngs)
        self.att, self.conv = RelAttention(d, h, rngs), ConvModule(d, k, rngs)
        self.ln = nnx.LayerNorm(d, rngs=rngs, dtype=bf16)

    def __call__(self, x, pe, valid):
        x = x + 0.5 * self.ff1(x)
        x = x + self.att(x, pe, valid)
        x = x + self.conv(x, valid)
        return self.ln(x + 0.5 * self.ff2(x))


class Conformer(nnx.Module):
    def __init__(self, mel, d, h, k, depth, vocab, rngs):
        self.s1 = nnx.Conv(1, d, (3, 3), strides=(2, 2), rngs=rngs, dtype=bf16)
        self.s2 = nnx.Conv(d, d, (3, 3), strides=(2, 2), rngs=rngs, dtype=bf16)
        self.inp = nnx.Linear(d * (mel // 4), d, rngs=rngs, dtype=bf16)
        self.blocks = nnx.List([ConformerBlock(d, h, k, rngs) for _ in range(depth)])
        self.head = nnx.Linear(d, vocab, rngs=rngs)
        self.d = d

    def __call__(self, x, frames):
        x = nnx.relu(self.s2(nnx.relu(self.s1(x[..., None].astype(bf16)))))
        B, T = x.shape[:2]
        x = self.inp(x.reshape(B, T, -1))
        n = (frames + 3) // 4
        valid = jnp.arange(T)[None] < n[:, None]
        p = jnp.arange(T - 1, -T, -1, dtype=f32)[:, None] / 10000 ** (jnp.arange(0, self.d, 2) / self.d)
        pe = jnp.stack([jnp.sin(p), jnp.cos(p)], -1).reshape(2 * T - 1, self.d).astype(bf16)
        for b in self.blocks:
            x = b(x, pe, valid)
        return self.head(x.astype(f32)), valid


def conformer(small):
    cfg = (8, 16, 2, 3, 2, 12) if small else (80, 512, 8, 31, 12, 1024)
    B, T, U = (2, 32, 3) if small else (24, 1600, 80)
    model = nnx.eval_shape(lambda: Conformer(*cfg, rngs=nnx.Rngs(0)))
    gd, params, stats = nnx.split(model, nnx.Param, nnx.BatchStat)
    d = cfg[1]
    noam = lambda n: 5.0 * d ** -0.5 * jnp.minimum((n + 1.0) ** -0.5, (n + 1.0) * 10000 ** -1.5)
    tx = optax.chain(optax.zero_nans(), optax.clip_by_global_norm(5.0), optax.adam(noam, b2=0.98, eps=1e-9), optax.ema(0.9))

    def augment(key, x):                       # SpecAugment, one band each
        k1, k2, k3, k4 = jax.random.split(key, 4)
        tw, fw = jax.random.randint(k1, (B, 1), 0, T // 10 + 1), jax.random.randint(k2, (B, 1), 0, cfg[0] // 4 + 1)
        t0, f0 = jax.random.randint(k3, (B, 1), 0, T), jax.random.randint(k4, (B, 1), 0, cfg[0])
        t, f = jnp.arange(T)[None], jnp.arange(cfg[0])[None]
        tm, fm = (t >= t0) & (t < t0 + tw), (f >= f0) & (f < f0 + fw)
        return jnp.where(tm[:, :, None] | fm[:, None, :], 0.0, x)

    def step(state, batch):
        key = jax.random.fold_in(jax.random.key(5), state["i"])
        x = augment(key, batch["mel"])

        def loss_fn(p):
            m = nnx.merge(gd, p, state["stats"], copy=True)
            logits, valid = m(x, jnp.clip(batch["frames"], 8 * U, T))   # long enough for the labels
            upad = (jnp.arange(U)[None] >= batch["nlabels"][:, None]).astype(f32)
            per = optax.ctc_loss(logits, 1.0 - valid.astype(f32), batch["labels"], upad)
            return (per / jnp.maximum(batch["nlabels"], 1)).mean(), nnx.state(m, nnx.BatchStat)

        (loss, stats), g = jax.value_and_grad(loss_fn, has_aux=True)(state["params"])
        u, opt = tx.update(g, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], u), "stats": stats, "opt": opt, "i": state["i"] + 1}, loss

    return step, ({"params": params, "stats": stats, "opt": jax.eval_shape(tx.init, params), "i": SDS((), i32)},
                  {"mel": SDS((B, T, cfg[0]), f32), "frames": SDS((B,), i32), "labels": SDS((B, U), i32), "nlabels": SDS((B,), i32)})


STEPS["conformer-ctc"] = conformer


# ---------------------------------------------------------------- GRU seq2seq with attention, float16 + dynamic loss scale
class BiGRU(nn.Module):
    h: int

    @nn.compact
    def __call__(self, x, lengths):
        h0 = jnp.zeros((x.shape[0], self.h), f16)
        f = nn.RNN(nn.GRUCell(self.h, dtype=f16), name="fwd")(x, seq_lengths=lengths, initial_carry=h0)
        b = nn.RNN(nn.GRUCell(self.h, dtype=f16), reverse=True, keep_order=True, name="bwd")(x, seq_lengths=lengths, initial_carry=h0)
        return jnp.concatenate([f, b], -1)


class DecoderStep(nn.Module):
    h: int

    @nn.compact
    def __call__(self, carry, emb, keys, memory, bias):
        hid, ctx = carry
        hid, _ = nn.GRUCell(self.h, dtype=f16, name="cell")(hid, jnp.concatenate([emb, ctx], -1))
        q = nn.Dense(self.h, dtype=f16, name="q")(hid)
        e = nn.Dense(1, dtype=f16, use_bias=False, name="energy")(jnp.tanh(q[:, None] + keys))[..., 0]
        a = jax.nn.softmax(e.astype(f32) + bias).astype(f16)
        ctx = jnp.einsum("bs,bsd->bd", a, memory)
        return (hid, ctx), jnp.concatenate([hid, ctx], -1)


class Seq2Seq(nn.Module):
    vocab: int
    e: int
    h: int

    @nn.compact
    def __call__(self, src, lengths, tgt):
        x = nn.Embed(self.vocab, self.e, dtype=f16, name="src")(src)
        mem = BiGRU(self.h, name="enc1")(BiGRU(self.h, name="enc0")(x, lengths), lengths)
        keys = nn.Dense(self.h, dtype=f16, name="keys")(mem)
        bias = jnp.where(jnp.arange(src.shape[1])[None] < lengths[:, None], 0.0, -1e4)
        y = nn.Embed(self.vocab, self.e, dtype=f16, name="tgt")(tgt)
        h0 = jnp.tanh(nn.Dense(self.h, dtype=f16, name="bridge")(mem[:, 0]))
        dec = nn.scan(DecoderStep, variable_broadcast="params", split_rngs={"params": False},
                      in_axes=(1, nn.broadcast, nn.broadcast, nn.broadcast), out_axes=1)
        _, out = dec(self.h, name="dec")((h0, jnp.zeros((src.shape[0], 2 * self.h), f16)), y, keys, mem, bias)
        return nn.Dense(self.vocab, dtype=f16, name="out")(out)


def seq2seq(small):
    model, (B, S, T) = (Seq2Seq(30, 8, 8), (2, 6, 5)) if small else (Seq2Seq(32000, 512, 1024), (128, 64, 64))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.nadam(3e-4))
    src, ln, tgt = SDS((B, S), i32), SDS((B,), i32), SDS((B, T + 1), i32)
    params = jax.eval_shape(lambda s, l, t: model.init(jax.random.key(0), s, l, t)["params"], src, ln, SDS((B, T), i32))

    def step(state, batch):
        scale = 2.0 ** state["log2_scale"].astype(f32)

        def scaled(p):
            lg = model.apply({"params": p}, batch["src"], batch["len"], batch["tgt"][:, :-1]).astype(f32)
            y = batch["tgt"][:, 1:]
            w = (y != 0).astype(f32)
            ce = optax.softmax_cross_entropy_with_integer_labels(lg, y)
            loss = (ce * w).sum() / jnp.maximum(w.sum(), 1.0)
            return loss * scale, loss

        g, loss = jax.grad(scaled, has_aux=True)(state["params"])
        g = jax.tree.map(lambda x: x / scale, g)
        finite = jnp.all(jnp.array([jnp.isfinite(x).all() for x in jax.tree.leaves(g)]))

        def good(s):
            u, o = tx.update(g, s["opt"], s["params"])
            grow = s["good"] + 1 >= 2000
            return {"params": optax.apply_updates(s["params"], u), "opt": o,
                    "log2_scale": jnp.where(grow, jnp.minimum(s["log2_scale"] + 1, 24), s["log2_scale"]),
                    "good": jnp.where(grow, 0, s["good"] + 1)}

        def bad(s):
            return {**s, "log2_scale": jnp.maximum(s["log2_scale"] - 1, 0), "good": jnp.zeros_like(s["good"])}

        return jax.lax.cond(finite, good, bad, state), loss, finite

    state = {"params": params, "opt": jax.eval_shape(tx.init, params), "log2_scale": SDS((), i32), "good": SDS((), i32)}
    return step, (state, {"src": src, "len": ln, "tgt": tgt})


STEPS["gru-seq2seq"] = seq2seq


# ---------------------------------------------------------------- GAT with segment ops, float32
def gat(small):
    N, Efull, F, Hd, heads, L, C = (12, 30, 8, 8, 2, 2, 5) if small else (200_000, 2_500_000, 128, 64, 4, 3, 47)

    def glorot(key, *s):
        return jax.random.uniform(key, s, minval=-1, maxval=1) * np.sqrt(6 / (s[0] + np.prod(s[1:])))

    def init(key):
        layers, fin = [], F
        for l in range(L):
            k = jax.random.split(jax.random.fold_in(key, l), 4)
            out = Hd if l < L - 1 else C
            layers.append(dict(w=glorot(k[0], fin, heads, out), a_src=glorot(k[1], heads, out), a_dst=glorot(k[2], heads, out),
                               res=glorot(k[3], fin, heads, out), b=jnp.zeros((heads, out))))
            fin = heads * out
        return layers

    def conv(p, x, src, dst, key, last):
        h = jnp.einsum("nf,fho->nho", x, p["w"])
        es, ed = (h * p["a_src"]).sum(-1), (h * p["a_dst"]).sum(-1)
        e = jax.nn.leaky_relu(es[src] + ed[dst], 0.2)
        mx = jax.ops.segment_max(e, dst, num_segments=N)
        ex = jnp.exp(e - jax.lax.stop_gradient(jnp.where(jnp.isfinite(mx), mx, 0.0))[dst])
        den = jax.ops.segment_sum(ex, dst, num_segments=N)
        alpha = ex / (den[dst] + 1e-16)
        alpha = jnp.where(jax.random.bernoulli(key, 0.6, alpha.shape), alpha / 0.6, 0.0)
        out = jax.ops.segment_sum(h[src] * alpha[..., None], dst, num_segments=N)
        out = out + jnp.einsum("nf,fho->nho", x, p["res"]) + p["b"]
        return out.mean(1) if last else jax.nn.elu(out.reshape(N, -1))

    tx = optax.adamw(5e-3, weight_decay=5e-4)

    def step(state, graph):
        key, state_key = jax.random.split(state["key"])

        def loss(params):
            x = graph["x"]
            for l, p in enumerate(params):
                x = conv(p, x, graph["edges"][0], graph["edges"][1], jax.random.fold_in(key, l), l == L - 1)
            lp = jax.nn.log_softmax(x)
            nll = -lp[jnp.arange(N), graph["y"]]
            m = graph["train_mask"]
            return jnp.where(m, nll, 0.0).sum() / jnp.maximum(m.sum(), 1), (x.argmax(-1) == graph["y"]).mean()

        (l, acc), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        return dict(params=optax.apply_updates(state["params"], u), opt=o, key=state_key), l, acc

    p = jax.eval_shape(init, jax.random.PRNGKey(0))
    return step, (dict(params=p, opt=jax.eval_shape(tx.init, p), key=SDS((2,), jnp.uint32)),
                  dict(x=SDS((N, F), f32), edges=SDS((2, Efull), i32), y=SDS((N,), i32), train_mask=SDS((N,), jnp.bool_)))


STEPS["gat"] = gat


# ---------------------------------------------------------------- SAC with a vmapped critic ensemble
class Actor(nn.Module):
    act: int
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, o):
        for h in self.hidden:
            o = nn.relu(nn.LayerNorm()(nn.Dense(h)(o)))
        mu, ls = jnp.split(nn.Dense(2 * self.act)(o), 2, -1)
        return mu, jnp.clip(ls, -10, 2)


class Critic(nn.Module):
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, o, a):
        x = jnp.concatenate([o, a], -1)
        for h in self.hidden:
            x = nn.relu(nn.LayerNorm()(nn.Dense(h)(x)))
        return nn.Dense(1)(x).squeeze(-1)


def sac(small):
    B, O, A, hid, ens = (4, 6, 2, (16, 16), 3) if small else (32768, 376, 17, (1024, 1024, 1024), 10)
    actor = Actor(A, hid)
    critics = nn.vmap(Critic, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, out_axes=0, axis_size=ens)(hid)
    oa, oc, ot = optax.adam(3e-4), optax.chain(optax.clip_by_global_norm(10.0), optax.adam(3e-4)), optax.adam(3e-4)
    gamma, tau, target_entropy = 0.99, 0.005, -float(A)

    def init():
        k1, k2 = jax.random.split(jax.random.key(0))
        o, a = jnp.zeros((1, O)), jnp.zeros((1, A))
        pa, pc = actor.init(k1, o), critics.init(k2, o, a)
        la = jnp.zeros(())
        return dict(actor=pa, critic=pc, target=pc, log_alpha=la, oa=oa.init(pa), oc=oc.init(pc), ot=ot.init(la), step=jnp.int32(0))

    def sample(p, o, k):
        mu, ls = actor.apply(p, o)
        eps = jax.random.normal(k, mu.shape)
        u = mu + jnp.exp(ls) * eps
        lp = (-0.5 * eps ** 2 - ls - 0.5 * jnp.log(2 * jnp.pi)).sum(-1)
        lp -= (2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))).sum(-1)
        return jnp.tanh(u), lp

    def step(s, b):
        k1, k2, k3 = jax.random.split(jax.random.fold_in(jax.random.key(11), s["step"]), 3)
        alpha = jnp.exp(s["log_alpha"])
        a2, lp2 = sample(s["actor"], b["next_obs"], k1)
        q2 = critics.apply(s["target"], b["next_obs"], a2)
        q2 = q2[jax.random.permutation(k3, ens)[:2]].min(0)
        y = b["reward"] + gamma * (1.0 - b["done"]) * (q2 - alpha * lp2)

        def critic_loss(p):
            return jnp.square(critics.apply(p, b["obs"], b["action"]) - jax.lax.stop_gradient(y)[None]).mean()
        lc, gc = jax.value_and_grad(critic_loss)(s["critic"])
        uc, soc = oc.update(gc, s["oc"])
        pc = optax.apply_updates(s["critic"], uc)

        def actor_loss(p):
            a, lp = sample(p, b["obs"], k2)
            return (alpha * lp - critics.apply(pc, b["obs"], a).mean(0)).mean(), lp.mean()
        (la, ent), ga = jax.value_and_grad(actor_loss, has_aux=True)(s["actor"])
        ua, soa = oa.update(ga, s["oa"])

        gt = jax.grad(lambda t: -t * (jax.lax.stop_gradient(ent) + target_entropy))(s["log_alpha"])
        ut, sot = ot.update(gt, s["ot"])
        new = dict(actor=optax.apply_updates(s["actor"], ua), critic=pc, target=optax.incremental_update(pc, s["target"], tau),
                   log_alpha=s["log_alpha"] + ut, oa=soa, oc=soc, ot=sot, step=s["step"] + 1)
        return new, lc + la, {"critic": lc, "actor": la, "alpha": alpha, "entropy": -ent}

    return step, (jax.eval_shape(init), dict(obs=SDS((B, O), f32), next_obs=SDS((B, O), f32), action=SDS((B, A), f32),
                                             reward=SDS((B,), f32), done=SDS((B,), f32)))


STEPS["sac"] = sac


# ---------------------------------------------------------------- NeRF, coarse + fine, per-ray functions vmapped
def nerf(small):
    rays, nc, nf, W, D, Lx, Ld = (4, 4, 4, 16, 3, 3, 2) if small else (8192, 64, 64, 256, 8, 10, 4)
    skip = D // 2

    def init(key):
        ix, idd = 3 + 6 * Lx, 3 + 6 * Ld
        def net(key):
            ks = jax.random.split(key, D + 4)
            lin = lambda k, i, o: {"kernel": jax.nn.initializers.glorot_uniform()(k, (i, o), f32), "bias": jnp.zeros((o,))}
            trunk = [lin(ks[j], ix if j == 0 else W + (ix if j == skip else 0), W) for j in range(D)]
            return {"trunk": trunk, "sigma": lin(ks[D], W, 1), "feat": lin(ks[D + 1], W, W), "view": lin(ks[D + 2], W + idd, W // 2), "rgb": lin(ks[D + 3], W // 2, 3)}
        a, b = jax.random.split(key)
        return {"coarse": net(a), "fine": net(b)}

    def posenc(x, L):
        xb = (x[..., None, :] * 2.0 ** jnp.arange(L)[:, None]).reshape(*x.shape[:-1], -1)
        return jnp.concatenate([x, jnp.sin(xb), jnp.cos(xb)], -1)

    def dense(p, x):
        return x @ p["kernel"].astype(bf16) + p["bias"].astype(bf16)

    def field(p, pts, d):                       # pts [n, 3], d [3]
        e = posenc(pts, Lx).astype(bf16)
        h = e
        for j, w in enumerate(p["trunk"]):
            h = jax.nn.relu(dense(w, jnp.concatenate([h, e], -1) if j == skip else h))
        sigma = dense(p["sigma"], h)[:, 0].astype(f32)
        v = jnp.broadcast_to(posenc(d, Ld), (pts.shape[0], 3 + 6 * Ld)).astype(bf16)
        h = jax.nn.relu(dense(p["view"], jnp.concatenate([dense(p["feat"], h), v], -1)))
        return jax.nn.sigmoid(dense(p["rgb"], h).astype(f32)), sigma

    def composite(rgb, sigma, t, d):
        delta = jnp.concatenate([t[1:] - t[:-1], jnp.array([1e10])]) * (jnp.linalg.norm(d) + 1e-6)
        alpha = 1 - jnp.exp(-jax.nn.relu(sigma) * delta)
        trans = jnp.concatenate([jnp.ones(1), jnp.cumprod(1 - alpha[:-1] + 1e-10)])
        w = alpha * trans
        return (w[:, None] * rgb).sum(0) + 1.0 - w.sum(), w

    def resample(key, mids, w):
        w = w + 1e-5
        cdf = jnp.concatenate([jnp.zeros(1), jnp.cumsum(w / w.sum())])
        u = jnp.sort(jax.random.uniform(key, (nf,)))
        hi = jnp.clip(jnp.searchsorted(cdf, u, side="right"), 1, cdf.shape[0] - 1)
        lo = hi - 1
        den = jnp.where(cdf[hi] - cdf[lo] < 1e-5, 1.0, cdf[hi] - cdf[lo])
        return mids[lo] + (u - cdf[lo]) / den * (mids[hi] - mids[lo])

    def render(params, o, d, key):
        k1, k2, k3 = jax.random.split(key, 3)
        t = jnp.linspace(2.0, 6.0, nc)
        t = t + jax.random.uniform(k1, (nc,)) * (4.0 / nc)
        rgb, sg = field(params["coarse"], o + t[:, None] * d, d)
        c0, w = composite(rgb, sg + jax.random.normal(k3, sg.shape), t, d)
        tf = jax.lax.stop_gradient(resample(k2, 0.5 * (t[1:] + t[:-1]), w[1:-1]))
        ta = jnp.sort(jnp.concatenate([t, tf]))
        rgb, sg = field(params["fine"], o + ta[:, None] * d, d)
        return c0, composite(rgb, sg, ta, d)[0]

    tx = optax.adam(optax.exponential_decay(5e-4, 250_000, 0.1), eps=1e-7)

    def step(state, batch):
        keys = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(0), state["step"]), rays)

        def loss(p):
            c, f = jax.vmap(partial(render, p))(batch["o"], batch["d"], keys)
            mc, mf = jnp.mean((c - batch["rgb"]) ** 2), jnp.mean((f - batch["rgb"]) ** 2)
            return mc + mf, -10 * jnp.log10(mf)

        (l, psnr), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        u, opt = tx.update(g, state["opt"])
        return {"params": optax.apply_updates(state["params"], u), "opt": opt, "step": state["step"] + 1}, l, psnr

    p = jax.eval_shape(init, jax.random.key(0))
    r = SDS((rays, 3), f32)
    return step, ({"params": p, "opt": jax.eval_shape(tx.init, p), "step": SDS((), i32)}, {"o": r, "d": r, "rgb": r})


STEPS["nerf"] = nerf


# ---------------------------------------------------------------- VQ-VAE with EMA codebook
class ResStack(nn.Module):
    ch: int
    n: int

    @nn.compact
    def __call__(self, x):
        for _ in range(self.n):
            h = nn.Conv(self.ch // 2, (3, 3), dtype=bf16)(nn.relu(x))
            x = x + nn.Conv(self.ch, (1, 1), dtype=bf16)(nn.relu(h))
        return nn.relu(x)


class VQVAE(nn.Module):
    ch: int
    n: int
    codes: int
    cd: int
    decay: float = 0.99

    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.Conv(self.ch // 2, (4, 4), 2, dtype=bf16)(x))
        h = nn.relu(nn.Conv(self.ch, (4, 4), 2, dtype=bf16)(h))
        h = ResStack(self.ch, self.n)(nn.Conv(self.ch, (3, 3), dtype=bf16)(h))
        z = nn.Conv(self.cd, (1, 1), dtype=f32)(h)
        book = self.variable("vq", "codebook", lambda: jax.random.normal(self.make_rng("params"), (self.codes, self.cd)))
        count = self.variable("vq", "count_var", lambda: jnp.ones((self.codes,)))
        total = self.variable("vq", "sums", lambda: book.value)
        flat = z.reshape(-1, self.cd)
        dist = (flat ** 2).sum(1, keepdims=True) - 2 * flat @ book.value.T + (book.value ** 2).sum(1)
        idx = jnp.argmin(dist, 1)
        onehot = jax.nn.one_hot(idx, self.codes, dtype=f32)
        q = book.value[idx].reshape(z.shape)
        if not self.is_initializing():
            count.value = self.decay * count.value + (1 - self.decay) * onehot.sum(0)
            total.value = self.decay * total.value + (1 - self.decay) * onehot.T @ jax.lax.stop_gradient(flat)
            n = count.value.sum()
            smoothed = (count.value + 1e-5) / (n + self.codes * 1e-5) * n
            book.value = total.value / smoothed[:, None]
        commit = jnp.mean((z - jax.lax.stop_gradient(q)) ** 2)
        q = z + jax.lax.stop_gradient(q - z)
        probs = onehot.mean(0)
        perplexity = jnp.exp(-jnp.sum(probs * jnp.log(probs + 1e-10)))
        h = ResStack(self.ch, self.n)(nn.Conv(self.ch, (3, 3), dtype=bf16)(q))
        h = nn.relu(nn.ConvTranspose(self.ch // 2, (4, 4), (2, 2), dtype=bf16)(h))
        return nn.ConvTranspose(3, (4, 4), (2, 2), dtype=f32)(h), commit, perplexity


def vqvae(small):
    model, B, R = (VQVAE(8, 1, 8, 4), 2, 8) if small else (VQVAE(256, 4, 1024, 64), 64, 256)
    tx = optax.amsgrad(3e-4)

    def init(rng):
        v = model.init(rng, jnp.zeros((1, R, R, 3)))
        return {"params": v["params"], "vq": v["vq"], "opt": tx.init(v["params"])}

    def step(state, x):
        def loss(p):
            (rec, commit, ppl), mut = model.apply({"params": p, "vq": state["vq"]}, x.astype(bf16), mutable=["vq"])
            return jnp.mean((rec - x) ** 2) / 0.06 + 0.25 * commit, (mut["vq"], ppl)
        (l, (vq, ppl)), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        u, o = tx.update(g, state["opt"])
        return {"params": optax.apply_updates(state["params"], u), "vq": vq, "opt": o}, l, ppl

    return step, (jax.eval_shape(init, jax.random.key(0)), SDS((B, R, R, 3), f32))


STEPS["vqvae"] = vqvae


# ---------------------------------------------------------------- DPO with a frozen bf16 reference
def dpo(small):
    V, D, L, H, F = (40, 16, 2, 2, 32) if small else (32000, 2048, 10, 16, 5632)
    B, T = (2, 10) if small else (2, 1024)

    def init(key):
        n = lambda i, *s: jax.random.normal(jax.random.fold_in(key, i), s) * 0.02
        return {"tok": n(0, V, D), "out": n(1, D, V), "ln_f": jnp.ones(D),
                "h": {"ln1": jnp.ones((L, D)), "ln2": jnp.ones((L, D)), "q": n(2, L, D, H, D // H), "k": n(3, L, D, H, D // H),
                      "v": n(4, L, D, H, D // H), "o": n(5, L, H, D // H, D), "w1": n(6, L, D, F), "w3": n(7, L, D, F), "w2": n(8, L, F, D)}}

    def rms(x, g):
        return (x * jax.lax.rsqrt((x.astype(f32) ** 2).mean(-1, keepdims=True) + 1e-5)).astype(bf16) * g.astype(bf16)

    def rope(x):                                # x [B, H, T, K]
        t, k = x.shape[-2:]
        ang = jnp.arange(t)[:, None] / 10000.0 ** (jnp.arange(0, k, 2) / k)
        z = jax.lax.complex(x[..., : k // 2].astype(f32), x[..., k // 2:].astype(f32)) * jnp.exp(1j * ang)
        return jnp.concatenate([z.real, z.imag], -1).astype(x.dtype)

    def logp(params, ids, mask):
        causal = jnp.tril(jnp.ones((T - 1, T - 1), bool))

        def body(x, w):
            w = jax.tree.map(lambda a: a.astype(bf16), w)
            h = rms(x, w["ln1"])
            q, k, v = rope(jnp.einsum("btd,dhk->bhtk", h, w["q"])), rope(jnp.einsum("btd,dhk->bhtk", h, w["k"])), jnp.einsum("btd,dhk->bhtk", h, w["v"])
            s = jnp.einsum("bhtk,bhsk->bhts", q, k) / np.sqrt(D // H).astype(np.float32)
            s = jnp.where(causal, s.astype(f32), -jnp.inf)
            x = x + jnp.einsum("bhts,bhsk,hkd->btd", jax.nn.softmax(s).astype(bf16), v, w["o"], optimize="optimal")
            h = rms(x, w["ln2"])
            return x + (jax.nn.silu(h @ w["w1"]) * (h @ w["w3"])) @ w["w2"], None

        x, _ = jax.lax.scan(jax.checkpoint(body, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable),
                            params["tok"].astype(bf16)[ids[:, :-1]], params["h"])
        lg = (rms(x, params["ln_f"]) @ params["out"].astype(bf16)).astype(f32)
        lp = jnp.take_along_axis(lg, ids[:, 1:, None], 2)[..., 0] - jax.nn.logsumexp(lg, -1)
        return (lp * mask[:, 1:]).sum(-1)

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(5e-7), optax.apply_every(1))

    def step(state, batch):
        ids = jnp.concatenate([batch["chosen"], batch["rejected"]])
        mask = jnp.concatenate([batch["chosen_mask"], batch["rejected_mask"]]).astype(f32)
        rc, rr = jnp.split(jax.lax.stop_gradient(logp(state["ref"], ids, mask)), 2)

        def loss(p):
            c, r = jnp.split(logp(p, ids, mask), 2)
            margin = 0.1 * ((c - rc) - (r - rr))
            return -(0.9 * jax.nn.log_sigmoid(margin) + 0.1 * jax.nn.log_sigmoid(-margin)).mean(), (margin > 0).mean()

        (l, acc), g = jax.value_and_grad(loss, has_aux=True)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        return {**state, "params": optax.apply_updates(state["params"], u), "opt": o}, l, acc

    p = jax.eval_shape(init, jax.random.key(0))
    ref = jax.tree.map(lambda x: SDS(x.shape, bf16), p)
    ids, m = SDS((B, T), i32), SDS((B, T), jnp.bool_)
    return step, ({"params": p, "ref": ref, "opt": jax.eval_shape(tx.init, p)},
                  {"chosen": ids, "rejected": ids, "chosen_mask": m, "rejected_mask": m})


STEPS["dpo"] = dpo


# ---------------------------------------------------------------- LoRA on an nnx decoder; base weights bf16 and frozen
class Lora(nnx.Module):
    def __init__(self, i, o, r, rngs):
        self.base = nnx.Linear(i, o, use_bias=False, param_dtype=bf16, dtype=bf16, rngs=rngs)
        self.a = nnx.LoRAParam(jax.random.normal(rngs.params(), (i, r)) / r)
        self.b = nnx.LoRAParam(jnp.zeros((r, o)))
        self.scale = 16.0 / r

    def __call__(self, x):
        return self.base(x) + self.scale * (x @ self.a[...].astype(x.dtype)) @ self.b[...].astype(x.dtype)


class LoraBlock(nnx.Module):
    def __init__(self, d, h, kv, f, r, rngs):
        self.h, self.kv, self.k = h, kv, d // h
        self.n1 = nnx.RMSNorm(d, dtype=bf16, param_dtype=bf16, rngs=rngs)
        self.n2 = nnx.RMSNorm(d, dtype=bf16, param_dtype=bf16, rngs=rngs)
        self.q, self.o = Lora(d, d, r, rngs), Lora(d, d, r, rngs)
        self.kk, self.v = Lora(d, kv * self.k, r, rngs), Lora(d, kv * self.k, r, rngs)
        self.gate, self.up, self.down = Lora(d, f, r, rngs), Lora(d, f, r, rngs), Lora(f, d, r, rngs)

    def __call__(self, x, bias, sin, cos):
        B, T, D = x.shape

        def rot(t):
            u, w = t[..., : self.k // 2], t[..., self.k // 2:]
            return jnp.concatenate((u * cos - w * sin, w * cos + u * sin), axis=-1)

        y = self.n1(x)
        q = rot(self.q(y).reshape(B, T, self.h, self.k))
        k = rot(self.kk(y).reshape(B, T, self.kv, self.k))
        v = self.v(y).reshape(B, T, self.kv, self.k)
        y = jax.nn.dot_product_attention(q, k, v, bias=bias, scale=self.k ** -0.5)
        x = x + self.o(y.reshape(B, T, D))
        y = self.n2(x)
        return x + self.down(nnx.silu(self.gate(y)) * self.up(y))


class LoraLM(nnx.Module):
    def __init__(self, v, d, L, h, kv, f, r, rngs):
        self.emb = nnx.Embed(v, d, param_dtype=bf16, dtype=bf16, rngs=rngs)
        self.blocks = nnx.List([LoraBlock(d, h, kv, f, r, rngs) for _ in range(L)])
        self.norm = nnx.RMSNorm(d, dtype=bf16, param_dtype=bf16, rngs=rngs)
        self.head = nnx.Linear(d, v, use_bias=False, param_dtype=bf16, dtype=bf16, rngs=rngs)

    def __call__(self, ids, mask):
        T = ids.shape[1]
        x = self.emb(ids)
        k = self.blocks[0].k
        ang = jnp.arange(T)[:, None] * 500000.0 ** (-jnp.arange(0, k, 2) / k)
        sin, cos = jnp.sin(ang)[None, :, None].astype(bf16), jnp.cos(ang)[None, :, None].astype(bf16)
        ok = jnp.tril(jnp.ones((T, T), bool))[None] & mask[:, None, :]
        bias = jnp.where(ok, 0.0, -1e9)[:, None].astype(bf16)
        for b in self.blocks:
            x = nnx.remat(lambda m, x: m(x, bias, sin, cos))(b, x)
        return self.head(self.norm(x))


def lora(small):
    cfg = (40, 16, 2, 4, 2, 32, 2) if small else (128256, 3072, 14, 24, 8, 8192, 16)
    B, T = (2, 8) if small else (2, 1024)
    model = nnx.eval_shape(lambda: LoraLM(*cfg, rngs=nnx.Rngs(0)))
    gd, lp, base = nnx.split(model, nnx.LoRAParam, ...)
    tx = optax.chain(optax.clip_by_global_norm(0.3), optax.adamw(optax.linear_schedule(2e-4, 0, 3000), weight_decay=0.0))

    def step(state, batch):
        def loss(p):
            net = nnx.merge(gd, p, state["base"], copy=True)
            lg = net(batch["ids"], batch["mask"])[:, :-1].astype(f32)
            w = batch["mask"][:, 1:] & (batch["ids"][:, 1:] != 0)
            ce = optax.losses.softmax_cross_entropy_with_integer_labels(lg, batch["ids"][:, 1:])
            return jnp.mean(ce, where=w)
        l, g = jax.value_and_grad(loss)(state["params"])
        u, o = tx.update(g, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], u), "base": state["base"], "opt": o}, l

    return step, ({"params": lp, "base": base, "opt": jax.eval_shape(tx.init, lp)},
                  {"ids": SDS((B, T), i32), "mask": SDS((B, T), jnp.bool_)})


STEPS["lora-nnx"] = lora


# ---------------------------------------------------------------- BERT pretraining with gathered positions, LAMB
class Bert(nn.Module):
    vocab: int
    d: int
    layers: int
    heads: int
    ff: int
    maxlen: int
    rate: float = 0.1

    @nn.compact
    def __call__(self, ids, types, mask, positions, train=True):
        det = not train
        word = nn.Embed(self.vocab, self.d, dtype=bf16, embedding_init=nn.initializers.normal(0.02), name="word")
        x = word(ids) + nn.Embed(2, self.d, dtype=bf16, name="type")(types)
        x = x + nn.Embed(self.maxlen, self.d, dtype=bf16, name="pos")(jnp.arange(ids.shape[1]))[None]
        x = nn.Dropout(self.rate)(nn.LayerNorm(epsilon=1e-12, dtype=bf16)(x), deterministic=det)
        m = nn.make_attention_mask(mask, mask, dtype=jnp.bool_)
        for i in range(self.layers):
            a = nn.SelfAttention(self.heads, dtype=bf16, dropout_rate=self.rate, broadcast_dropout=False, deterministic=det, name=f"att{i}")(x, m)
            x = nn.LayerNorm(epsilon=1e-12, dtype=bf16)(x + nn.Dropout(self.rate)(a, deterministic=det))
            h = nn.Dense(self.d, dtype=bf16)(nn.gelu(nn.Dense(self.ff, dtype=bf16)(x), approximate=False))
            x = nn.LayerNorm(epsilon=1e-12, dtype=bf16)(x + nn.Dropout(self.rate)(h, deterministic=det))
        pooled = jnp.tanh(nn.Dense(self.d, dtype=bf16, name="pooler")(x[:, 0]))
        nsp = nn.Dense(2, dtype=f32, name="nsp")(pooled)
        g = jax.vmap(lambda seq, pos: seq[pos])(x, positions)
        g = nn.LayerNorm(epsilon=1e-12, dtype=bf16)(nn.gelu(nn.Dense(self.d, dtype=bf16, name="transform")(g)))
        lm = word.attend(g).astype(f32) + self.param("lm_bias", nn.initializers.zeros, (self.vocab,))
        return lm, nsp


def bert(small):
    model = Bert(50, 16, 2, 2, 32, 12) if small else Bert(30522, 1024, 24, 16, 4096, 512)
    B, T, K = (2, 12, 3) if small else (24, 512, 76)
    tx = optax.lamb(optax.polynomial_schedule(1e-3, 0.0, 1.0, 30000), weight_decay=0.01,
                    mask=lambda p: jax.tree_util.tree_map_with_path(lambda k, _: k[-1].key not in ("bias", "scale", "lm_bias"), p))

    def step(state: TrainState, batch):
        key = jax.random.fold_in(jax.random.PRNGKey(2026), state.step)

        def loss(p):
            lm, nsp = model.apply({"params": p}, batch["ids"], batch["types"], batch["mask"], batch["positions"], rngs={"dropout": key})
            w = batch["weights"]
            ml = -(jax.nn.log_softmax(lm) * jax.nn.one_hot(batch["labels"], lm.shape[-1])).sum(-1)
            return (ml * w).sum() / (w.sum() + 1e-5) + optax.softmax_cross_entropy_with_integer_labels(nsp, batch["next"]).mean()

        l, g = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=g), l

    b = {"ids": SDS((B, T), i32), "types": SDS((B, T), i32), "mask": SDS((B, T), jnp.bool_), "positions": SDS((B, K), i32),
         "labels": SDS((B, K), i32), "weights": SDS((B, K), f32), "next": SDS((B,), i32)}

    def create(b):
        v = model.init(jax.random.key(0), b["ids"], b["types"], b["mask"], b["positions"], train=False)
        return TrainState.create(apply_fn=None, params=v["params"], tx=tx)

    return step, (jax.eval_shape(create, b), b)


STEPS["bert"] = bert


# ---------------------------------------------------------------- WaveNet: dilated causal convolutions, lax.conv, scan over cycles
def wavenet(small):
    C, Sk, Q, dil, cycles, B, T, mel = (8, 8, 16, (1, 2, 4), 2, 2, 32, 4) if small else (256, 512, 256, tuple(2 ** i for i in range(10)), 3, 8, 16384, 80)

    def init(key):
        def n(i, *s):
            return jax.random.normal(jax.random.fold_in(key, i), s) * np.prod(s[-3:-1]) ** -0.5
        n_d = len(dil)
        return {"inp": n(0, 2, Q, C), "cyc": {"filt": n(1, cycles, n_d, 2, C, 2 * C), "cond": n(2, cycles, n_d, mel, 2 * C),
                "res": n(3, cycles, n_d, C, C), "skip": n(4, cycles, n_d, C, Sk)}, "o1": n(5, 1, Sk, Sk), "o2": n(6, 1, Sk, Q), "b": jnp.zeros(Q)}

    def causal(x, w, d):
        w = w.astype(bf16)
        return jax.lax.conv_general_dilated(x, w, (1,), [(d * (w.shape[0] - 1), 0)], rhs_dilation=(d,), dimension_numbers=("NWC", "WIO", "NWC"))

    def net(p, q, mels):
        x = jnp.pad(jax.nn.one_hot(q, Q, dtype=bf16), ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = causal(x, p["inp"], 1)
        cond = jnp.repeat(mels, T // mels.shape[1], axis=1).astype(bf16)

        @jax.checkpoint
        def cycle(carry, w):
            x, skip = carry
            for i, d in enumerate(dil):
                h = causal(x, w["filt"][i], d) + cond @ w["cond"][i].astype(bf16)
                a, b = jnp.split(h, 2, -1)
                h = jnp.tanh(a) * jax.nn.sigmoid(b)
                skip = skip + h @ w["skip"][i].astype(bf16)
                x = (x + h @ w["res"][i].astype(bf16)) * np.sqrt(0.5).astype(bf16)
            return (x, skip), None

        (x, skip), _ = jax.lax.scan(cycle, (x, jnp.zeros((B, T, Sk), bf16)), p["cyc"])
        h = causal(jax.nn.relu(skip), p["o1"], 1)
        return causal(jax.nn.relu(h), p["o2"], 1).astype(f32) + p["b"]

    tx = optax.chain(optax.adaptive_grad_clip(0.1), optax.sgd(optax.piecewise_constant_schedule(0.05, {100000: 0.5}), momentum=0.9, nesterov=True))

    def step(state, batch):
        params, opt, avg = state

        def mu_law(x):
            y = jnp.sign(x) * jnp.log1p((Q - 1) * jnp.abs(x)) / np.log(Q)
            return jnp.clip(jnp.floor((y + 1) / 2 * Q), 0, Q - 1).astype(i32)

        def loss(p):
            q = mu_law(jnp.clip(batch["audio"], -1, 1))
            return -jnp.take_along_axis(jax.nn.log_softmax(net(p, q, batch["mel"])), q[..., None], 2).mean()

        l, g = jax.value_and_grad(loss)(params)
        u, opt = tx.update(g, opt, params)
        params = optax.apply_updates(params, u)
        avg = jax.tree.map(lambda a, p: 0.999 * a + 0.001 * p, avg, params)
        return (params, opt, avg), l

    p = jax.eval_shape(init, jax.random.key(0))
    return step, ((p, jax.eval_shape(tx.init, p), p), {"audio": SDS((B, T), f32), "mel": SDS((B, T // (8 if small else 256), mel), f32)})


STEPS["wavenet"] = wavenet
