"""Models of many kinds, on vectors, images, graphs and batches of pairs."""

from typing import Any

import jax
import jax.numpy as jnp

from entry import Draw, entry
from loops import train
from nets import cross_entropy, dense, layer_norm, mlp, mlp_batch, mlp_loss, mlp_params

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch", "rng": "key", "key": "key"}
TRAIN_STATE = {"state": "opt_state", "state.params": "param", "batch": "batch"}


@entry("model-resnet", TRAIN_STATE, state=["state"], recipes="dp zero")
def resnet():
    """a ResNet of two stages with BatchNorm in training mode, flax linen"""
    import optax
    from flax import linen as nn
    from flax.training import train_state
    draw = Draw()

    class State(train_state.TrainState):
        batch_stats: Any

    class Residual(nn.Module):
        filters: int
        strides: int = 1

        @nn.compact
        def __call__(self, x, train):
            def norm():
                return nn.BatchNorm(use_running_average=not train, momentum=0.9)

            y = nn.Conv(self.filters, (3, 3), (self.strides, self.strides), use_bias=False)(x)
            y = nn.Conv(self.filters, (3, 3), use_bias=False)(nn.relu(norm()(y)))
            y = norm()(y)
            if x.shape != y.shape:
                x = norm()(nn.Conv(self.filters, (1, 1), (self.strides, self.strides), use_bias=False)(x))
            return nn.relu(x + y)

    class ResNet(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            x = nn.relu(nn.Conv(8, (3, 3), use_bias=False)(x))
            x = Residual(8)(x, train)
            x = Residual(16, strides=2)(x, train)
            return nn.Dense(8)(x.mean((1, 2)))

    batch = {"image": draw.normal(8, 8, 8, 3), "label": draw.integers(8, 8)}
    model = ResNet()
    variables = jax.jit(model.init)(jax.random.key(0), batch["image"])
    state = State.create(apply_fn=model.apply, params=variables["params"], batch_stats=variables["batch_stats"],
                         tx=optax.sgd(0.1, momentum=0.9, nesterov=True))

    def train_step(state, batch):
        def loss_fn(params):
            logits, updates = state.apply_fn({"params": params, "batch_stats": state.batch_stats},
                                             batch["image"], mutable=["batch_stats"])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()
            decay = sum(jnp.sum(p * p) for p in jax.tree.leaves(params) if p.ndim > 1)
            return loss + 1e-4 * 0.5 * decay, updates["batch_stats"]

        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads, batch_stats=stats), {"loss": loss}

    return train_step, (state, batch)


@entry("model-cnn", {"state": "opt_state", "state.params": "param", "images": "batch", "labels": "batch"},
       state=["state"], recipes="dp zero")
def cnn():
    """two convolutions with pooling and two dense layers, as for MNIST"""
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState
    draw = Draw()

    class CNN(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.max_pool(nn.relu(nn.Conv(16, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.relu(nn.Dense(64)(x.reshape((x.shape[0], -1))))
            return nn.Dense(12)(x)

    images, model = draw.normal(8, 12, 12, 1), CNN()
    params = jax.jit(model.init)(jax.random.key(0), images)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.1, 0.9))

    def train_step(state, images, labels):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, images)
            return jnp.mean(optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 12))), logits

        (loss, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        accuracy = jnp.mean(jnp.argmax(logits, -1) == labels)
        return state.apply_gradients(grads=grads), {"accuracy": accuracy, "loss": loss}

    return train_step, (state, images, draw.integers(12, 8))


@entry("model-unet", ROLES, recipes="dp zero")
def unet():
    """one step of diffusion: a small UNet finds the noise that a key has drawn"""
    import optax
    from flax import linen as nn
    draw = Draw()

    class Block(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x, time):
            h = nn.Conv(self.width, (3, 3))(nn.swish(nn.GroupNorm(4)(x)))
            h = h + nn.Dense(self.width)(time)[:, None, None, :]
            h = nn.Conv(self.width, (3, 3))(nn.swish(nn.GroupNorm(4)(h)))
            return h + (x if x.shape == h.shape else nn.Conv(self.width, (1, 1))(x))

    class UNet(nn.Module):
        @nn.compact
        def __call__(self, x, t):
            angles = t[:, None] * jnp.exp(-jnp.arange(8) * 0.8)
            time = nn.swish(nn.Dense(16)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)))
            high = Block(8)(nn.Conv(8, (3, 3))(x), time)
            low = Block(16)(nn.Conv(16, (3, 3), strides=(2, 2))(high), time)
            up = jax.image.resize(low, (*high.shape[:3], low.shape[-1]), "nearest")
            x = Block(8)(jnp.concatenate([nn.Conv(8, (3, 3))(up), high], -1), time)
            return nn.Conv(4, (3, 3))(nn.swish(nn.GroupNorm(4)(x)))

    images, model, tx = draw.normal(8, 8, 8, 4), UNet(), optax.adam(1e-3)
    params = jax.jit(model.init)(jax.random.key(0), images, jnp.zeros(8))
    kept = jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 100))

    def step(params, opt_state, batch, rng):
        time_key, noise_key = jax.random.split(rng)
        t = jax.random.randint(time_key, (batch.shape[0],), 0, 100)
        noise = jax.random.normal(noise_key, batch.shape)
        share = kept[t][:, None, None, None]
        noisy = jnp.sqrt(share) * batch + jnp.sqrt(1 - share) * noise

        def loss_fn(params):
            return jnp.mean((model.apply(params, noisy, t.astype(jnp.float32)) - noise) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), images, jax.random.key(5))


