"""Exports steps as people write them, with examples/export.py: export.py FOLDER. Prints the names."""

import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples"))
from export import export  # noqa: E402

KEY = jax.random.key(0)
X = jax.random.normal(jax.random.key(1), (8, 16))
Y = jax.random.randint(jax.random.key(2), (8,), 0, 4)
BATCHES = [{"batch": {"x": jnp.roll(X, k, 0), "y": jnp.roll(Y, 2 * k, 0)}} for k in range(3)]
BATCH = BATCHES[0]["batch"]


def weights():
    return {"up": 0.1 * jax.random.normal(jax.random.key(3), (16, 32)),
            "down": 0.1 * jax.random.normal(jax.random.key(4), (32, 4))}


def loss_of(params, batch, rng=None):
    hidden = jax.nn.relu(batch["x"] @ params["up"])
    if rng is not None:
        hidden = jnp.where(jax.random.bernoulli(rng, 0.9, hidden.shape), hidden / 0.9, 0)
    logits = jax.nn.log_softmax(hidden @ params["down"])
    return -jnp.take_along_axis(logits, batch["y"][:, None], 1).mean(), logits


def plain(params, opt, batch):
    (loss, _), grads = jax.value_and_grad(loss_of, has_aux=True)(params, batch)
    opt = jax.tree.map(lambda m, g: 0.9 * m + g, opt, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, opt), opt, loss


def metrics(state, batch, rng):
    """A dictionary of everything, a key, and metrics by name."""
    step = state["step"]
    (loss, logits), grads = jax.value_and_grad(loss_of, has_aux=True)(state["params"], batch, jax.random.fold_in(rng, step))
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], momentum)
    accuracy = (logits.argmax(-1) == batch["y"]).mean()
    return ({"params": params, "momentum": momentum, "step": step + 1},
            {"accuracy": accuracy, "loss": loss, "grad_norm": jnp.sqrt(sum((g * g).sum() for g in grads.values()))})


def keyed(params, opt, rng, batch):
    """The key is state: each step draws from its own and hands the next one on."""
    rng, mine = jax.random.split(rng)
    (loss, _), grads = jax.value_and_grad(loss_of, has_aux=True)(params, batch, mine)
    opt = jax.tree.map(lambda m, g: 0.9 * m + g, opt, grads)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, opt), opt, rng, {"loss": loss}


def losses(params, opt, batch):
    """Several losses, and none that is called so; the last one is the sum that is trained with."""
    (first, logits), grads = jax.value_and_grad(loss_of, has_aux=True)(params, batch)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    extra = jnp.square(logits).mean()
    return params, jax.tree.map(jnp.add, opt, grads), {"accuracy": (logits.argmax(-1) == batch["y"]).mean(),
                                                       "d_loss": first, "g_loss": first + extra}


def hidden(params, carried, batch):
    """A lone array: only who wrote the step knows whether it is carried or reported."""
    (loss, _), grads = jax.value_and_grad(loss_of, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), jnp.tanh(batch["x"] @ params["up"]) + carried, loss


def reported(params, errors, batch):
    """The same after the loss is reported."""
    params, errors, loss = hidden(params, errors, batch)
    return params, loss, errors


def main(folder):
    os.chdir(folder)
    made = {"plain": (plain, (weights(), jax.tree.map(jnp.zeros_like, weights()), BATCH))}
    state = {"params": weights(), "momentum": jax.tree.map(jnp.zeros_like, weights()), "step": 0}
    made["metrics"] = (metrics, (state, BATCH, KEY))
    made["old-key"] = (metrics, (state, BATCH, jax.random.PRNGKey(0)))
    made["losses"] = (losses, made["plain"][1])
    made["keyed"] = (keyed, (*made["plain"][1][:2], KEY, BATCH))
    try:
        import optax
        from flax.training.train_state import TrainState
    except ImportError:
        print("flax and optax are not installed: no TrainState", file=sys.stderr)
    else:
        def trained(state, batch, rng):
            def loss(params):
                value, logits = state.apply_fn(params, batch, jax.random.fold_in(rng, state.step))
                return value, logits
            (value, logits), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
            return state.apply_gradients(grads=grads), {"loss": value, "accuracy": (logits.argmax(-1) == batch["y"]).mean()}

        created = TrainState.create(apply_fn=loss_of, params=weights(), tx=optax.adamw(1e-2))
        assert isinstance(created.step, int)
        made["train-state"] = (trained, (created, BATCH, KEY))
    for name, (step, arguments) in made.items():
        written = export(step, arguments, name, BATCHES)
        assert written == [f"{name}.stablehlo.mlir", f"{name}.json", f"{name}.io.safetensors"], written
        print(name)
    carried = (weights(), jnp.zeros((8, 32)), BATCH)
    try:
        export(hidden, carried, "hidden")
    except ValueError as error:
        assert "state={'params': 0, 'carried': 1}" in str(error), error
    else:
        raise AssertionError("a lone array is taken for state")
    for name, step, state in (("carried", hidden, {"params": 0, "carried": 1}), ("fed", hidden, {"params": 0}),
                              ("reported", reported, None)):
        export(step, carried, name, state=state)
        with open(f"{name}.json", encoding="utf-8") as file:
            roles = [entry["role"] for entry in json.load(file)["args"]]
        assert roles[2] == ("opt_state" if name == "carried" else "batch"), (name, roles)
    shapes = jax.eval_shape(lambda *a: a, *made["plain"][1])
    assert export(plain, shapes, "shapes") == ["shapes.stablehlo.mlir", "shapes.json"]


main(sys.argv[1])
