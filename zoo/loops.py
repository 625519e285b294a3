"""Steps with loops in them: over time, over layers, until something has converged."""

import functools

import jax
import jax.numpy as jnp

from entry import Draw, entry
from nets import (VOCABULARY, block, block_params, cross_entropy, dense, gpt_batch, gpt_params, layer_norm,
                  mlp_batch, mlp_params)

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch"}


def train(loss_of, params, batch, rate=1e-3):
    """A step with Adam."""
    import optax
    tx = optax.adam(rate)

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), batch)


# Recurrent networks: a cell takes what it carries and the input of a moment.

def lstm_cell(p, carry, x):
    h, c = carry
    gates = x @ p["wi"] + h @ p["wh"] + p["b"]
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(c), c)


def gru_cell(p, carry, x):
    (h,) = carry
    x, h_gates = x @ p["wi"] + p["b"], h @ p["wh"]
    width = h.shape[-1]
    z = jax.nn.sigmoid(x[..., :width] + h_gates[..., :width])
    r = jax.nn.sigmoid(x[..., width:2 * width] + h_gates[..., width:2 * width])
    candidate = jnp.tanh(x[..., 2 * width:] + r * h_gates[..., 2 * width:])
    return ((1 - z) * h + z * candidate,)


CELLS = {"lstm": (lstm_cell, 4, 2), "gru": (gru_cell, 3, 1)}


def recurrent(kind, turns, inputs=8, width=16, size=8):
    cell, gates, carried = CELLS[kind]
    draw = Draw()
    params = {"rnn": {"wi": draw.weight(inputs, gates * width), "wh": draw.weight(width, gates * width),
                      "b": jnp.zeros(gates * width)},
              "head": draw.dense(width, 8)}

    def loss_of(params, batch):
        def turn(carry, x):
            carry = cell(params["rnn"], carry, x)
            return carry, carry[0]

        start = (jnp.zeros((batch["x"].shape[0], width)),) * carried
        _, hidden = jax.lax.scan(turn, start, jnp.swapaxes(batch["x"], 0, 1))
        return cross_entropy(dense(params["head"], hidden[-1]), batch["y"])

    return train(loss_of, params, {"x": draw.normal(size, turns, inputs), "y": draw.integers(8, size)})


for kind in CELLS:
    for turns in 40, 400:
        entry(f"loop-{kind}-{turns}", ROLES, recipes="dp zero",
              summary=f"{kind.upper()} with lax.scan over {turns} turns")(functools.partial(recurrent, kind, turns))


@entry("loop-over-rest", ROLES, recipes="dp zero")
def over_rest(turns=2100, width=4):
    """a scan over all rows but the first, in more turns than are unrolled, and back over all but the last"""
    draw = Draw()
    params = {"rnn": {"wi": draw.weight(width, width), "wh": draw.weight(width, width)}, "head": draw.dense(width, 3),
              "scale": draw.normal(width)}

    def loss_of(params, batch):
        def turn(h, x):
            h = jnp.tanh(x @ params["rnn"]["wi"] + 0.5 * h @ params["rnn"]["wh"])
            return h, None

        rows = jnp.swapaxes(batch["x"], 0, 1) * params["scale"]
        start = jnp.zeros((batch["x"].shape[0], width))
        ahead, _ = jax.lax.scan(turn, start, rows[1:])
        back, _ = jax.lax.scan(turn, start, rows[:-1], reverse=True)
        return cross_entropy(dense(params["head"], ahead + back), batch["y"])

    return train(loss_of, params, {"x": draw.normal(4, turns + 1, width), "y": draw.integers(3, 4)})


# A transformer whose layers are stacked.

def stacked(wrap, layers=4):
    draw = Draw()
    params = gpt_params(draw, layers=0)
    each = [block_params(draw) for _ in range(layers)]
    params["layers"] = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)

    def loss_of(params, batch):
        def layer(x, p):
            return block(p, x), None

        x = params["wte"][batch["ids"]] + params["wpe"]
        x, _ = jax.lax.scan(wrap(layer), x, params["layers"])
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    return train(loss_of, params, gpt_batch(draw))


for name, wrap, words in (
        ("loop-layers", lambda layer: layer, "a scan over 4 stacked layers of a transformer"),
        ("loop-layers-remat", jax.checkpoint, "the same with jax.checkpoint"),
        ("loop-layers-policy", lambda layer: jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable),
         "the same with jax.checkpoint that keeps products")):
    entry(name, ROLES, recipes="dp zero megatron sequence 2d", summary=words)(functools.partial(stacked, wrap))


@entry("loop-unrolled-remat", ROLES, recipes="dp zero megatron sequence 2d")
def remat_without_scan():
    """a Python loop over layers, each under jax.checkpoint"""
    draw = Draw()

    def loss_of(params, batch):
        x = params["wte"][batch["ids"]] + params["wpe"]
        for i in range(3):
            x = jax.checkpoint(block)(params[f"layer_{i}"], x)
        return cross_entropy(layer_norm(params["norm_f"], x) @ params["wte"].T, batch["labels"])

    return train(loss_of, gpt_params(draw, layers=3), gpt_batch(draw))


