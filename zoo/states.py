"""The forms in which people keep the state of a training run."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from entry import Draw, entry
from nets import adam, cross_entropy, mlp, mlp_batch, mlp_loss, mlp_params


@entry("state-pairs", {"params": "param", "x": "batch", "y": "batch"}, state=["params"], recipes="dp megatron 2d")
def pairs():
    """a list of (w, b), gradient descent by hand, step(params, x, y)"""
    draw = Draw()
    sizes = [16, 64, 64, 8]
    params = [(draw.weight(m, n), jnp.zeros(n)) for m, n in zip(sizes[:-1], sizes[1:])]

    def predict(params, x):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = params[-1]
        return jax.nn.log_softmax(x @ w + b)

    def loss_of(params, x, y):
        return -jnp.mean(jnp.sum(predict(params, x) * y, axis=1))

    def update(params, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, grads)], loss

    return update, (params, draw.normal(16, 16), jax.nn.one_hot(draw.integers(8, 16), 8))


@entry("state-tuple", {"params": "param", "opt": "opt_state", "x": "batch", "y": "batch"}, state=["params", "opt"])
def plain_tuple():
    """step(params, opt, x, y) with Adam by hand, opt = (count, mu, nu)"""
    draw = Draw()
    params = mlp_params(draw)
    zeros = jax.tree.map(jnp.zeros_like, params)
    batch = mlp_batch(draw)

    def step(params, opt, x, y):
        count, mu, nu = opt
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(params)
        params, (mu, nu) = adam(params, (mu, nu), grads, count + 1.0)
        return params, (count + 1, mu, nu), loss

    return step, (params, (jnp.zeros((), jnp.int32), zeros, zeros), batch["x"], batch["y"])


@entry("state-loss-first", {"model": "param", "opt_state": "opt_state", "x": "batch", "y": "batch"},
       state=["model", "opt_state"], loss_first=True)
def loss_first():
    """make_step(model, opt_state, x, y) returns loss, model, opt_state"""
    import optax
    draw = Draw()
    model, batch = mlp_params(draw), mlp_batch(draw)
    optim = optax.adamw(1e-3)

    def make_step(model, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda m: cross_entropy(mlp(m, x), y))(model)
        updates, opt_state = optim.update(grads, opt_state, model)
        return loss, optax.apply_updates(model, updates), opt_state

    return make_step, (model, optim.init(model), batch["x"], batch["y"])


@entry("state-dict-ema", {"state": "opt_state", "state['params']": "param", "batch": "batch"}, state=["state"],
       donate=True)
def dict_with_ema():
    """one dict, with an average of the parameters in state['ema'], donated"""
    import optax
    draw = Draw()
    tx = optax.adamw(1e-3)
    params = mlp_params(draw)
    state = {"params": params, "ema": params, "opt": tx.init(params), "step": jnp.zeros((), jnp.int32)}

    def train_step(state, batch):
        loss, grads = jax.value_and_grad(mlp_loss)(state["params"], batch)
        updates, opt = tx.update(grads, state["opt"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        ema = optax.incremental_update(params, state["ema"], step_size=0.01)
        return {"params": params, "ema": ema, "opt": opt, "step": state["step"] + 1}, loss

    return train_step, (state, mlp_batch(draw))


class TrainingState(NamedTuple):
    params: Any
    avg_params: Any
    opt_state: Any


@entry("state-namedtuple", {"state": "opt_state", "state.params": "param", "batch": "batch"}, state=["state"])
def named_tuple():
    """a NamedTuple with parameters, their average and optimizer state"""
    import optax
    draw = Draw()
    optimiser = optax.adam(1e-3)
    params = mlp_params(draw)

    def update(state, batch):
        loss, grads = jax.value_and_grad(mlp_loss)(state.params, batch)
        updates, opt_state = optimiser.update(grads, state.opt_state)
        params = optax.apply_updates(state.params, updates)
        avg_params = optax.incremental_update(params, state.avg_params, step_size=0.001)
        return TrainingState(params, avg_params, opt_state), loss

    return update, (TrainingState(params, params, optimiser.init(params)), mlp_batch(draw))


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Learner:
    weights: Any
    momentum: Any
    steps: jax.Array


@entry("state-dataclass", {"learner": "opt_state", "learner.weights": "param", "x": "batch", "y": "batch"},
       state=["learner"])
def data_class():
    """a dataclass registered as pytree, momentum by hand"""
    draw = Draw()
    weights, batch = mlp_params(draw), mlp_batch(draw)

    def step(learner, x, y):
        loss, grads = jax.value_and_grad(lambda w: cross_entropy(mlp(w, x), y))(learner.weights)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, learner.momentum, grads)
        weights = jax.tree.map(lambda w, m: w - 0.05 * m, learner.weights, momentum)
        return Learner(weights, momentum, learner.steps + 1), loss

    learner = Learner(weights, jax.tree.map(jnp.zeros_like, weights), jnp.zeros((), jnp.int32))
    return step, (learner, batch["x"], batch["y"])


@entry("state-example-libraries", {"i": "other", "opt_state": "opt_state", "batch": "batch"}
       | {f"opt_state[0][{i}][0]": "param" for i in range(4)}, state=["opt_state"])
def example_libraries():
    """jax.example_libraries: update(i, opt_state, batch), with the parameters inside of opt_state"""
    from jax.example_libraries import optimizers, stax
    draw = Draw()
    _, predict = stax.serial(stax.Dense(64), stax.Relu, stax.Dense(8), stax.LogSoftmax)
    params = [(draw.weight(16, 64), jnp.zeros(64)), (), (draw.weight(64, 8), jnp.zeros(8)), ()]
    opt_init, opt_update, get_params = optimizers.adam(1e-3)

    def loss_of(params, batch):
        inputs, targets = batch
        return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))

    def update(i, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(get_params(opt_state), batch)
        return opt_update(i, grads, opt_state), loss

    batch = (draw.normal(16, 16), jax.nn.one_hot(draw.integers(8, 16), 8))
    return update, (0, opt_init(params), batch)


@entry("state-rate", {"params": "param", "opt_state": "opt_state", "batch": "batch", "lr": "other"})
def rate_as_argument():
    """step(params, opt_state, batch, lr): the learning rate comes from outside"""
    import optax
    draw = Draw()
    tx = optax.scale_by_adam()
    params = mlp_params(draw)

    def step(params, opt_state, batch, lr):
        loss, grads = jax.value_and_grad(mlp_loss)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return jax.tree.map(lambda p, u: p - lr * u, params, updates), opt_state, loss

    return step, (params, tx.init(params), mlp_batch(draw), 1e-3)


TRAIN_STATE = {"state": "opt_state", "state.params": "param", "batch": "batch", "rng": "key"}


@entry("state-trainstate", TRAIN_STATE, state=["state"], donate=True)
def train_state():
    """flax TrainState of a linen MLP, donated"""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState
    draw = Draw()

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(64)(x))
            x = nn.relu(nn.Dense(64)(x))
            return nn.Dense(8)(x)

    batch = {"image": draw.normal(16, 16), "label": draw.integers(8, 16)}
    model = Classifier()
    params = jax.jit(model.init)(jax.random.key(0), batch["image"])["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(1e-3))

    def train_step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["image"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    return train_step, (state, batch)


@entry("state-batchstats", TRAIN_STATE, state=["state"])
def batch_stats():
    """flax TrainState with batch_stats of BatchNorm, returns metrics"""
    import optax
    from flax import linen as nn
    from flax.training import train_state
    draw = Draw()

    class State(train_state.TrainState):
        batch_stats: Any

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.Dense(64)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            return nn.Dense(8)(x)

    batch = {"x": draw.normal(16, 16), "y": draw.integers(8, 16)}
    model = Classifier()
    variables = jax.jit(model.init, static_argnums=2)(jax.random.key(0), batch["x"], True)
    state = State.create(apply_fn=model.apply, params=variables["params"], tx=optax.sgd(0.1, momentum=0.9),
                         batch_stats=variables["batch_stats"])

    def train_step(state, batch):
        def loss_fn(params):
            logits, updates = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, batch["x"],
                                             train=True, mutable=["batch_stats"])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()
            return loss, (logits, updates)

        (loss, (logits, updates)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        state = state.apply_gradients(grads=grads, batch_stats=updates["batch_stats"])
        return state, {"loss": loss, "top1": jnp.mean(jnp.argmax(logits, -1) == batch["y"])}

    return train_step, (state, batch)


@entry("state-rng-metrics", TRAIN_STATE, state=["state"])
def rng_and_metrics():
    """step(state, batch, rng) with dropout, the key folded with the count of steps, returns (state, metrics)"""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState
    draw = Draw()

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.relu(nn.Dense(64)(x))
            x = nn.Dropout(0.5, deterministic=not train)(x)
            return nn.Dense(8)(x)

    batch = {"x": draw.normal(16, 16), "y": draw.integers(8, 16)}
    model = Classifier()
    params = jax.jit(model.init, static_argnums=2)(jax.random.key(0), batch["x"], False)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))

    def train_step(state, batch, rng):
        rng = jax.random.fold_in(rng, state.step)

        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch["x"], train=True, rngs={"dropout": rng})
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean(), logits

        (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        metrics = {"loss": loss, "accuracy": jnp.mean(jnp.argmax(logits, -1) == batch["y"]),
                   "grad_norm": optax.global_norm(grads)}
        return state.apply_gradients(grads=grads), metrics

    return train_step, (state, batch, jax.random.key(1))


@entry("state-nnx", {"state[0]": "param", "state[1]": "opt_state", "x": "batch", "y": "batch"}, state=["state"])
def nnx_split():
    """flax nnx: model and optimizer split into a graph and a state"""
    import optax
    from flax import nnx
    draw = Draw()

    class Classifier(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(16, 64, rngs=rngs)
            self.out = nnx.Linear(64, 8, rngs=rngs)

        def __call__(self, x):
            return self.out(nnx.gelu(self.hidden(x)))

    model = Classifier(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    graph, state = nnx.split((model, optimizer))

    def loss_of(model, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    def train_step(state, x, y):
        model, optimizer = nnx.merge(graph, state)
        loss, grads = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    return train_step, (state, draw.normal(16, 16), draw.integers(8, 16))


@entry("state-moco", {"state": "opt_state", "state['query']": "param", "batch": "batch"}, state=["state"], recipes="dp zero")
def momentum_queue():
    """contrast against a queue of keys, which a copy of the encoder makes, and a metric in the shape of the batch"""
    draw = Draw()
    query = mlp_params(draw)
    batch = {"one": draw.normal(16, 16), "two": draw.normal(16, 16), "weight": draw.uniform(16)}
    state = {"query": query, "key": query, "queue": draw.normal(64, 8), "at": jnp.zeros((), jnp.int32)}

    def unit(x):
        return x / jnp.linalg.norm(x, axis=1, keepdims=True)

    def step(state, batch):
        key = jax.tree.map(lambda k, q: 0.99 * k + 0.01 * q, state["key"], state["query"])
        keys = unit(mlp(key, batch["two"]))

        def loss_of(query):
            queries = unit(mlp(query, batch["one"]))
            near, far = (queries * keys).sum(1, keepdims=True), queries @ state["queue"].T
            each = -jax.nn.log_softmax(jnp.concatenate([near, far], 1) / 0.2)[:, 0]
            return (batch["weight"] * each).mean(), each

        (loss, each), grads = jax.value_and_grad(loss_of, has_aux=True)(state["query"])
        query = jax.tree.map(lambda p, g: p - 0.1 * g, state["query"], grads)
        queue = jax.lax.dynamic_update_slice(state["queue"], keys, (state["at"], 0))
        return {"query": query, "key": key, "queue": queue, "at": (state["at"] + 16) % 64}, {"loss": loss, "weight": each}

    return step, (state, batch)


@entry("state-numbers", {"params": "param", "bank": "opt_state", "running": "opt_state", "batch": "batch"},
       state=["params", "bank", "running"], recipes="dp")
def numbers_and_bank():
    """arguments of their own: rows of a bank that the batch replaces, and a running loss that weighs samples"""
    draw = Draw()
    params, bank = mlp_params(draw), draw.normal(32, 8)
    batch = {"x": draw.normal(16, 16), "row": jnp.arange(16, dtype=jnp.int32) * 2}

    def step(params, bank, running, batch):
        def loss_of(params):
            found = mlp(params, batch["x"])
            each = -jnp.take_along_axis(jax.nn.log_softmax(found @ bank.T), batch["row"][:, None], 1)[:, 0]
            return (each * jax.nn.sigmoid(running - each)).mean(), found

        (loss, found), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        bank = bank.at[batch["row"]].set(0.5 * bank[batch["row"]] + 0.5 * found)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return params, bank, 0.9 * running + 0.1 * loss, loss

    return step, (params, bank, jnp.ones(()), batch)


@entry("state-old-weights", {"now": "param", "before": "opt_state", "x": "batch", "y": "batch"}, state=["now", "before"])
def heavy_ball():
    """heavy ball by the weights and those of the step before, which come back as they were"""
    draw = Draw()
    weights = draw.weight(16, 8)

    def step(now, before, x, y):
        loss, grad = jax.value_and_grad(lambda w: cross_entropy(x @ w, y))(now)
        return now - 0.1 * grad + 0.9 * (now - before), now, loss

    return step, (weights, weights, draw.normal(16, 16), draw.integers(8, 16))


AVERAGED = {"params": "param", "average": "opt_state", "x": "batch", "y": "batch"}


def averaged():
    """results in another order than the arguments: the average of the weights, which has their tree, before them"""
    draw = Draw()
    params, average, batch = mlp_params(draw), mlp_params(draw), mlp_batch(draw)

    def step(params, average, x, y):
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return loss, jax.tree.map(lambda a, p: 0.9 * a + 0.1 * p, average, params), params

    return step, (params, average, batch["x"], batch["y"])


entry("state-average-first", AVERAGED, state=["average", "params"], loss_first=True, recipes="dp")(averaged)
entry("state-average-donated", AVERAGED, state=["average", "params"], loss_first=True, donate=True, recipes="dp",
      summary="the same donated: JAX pairs the weights with the average, which has their types")(averaged)


@entry("state-loss-scale", {"scale": "opt_state", "good": "opt_state", "params": "param", "batch": "batch"},
       state=["params", "good", "scale"], loss_first=True, donate=True, recipes="dp")
def loss_scale():
    """a scale of the loss that grows and shrinks, donated and of the type of the loss"""
    draw = Draw()
    params, batch = mlp_params(draw), mlp_batch(draw)

    def step(scale, good, params, batch):
        loss, grads = jax.value_and_grad(lambda p: mlp_loss(p, batch) * scale)(params)
        finite = jnp.isfinite(loss)
        params = jax.tree.map(lambda p, g: jnp.where(finite, p - 0.1 * g / scale, p), params, grads)
        good = jnp.where(finite, good + 1, 0)
        grown = jnp.where(good % 2 == 0, scale * 2, scale)
        return loss / scale, params, good, jnp.where(finite, grown, scale / 2)

    return step, (jnp.float32(8), jnp.int32(0), params, batch)


@entry("state-trained-number", {"spread": "opt_state", "params": "param", "x": "batch", "y": "batch"},
       state=["params", "spread"], loss_first=True, recipes="dp")
def trained_number():
    """a lone number that is trained, which the loss has in a sum: exp(-s) e + s"""
    draw = Draw()
    params, batch = mlp_params(draw), mlp_batch(draw)

    def step(spread, params, x, y):
        def loss_of(params, spread):
            return jnp.exp(-spread) * cross_entropy(mlp(params, x), y) + spread

        loss, (grads, grad) = jax.value_and_grad(loss_of, argnums=(0, 1))(params, spread)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), spread - 0.1 * grad

    return step, (jnp.float32(0.1), params, batch["x"], batch["y"])


@entry("state-preferred", {"params": "param", "ref": "param", "x": "batch", "good": "batch", "bad": "batch"},
       state=["params"], recipes="dp megatron")
def preferred_answers():
    """direct preference: a frozen reference of the shape of the parameters, and gradients of that shape beside the loss"""
    draw = Draw()
    params, ref = mlp_params(draw), mlp_params(draw)

    def step(params, ref, x, good, bad):
        def margin(params):
            logits = jax.nn.log_softmax(mlp(params, x))
            return (jnp.take_along_axis(logits, good[:, None], 1) - jnp.take_along_axis(logits, bad[:, None], 1))[:, 0]

        loss, grads = jax.value_and_grad(lambda p: -jax.nn.log_sigmoid(margin(p) - margin(ref)).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), {"loss": loss, "grads": grads}

    return step, (params, ref, draw.normal(16, 16), draw.integers(8, 16), draw.integers(8, 16))
