"""Plans that run in JAX.

The programs of a plan's ranks are one StableHLO module (`sf_plan_save_stablehlo`), with the plan's collectives, its recompute
and its loops over micro-batches. JAX takes it as the module of an exported function, which `jax.shard_map` calls on each
device, so the compiler gets all layouts of inner values as the plan has them.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from .errors import usage
from .jax_collectives import Comparison, compiled_traffic, planned_traffic
from .jax_export import Call, JaxStep, export
from .jax_shardings import (Shardings, argument_splits, check_layouts, leaf_sharding, make_mesh, refuse_unsaid,
                            result_splits, shardings)
from .jax_tree import is_key, loaded, word_shape
from .library import DIAG, Text, call_long
from .plans import Plan


def program_text(plan: Plan) -> str:
    """The programs of all ranks as StableHLO."""
    out = Text()
    call_long("sf_plan_save_stablehlo", plan._handle, plan.step._handle, out.ref, DIAG)
    return str(out)


def serialize(text: str) -> bytes:
    version = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4)
    with mlir.make_ir_context():
        return stablehlo.serialize_portable_artifact(ir.Module.parse(text), version, True)


def exported_function(text: str, arguments, results):
    """The module as an exported function of JAX: its arguments and results have these types."""
    def stand_in(*given):
        return [jnp.zeros(result.shape, result.dtype) for result in results]

    made = jax_export.export(jax.jit(stand_in, keep_unused=True))(*arguments)
    checks = (jax_export.DisabledSafetyCheck.platform(),)
    return dataclasses.replace(made, mlir_module_serialized=serialize(text), disabled_safety_checks=checks)


def make_flat(plan: Plan, mesh, arguments, results, dtypes, result_dtypes):
    """The step on whole arrays, in the layouts of the plan, over the mesh."""
    rank = jax.ShapeDtypeStruct((), np.int32)
    shards = [jax.ShapeDtypeStruct(split.shard_shape, dtype) for split, dtype in zip(arguments, dtypes)]
    made = [jax.ShapeDtypeStruct(split.shard_shape, dtype) for split, dtype in zip(results, result_dtypes)]
    function = exported_function(program_text(plan), [rank, *shards], made)

    def on_device(*given):
        given = [array.reshape(split.shard_shape) for array, split in zip(given, arguments)]
        number = jax.lax.axis_index(mesh.axis_names).astype(np.int32)
        return [array.reshape(split.digit_shard_shape) for array, split in zip(function.call(number, *given), results)]

    split_step = jax.shard_map(on_device, mesh=mesh, in_specs=tuple(split.digit_spec for split in arguments),
                               out_specs=[split.digit_spec for split in results], check_vma=False)

    def step(*given):
        given = [array.reshape(split.digit_shape) for array, split in zip(given, arguments)]
        return [array.reshape(split.layout.shape) for array, split in zip(split_step(*given), results)]

    return step


class Planned:
    """A user's function that runs as a plan says, over devices. Called as the function is.

    `jitted` is the same of a list of arrays, the leaves of the arguments in their order: a jitted function of JAX, to lower,
    to compile, or to call. `shardings` are those of its arguments and results.
    """

    def __init__(self, plan: Plan, function, mesh, layouts, donate):
        arguments, results = argument_splits(plan), result_splits(plan)
        if layouts == "exact":
            refuse_unsaid(arguments + results)
        self.plan, self.function, self.mesh = plan, function, mesh
        self.call = plan.step._call
        self.shardings: Shardings = shardings(plan, mesh, "nearest")
        leaves, outs = self.call.leaves(), jax.tree.leaves(self.call.result)
        self.types = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        flat = make_flat(plan, mesh, arguments, results, [word_shape(leaf).dtype for leaf in leaves],
                         [word_shape(leaf).dtype for leaf in outs])

        def step(*given):
            words = [jax.random.key_data(array) if is_key(array) else array for array in given]
            made = flat(*words)
            return [jax.random.wrap_key_data(array, impl=kind) if kind else array for array, kind in zip(made, self.call.key_kinds)]

        owners = [name for name, tree in self.call.arrays.items() for _ in jax.tree.leaves(tree)]
        kept = [argument.next is not None for argument in plan.step.arguments]
        donated = self.call.donated if donate is None else set(owners) if donate else set()
        self.jitted = jax.jit(step, in_shardings=tuple(leaf_sharding(mesh, split, leaf.ndim)
                                                       for split, leaf in zip(arguments, leaves)),
                              out_shardings=[leaf_sharding(mesh, split, leaf.ndim) for split, leaf in zip(results, outs)],
                              donate_argnums=tuple(i for i, owner in enumerate(owners) if owner in donated and kept[i]))

    def _call_of(self, args, kwargs) -> Call:
        call = Call(self.function, args, kwargs, (), self.call.static)
        if list(call.arrays) != list(self.call.arrays) or call.structure() != self.call.structure():
            raise usage("the step is called with other trees than it was exported with",
                        f"arguments were {', '.join(self.call.arrays)}; export it with arguments of this form")
        return call

    def _leaves(self, call) -> list:
        leaves = call.leaves()
        for argument, leaf, kind in zip(self.plan.step.arguments, leaves, self.types):
            if leaf.shape != kind.shape or leaf.dtype != kind.dtype:
                raise usage(f"{argument.name} is {leaf.dtype}{list(leaf.shape)}, and the plan is for "
                            f"{kind.dtype}{list(kind.shape)}")
        return leaves

    def _place(self, call) -> list:
        return jax.device_put(self._leaves(call), jax.tree.leaves(list(self.shardings.arguments.values())))

    def compile(self):
        """Compiles, and gives what JAX compiled: `jax.stages.Compiled`, of the leaves of the arguments."""
        return self.jitted.lower(*self.types).compile()

    def collectives(self, compiled=None) -> Comparison:
        """The collectives of the plan, beside those of the program that XLA compiled: what `compile` gave, or gives."""
        return Comparison(planned_traffic(self.plan), compiled_traffic((compiled or self.compile()).as_text()))

    def __call__(self, *args, **kwargs):
        call = self._call_of(args, kwargs)
        leaves = self._leaves(call)
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            leaves = self._place(call)
        results = jax.tree.unflatten(jax.tree.structure(self.call.result), self.jitted(*leaves))
        places = dict(zip(call.positional.places, args)) | {name: kwargs[key] for key, name in call.positional.keywords.items()}
        if self.call.modules.names:
            after, results = results
            update_modules(call, places, after)
        return self.call.join_result(results, places)


def update_modules(call, arguments: dict, after) -> None:
    """Puts the new arrays into the modules of flax.nnx that the step was called with."""
    nnx = loaded("flax.nnx")
    values = [arguments[name] for name in call.modules.names]
    state = nnx.split(values)[1]
    nnx.replace_by_pure_dict(state, {number: after[name] for number, name in enumerate(call.modules.names)})
    nnx.update(values, state)


def jit(plan: Plan, function=None, devices=None, *, layouts: str = "exact", donate: bool | None = None) -> Planned:
    """The step as JAX runs it by this plan: a function that is called as the one that was exported.

    function: the one that was exported, or another that computes the same; None: the one that was exported.
    devices, layouts: as of `Plan.shardings`.
    donate: arguments that come back are donated. None: those that the function's own jit donates, or `export` named.
    """
    step = plan.step
    mesh = make_mesh(plan, devices)
    if not isinstance(step, JaxStep):
        raise usage("the plan is of a step that was read from a file, so JAX does not know its trees",
                    "export it here: step = sf.export(function, ...); plan = sf.load_plan(path, step)")
    if function is not None and function is not step._call.function:
        check_function(step, function)
    return Planned(plan, function or step._call.function, mesh, check_layouts(layouts), donate)


def check_function(step: JaxStep, function) -> None:
    """That another function computes the step."""
    call = step._call
    if call.modules.names:
        raise usage("the plan is of another function, and modules of flax.nnx are not known by their shapes alone",
                    "export this function, and plan that step")
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), call.arrays)
    made = {name: split.join(shapes[name]) for name, split in call.splits.items()} | call.static
    args, kwargs = call.positional.arrange(made)
    if export(function, *args, static_argnames=tuple(call.static), kwargs=kwargs).hash != step.hash:
        raise usage(f"{getattr(function, '__name__', 'the function')} does not compute the step that the plan is of",
                    "export this function, and plan that step")