@entry("loop-fixed-point", ROLES, recipes="dp zero")
def fixed_point():
    """12 turns of z = tanh(W z + U x) with fori_loop, differentiated"""
    draw = Draw()
    params = {"u": draw.dense(16, 32), "w": draw.normal(32, 32, scale=0.1), "out": draw.dense(32, 8)}

    def loss_of(params, batch):
        inputs = dense(params["u"], batch["x"])
        z = jax.lax.fori_loop(0, 12, lambda _, z: jnp.tanh(z @ params["w"] + inputs), jnp.zeros_like(inputs))
        return cross_entropy(dense(params["out"], z), batch["y"])

    return train(loss_of, params, mlp_batch(draw))


def balance(scores, wanted, tolerance=1e-4):
    """Thresholds t such that the mean over the batch of sigmoid(score - t) is `wanted`, by Newton's method."""
    def miss(t):
        gates = jax.nn.sigmoid(scores - t)
        return gates.mean(0) - wanted, (gates * (1 - gates)).mean(0)

    def goes_on(carry):
        _, error = carry
        return jnp.max(jnp.abs(error)) > tolerance

    def turn(carry):
        t, error = carry
        t = t + error / miss(t)[1]
        return t, miss(t)[0]

    start = scores.mean(0)
    return jax.lax.while_loop(goes_on, turn, (start, miss(start)[0]))[0]


@entry("loop-newton", ROLES)
def newton():
    """a while_loop until the thresholds of gates have converged, behind stop_gradient"""
    draw = Draw()
    params = mlp_params(draw) | {"gate": draw.dense(16, 64)}

    def loss_of(params, batch):
        scores = dense(params["gate"], batch["x"])
        gates = jax.nn.sigmoid(scores - balance(jax.lax.stop_gradient(scores), 0.25))
        hidden = jax.nn.relu(dense(params["hidden"], batch["x"])) * gates
        return cross_entropy(dense(params["out"], hidden), batch["y"])

    return train(loss_of, params, mlp_batch(draw))


@entry("loop-nested", ROLES, recipes="dp zero")
def nested():
    """a scan over 4 parts of the batch, and in each an LSTM over 20 turns"""
    import optax
    draw = Draw()
    width = 16
    params = {"wte": draw.normal(VOCABULARY, width),
              "rnn": {"wi": draw.weight(width, 4 * width), "wh": draw.weight(width, 4 * width),
                      "b": jnp.zeros(4 * width)},
              "head": draw.dense(width, VOCABULARY)}
    tx = optax.adam(1e-3)

    def loss_of(params, ids):
        def turn(carry, x):
            carry = lstm_cell(params["rnn"], carry, x)
            return carry, carry[0]

        start = (jnp.zeros((ids.shape[0], width)),) * 2
        _, hidden = jax.lax.scan(turn, start, params["wte"][ids[:, :-1]].swapaxes(0, 1))
        return cross_entropy(dense(params["head"], hidden), ids[:, 1:].T)

    def step(params, opt_state, batch):
        def accumulate(grads, ids):
            loss, part = jax.value_and_grad(loss_of)(params, ids)
            return jax.tree.map(jnp.add, grads, part), loss

        zero = jax.tree.map(jnp.zeros_like, params)
        grads, losses = jax.lax.scan(accumulate, zero, batch["ids"].reshape(4, -1, 21))
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    return step, (params, tx.init(params), {"ids": draw.integers(VOCABULARY, 32, 21)})


@entry("loop-own-words", ROLES)
def scheduled_sampling():
    """a decoder in a scan that reads, at every second turn, what it said itself"""
    draw = Draw()
    params = {"wte": draw.normal(VOCABULARY, 16), "hidden": draw.dense(32, 64), "state": draw.dense(64, 16),
              "head": draw.dense(64, VOCABULARY)}

    def loss_of(params, batch):
        def turn(carry, column):
            h, said = carry
            ids, i = column
            read = jnp.where(i % 2 == 0, ids, said)
            hidden = jax.nn.relu(dense(params["hidden"], jnp.concatenate([h, params["wte"][read]], -1)))
            logits = dense(params["head"], hidden)
            return (jnp.tanh(dense(params["state"], hidden)), jnp.argmax(logits, -1)), logits

        ids = batch["ids"].T
        start = (jnp.zeros((ids.shape[1], 16)), ids[0])
        _, logits = jax.lax.scan(turn, start, (ids[:-1], jnp.arange(ids.shape[0] - 1)))
        return cross_entropy(logits, ids[1:])

    return train(loss_of, params, {"ids": draw.integers(VOCABULARY, 16, 13)})
