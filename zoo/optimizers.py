"""The optimizers of optax, each on a small MLP or a small GPT, in the words of its documentation."""

import functools

import jax

from entry import Draw, entry
from nets import gpt_batch, gpt_loss, gpt_params, mlp_batch, mlp_loss, mlp_params

ROLES = {"params": "param", "opt_state": "opt_state", "batch": "batch"}
MODELS = {"mlp": (mlp_params, mlp_loss, mlp_batch), "gpt": (gpt_params, gpt_loss, gpt_batch)}
EXPECTED = {"mlp": "dp zero megatron 2d", "gpt": "dp zero megatron sequence 2d"}


def start(model):
    make_params, loss_of, make_batch = MODELS[model]
    draw = Draw()
    return make_params(draw), loss_of, make_batch(draw)


def build(model, make):
    import optax
    tx = make(optax)
    params, loss_of, batch = start(model)

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, loss

    return step, (params, tx.init(params), batch)


def is_matrix(params):
    return jax.tree.map(lambda p: p.ndim > 1, params)


def kinds(params):
    return jax.tree.map(lambda p: "matrix" if p.ndim > 1 else "vector", params)


def cosine(optax):
    return optax.warmup_cosine_decay_schedule(0.0, 1e-3, warmup_steps=2, decay_steps=20)


TABLE = {
    "adamw": ("gpt", lambda optax: optax.adamw(1e-3, weight_decay=0.01)),
    "adam-cosine": ("mlp", lambda optax: optax.adam(cosine(optax))),
    "adagrad": ("mlp", lambda optax: optax.adagrad(1e-2)),
    "adafactor": ("gpt", lambda optax: optax.adafactor(1e-3, min_dim_size_to_factor=16)),
    "adafactor-unfactored": ("mlp", lambda optax: optax.adafactor(1e-3)),
    "lion": ("gpt", lambda optax: optax.lion(1e-4)),
    "lamb": ("gpt", lambda optax: optax.lamb(1e-3)),
    "lars": ("mlp", lambda optax: optax.lars(1e-1, weight_decay=1e-4)),
    "sgd": ("mlp", lambda optax: optax.sgd(1e-1)),
    "momentum": ("mlp", lambda optax: optax.sgd(1e-1, momentum=0.9)),
    "nesterov": ("mlp", lambda optax: optax.sgd(1e-1, momentum=0.9, nesterov=True)),
    "rmsprop": ("mlp", lambda optax: optax.rmsprop(1e-3, momentum=0.9)),
    "novograd": ("mlp", lambda optax: optax.novograd(1e-2)),
    "adan": ("mlp", lambda optax: optax.adan(1e-3, weight_decay=0.02)),
    "adabelief": ("mlp", lambda optax: optax.adabelief(1e-3)),
    "muon": ("gpt", lambda optax: optax.contrib.muon(1e-3)),
    "schedule-free": ("mlp", lambda optax: optax.contrib.schedule_free_adamw(1e-3, warmup_steps=2)),
    "prodigy": ("mlp", lambda optax: optax.contrib.prodigy(1.0)),
    "ema": ("mlp", lambda optax: optax.chain(optax.adam(1e-3), optax.ema(0.9))),
    "multisteps-k2": ("mlp", lambda optax: optax.MultiSteps(optax.adam(1e-3), every_k_schedule=2)),
    "multisteps-k4": ("gpt", lambda optax: optax.MultiSteps(optax.adamw(1e-3), every_k_schedule=4)),
    "clip-adamw": ("gpt", lambda optax: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))),
    "masked-decay": ("gpt", lambda optax: optax.adamw(1e-3, weight_decay=0.1, mask=is_matrix)),
    "multi-transform": ("mlp", lambda optax: optax.multi_transform(
        {"matrix": optax.adamw(1e-3), "vector": optax.sgd(1e-2)}, kinds)),
    "inject-hyperparams": ("mlp", lambda optax: optax.inject_hyperparams(optax.adamw)(learning_rate=cosine(optax))),
    "apply-if-finite": ("mlp", lambda optax: optax.apply_if_finite(optax.adam(1e-3), max_consecutive_errors=5)),
}

for name, (model, make) in TABLE.items():
    # Plain gradient descent keeps nothing that could be cut.
    recipes = EXPECTED[model] if name != "sgd" else "dp megatron 2d"
    entry(f"opt-{name}", ROLES, recipes=recipes, summary=f"optax: {name} on a small {model.upper()}")(
        functools.partial(build, model, make))


@entry("opt-lookahead", ROLES | {"params.slow": "opt_state"})
def lookahead():
    """optax: lookahead around SGD, with fast and slow parameters"""
    import optax
    params, loss_of, batch = start("mlp")
    params = optax.LookaheadParams.init_synced(params)
    tx = optax.lookahead(optax.sgd(1e-1), sync_period=2, slow_step_size=0.5)

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params.fast, batch)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), batch)


@entry("opt-plateau", ROLES)
def plateau():
    """optax: Adam whose rate falls when the loss does not"""
    import optax
    params, loss_of, batch = start("mlp")
    tx = optax.chain(optax.adam(1e-3), optax.contrib.reduce_on_plateau(factor=0.5, patience=1))

    def step(params, opt_state, batch):
        loss, grads = jax.value_and_grad(loss_of)(params, batch)
        updates, opt_state = tx.update(grads, opt_state, params, value=loss)
        return optax.apply_updates(params, updates), opt_state, loss

    return step, (params, tx.init(params), batch)