@entry("model-vae", ROLES)
def vae():
    """a VAE: the latent is drawn with a key, the loss has two terms"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    params = {"enc": draw.dense(64, 32), "mean": draw.dense(32, 8), "logvar": draw.dense(32, 8),
              "dec": draw.dense(8, 32), "out": draw.dense(32, 64)}

    def loss_of(params, x, rng):
        hidden = jax.nn.relu(dense(params["enc"], x))
        mean, logvar = dense(params["mean"], hidden), dense(params["logvar"], hidden)
        z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(rng, logvar.shape)
        logits = dense(params["out"], jax.nn.relu(dense(params["dec"], z)))
        reconstruction = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
        divergence = -0.5 * jnp.sum(1 + logvar - mean ** 2 - jnp.exp(logvar), -1).mean()
        return reconstruction + divergence

    def step(params, opt_state, batch, rng):
        loss, grads = jax.value_and_grad(loss_of)(params, batch, rng)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), draw.uniform(16, 64), jax.random.PRNGKey(7))


@entry("model-gan", {"state": "opt_state", "state['g']['params']": "param", "state['d']['params']": "param",
                     "images": "batch", "key": "key"}, state=["state"])
def gan():
    """a GAN: two networks, two optimizers, one step"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3, b1=0.5)
    g, d = mlp_params(draw, 8, 64, 32), mlp_params(draw, 32, 64, 1)
    state = {"g": {"params": g, "opt": tx.init(g)}, "d": {"params": d, "opt": tx.init(d)}}

    def apply(side, grads):
        updates, opt = tx.update(grads, side["opt"])
        return {"params": optax.apply_updates(side["params"], updates), "opt": opt}

    def step(state, images, key):
        noise = jax.random.normal(key, (images.shape[0], 8))

        def d_loss(d):
            fakes = mlp(state["g"]["params"], noise)
            real = optax.sigmoid_binary_cross_entropy(mlp(d, images), jnp.ones(1)).mean()
            return real + optax.sigmoid_binary_cross_entropy(mlp(d, fakes), jnp.zeros(1)).mean()

        def g_loss(g):
            return optax.sigmoid_binary_cross_entropy(mlp(state["d"]["params"], mlp(g, noise)), jnp.ones(1)).mean()

        d_value, d_grads = jax.value_and_grad(d_loss)(state["d"]["params"])
        g_value, g_grads = jax.value_and_grad(g_loss)(state["g"]["params"])
        new = {"g": apply(state["g"], g_grads), "d": apply(state["d"], d_grads)}
        return new, {"d_loss": d_value, "g_loss": g_value, "loss": d_value + g_value}

    return step, (state, draw.normal(16, 32), jax.random.PRNGKey(11))


@entry("model-clip", ROLES)
def clip():
    """pairs of images and texts: logits over the whole batch, loss in both directions"""
    draw = Draw()
    params = {"image": mlp_params(draw, 64, 64, 16), "wte": draw.normal(32, 16), "text": mlp_params(draw, 16, 64, 16),
              "temperature": jnp.asarray(2.0)}

    def unit(x):
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def loss_of(params, batch):
        images = unit(mlp(params["image"], batch["images"].reshape(16, -1)))
        texts = unit(mlp(params["text"], params["wte"][batch["ids"]].mean(1)))
        logits = jnp.exp(params["temperature"]) * images @ texts.T
        labels = jnp.arange(logits.shape[0])
        return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2

    return train(loss_of, params, {"images": draw.normal(16, 4, 4, 4), "ids": draw.integers(32, 16, 8)})


