"""Layouts of a plan as JAX says them: meshes, PartitionSpecs, NamedShardings.

A layout splits a dimension by digits: an axis of n ranks with period P takes every block of P indices apart into n equal
parts. JAX says the splits that take the whole dimension apart, axis after axis. A strided split leaves indices in front of
the digit of an axis, so JAX says it only of the tensor with these digits as dimensions.
"""

from __future__ import annotations

import dataclasses
import math
import re

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .errors import Code, Diagnostic, SheafError, usage
from .plans import Layout, Plan
from .steps import tree_path


def unsupported(text: str, hint: str = "") -> SheafError:
    return SheafError(Code.UNSUPPORTED, [Diagnostic("error", text, hint)])


def make_mesh(plan: Plan, devices=None) -> Mesh:
    """The mesh of a plan: its axes, over the first devices. Ranks are numbered as they are in it."""
    if isinstance(devices, Mesh):
        devices = list(devices.devices.flat)
    devices = list(jax.devices() if devices is None else devices)
    sizes = tuple(plan.mesh.values())
    if len(devices) < math.prod(sizes):
        raise usage(f"the plan is for {math.prod(sizes)} devices, and there are {len(devices)}",
                    "XLA_FLAGS=--xla_force_host_platform_device_count=N makes N of one CPU")
    return Mesh(np.array(devices[: math.prod(sizes)], dtype=object).reshape(sizes), tuple(plan.mesh))


@dataclasses.dataclass(frozen=True)
class Digit:
    size: int
    axis: str | None
    """the axis that splits it; None: none does"""


class Split:
    """How a tensor is split: the digits of each dimension, the first counting most."""

    def __init__(self, layout: Layout, sizes: dict[str, int]):
        self.layout = layout
        self.digits = [self._digits(dim, layout.shape[dim], sizes) for dim in range(len(layout.shape))]

    def _digits(self, dim: int, size: int, sizes: dict[str, int]) -> list[Digit]:
        inner, splits = size, []
        for axis, share in self.layout.axes.items():
            match = re.fullmatch(r"S\((\d+)(?:,(\d+))?\)", share)
            if not match and share != "R":
                raise unsupported(f"{self.layout.name} is {share} over {axis}, which is no layout of JAX",
                                  "pipelines and uneven partitions do not leave to JAX: plan with stages=1")
            if match and int(match[1]) == dim and sizes[axis] > 1:
                period = int(match[2]) if match[2] else inner
                splits.append((period, sizes[axis], axis))
                inner = period // sizes[axis]
        digits, left = [], size
        for period, parts, axis in sorted(splits, key=lambda split: -split[0]):
            if left > period:
                digits.append(Digit(left // period, None))
            digits.append(Digit(parts, axis))
            left = period // parts
        return digits + [Digit(left, None)] if left > 1 or not digits else digits

    @staticmethod
    def _leading(digits: list[Digit]) -> list[str]:
        """The axes that split the dimension as JAX does."""
        axes = []
        for digit in digits:
            if digit.axis is None:
                break
            axes.append(digit.axis)
        return axes

    @property
    def is_said(self) -> bool:
        """Whether a PartitionSpec of the tensor says it."""
        return all(map(self.is_said_of, self.digits))

    def is_said_of(self, digits: list[Digit]) -> bool:
        return len(self._leading(digits)) == sum(digit.axis is not None for digit in digits)

    @property
    def spec(self) -> PartitionSpec:
        """What a PartitionSpec of the tensor says of it; axes that it cannot say are replicated."""
        return make_spec([self._leading(digits) for digits in self.digits])

    @property
    def digit_shape(self) -> tuple[int, ...]:
        return tuple(digit.size for digits in self.digits for digit in digits)

    @property
    def digit_spec(self) -> PartitionSpec:
        """Of the tensor with its digits as dimensions: all of it."""
        return make_spec([[digit.axis] if digit.axis else [] for digits in self.digits for digit in digits])

    @property
    def shard_shape(self) -> tuple[int, ...]:
        return tuple(math.prod(digit.size for digit in digits if not digit.axis) for digits in self.digits)

    @property
    def digit_shard_shape(self) -> tuple[int, ...]:
        return tuple(1 if digit.axis else digit.size for digits in self.digits for digit in digits)


def make_spec(axes: list[list[str]]) -> PartitionSpec:
    return PartitionSpec(*(None if not names else names[0] if len(names) == 1 else tuple(names) for names in axes))


def argument_splits(plan: Plan) -> list[Split]:
    """Of the arguments of the step, in their order."""
    sizes = plan.mesh
    return [Split(plan.argument_layout(argument.index), sizes) for argument in plan.step.arguments]


def result_splits(plan: Plan) -> list[Split]:
    sizes = plan.mesh
    return [Split(plan.result_layout(result.index), sizes) for result in plan.step.results]


def refuse_unsaid(splits: list[Split]) -> None:
    unsaid = [split.layout for split in splits if not split.is_said]
    if unsaid:
        names = ", ".join(f"{layout.name} {layout}" for layout in unsaid[:3]) + ("" if len(unsaid) <= 3 else ", ...")
        raise unsupported(f"no PartitionSpec says the layout of {names}",
                          'layouts="nearest" replicates these over the axes that it cannot say; '
                          'sf.plan(..., target="jax") finds plans without them')


@dataclasses.dataclass(frozen=True)
class Shardings:
    """NamedShardings of the arguments and the results of a step."""

    mesh: Mesh
    arguments: object
    """as the step is called: a dictionary of trees by name of the argument; of a step that was not exported here, by leaf"""
    results: object
    """as the step returns: its tree; of a step that was not exported here, a list"""


def leaf_sharding(mesh: Mesh, split: Split, ndim: int) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*split.spec[:ndim]))


