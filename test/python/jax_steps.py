"""Training steps as people write them, for the tests of the export out of JAX.

Each entry gives a function and the arguments of its first call, and the roles that the arguments truly have: by the beginning
of a name, where the longest one counts.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

STEPS = {}


def step(**roles):
    def register(build):
        STEPS[build.__name__] = (build, roles.pop("roles", None) or roles)
        return build
    return register


def key(number=0):
    return jax.random.key(number)


def normal(*shape, seed=0, scale=1.0):
    return scale * jax.random.normal(key(seed), shape)


def tokens(*shape, below=31, seed=1):
    return jax.random.randint(key(seed), shape, 0, below)


def mlp_params(sizes=(16, 32, 8)):
    return {f"layer_{i}": {"w": normal(a, b, seed=i, scale=a ** -0.5), "b": jnp.zeros(b)}
            for i, (a, b) in enumerate(zip(sizes, sizes[1:]))}


def mlp(params, x):
    for name in sorted(params):
        x = jnp.tanh(x @ params[name]["w"] + params[name]["b"])
    return x


def mse(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


X, Y = (16, 16), (16, 8)


@step(state="opt_state", **{"state.params": "param", "batch": "batch", "dropout_key": "key"})
def linen_dropout_batch_stats():
    """The TrainState of flax's documentation with dropout and batch norm."""
    import flax.linen as nn
    from flax.training import train_state

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x, training: bool):
            x = nn.Conv(4, (3, 3))(x)
            x = nn.BatchNorm(use_running_average=not training)(x)
            x = nn.relu(x).reshape((x.shape[0], -1))
            x = nn.Dense(16)(x)
            x = nn.Dropout(0.1, deterministic=not training)(x)
            return nn.Dense(10)(x)

    class TrainState(train_state.TrainState):
        batch_stats: Any

    model = CNN()
    variables = model.init(key(), jnp.ones((1, 8, 8, 1)), training=False)
    state = TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-3),
                              batch_stats=variables["batch_stats"])

    @jax.jit
    def train_step(state, batch, dropout_key):
        dropout_train_key = jax.random.fold_in(key=dropout_key, data=state.step)

        def loss_fn(params):
            logits, updates = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, batch["image"],
                                             training=True, rngs={"dropout": dropout_train_key},
                                             mutable=["batch_stats"])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
            return loss, (logits, updates)

        (loss, (logits, updates)), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        state = state.apply_gradients(grads=grads)
        state = state.replace(batch_stats=updates["batch_stats"])
        metrics = {"loss": loss, "accuracy": jnp.mean(jnp.argmax(logits, -1) == batch["label"])}
        return state, metrics

    batch = {"image": normal(8, 8, 8, 1), "label": tokens(8, below=10)}
    return train_step, (state, batch, key(3))


@step(model="param", **{"model['bn']['mean']": "opt_state", "model['bn']['var']": "opt_state",
                        "model['dropout']['rngs']['count']": "opt_state", "model['dropout']['rngs']['key']": "key",
                        "optimizer": "opt_state", "metrics": "opt_state", "batch": "batch"})
def nnx_basics():
    """The tutorial of flax.nnx: a model, an optimizer and metrics, all changed in place."""
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.linear = nnx.Linear(16, 32, use_bias=False, rngs=rngs)  # its gradient before a batch norm would be noise
            self.bn = nnx.BatchNorm(32, rngs=rngs)
            self.dropout = nnx.Dropout(0.2, rngs=rngs)
            self.linear_out = nnx.Linear(32, 10, rngs=rngs)

        def __call__(self, x):
            return self.linear_out(nnx.relu(self.dropout(self.bn(self.linear(x)))))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(5e-3, 0.9), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))

    def loss_fn(model, batch):
        logits = model(batch["image"])
        loss = optax.softmax_cross_entropy_with_integer_labels(logits=logits, labels=batch["label"]).mean()
        return loss, logits

    @nnx.jit
    def train_step(model, optimizer, metrics, batch):
        grad_fn = nnx.value_and_grad(loss_fn, has_aux=True)
        (loss, logits), grads = grad_fn(model, batch)
        metrics.update(loss=loss, logits=logits, labels=batch["label"])
        optimizer.update(model, grads)
        return loss

    return train_step, (model, optimizer, metrics, {"image": normal(16, 16), "label": tokens(16, below=10)})


