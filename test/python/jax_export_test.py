"""Steps out of JAX: roles, state and values of steps as people write them."""

import functools
import json
import os
import subprocess

import jax
import jax.numpy as jnp
import pytest

import jax_steps
import libsheaf as sf

QUICK = ("nnx_plain", "equinox_dropout", "optax_multisteps", "donated_static", "carry_in_a_tuple", "lone_arrays",
         "distillation", "narrow_types", "int4_weights", "contrastive_keywords", "metrics_by_name", "losses_of_two_kinds")


def make(name):
    build, roles = jax_steps.STEPS[name]
    function, given = build()
    args, kwargs = given if isinstance(given[0], tuple) and not given[0] else (given, {})
    return sf.export(function, *args, kwargs=kwargs), roles


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly)
                                  for name in jax_steps.STEPS])
def test_step(name):
    step, roles = make(name)
    state = {"param", "opt_state"}
    for argument in step.arguments:
        known = [beginning for beginning in roles if argument.name.startswith(beginning)]
        if known:
            assert argument.role == roles[max(known, key=len)], argument
        assert argument.next is not None or argument.role != "opt_state", f"{argument} is lost"
        assert argument.next is None or argument.role in state | {"key"}, argument
    links = [argument.next for argument in step.arguments if argument.next is not None]
    assert len(set(links)) == len(links) >= 2
    assert step.loss is not None and step.loss not in links
    assert step.verify(steps=2).passed


def test_mismatch_is_an_error():
    """Values of another function do not verify."""
    def step(w, x):
        return w - 0.1 * x.sum(0), jnp.sum(w * x)

    exported = sf.export(step, jnp.ones(4), jnp.ones((3, 4)))
    exported._call.jitted = jax.jit(lambda w, x: (w - 0.2 * x.sum(0), jnp.sum(w * x)))
    with pytest.raises(sf.SheafError) as error:
        exported.verify()
    assert error.value.code == sf.Code.MISMATCH


def test_shapes_alone():
    def step(params, x):
        loss, grad = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - g, params, grad), loss

    params = {"w": jax.ShapeDtypeStruct((1 << 20, 1 << 14), jnp.bfloat16)}
    exported = sf.export(step, params, jax.ShapeDtypeStruct((8, 1 << 20), jnp.bfloat16))
    assert exported.arguments[0].next == 0 and exported.arguments[0].role == "param"
    with pytest.raises(sf.SheafError, match="from shapes alone"):
        exported.verify()


def test_said_state():
    def step(a, b, x):
        return b + x, a - x, jnp.sum(a * b * x)

    exported = sf.export(step, jnp.ones(4), jnp.ones(4), jnp.ones(4), state={"a": 1, "b": 0})
    assert [argument.next for argument in exported.arguments] == [1, 0, None]
    assert exported.verify().passed
    with pytest.raises(sf.SheafError, match="no argument 'c'"):
        sf.export(step, jnp.ones(4), jnp.ones(4), jnp.ones(4), state={"c": 1})
    with pytest.raises(sf.SheafError, match="results 0 to 2"):
        sf.export(step, jnp.ones(4), jnp.ones(4), jnp.ones(4), state={"a": 7})