def shardings(plan: Plan, devices=None, layouts: str = "exact") -> Shardings:
    """NamedShardings of arguments and results.

    devices: those that ranks run on, in their order, or a mesh of them. None: the first of `jax.devices()`.
    layouts: "exact": an error where JAX cannot say a layout; "nearest": it is replicated over the axes that cannot be said.
    """
    mesh = make_mesh(plan, devices)
    arguments, results = argument_splits(plan), result_splits(plan)
    if check_layouts(layouts) == "exact":
        refuse_unsaid(arguments + results)
    call = getattr(plan.step, "_call", None)
    if call is None:
        return Shardings(mesh, {a.name: NamedSharding(mesh, s.spec) for a, s in zip(plan.step.arguments, arguments)},
                         [NamedSharding(mesh, split.spec) for split in results])

    def of(leaves, splits):
        return [leaf_sharding(mesh, split, leaf.ndim) for leaf, split in zip(leaves, splits)]

    outs, structure = jax.tree.flatten(call.result)
    return Shardings(mesh, call.trees(of(call.leaves(), arguments)), jax.tree.unflatten(structure, of(outs, results)))


def check_layouts(layouts: str) -> str:
    if layouts not in ("exact", "nearest"):
        raise usage(f"layouts={layouts!r} is neither \"exact\" nor \"nearest\"")
    return layouts


def plan_for(target: str, search, pins: list[str], stages) -> Plan:
    """The plan that `search(pins, stages)` finds among those that JAX can run. A layout of an argument that no PartitionSpec
    says is forbidden, and the search made once more."""
    if target != "jax":
        raise usage(f"there is no target {target!r}", 'targets are "jax" and "torch"')
    if stages not in (None, 1, "1"):
        raise unsupported(f"stages={stages!r}: a pipeline has a program for each stage, and JAX runs one on all devices",
                          'leave stages out, or run the plan by sf.Session or the command "sheaf"')
    while True:
        plan = search(pins, 1)
        forbidden = [f"/{tree_path(split.layout.name)}=!S({dim})@*" for split in argument_splits(plan) if not split.is_said
                     for dim, digits in enumerate(split.digits) if not split.is_said_of(digits)]
        if not forbidden:
            return plan
        if set(forbidden) <= set(pins):
            refuse_unsaid(argument_splits(plan))
        pins = pins + [pin for pin in forbidden if pin not in pins]


def axis_rules(plan: Plan, names: dict) -> list[tuple[str, str | tuple[str, ...] | None]]:
    """Rules of logical axes, ("mlp", "model"), that say the layouts of these arguments: as `flax.linen.logical_axis_rules` and
    models that read such rules take them.

    names: by name of an argument the logical axes of its leaves, a tree of PartitionSpecs as `nn.get_partition_spec` and
        `nnx.get_partition_spec` give it.
    """
    call = getattr(plan.step, "_call", None)
    if call is None:
        raise usage("the plan is of a step that was read from a file, so JAX does not know its trees",
                    "export it here: step = sf.export(function, ...); plan = sf.load_plan(path, step)")
    splits = call.trees(argument_splits(plan))
    rules = {}
    for name, tree in names.items():
        if name not in splits:
            raise usage(f"the step has no argument {name!r}: {', '.join(splits)}")
        ours = jax.tree.leaves(splits[name])
        theirs = jax.tree.leaves(tree, is_leaf=lambda leaf: leaf is None or isinstance(leaf, PartitionSpec))
        if len(ours) != len(theirs):
            raise usage(f"{name} has {len(ours)} arrays, and names for {len(theirs)}")
        refuse_unsaid(ours)
        for split, logical in zip(ours, theirs):
            add_rules(rules, split, tuple(logical or ()))
    return [(logical, axes) for logical, (axes, _) in rules.items()]


def add_rules(rules: dict, split: Split, logical: tuple) -> None:
    """Adds what one tensor says: by logical axis the axes of the mesh, and the tensor that said it first."""
    for dim, axes in enumerate(tuple(split.spec)):
        axis = logical[dim] if dim < len(logical) else None
        if axis is None and axes is not None:
            raise unsupported(f"dimension {dim} of {split.layout.name} is split over {axes}, and has no logical axis")
        if axis is None:
            continue
        had = rules.setdefault(axis, (axes, split.layout.name))
        if had[0] != axes:
            raise unsupported(f"the logical axis {axis!r} is {'not split' if had[0] is None else f'over {had[0]}'} in {had[1]}, "
                              f"and {'not split' if axes is None else f'over {axes}'} in {split.layout.name}: no rules say that",
                              "pin one of the two, or use plan.shardings()")
