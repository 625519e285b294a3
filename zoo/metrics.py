"""Losses and metrics that are more than a mean over examples: what they need of the whole batch, and when."""

import jax
import jax.numpy as jnp

from entry import Draw, entry
from nets import adam, cross_entropy, dense, layer_norm

ROLES = {"params": "param", "moments": "opt_state", "average": "opt_state", "running": "opt_state",
         "scale": "opt_state", "good": "opt_state", "count": "opt_state", "batch": "batch"}
VOCABULARY, WIDTH, LAYERS, LENGTH, BATCH, EXPERTS = 24, 16, 4, 6, 16, 4


def block_params(draw, experts=0):
    norm = {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    if experts:
        return {"norm": norm, "router": draw.weight(WIDTH, experts), "up": draw.weight(experts, WIDTH, 2 * WIDTH),
                "down": draw.weight(experts, 2 * WIDTH, WIDTH)}
    return {"norm": norm, "up": draw.dense(WIDTH, 2 * WIDTH), "down": draw.dense(2 * WIDTH, WIDTH)}


def make_params(draw, experts=0):
    params = {f"layer_{i}": block_params(draw, experts) for i in range(LAYERS)}
    return params | {"table": draw.normal(VOCABULARY, WIDTH, scale=0.5), "out": draw.dense(WIDTH, VOCABULARY)}


def make_batch(draw, mask=False):
    ids = draw.integers(VOCABULARY, BATCH, LENGTH + 1)
    batch = {"ids": ids[:, :-1], "labels": ids[:, 1:]}
    return batch | {"mask": draw.uniform(BATCH, LENGTH) < 0.7} if mask else batch


def moments_of(params):
    zero = jax.tree.map(jnp.zeros_like, params)
    return (zero, zero)


def feed_forward(p, x):
    h = layer_norm(p["norm"], x)
    return x + dense(p["down"], jax.nn.gelu(dense(p["up"], h)))


def mixture(p, x):
    """A token goes to its best expert, weighted by its probability; and what the router thought."""
    h = layer_norm(p["norm"], x)
    scores = h @ p["router"]
    probabilities = jax.nn.softmax(scores)
    chosen = jax.nn.one_hot(jnp.argmax(probabilities, -1), probabilities.shape[-1])
    hidden = jax.nn.gelu(jnp.einsum("btd,edf->btef", h, p["up"]))
    out = jnp.einsum("btef,efd,bte->btd", hidden, p["down"], chosen * probabilities)
    return x + out, scores, probabilities, chosen


def logits_of(params, ids):
    x = params["table"][ids]
    for i in range(LAYERS):
        with jax.named_scope(f"layer_{i}"):
            x = feed_forward(params[f"layer_{i}"], x)
    return dense(params["out"], x)


def token_losses(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)[..., 0]


def norm_of(tree):
    return jnp.sqrt(sum(jnp.sum(leaf * leaf) for leaf in jax.tree.leaves(tree)))


def clip(grads, most=1.0):
    norm = norm_of(grads)
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, most / (norm + 1e-6)), grads), norm


def adam_step(loss_of, clips=False):
    """`loss_of(params, batch)` gives a loss and a dict of metrics."""
    def step(params, moments, count, batch):
        (loss, metrics), grads = jax.value_and_grad(loss_of, has_aux=True)(params, batch)
        if clips:
            grads, norm = clip(grads)
            metrics = metrics | {"grad_norm": norm}
        params, moments = adam(params, moments, grads, count + 1)
        return params, moments, count + 1, metrics | {"loss": loss}
    return step


def adam_arguments(params, batch):
    return params, moments_of(params), jnp.zeros(()), batch


STATE = ("params", "moments", "count")


@entry("metrics-masked", ROLES, state=STATE)
def masked():
    """a loss over the tokens that count; accuracy, perplexity, a gradient clipped by its norm, which is reported"""
    draw = Draw()

    def loss_of(params, batch):
        logits, mask = logits_of(params, batch["ids"]), batch["mask"].astype(jnp.float32)
        loss = (token_losses(logits, batch["labels"]) * mask).sum() / mask.sum()
        right = (jnp.argmax(logits, -1) == batch["labels"]) * mask
        return loss, {"accuracy": right.sum() / mask.sum(), "perplexity": jnp.exp(loss)}

    return adam_step(loss_of, clips=True), adam_arguments(make_params(draw), make_batch(draw, mask=True))


