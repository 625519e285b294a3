"""Plans in JAX: the same losses as on one device, the plan's collectives, trees that come back as they went in."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, PartitionSpec

import jax_steps
import libsheaf as sf
from jax_steps import mlp_params, mse, normal
from libsheaf.jax_shardings import Split
from libsheaf.plans import Layout

TX = optax.adam(1e-2)


def mlp_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    updates, opt_state = TX.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def mlp_arguments():
    params = mlp_params()
    return params, TX.init(params), normal(16, 16), normal(16, 8)


@pytest.fixture(scope="module")
def step():
    return sf.export(mlp_step, *mlp_arguments())


def run(function, arguments, steps=3):
    params, opt_state, x, y = arguments
    losses = []
    for _ in range(steps):
        params, opt_state, loss = function(params, opt_state, x, y)
        losses.append(float(loss))
    return params, losses


@pytest.mark.parametrize("spec", [
    dict(recipe="dp", ranks=8), dict(recipe="zero3", ranks=8), dict(recipe="2d+zero1", ranks=8),
    dict(recipe="2d", ranks=4, micro_batches=2, recompute="full"), dict(mesh="unused=2,data=4", pins=["x=S(0)@data", "y=S(0)@data"]),
    dict(mesh="a=2,b=2", pins=["layer_0/w=S(0)@a", "layer_0/w=S(0)@b"])], ids=str)
def test_losses_and_collectives(step, spec):
    plan = sf.pin(step, **spec)
    planned = plan.jit(mlp_step)
    ours, theirs = run(planned, mlp_arguments()), run(jax.jit(mlp_step), mlp_arguments())
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    for a, b in zip(jax.tree.leaves(ours[0]), jax.tree.leaves(theirs[0])):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert jax.tree.structure(ours[0]) == jax.tree.structure(theirs[0])
    compared = planned.collectives()
    assert compared.planned and compared.equal, str(compared)


def test_searched_plan(step):
    plan = sf.plan(step, "1x8xCPU", progress=False)
    np.testing.assert_allclose(run(plan.jit(), mlp_arguments())[1], run(mlp_step, mlp_arguments())[1], rtol=1e-5)


def test_collectives_differ_from_another_plan(step):
    """The comparison can fail."""
    one, other = sf.pin(step, recipe="dp", ranks=8), sf.pin(step, recipe="zero1", ranks=8)
    from libsheaf.jax_collectives import Comparison, compiled_traffic, planned_traffic
    compiled = compiled_traffic(one.jit().compile().as_text())
    assert Comparison(planned_traffic(one), compiled).equal
    assert not Comparison(planned_traffic(other), compiled).equal


def test_shardings(step):
    plan = sf.pin(step, mesh="data=2,model=4", pins={"layer_0/w": (None, "model"), "x": ("data",), "y": ("data",)})
    found = plan.shardings()
    assert found.arguments["params"]["layer_0"]["w"].spec == PartitionSpec(None, "model")
    assert found.arguments["x"].spec == PartitionSpec("data", None)
    assert jax.tree.structure(found.arguments["params"]) == jax.tree.structure(mlp_arguments()[0])
    params, opt_state, loss = found.results
    assert params["layer_0"]["w"].spec == PartitionSpec(None, "model") and loss.spec == PartitionSpec()
    for argument, sharding in zip(step.arguments, jax.tree.leaves(list(found.arguments.values()))):
        boxes = sharding.devices_indices_map(argument.shape)
        for rank, device in enumerate(found.mesh.devices.flat):
            ours = plan.boxes(argument.index, rank)
            theirs = tuple(slice(*index.indices(size)[:2]) for index, size in zip(boxes[device], argument.shape))
            assert ours == [theirs]
    # The user's own function under these shardings.
    own = jax.jit(mlp_step, in_shardings=tuple(found.arguments.values()), out_shardings=found.results)
    np.testing.assert_allclose(run(own, mlp_arguments())[1], run(mlp_step, mlp_arguments())[1], rtol=1e-5)


def test_results_stay_where_they_are(step):
    """What a step gives has the layouts that the next step takes."""
    planned = sf.pin(step, recipe="zero3", ranks=8).jit()
    params, opt_state, _ = planned(*mlp_arguments())
    wanted = planned.shardings.arguments
    for leaf, sharding in zip(jax.tree.leaves((params, opt_state)), jax.tree.leaves((wanted["params"], wanted["opt_state"]))):
        assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)


def test_devices(step):
    plan = sf.pin(step, recipe="dp", ranks=4)
    devices = jax.devices()[4:]
    planned = plan.jit(mlp_step, devices)
    assert planned(*mlp_arguments())[2].devices() == set(devices)
    assert plan.jit(mlp_step, Mesh(np.array(devices), ("any",))).mesh.devices.ravel().tolist() == devices
    with pytest.raises(sf.SheafError, match="is for 4 devices, and there are 2"):
        plan.jit(mlp_step, devices[:2])


def test_traced(step):
    """The planned step is a function of JAX: a loop over steps is compiled as one."""
    planned = sf.pin(step, recipe="dp", ranks=8).jit()
    params, opt_state, x, y = mlp_arguments()

    @jax.jit
    def steps(params, opt_state):
        def body(carry, _):
            *carry, loss = planned(*carry, x, y)
            return tuple(carry), loss
        return jax.lax.scan(body, (params, opt_state), length=3)[1]

    np.testing.assert_allclose(steps(params, opt_state), run(mlp_step, mlp_arguments())[1], rtol=1e-5)


def test_wrong_calls(step):
    plan = sf.pin(step, recipe="dp", ranks=8)
    planned = plan.jit()
    params, opt_state, x, y = mlp_arguments()
    with pytest.raises(sf.SheafError, match=r"x is float32\[8, 16\], and the plan is for float32\[16, 16\]"):
        planned(params, opt_state, x[:8], y[:8])
    with pytest.raises(sf.SheafError, match="other trees"):
        planned({"layer_0": params["layer_0"]}, opt_state, x, y)
    with pytest.raises(sf.SheafError, match="does not compute the step"):
        plan.jit(lambda params, opt_state, x, y: (params, opt_state, mse(params, x, y)))
    assert plan.jit(lambda params, opt_state, x, y: mlp_step(params, opt_state, x, y))
    with pytest.raises(sf.SheafError, match='neither "exact" nor "nearest"'):
        plan.jit(layouts="any")
    with pytest.raises(sf.SheafError, match="read from a file"):
        sf.pin(sf.Step.from_text(step.text()), recipe="dp", ranks=8).jit()
    with pytest.raises(sf.SheafError, match="programs of ranks 0 and|which is no layout of JAX"):
        sf.pin(step, recipe="dp", ranks=4, stages=2, micro_batches=2).jit()


def fused_step(params, x):
    """Three projections in one weight, which a split of heads takes apart in strides."""
    def loss_of(p):
        q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
        return jnp.mean((jnp.tanh(q) * jnp.tanh(k) * v @ p["out"]) ** 2)
    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def test_strided_layouts():
    arguments = {"qkv": normal(8, 3 * 16), "out": normal(16, 8)}, normal(8, 8)
    step = sf.export(fused_step, *arguments)
    plan = sf.pin(step, mesh="model=4", pins=["qkv=S(1,16)@model"])
    assert str(plan.argument_layout(0 if "out" not in step.arguments[0].name else 1)) == "[S(1,16)]"
    with pytest.raises(sf.SheafError, match="no PartitionSpec says the layout of"):
        plan.jit()
    with pytest.raises(sf.SheafError, match="no PartitionSpec says the layout of"):
        plan.shardings()
    assert plan.shardings(layouts="nearest").arguments["params"]["qkv"].spec == PartitionSpec(None, None)
    planned = plan.jit(layouts="nearest")
    ours, theirs = planned(*arguments), fused_step(*arguments)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    np.testing.assert_allclose(ours[0]["qkv"], theirs[0]["qkv"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shares, digits, spec", [
    (("S(0)", "R"), [(2, "a"), (12, None)], PartitionSpec("a")),
    (("S(0)", "S(0)"), [(2, "a"), (4, "b"), (3, None)], PartitionSpec(("a", "b"))),
    (("S(0,6)", "R"), [(4, None), (2, "a"), (3, None)], PartitionSpec(None)),
    (("S(0,6)", "S(0,24)"), [(4, "b"), (2, "a"), (3, None)], PartitionSpec(("b", "a"))),
    (("S(0)", "S(0,4)"), [(2, "a"), (3, None), (4, "b")], PartitionSpec("a"))])
def test_digits(shares, digits, spec):
    split = Split(Layout("x", "f32", (24,), dict(zip("ab", shares))), {"a": 2, "b": 4})
    assert [(digit.size, digit.axis) for digit in split.digits[0]] == digits
    assert split.spec == spec


def outcome(function, given):
    """The arrays that a call gives, and those of modules that it changes in place; of a second call of these, too."""
    from flax import nnx

    args, kwargs = given if isinstance(given[0], tuple) and not given[0] else (given, {})
    modules = [arg for arg in args if isinstance(arg, nnx.Pytree)]
    results = [function(*args, **kwargs) for _ in range(2 if modules else 1)]
    leaves = jax.tree.leaves((results, nnx.state(modules) if modules else ()))
    leaves = [jnp.asarray(leaf) for leaf in leaves if hasattr(leaf, "dtype") or isinstance(leaf, (int, float))]
    return [np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
            for leaf in leaves]


QUICK = ("nnx_functional", "equinox_dropout", "donated_static", "carry_in_a_tuple")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly)
                                  for name in jax_steps.STEPS])
def test_as_people_write_them(name):
    """Called as the function is called: modules change in place, keys and static arguments are what they were."""
    build, _ = jax_steps.STEPS[name]
    function, given = build()
    args, kwargs = given if isinstance(given[0], tuple) and not given[0] else (given, {})
    step = sf.export(function, *args, kwargs=kwargs)
    try:
        plan = sf.pin(step, recipe="dp", ranks=2)
    except sf.SheafError:
        plan = sf.plan(step, "1x2xCPU", target="jax", progress=False)
    ours, theirs = outcome(plan.jit(layouts="nearest"), given), outcome(*build())
    assert len(ours) == len(theirs) > 1
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=2e-2, atol=2e-3)


def test_target():
    """A search for JAX finds no strided layouts of arguments and no stages."""
    shapes = {"qkv": jax.ShapeDtypeStruct((512, 3 * 2048), jnp.float32), "out": jax.ShapeDtypeStruct((2048, 512), jnp.float32)}
    step = sf.export(fused_step, shapes, jax.ShapeDtypeStruct((8, 512), jnp.float32))
    fixed = dict(mesh="model=4", pins=["/x=R@*", "out=S(0)@model"], progress=False)
    with pytest.raises(sf.SheafError, match=r"no PartitionSpec says the layout of params\['qkv'\] \[S\(1,2048\)\]"):
        sf.plan(step, "1x4xH100", stages=1, **fixed).shardings()
    assert sf.plan(step, "1x4xH100", target="jax", **fixed).shardings()
    with pytest.raises(sf.SheafError, match="a program for each stage"):
        sf.plan(step, "1x4xH100", target="jax", stages=2)
    with pytest.raises(sf.SheafError, match="no target 'tpu'"):
        sf.plan(step, "1x4xH100", target="tpu")


def test_axis_rules():
    """A linen model with logical axes: its rules from the plan give its shardings."""
    import flax.linen as nn

    def kernel(*names):
        return nn.with_logical_partitioning(nn.initializers.lecun_normal(), names)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                h = nn.gelu(nn.Dense(64, use_bias=False, kernel_init=kernel("embed", "mlp"))(x))
                x = x + nn.Dense(16, use_bias=False, kernel_init=kernel("mlp", "embed"))(h)
            return x

    net, x = Net(), normal(16, 16)
    boxed = net.init(jax.random.key(0), x)
    params, names = nn.unbox(boxed), nn.get_partition_spec(boxed)

    def step(params, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean(net.apply(p, x) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    step = sf.export(step, params, x)
    plan = sf.pin(step, recipe="2d", ranks=4)
    rules = plan.axis_rules({"params": names})
    assert dict(rules) == {"embed": None, "mlp": "model"}
    found = plan.shardings()
    assert nn.logical_to_mesh_sharding(names, found.mesh, rules) == found.arguments["params"]
    odd = sf.pin(step, mesh="model=2", pins=["Dense_0/kernel=S(1)@model", "Dense_2/kernel=S(0)@model", "Dense_1/kernel=R@model",
                                             "Dense_3/kernel=R@model"])
    with pytest.raises(sf.SheafError, match="no rules say that"):
        odd.axis_rules({"params": names})
    with pytest.raises(sf.SheafError, match="has 4 arrays, and names for 1"):
        plan.axis_rules({"params": PartitionSpec("embed")})
