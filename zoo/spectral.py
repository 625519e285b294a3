"""Steps with complex numbers: as parameters, as data, and between a Fourier transform and its inverse."""

import jax
import jax.numpy as jnp

from entry import Draw, entry
from loops import train
from nets import dense

ROLES = {"params": "param", "opt_state": "opt_state", "velocity": "opt_state", "batch": "batch"}
FEATURES, HIDDEN, STATES, LENGTH, MODES = 16, 32, 8, 16, 5


def complex_weight(draw, *shape):
    scale = (2 * shape[-2]) ** -0.5
    return jax.lax.complex(draw.normal(*shape, scale=scale), draw.normal(*shape, scale=scale))


@entry("complex-net", ROLES, state=("params", "velocity"), recipes="dp zero megatron")
def complex_net():
    """a net of complex weights on complex data, with momentum by hand"""
    draw = Draw()
    params = {"up": complex_weight(draw, FEATURES, HIDDEN), "down": complex_weight(draw, HIDDEN, FEATURES)}
    velocity = jax.tree.map(jnp.zeros_like, params)
    batch = {"x": complex_weight(draw, 8, FEATURES), "y": complex_weight(draw, 8, FEATURES)}

    def loss_of(params, batch):
        h = batch["x"] @ params["up"]
        h = h * jax.nn.sigmoid(jnp.abs(h))  # the size is squashed, the angle stays
        return jnp.mean(jnp.abs(h @ params["down"] - batch["y"]) ** 2)

    def step(params, velocity, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + jnp.conj(g), velocity, grads)
        return jax.tree.map(lambda p, v: p - 0.1 * v, params, velocity), velocity, loss

    return step, (params, velocity, batch)


@entry("complex-ssm", ROLES, recipes="dp zero")
def state_space():
    """a diagonal state-space layer (S4D, LRU): complex poles, inputs and outputs, by an associative scan"""
    draw = Draw()
    params = {"poles": jax.lax.complex(-0.5 * draw.uniform(FEATURES, STATES), 3 * draw.uniform(FEATURES, STATES)),
              "b": complex_weight(draw, FEATURES, STATES), "c": complex_weight(draw, FEATURES, STATES),
              "skip": jnp.ones(FEATURES), "out": draw.dense(FEATURES, 4)}
    batch = {"x": draw.normal(8, LENGTH, FEATURES), "y": draw.normal(8, 4)}

    def join(before, after):
        return before[0] * after[0], after[0] * before[1] + after[1]

    def loss_of(params, batch):
        turn = jnp.exp(params["poles"])
        driven = batch["x"][..., None] * params["b"]
        turns = jnp.broadcast_to(turn, driven.shape)
        _, states = jax.lax.associative_scan(join, (turns, driven), axis=1)
        y = 2 * jnp.einsum("btfs,fs->btf", states, params["c"]).real + params["skip"] * batch["x"]
        return jnp.mean((dense(params["out"], jax.nn.gelu(y).mean(1)) - batch["y"]) ** 2)

    return train(loss_of, params, batch)


@entry("complex-fourier", ROLES, recipes="dp zero")
def fourier_operator():
    """a Fourier neural operator: complex weights on the lowest modes of a real transform"""
    draw = Draw()
    params = {"lift": draw.dense(2, FEATURES), "drop": draw.dense(FEATURES, 1)}
    for i in range(2):
        params[f"layer_{i}"] = {"modes": complex_weight(draw, MODES, FEATURES, FEATURES),
                                "local": draw.dense(FEATURES, FEATURES)}
    batch = {"x": draw.normal(8, LENGTH, 2), "y": draw.normal(8, LENGTH, 1)}

    def layer(p, x):
        spectrum = jnp.fft.rfft(x, axis=1)
        low = jnp.einsum("bkf,kfg->bkg", spectrum[:, :MODES], p["modes"])
        full = jnp.zeros_like(spectrum).at[:, :MODES].set(low)
        return jax.nn.gelu(jnp.fft.irfft(full, n=LENGTH, axis=1) + dense(p["local"], x))

    def loss_of(params, batch):
        x = dense(params["lift"], batch["x"])
        for i in range(2):
            x = layer(params[f"layer_{i}"], x)
        return jnp.mean((dense(params["drop"], x) - batch["y"]) ** 2)

    return train(loss_of, params, batch)