@entry("metrics-spread", ROLES, state=STATE)
def spread():
    """the largest, least and median loss of an example, their deviation, errors by class, and each example's loss"""
    draw = Draw()

    def loss_of(params, batch):
        logits = logits_of(params, batch["ids"])
        losses = token_losses(logits, batch["labels"]).mean(-1)
        wrong = jnp.argmax(logits, -1) != batch["labels"]
        by_class = jnp.zeros(VOCABULARY).at[batch["labels"]].add(wrong.astype(jnp.float32))
        return losses.mean(), {"worst": losses.max(), "best": losses.min(), "median": jnp.median(losses),
                               "deviation": losses.std(), "by_class": by_class, "losses": losses}

    return adam_step(loss_of), adam_arguments(make_params(draw), make_batch(draw))


@entry("metrics-smoothed", ROLES, state=STATE + ("average", "running"))
def smoothed():
    """label smoothing, z-loss, an average of the weights and a running mean of the loss as state"""
    draw = Draw()

    def step(params, moments, count, average, running, batch):
        def loss_of(params):
            logits = logits_of(params, batch["ids"])
            targets = jax.nn.one_hot(batch["labels"], VOCABULARY) * 0.9 + 0.1 / VOCABULARY
            entropy = -(targets * jax.nn.log_softmax(logits)).sum(-1).mean()
            z = jnp.square(jax.nn.logsumexp(logits, -1)).mean()
            return entropy + 1e-3 * z, (entropy, z)

        (loss, (entropy, z)), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        params, moments = adam(params, moments, grads, count + 1)
        average = jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, average, params)
        return (params, moments, count + 1, average, 0.9 * running + 0.1 * loss,
                {"loss": loss, "entropy": entropy, "z": z, "drift": norm_of(jax.tree.map(jnp.subtract, params, average))})

    params = make_params(draw)
    return step, (params, moments_of(params), jnp.zeros(()), params, jnp.zeros(()), make_batch(draw))


def balance(probabilities, chosen):
    """Switch Transformer: the share of tokens of each expert times its mean probability."""
    experts = probabilities.shape[-1]
    return experts * jnp.sum(chosen.mean((0, 1)) * probabilities.mean((0, 1)))


def mixture_loss(auxiliary, weight):
    def loss_of(params, batch):
        x, extra, loads, z = params["table"][batch["ids"]], 0.0, [], 0.0
        for i in range(LAYERS):
            with jax.named_scope(f"layer_{i}"):
                x, scores, probabilities, chosen = mixture(params[f"layer_{i}"], x)
            extra += auxiliary(probabilities, chosen)
            z += jnp.square(jax.nn.logsumexp(scores, -1)).mean()
            loads.append(chosen.mean((0, 1)))
        loss = cross_entropy(dense(params["out"], x), batch["labels"])
        return loss + weight * extra + 1e-3 * z, {"balance": extra, "z": z, "loads": jnp.stack(loads)}
    return loss_of


@entry("metrics-balanced", ROLES, state=STATE, recipes="dp zero")
def balanced():
    """experts in every layer with the loss that balances their loads, a product of means over the batch, and z-loss"""
    draw = Draw()
    return (adam_step(mixture_loss(balance, 0.05), clips=True),
            adam_arguments(make_params(draw, EXPERTS), make_batch(draw)))


@entry("metrics-importance", ROLES, state=STATE, recipes="dp zero")
def importance():
    """experts whose importance over the batch should vary little: its variance over its squared mean (Shazeer)"""
    draw = Draw()

    def variation(probabilities, chosen):
        total = probabilities.sum((0, 1))
        return total.var() / jnp.square(total.mean())

    return (adam_step(mixture_loss(variation, 0.05)),
            adam_arguments(make_params(draw, EXPERTS), make_batch(draw)))