@step(model="param", opt_state="opt_state", optimizer="opt_state", x="batch", y="batch")
def nnx_plain():
    """Modules of flax.nnx without any jit: a list of blocks, a shared weight."""
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, width, rngs):
            self.up, self.down = nnx.Linear(width, 2 * width, rngs=rngs), nnx.Linear(2 * width, width, rngs=rngs)

        def __call__(self, x):
            return x + self.down(nnx.gelu(self.up(x)))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(31, 16, rngs=rngs)
            self.blocks = nnx.List([Block(16, rngs) for _ in range(2)])

        def __call__(self, ids):
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x)
            return self.embed.attend(x)

    model = Net(nnx.Rngs(params=0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)

    def train_step(model, optimizer, x, y):
        def loss_fn(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()
        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    return train_step, (model, optimizer, tokens(4, 8), tokens(4, 8, seed=2))


@step(model="param", opt_state="opt_state", x="batch", y="batch")
def equinox_filter_jit():
    """The MLP of equinox with filter_jit: activations are functions among the leaves."""
    import equinox as eqx
    model = eqx.nn.MLP(16, 8, 32, 2, key=key())
    tx = optax.adamw(1e-3)
    opt_state = tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def make_step(model, opt_state, x, y):
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, opt_state = tx.update(grads, opt_state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), opt_state, loss

    return make_step, (model, opt_state, normal(*X), normal(*Y))


@step(model="param", opt_state="opt_state", x="batch", y="batch", keys="key")
def equinox_dropout():
    """An equinox model with dropout, the loss in front, and a key that comes back."""
    import equinox as eqx

    class Model(eqx.Module):
        first: eqx.nn.Linear
        drop: eqx.nn.Dropout
        last: eqx.nn.Linear
        scale: float = 0.5

        def __init__(self, key):
            a, b = jax.random.split(key)
            self.first, self.drop, self.last = eqx.nn.Linear(16, 32, key=a), eqx.nn.Dropout(0.3), eqx.nn.Linear(32, 8, key=b)

        def __call__(self, x, key):
            return self.scale * self.last(self.drop(jax.nn.relu(self.first(x)), key=key))

    model, tx = Model(key()), optax.sgd(0.1)
    opt_state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, opt_state, x, y, keys):
        keys, use = jax.random.split(keys)

        @eqx.filter_value_and_grad
        def loss_of(model):
            return jnp.mean((jax.vmap(model)(x, jax.random.split(use, x.shape[0])) - y) ** 2)

        loss, grads = loss_of(model)
        updates, opt_state = tx.update(grads, opt_state)
        return loss, eqx.apply_updates(model, updates), opt_state, keys

    return step, (model, opt_state, normal(*X), normal(*Y), key(7))


@step(params="param", net_state="opt_state", opt_state="opt_state", rng="key", batch="batch")
def haiku_transform_with_state():
    """Haiku with the state of batch norm, and an old-style key."""
    import haiku as hk

    def forward(x):
        x = hk.Linear(32)(x)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training=True)
        return hk.Linear(10)(hk.dropout(hk.next_rng_key(), 0.1, jax.nn.relu(x)))

    net = hk.transform_with_state(forward)
    batch = (normal(16, 16), tokens(16, below=10))
    params, net_state = net.init(jax.random.PRNGKey(0), batch[0])
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-3, 100)))

    @jax.jit
    def update(params, net_state, opt_state, rng, batch):
        def loss_fn(p):
            logits, new_state = net.apply(p, net_state, rng, batch[0])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean(), new_state
        (loss, net_state_), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), net_state_, opt_state, loss

    return update, (params, net_state, tx.init(params), jax.random.PRNGKey(4), batch)