@entry("model-dlrm", ROLES)
def recommender():
    """a recommender: four tables of embeddings, products of pairs, clicks"""
    import optax
    draw = Draw()
    params = {"tables": [draw.normal(64, 8, scale=0.1) for _ in range(4)], "bottom": mlp_params(draw, 16, 32, 8),
              "top": mlp_params(draw, 33, 64, 1)}

    def loss_of(params, batch):
        vectors = [mlp(params["bottom"], batch["dense"])]
        vectors += [table[batch["sparse"][:, i]] for i, table in enumerate(params["tables"])]
        stacked = jnp.stack(vectors, 1)
        pairs = jnp.einsum("bif,bjf->bij", stacked, stacked)
        features = jnp.concatenate([vectors[0], pairs.reshape(-1, 25)], -1)
        return optax.sigmoid_binary_cross_entropy(mlp(params["top"], features)[:, 0], batch["clicked"]).mean()

    batch = {"dense": draw.normal(16, 16), "sparse": draw.integers(64, 16, 4),
             "clicked": draw.integers(2, 16).astype(jnp.float32)}
    return train(loss_of, params, batch)


@entry("model-gnn", {"params": "param", "opt_state": "opt_state", "graph": "batch", "labels": "batch"})
def graph_network():
    """a graph network: messages along edges, added up with segment_sum"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-2)
    params = {"encode": draw.dense(8, 32), "message": [mlp_params(draw, 64, 64, 32) for _ in range(2)],
              "decode": draw.dense(32, 4)}
    graph = {"nodes": draw.normal(32, 8), "senders": draw.integers(32, 64), "receivers": draw.integers(32, 64)}

    def loss_of(params, graph, labels):
        nodes = jax.nn.relu(dense(params["encode"], graph["nodes"]))
        for p in params["message"]:
            pairs = jnp.concatenate([nodes[graph["senders"]], nodes[graph["receivers"]]], -1)
            nodes = nodes + jax.ops.segment_sum(mlp(p, pairs), graph["receivers"], num_segments=nodes.shape[0])
        return cross_entropy(dense(params["decode"], nodes), labels)

    def step(params, opt_state, graph, labels):
        loss, grads = jax.value_and_grad(loss_of)(params, graph, labels)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), graph, draw.integers(4, 32))


@entry("model-mixed", ROLES)
def mixed_precision():
    """weights in f32, compute in bf16, a loss scale that never changes"""
    import optax
    draw = Draw()
    tx = optax.adamw(1e-3)
    params = mlp_params(draw)

    def loss_of(params, batch):
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        logits = mlp(half, batch["x"].astype(jnp.bfloat16))
        return cross_entropy(logits.astype(jnp.float32), batch["y"]) * 128.0

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        grads = jax.tree.map(lambda g: g / 128.0, grads)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / 128.0

    return step, (params, tx.init(params), mlp_batch(draw))


@entry("model-mixed-dynamic", {"state": "opt_state", "state['params']": "param", "batch": "batch"}, state=["state"])
def dynamic_scale():
    """the same with a loss scale that halves when gradients overflow; the update is under lax.cond"""
    import optax
    draw = Draw()
    tx = optax.adamw(1e-3)
    params = mlp_params(draw)
    state = {"params": params, "opt": tx.init(params), "scale": jnp.asarray(1024.0), "good": jnp.zeros((), jnp.int32)}

    def step(state, batch):
        def loss_of(params):
            half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
            logits = mlp(half, batch["x"].astype(jnp.bfloat16)).astype(jnp.float32)
            loss = cross_entropy(logits, batch["y"])
            return loss * state["scale"], loss

        (_, loss), grads = jax.value_and_grad(loss_of, has_aux=True)(state["params"])
        grads = jax.tree.map(lambda g: g / state["scale"], grads)
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))

        def update(_):
            updates, opt = tx.update(grads, state["opt"], state["params"])
            return optax.apply_updates(state["params"], updates), opt

        params, opt = jax.lax.cond(finite, update, lambda _: (state["params"], state["opt"]), None)
        good = jnp.where(finite, state["good"] + 1, 0)
        grown = jnp.where(good % 2000 == 0, state["scale"] * 2, state["scale"])
        scale = jnp.where(finite, grown, state["scale"] / 2)
        return {"params": params, "opt": opt, "scale": scale, "good": good}, loss

    return step, (state, mlp_batch(draw))


@entry("model-dqn", {"params": "param", "target_params": "opt_state", "opt_state": "opt_state", "batch": "batch"},
       state=["params", "target_params", "opt_state"])
def deep_q():
    """Q-learning: a second network that follows the first one slowly"""
    import optax
    draw = Draw()
    tx = optax.chain(optax.clip(1.0), optax.adam(1e-3))
    params, target = mlp_params(draw, 8, 64, 4), mlp_params(draw, 8, 64, 4)

    def loss_of(params, target_params, batch):
        chosen = jnp.take_along_axis(mlp(params, batch["obs"]), batch["action"][:, None], 1)[:, 0]
        best = mlp(target_params, batch["next_obs"]).max(-1)
        wanted = batch["reward"] + 0.99 * (1 - batch["done"]) * jax.lax.stop_gradient(best)
        return optax.huber_loss(chosen, wanted).mean()

    def step(params, target_params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, target_params, batch)
        updates, opt_state = tx.update(grads, opt_state)
        params = optax.apply_updates(params, updates)
        target_params = optax.incremental_update(params, target_params, 0.005)
        return params, target_params, opt_state, loss

    batch = {"obs": draw.normal(16, 8), "next_obs": draw.normal(16, 8), "action": draw.integers(4, 16),
             "reward": draw.normal(16), "done": draw.integers(2, 16).astype(jnp.float32)}
    return step, (params, target, tx.init(params), batch)


@entry("model-private", ROLES)
def private_gradients():
    """gradients of every example by itself, clipped, with noise: vmap of grad"""
    import optax
    draw = Draw()
    tx = optax.sgd(0.1, momentum=0.9)
    params = mlp_params(draw)

    def one(params, x, y):
        return cross_entropy(mlp(params, x[None]), y[None])

    def step(params, opt_state, batch, key):
        losses, grads = jax.vmap(jax.value_and_grad(one), (None, 0, 0))(params, batch["x"], batch["y"])
        norms = jnp.sqrt(sum(jnp.sum(g.reshape(g.shape[0], -1) ** 2, -1) for g in jax.tree.leaves(grads)))
        shares = jnp.minimum(1.0, 1.0 / norms)
        leaves, tree = jax.tree.flatten(jax.tree.map(lambda g: jnp.einsum("b,b...->...", shares, g), grads))
        keys = jax.random.split(key, len(leaves))
        noisy = [(g + 0.1 * jax.random.normal(k, g.shape)) / norms.shape[0] for g, k in zip(leaves, keys)]
        updates, opt_state = tx.update(jax.tree.unflatten(tree, noisy), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, losses.mean()

    return step, (params, tx.init(params), mlp_batch(draw), jax.random.key(13))


@entry("model-maml", {"params": "param", "opt_state": "opt_state", "tasks": "batch"}, recipes="dp zero")
def meta_learning():
    """MAML: a gradient through a gradient, over eight tasks by vmap"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    params = {"hidden": draw.dense(4, 32), "out": draw.dense(32, 4)}

    def loss_of(params, x, y):
        return jnp.mean((dense(params["out"], jnp.tanh(dense(params["hidden"], x))) - y) ** 2)

    def after_adapting(params, task):
        grads = jax.grad(loss_of)(params, task["x"], task["y"])
        adapted = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        return loss_of(adapted, task["x_query"], task["y_query"])

    def step(params, opt_state, tasks):
        def over_tasks(params):
            return jax.vmap(after_adapting, (None, 0))(params, tasks).mean()

        loss, grads = jax.value_and_grad(over_tasks)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    tasks = {name: draw.normal(8, 8, 4) for name in ("x", "y", "x_query", "y_query")}
    return step, (params, tx.init(params), tasks)