def test_lone_array():
    """Only who wrote the step knows whether a lone array is carried or reported."""
    def step(params, carried, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        return {"w": params["w"] - grads["w"]}, jnp.tanh(x @ params["w"]) + carried, loss

    arguments = {"w": jnp.ones((4, 3))}, jnp.ones((8, 3)), jnp.ones((8, 4))
    for state, following, role in (({"params": 0, "carried": 1}, 1, "opt_state"), ({"params": 0}, None, "batch")):
        carried = sf.export(step, *arguments, state=state).arguments[1]
        assert (carried.next, carried.role) == (following, role)


def test_results_that_look_like_state():
    """Gradients in front of what they are of, and a rate that is reported as it was given."""
    @functools.partial(jax.jit, donate_argnums=0)
    def step(params, x, rate):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
        after = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        return {"grads": grads, "params": after, "report": {"loss": loss, "rate": rate}}

    exported = sf.export(step, {"w": jnp.ones((4, 3)), "b": jnp.ones(3)}, jnp.ones((8, 4)), jnp.asarray(0.1))
    assert [argument.next for argument in exported.arguments] == [2, 3, None, None]
    assert exported.verify().passed


def test_count_in_floating_point():
    """A number beside the loss is kept, or fed, by what the step does with it."""
    def adam(params, moment, count, x):
        loss, grad = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        moment = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moment, grad)
        count = count + 1.0
        return jax.tree.map(lambda p, m: p - m / (1 - 0.9 ** count), params, moment), moment, count, loss

    def descent(params, rate, x):
        loss, grad = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - rate * g, params, grad), loss

    params, x = {"w": jnp.ones((4, 3))}, jnp.ones((8, 4))
    kept = sf.export(adam, params, {"w": jnp.zeros((4, 3))}, jnp.zeros(()), x)
    assert [argument.next for argument in kept.arguments] == [0, 1, 2, None] and kept.loss == 3
    fed = sf.export(descent, params, jnp.asarray(0.1), x)
    assert [argument.next for argument in fed.arguments] == [0, None, None] and fed.loss == 1


def test_platform():
    """The text is that of the platform."""
    def step(w, x):
        scale = jax.lax.platform_dependent(cpu=lambda: 0.1, default=lambda: 0.2)
        return w - scale * x, jnp.sum(w * x)

    arguments = jnp.ones(4), jnp.ones(4)
    here, cpu, cuda = (sf.export(step, *arguments, platform=platform) for platform in (None, "cpu", "cuda"))
    assert here.hash == cpu.hash != cuda.hash
    assert cpu.verify().passed
    with pytest.raises(sf.SheafError) as error:
        cuda.verify()
    assert error.value.code == sf.Code.MISMATCH
    with pytest.raises(sf.SheafError, match="there is no platform 'gpu3000'"):
        sf.export(step, *arguments, platform="gpu3000")


def test_options_that_are_arguments():
    def step(state, loss):
        return state - loss, jnp.sum(state * loss)

    exported = sf.export(step, jnp.ones(4), kwargs={"loss": jnp.ones(4)})
    assert [argument.name for argument in exported.arguments] == ["state", "loss"]
    with pytest.raises(sf.SheafError, match="option of export and an argument"):
        sf.export(step, jnp.ones(4), loss=jnp.ones(4))


def test_no_arrays():
    with pytest.raises(sf.SheafError, match="no arguments that are arrays"):
        sf.export(lambda: 1.0)
    with pytest.raises(sf.SheafError, match="static_argnums has 3"):
        sf.export(lambda x: x.sum(), jnp.ones(3), static_argnums=3)
    with pytest.raises(sf.SheafError, match="donate_argnums has 1"):
        sf.export(lambda x: x.sum(), jnp.ones(3), donate_argnums=1)


def test_saved_files(tmp_path):
    """The command reads what is saved, with the roles and the links of the trees."""
    step, _ = make("equinox_dropout")
    files = step.save(tmp_path / "step", batches=[{"x": jax_steps.normal(*jax_steps.X, seed=k)} for k in range(2)])
    assert [os.path.basename(file) for file in files] == ["step.stablehlo.mlir", "step.json", "step.io.safetensors"]
    again = sf.load(files[0])
    assert again.arguments == step.arguments and again.hash == step.hash and again.loss == step.loss
    assert sf.verify(again, against=files[2]).passed
    command = os.environ.get("SHEAF_BIN")
    if command:
        shown = json.loads(subprocess.run([command, "show", "--json", files[0]], check=True, capture_output=True).stdout)
        assert [row["next"] for row in shown["arguments"]] == [argument.next for argument in step.arguments]