@step(params="param", opt_state="opt_state", x="batch", y="batch")
def optax_multisteps():
    """MultiSteps: an update in every second step."""
    tx = optax.MultiSteps(optax.adamw(optax.warmup_cosine_decay_schedule(0, 1e-3, 10, 100)), every_k_schedule=2)
    params = mlp_params()

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(mse)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "norm": optax.global_norm(grads)}

    return step, (params, tx.init(params), normal(*X), normal(*Y))


@step(params="param", ema="opt_state", opt_state="opt_state", x="batch", y="batch")
def ema_of_params():
    """An average of the parameters, a tree like them."""
    tx, params = optax.lion(1e-4), mlp_params()

    @jax.jit
    def step(params, ema, opt_state, x, y):
        loss, grads = jax.value_and_grad(mse)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, params), opt_state, loss

    return step, (params, params, tx.init(params), normal(*X), normal(*Y))


class PPOState(NamedTuple):
    params: Any
    opt_state: Any
    key: Any


@step(state="opt_state", **{"state.params": "param", "state.key": "key", "rollout": "batch"})
def ppo_update():
    """An update of PPO: clipped ratio, value loss, entropy, minibatches in a scan over shuffled indices."""
    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4, eps=1e-5))
    params = {"pi": mlp_params((8, 16, 4)), "v": mlp_params((8, 16, 1))}

    def loss_fn(params, batch):
        log_p = jax.nn.log_softmax(mlp(params["pi"], batch["obs"]))
        new = jnp.take_along_axis(log_p, batch["action"][:, None], 1)[:, 0]
        ratio = jnp.exp(new - batch["log_prob"])
        adv = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        actor = -jnp.minimum(ratio * adv, jnp.clip(ratio, 0.8, 1.2) * adv).mean()
        value = jnp.square(mlp(params["v"], batch["obs"])[:, 0] - batch["return"]).mean()
        entropy = -(jnp.exp(log_p) * log_p).sum(-1).mean()
        return actor + 0.5 * value - 0.01 * entropy

    @functools.partial(jax.jit, donate_argnums=0)
    def update(state, rollout):
        key, use = jax.random.split(state.key)
        order = jax.random.permutation(use, 32)
        parts = jax.tree.map(lambda a: a[order].reshape((4, 8) + a.shape[1:]), rollout)

        def minibatch(carry, part):
            params, opt_state = carry
            loss, grads = jax.value_and_grad(loss_fn)(params, part)
            updates, opt_state = tx.update(grads, opt_state)
            return (optax.apply_updates(params, updates), opt_state), loss

        (params, opt_state), losses = jax.lax.scan(minibatch, (state.params, state.opt_state), parts)
        return PPOState(params, opt_state, key), losses.mean()

    rollout = {"obs": normal(32, 8), "action": tokens(32, below=4), "log_prob": -jnp.ones(32),
               "advantage": normal(32, seed=5), "return": normal(32, seed=6)}
    return update, (PPOState(params, tx.init(params), key(9)), rollout)


@step(lora="param", base="param", opt_state="opt_state", x="batch", y="batch")
def lora_frozen_base():
    """Low-rank adapters beside frozen weights."""
    base = mlp_params((16, 32, 8))
    lora = {name: {"a": normal(leaf["w"].shape[0], 4, seed=3), "b": jnp.zeros((4, leaf["w"].shape[1]))}
            for name, leaf in base.items()}
    tx = optax.adam(1e-3)

    def step(lora, base, opt_state, x, y):
        def loss_fn(lora):
            h = x
            for name in sorted(base):
                h = jnp.tanh(h @ base[name]["w"] + (h @ lora[name]["a"]) @ lora[name]["b"] + base[name]["b"])
            return jnp.mean((h - y) ** 2)
        loss, grads = jax.value_and_grad(loss_fn)(lora)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(lora, updates), opt_state, loss

    return step, (lora, base, tx.init(lora), normal(*X), normal(*Y))