@entry("model-pinn", {"params": "param", "opt_state": "opt_state", "points": "batch"})
def physics():
    """a network that solves the heat equation: derivatives by its inputs in the loss"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    params = [draw.dense(2, 32), draw.dense(32, 32), draw.dense(32, 1)]

    def u(params, t, x):
        h = jnp.stack([t, x])
        for p in params[:-1]:
            h = jnp.tanh(dense(p, h))
        return dense(params[-1], h)[0]

    def miss(params, point):
        t, x = point
        u_t = jax.grad(u, 1)(params, t, x)
        u_xx = jax.grad(jax.grad(u, 2), 2)(params, t, x)
        start = u(params, 0.0, x) - jnp.sin(jnp.pi * x)
        return (u_t - 0.1 * u_xx) ** 2 + start ** 2

    def step(params, opt_state, points):
        loss, grads = jax.value_and_grad(lambda p: jax.vmap(miss, (None, 0))(p, points).mean())(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), draw.uniform(32, 2))


@entry("model-lora", {"base": "param", "lora": "param", "opt_state": "opt_state", "batch": "batch"},
       state=["lora", "opt_state"], recipes="dp zero")
def lora():
    """LoRA: the frozen weights are an argument and not returned"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    base, lora = mlp_params(draw, 16, 64, 8), low_rank(draw)

    def step(base, lora, opt_state, batch):
        loss, grads = jax.value_and_grad(lambda pairs: mlp_loss(adapted(base, pairs), batch))(lora)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(lora, updates), opt_state, loss

    return step, (base, lora, tx.init(lora), mlp_batch(draw))