@entry("metrics-hard", ROLES, state=STATE)
def hard():
    """a loss over the tokens that the model is unsure of: what it is divided by follows from the weights"""
    draw = Draw()

    def loss_of(params, batch):
        logits = logits_of(params, batch["ids"])
        unsure = jax.lax.stop_gradient(jax.nn.softmax(logits).max(-1) < 0.5).astype(jnp.float32)
        loss = (token_losses(logits, batch["labels"]) * unsure).sum() / jnp.maximum(unsure.sum(), 1.0)
        return loss, {"unsure": unsure.mean()}

    return adam_step(loss_of), adam_arguments(make_params(draw), make_batch(draw))


@entry("metrics-focus", ROLES, state=STATE)
def focus():
    """examples weighted by a softmax of their losses over the batch, and a penalty on the variance of those"""
    draw = Draw()

    def loss_of(params, batch):
        losses = token_losses(logits_of(params, batch["ids"]), batch["labels"]).mean(-1)
        weights = jax.lax.stop_gradient(jax.nn.softmax(losses / 2.0))
        return (weights * losses).sum() + 0.1 * losses.var(), {"mean": losses.mean(), "largest": weights.max()}

    return adam_step(loss_of), adam_arguments(make_params(draw), make_batch(draw))


@entry("metrics-several", ROLES, state=STATE)
def several():
    """a loss after every layer, each over what counts there, their weights learnt; the norm of each layer's gradient"""
    draw = Draw()

    def step(params, moments, count, batch):
        def loss_of(params):
            x, losses, mask = params["table"][batch["ids"]], [], batch["mask"].astype(jnp.float32)
            for i in range(LAYERS):
                with jax.named_scope(f"layer_{i}"):
                    x = feed_forward(params[f"layer_{i}"], x)
                counts = mask if i % 2 else jnp.ones_like(mask)
                token = token_losses(dense(params["out"], x), batch["labels"])
                losses.append((token * counts).sum() / counts.sum())
            losses = jnp.stack(losses)
            return (jnp.exp(-params["doubt"]) * losses + params["doubt"]).sum(), losses

        (loss, losses), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        norms = {name: norm_of(grad) for name, grad in grads.items()}
        params, moments = adam(params, moments, clip(grads)[0], count + 1)
        return params, moments, count + 1, {"loss": loss, "losses": losses, "norms": norms}

    params = make_params(draw) | {"doubt": jnp.zeros(LAYERS)}
    return step, adam_arguments(params, make_batch(draw, mask=True))


@entry("metrics-scaled", ROLES, state=STATE + ("scale", "good"))
def scaled():
    """bf16 layers with a scale of the loss that grows, and falls when a gradient is not finite: then nothing is learnt"""
    draw = Draw()

    def step(params, moments, count, scale, good, batch):
        def loss_of(params):
            low = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
            return scale * cross_entropy(logits_of(low, batch["ids"]).astype(jnp.float32), batch["labels"])

        loss, grads = jax.value_and_grad(loss_of)(params)
        grads = jax.tree.map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(grads)]))
        new, next_moments = adam(params, moments, grads, count + 1)
        keep = lambda a, b: jax.tree.map(lambda x, y: jnp.where(finite, x, y), a, b)
        good = jnp.where(finite, good + 1, 0)
        next_scale = jnp.where(finite, jnp.where(good % 4 == 0, scale * 2, scale), scale / 2)
        return keep(new, params), keep(next_moments, moments), count + 1, next_scale, good, {"loss": loss / scale}

    params = make_params(draw)
    return step, (params, moments_of(params), jnp.zeros(()), jnp.asarray(64.0), jnp.asarray(1), make_batch(draw))


@entry("metrics-pairs", ROLES, state=STATE)
def pairs():
    """examples told apart from all others of the batch: no sum over it"""
    draw = Draw()

    def loss_of(params, batch):
        def features(ids):
            x = params["table"][ids]
            for i in range(LAYERS):
                x = feed_forward(params[f"layer_{i}"], x)
            x = x.mean(1)
            return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

        scores = features(batch["ids"]) @ features(batch["labels"]).T * 5.0
        own = jnp.arange(scores.shape[0])
        return cross_entropy(scores, own), {"found": (jnp.argmax(scores, -1) == own).mean()}

    return adam_step(loss_of), adam_arguments(make_params(draw), make_batch(draw))