@step(roles={"params": "param", "opt_state": "opt_state", "x": "batch", "y": "batch"})
def donated_static():
    """A jitted step that donates its state and takes the number of its micro-batches as static."""
    tx, params = optax.sgd(0.1), mlp_params()

    @functools.partial(jax.jit, static_argnums=(4,), static_argnames=("kind",), donate_argnums=(0, 1))
    def step(params, opt_state, x, y, parts, kind="mean"):
        grads = jax.tree.map(jnp.zeros_like, params)
        loss = 0.0
        for xs, ys in zip(jnp.split(x, parts), jnp.split(y, parts)):
            part, grad = jax.value_and_grad(mse)(params, xs, ys)
            grads = jax.tree.map(lambda a, b: a + b / parts, grads, grad)
            loss = loss + part / parts
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), normal(*X), normal(*Y), 2)


@step(ensemble="param", opt_states="opt_state", x="batch", y="batch")
def vmapped_ensemble():
    """Four models at once, each with its own optimizer."""
    tx = optax.adam(1e-3)
    stacked = jax.vmap(lambda k: {"w": jax.random.normal(k, (16, 8)), "b": jnp.zeros(8)})(jax.random.split(key(), 4))

    def loss_fn(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) - y) ** 2)

    @jax.jit
    def step(ensemble, opt_states, x, y):
        def one(params, opt_state):
            loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
            updates, opt_state = tx.update(grads, opt_state)
            return optax.apply_updates(params, updates), opt_state, loss
        ensemble, opt_states, losses = jax.vmap(one)(ensemble, opt_states)
        return ensemble, opt_states, losses.mean()

    return step, (stacked, jax.vmap(tx.init)(stacked), normal(*X), normal(*Y))


@step(params="param", opt_state="opt_state", batch="batch")
def scan_over_layers():
    """A transformer whose layers are stacked and scanned, each recomputed."""
    width, heads, depth = 16, 2, 3
    params = {"embed": normal(31, width, scale=0.1),
              "layers": {name: normal(depth, *shape, seed=i, scale=0.1) for i, (name, shape) in enumerate(
                  {"qkv": (width, 3, heads, width // heads), "out": (heads, width // heads, width),
                   "up": (width, 4 * width), "down": (4 * width, width)}.items())}}
    tx = optax.adamw(1e-3)

    def layer(x, p):
        q, k, v = jnp.einsum("btd,dshk->sbhtk", x, p["qkv"])
        scores = jnp.einsum("bhtk,bhsk->bhts", q, k) / (width // heads) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
        x = x + jnp.einsum("bhts,bhsk,hkd->btd", jax.nn.softmax(scores), v, p["out"])
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"], None

    def loss_fn(params, ids):
        x, _ = jax.lax.scan(jax.checkpoint(layer), params["embed"][ids[:, :-1]], params["layers"])
        return optax.softmax_cross_entropy_with_integer_labels(x @ params["embed"].T, ids[:, 1:]).mean()

    def train_step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, batch["ids"])
        updates, opt_state = tx.update(grads, opt_state, params)
        return {"params": optax.apply_updates(params, updates), "opt_state": opt_state, "loss": loss}

    return train_step, (params, tx.init(params), {"ids": tokens(4, 9)})


@step(carry="opt_state", **{"carry[0]": "param", "carry[2]": "key", "batch": "batch"})
def carry_in_a_tuple():
    """All state in one tuple with an old key, as for lax.scan."""
    tx, params = optax.rmsprop(1e-3), mlp_params()

    def train(carry, batch):
        params, opt_state, key, count = carry
        key, use = jax.random.split(key)
        loss, grads = jax.value_and_grad(lambda p: mse(p, batch[0] + 0.01 * jax.random.normal(use, batch[0].shape),
                                                       batch[1]))(params)
        updates, opt_state = tx.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state, key, count + 1), loss

    return train, ((params, tx.init(params), jax.random.PRNGKey(2), 0), (normal(*X), normal(*Y)))