@entry("model-lora-returned", {"state": "opt_state", "state['base']": "param", "state['lora']": "param",
                               "batch": "batch"}, state=["state"], recipes="dp zero")
def lora_returned():
    """LoRA: the frozen weights are in the state and come back as they were"""
    import optax
    draw = Draw()
    tx = optax.adam(1e-3)
    base, lora = mlp_params(draw, 16, 64, 8), low_rank(draw)

    def step(state, batch):
        loss, grads = jax.value_and_grad(
            lambda pairs: mlp_loss(adapted(state["base"], pairs), batch))(state["lora"])
        updates, opt = tx.update(grads, state["opt"])
        return dict(state, lora=optax.apply_updates(state["lora"], updates), opt=opt), loss

    return step, ({"base": base, "lora": lora, "opt": tx.init(lora)}, mlp_batch(draw))


def low_rank(draw, rank=4):
    def pair(inputs, outputs):
        return {"a": draw.weight(inputs, rank), "b": draw.normal(rank, outputs, scale=0.01)}

    return {"hidden": pair(16, 64), "out": pair(64, 8)}


def adapted(base, lora):
    return {name: {"kernel": base[name]["kernel"] + 2.0 * lora[name]["a"] @ lora[name]["b"],
                   "bias": base[name]["bias"]} for name in base}


@entry("model-mixer", ROLES)
def mixer():
    """an MLP-Mixer: products over patches and over channels in turn"""
    draw = Draw()
    ones = {"scale": jnp.ones(32), "bias": jnp.zeros(32)}
    params = {"stem": draw.dense(48, 32), "head": draw.dense(32, 8)}
    for i in range(2):
        params[f"layer_{i}"] = {"norm1": ones, "tokens": mlp_params(draw, 16, 32, 16), "norm2": ones,
                                "channels": mlp_params(draw, 32, 64, 32)}

    def loss_of(params, batch):
        x = dense(params["stem"], batch["patches"])
        for i in range(2):
            p = params[f"layer_{i}"]
            mixed = mlp(p["tokens"], layer_norm(p["norm1"], x).swapaxes(1, 2))
            x = x + mixed.swapaxes(1, 2)
            x = x + mlp(p["channels"], layer_norm(p["norm2"], x))
        return cross_entropy(dense(params["head"], x.mean(1)), batch["label"])

    return train(loss_of, params, {"patches": draw.normal(8, 16, 48), "label": draw.integers(8, 8)})


@entry("model-shifts", ROLES)
def shifts():
    """tokens mixed with the one before by a pad that cuts off what it adds, and with every other one by a pad between elements"""
    draw = Draw()
    params = {"embed": draw.normal(32, 16, scale=0.3), "out": draw.dense(16, 32)}
    for i in range(2):
        params[f"layer_{i}"] = {"mix": draw.normal(16), "keep": draw.dense(16, 16), "twice": draw.normal(16)}

    def shifted(x, before):
        return jax.lax.pad(x, 0.0, ((0, 0, 0), (before, -before, 0), (0, 0, 0)))

    def spread(x):
        return jax.lax.pad(x, 0.0, ((0, 0, 0), (0, -x.shape[1] + 1, 1), (0, 0, 0)))

    def loss_of(params, batch):
        x = params["embed"][batch["ids"]]
        for i in range(2):
            p = params[f"layer_{i}"]
            mixed = x * p["mix"] + shifted(x, 1) * (1 - p["mix"]) + shifted(x, -2)
            x = x + jnp.tanh(dense(p["keep"], mixed)) + spread(x) * p["twice"]
        return cross_entropy(dense(params["out"], x), batch["labels"])

    return train(loss_of, params, {"ids": draw.integers(32, 8, 12), "labels": draw.integers(32, 8, 12)})