@step(w="param", b="param", x="batch", y="batch")
def lone_arrays():
    """A linear regression of two arrays."""
    def step(w, b, x, y):
        loss, (dw, db) = jax.value_and_grad(lambda w, b: jnp.mean((x @ w + b - y) ** 2), (0, 1))(w, b)
        return w - 0.1 * dw, b - 0.1 * db, loss

    return step, (normal(16, 8), jnp.zeros(8), normal(*X), normal(*Y))


@step(params="param", target="opt_state", opt_state="opt_state", batch="batch")
def dqn_with_target():
    """Q-learning: a target network that follows now and then, of the tree of the parameters."""
    tx, params = optax.adam(1e-3), mlp_params((8, 32, 4))

    @jax.jit
    def update(params, target, opt_state, batch):
        def loss_fn(params):
            q = jnp.take_along_axis(mlp(params, batch["obs"]), batch["action"][:, None], 1)[:, 0]
            best = batch["reward"] + 0.99 * mlp(target, batch["next_obs"]).max(-1)
            return optax.huber_loss(q, jax.lax.stop_gradient(best)).mean()
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state)
        params = optax.apply_updates(params, updates)
        target = optax.incremental_update(params, target, 0.005)
        return loss, params, target, opt_state

    batch = {"obs": normal(16, 8), "next_obs": normal(16, 8, seed=4), "action": tokens(16, below=4),
             "reward": normal(16, seed=5)}
    return update, (params, params, tx.init(params), batch)


@step(teacher="param", student="param", opt_state="opt_state", x="batch")
def distillation():
    """A frozen teacher in front, of the tree of the student."""
    tx, params = optax.sgd(0.05, momentum=0.9), mlp_params()

    def step(teacher, student, opt_state, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((mlp(p, x) - mlp(teacher, x)) ** 2))(student)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(student, updates), opt_state, loss

    return step, (mlp_params(), jax.tree.map(lambda a: a * 0.9, params), tx.init(params), normal(*X))


@step(params="param", opt_state="opt_state", x="batch", y="batch")
def narrow_types():
    """A frozen weight in fp8 beside trained ones, products in bf16."""
    params = {"w": normal(16, 32, scale=0.25), "out": normal(32, 8, scale=0.2)}
    frozen = normal(32, 32, scale=0.2).astype(jnp.float8_e4m3fn)
    tx = optax.adam(1e-3)

    def step(params, opt_state, frozen, x, y):
        def loss_fn(p):
            h = jnp.tanh(x.astype(jnp.bfloat16) @ p["w"].astype(jnp.bfloat16))
            h = jnp.tanh(h @ frozen.astype(jnp.bfloat16)).astype(jnp.float32)
            return jnp.mean((h @ p["out"] - y) ** 2)
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), frozen, normal(*X), normal(*Y))


@step(params="param", opt_state="opt_state", x="batch", y="batch")
def int4_weights():
    """A frozen weight in int4 with scales, as quantized models have it."""
    params = {"w": normal(16, 32, scale=0.25), "out": normal(32, 8, scale=0.2)}
    quantized = {"q": tokens(32, 32, below=16).astype(jnp.int8).astype(jnp.int4), "scale": 0.05 * jnp.ones(32)}
    tx = optax.sgd(0.1)

    def step(params, opt_state, quantized, x, y):
        def loss_fn(p):
            h = jnp.tanh(x @ p["w"]) @ (quantized["q"].astype(jnp.float32) * quantized["scale"])
            return jnp.mean((h @ p["out"] - y) ** 2)
        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), quantized, normal(*X), normal(*Y))


@step(generator="param", discriminator="param", states="opt_state", noise="key", real="batch")
def gan():
    """Two networks, each with its loss and optimizer, and a dictionary of metrics."""
    tx = optax.adam(2e-4, b1=0.5)
    g, d = mlp_params((4, 16, 8)), mlp_params((8, 16, 1))

    @jax.jit
    def step(generator, discriminator, states, noise, real):
        noise, use = jax.random.split(noise)
        z = jax.random.normal(use, (real.shape[0], 4))

        def d_loss(p):
            return jnp.mean(jax.nn.softplus(-mlp(p, real)) + jax.nn.softplus(mlp(p, mlp(generator, z))))

        def g_loss(p):
            return jnp.mean(jax.nn.softplus(-mlp(discriminator, mlp(p, z))))

        ld, gd = jax.value_and_grad(d_loss)(discriminator)
        lg, gg = jax.value_and_grad(g_loss)(generator)
        ud, sd = tx.update(gd, states["d"])
        ug, sg = tx.update(gg, states["g"])
        return (optax.apply_updates(generator, ug), optax.apply_updates(discriminator, ud), {"d": sd, "g": sg}, noise,
                {"d_loss": ld, "g_loss": lg})

    return step, (g, d, {"d": tx.init(d), "g": tx.init(g)}, key(8), normal(16, 8))


@step(state="opt_state", **{"state['params']": "param", "images": "batch", "labels": "batch"})
def contrastive_keywords():
    """Called by keywords; a temperature that is learned."""
    tx = optax.adamw(1e-3)
    params = {"image": mlp_params((16, 8)), "text": mlp_params((12, 8)), "temperature": jnp.asarray(1.0)}

    def step(*, state, images, labels):
        def loss_fn(p):
            a, b = mlp(p["image"], images), mlp(p["text"], labels)
            logits = p["temperature"] * a @ b.T
            return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(len(a))).mean()
        loss, grads = jax.value_and_grad(loss_fn)(state["params"])
        updates, opt = tx.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt, "step": state["step"] + 1}, loss

    state = {"params": params, "opt": tx.init(params), "step": jnp.asarray(0)}
    return step, ((), {"state": state, "images": normal(8, 16), "labels": normal(8, 12)})


def momentum(tree, grads):
    return jax.tree.map(lambda m, g: 0.9 * m + g, tree, grads)


def descend(params, by):
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, by)


@step(state="opt_state", **{"state['params']": "param", "rng": "key", "batch": "batch"})
def metrics_by_name():
    """A dictionary of everything, with a Python number in it, a key that stays, and metrics before the loss."""
    def train(state, batch, rng):
        rng = jax.random.fold_in(rng, state["step"])
        x = batch[0] + 0.01 * jax.random.normal(rng, batch[0].shape)
        loss, grads = jax.value_and_grad(mse)(state["params"], x, batch[1])
        m = momentum(state["momentum"], grads)
        accuracy = jnp.mean(jnp.abs(batch[1]) < 0.5)
        return ({"params": descend(state["params"], m), "momentum": m, "step": state["step"] + 1},
                {"accuracy": accuracy, "loss": loss, "norm": optax.tree.norm(grads)})

    params = mlp_params()
    return train, ({"params": params, "momentum": jax.tree.map(jnp.zeros_like, params), "step": 0},
                   (normal(*X), normal(*Y)), key(1))


@step(params="param", sums="opt_state", batch="batch")
def losses_of_two_kinds():
    """Several losses, and none that is called so."""
    def train(params, sums, batch):
        first, grads = jax.value_and_grad(mse)(params, *batch)
        extra = jnp.mean(mlp(params, batch[0]) ** 2)
        return descend(params, grads), jax.tree.map(jnp.add, sums, grads), {
            "accuracy": jnp.mean(jnp.abs(batch[1]) < 0.5), "d_loss": first, "g_loss": first + extra}

    return train, (mlp_params(), jax.tree.map(jnp.zeros_like, mlp_params()), (normal(*X), normal(*Y)))


@step(model="param", optimizer="opt_state", x="batch", y="batch")
def nnx_functional():
    """A module and an optimizer of flax.nnx that the step returns, in a tuple beside the loss."""
    from flax import nnx
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def train_step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, grads)
        return loss, model

    return train_step, (model, optimizer, normal(*X), normal(*Y))
