"""Plans out to PyTorch: what its users would write, DTensor placements by module and FSDP units, as a file."""

from __future__ import annotations

import math
import re

import torch

from .errors import Code, SheafError, usage
from .torch_export import TorchStep

PROGRAM = '''"""The plan of {name} for PyTorch: {ranks} ranks, {mesh}. Written by Sheaf.

In a program under `torchrun --nproc-per-node {ranks}`:

    mesh = parallelize(model)                      # before the optimizer is made
    optimizer = ...
    loss = step(model, optimizer, function, batch, mesh)

where function(model, batch) gives the mean loss of a batch, and every rank has the whole batch.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

MESH = {sizes}
MICRO_BATCHES = {micro_batches}
RESHARD_AFTER_FORWARD = {reshard}
RECOMPUTE = {recompute}
UNITS = [{units}]
TENSOR_PARALLEL = {{{tensor}}}
HEADS = {{{heads}}}


def parallelize(model, device="cpu"):
    """Splits the module where it is, and returns the mesh."""
    mesh = init_device_mesh(device, tuple(MESH.values()), mesh_dim_names=tuple(MESH))
    if TENSOR_PARALLEL:
        parallelize_module(model, mesh["model"], TENSOR_PARALLEL)
    for path, counts in HEADS.items():
        for name, count in counts.items():
            setattr(model.get_submodule(path), name, count)
    for path in UNITS if RECOMPUTE else []:
        recompute(model.get_submodule(path))
    if mesh["replicate", "shard"].size() > 1:
        for module in [model.get_submodule(path) for path in UNITS] + [model]:
            fully_shard(module, mesh=mesh["replicate", "shard"], reshard_after_forward=RESHARD_AFTER_FORWARD)
    return mesh


def recompute(module):
    forward = module.forward
    module.forward = lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **kwargs)


def parts(tree, count, index):
    """Part `index` of `count` of each tensor of a batch."""
    if isinstance(tree, torch.Tensor):
        return tree.chunk(count)[index] if tree.ndim else tree
    if isinstance(tree, dict):
        return {{key: parts(value, count, index) for key, value in tree.items()}}
    return type(tree)(parts(value, count, index) for value in tree) if isinstance(tree, (list, tuple)) else tree


def step(model, optimizer, function, batch, mesh):
    """Makes a step, and returns the loss of the whole batch."""
    ranks = mesh["replicate", "shard"].size()
    rank = mesh["replicate"].get_local_rank() * mesh["shard"].size() + mesh["shard"].get_local_rank()
    local, total = parts(batch, ranks, rank), 0.0
    optimizer.zero_grad()
    for i in range(MICRO_BATCHES):
        loss = function(model, parts(local, MICRO_BATCHES, i)) / MICRO_BATCHES
        loss.backward()
        total = total + loss.detach()
    optimizer.step()
    dist.all_reduce(total)
    return total / dist.get_world_size()
'''


def source_of(plan, approximate: bool = False) -> str:
    """A Python file with `parallelize(model)` and `step(...)`.

    Layouts of weights become ColwiseParallel and RowwiseParallel of their modules, axes of the batch one mesh of `fully_shard`, whose
    units are the layers, and recompute that of layers. A plan that PyTorch cannot say so is refused, with the first part of which
    this is true. approximate: sharded optimizer state of replicated parameters becomes sharded parameters that are kept after
    they are gathered, and other recompute that of layers, where it is half of the forward pass or more, or none.
    """
    step = plan.step
    if not isinstance(step, TorchStep):
        raise usage("the step is not one of sf.torch.export, so its modules are not known", "export it from PyTorch in this program")
    options = step._loss[2]
    if options["clip_norm"] is not None or options["clip_value"] is not None:
        raise usage("the step clips gradients, which the program for PyTorch does not", "export it without, and clip in the program")
    about = plan.explain().data
    batch_axes = find_batch_axes(plan)
    model_axes = [axis for axis in plan.mesh if axis not in batch_axes]
    state, parameters = shared_out(plan, "optimizer", batch_axes), shared_out(plan, "params", batch_axes)
    if state and not parameters and not approximate:
        raise usage("the plan shards the optimizer's state and replicates parameters, which fully_shard does not",
                    "approximate=True shards parameters as well; or plan with recipe='zero3' or 'dp'")
    ranks = math.prod(plan.mesh[axis] for axis in batch_axes)
    is_sharded = bool(state or parameters)
    sizes = {"replicate": 1 if is_sharded else ranks, "shard": ranks if is_sharded else 1,
             "model": math.prod(plan.mesh[axis] for axis in model_axes)}
    model = step._owners[0]
    units = [f"{path}.{name}" if path else name for path, module in model.named_modules() if isinstance(module, torch.nn.ModuleList)
             for name, _ in module.named_children()]
    units = [path for path in units if not any(path.startswith(f"{other}.") for other in units)]
    placed = dict(placements(plan, model, units, model_axes))
    return PROGRAM.format(
        name=step.name, ranks=plan.ranks, mesh=", ".join(f"{axis}={size}" for axis, size in plan.mesh.items()), sizes=sizes,
        micro_batches=about.get("micro_batches", 1), reshard="zero3" in (about.get("recipe") or ""),
        recompute=is_recomputed(about.get("recompute"), approximate), units=listed(map(repr, units)),
        tensor=listed(f"{path!r}: {how}" for path, how in placed.items()),
        heads=listed(f"{path!r}: {counts}" for path, counts in local_heads(model, placed, sizes["model"]).items()))


def specs(devices: int, recipe, mesh):
    """(recipe, mesh) of what PyTorch can say on so many devices."""
    if mesh:
        return [(name, mesh) for name in ([recipe] if recipe else ("dp", "zero3", "2d", "2d+zero3", "megatron"))]
    found = [("dp", {"data": devices}), ("zero3", {"data": devices}), ("megatron", {"model": devices})]
    for ranks in (n for n in range(2, devices) if devices % n == 0):
        found += [(name, {"data": devices // ranks, "model": ranks}) for name in ("2d", "2d+zero3")]
    return [(name, on) for name, on in found if recipe in (None, name)]


def plan_for(search, cluster, recipe, mesh, recompute, stages):
    """The fastest of the plans that `search(recipe=, mesh=, recompute=)` finds for what PyTorch can say."""
    if stages not in (None, 1, "1"):
        raise usage(f"stages={stages!r}: the program for PyTorch has no stages", 'leave stages out, or run the plan by sf.Session')
    found, reason = [], None
    for name, on in specs(cluster.devices, recipe, mesh):
        for how in [recompute] if recompute else ("none", "layer"):
            try:
                plan = search(recipe=name, mesh=on, recompute=how)
                source_of(plan)
                found.append(plan)
                break
            except SheafError as error:
                if error.code not in (Code.MISMATCH, Code.USAGE, Code.UNSUPPORTED):
                    raise
                reason = error
    if not found:
        raise reason or usage(f"the program for PyTorch cannot say the recipe {recipe!r}",
                              "recipes for it are dp, zero3, 2d, 2d+zero3 and megatron")
    return min(found, key=lambda plan: plan.seconds or math.inf)


def local_heads(model, placed, ranks) -> dict[str, dict[str, int]]:
    """Attention counts its heads in attributes; with its projections split, each rank has its part of them."""
    found = {}
    for path in {path.rpartition(".")[0] for path, how in placed.items() if how.startswith("Colwise")}:
        module = model.get_submodule(path)
        counts = {name: value // ranks for name in HEAD_COUNTS if isinstance(value := getattr(module, name, None), int)}
        if counts:
            found[path] = counts
    return dict(sorted(found.items()))


HEAD_COUNTS = ("num_heads", "num_attention_heads", "num_key_value_heads", "num_kv_heads", "n_heads", "n_head", "n_kv_heads")


def listed(rows) -> str:
    rows = [f"    {row},\n" for row in rows]
    return "\n" + "".join(rows) if rows else ""


def split_dim(share: str, of: str, axis: str) -> int | None:
    """The dimension that a share splits, None where it is whole."""
    if share == "R":
        return None
    match = re.fullmatch(r"S\((\d+)\)", share)
    if not match:
        raise usage(f"{of} is {share} over {axis}, which modules of PyTorch cannot say",
                    "plan without stages and strided layouts, by a recipe for example")
    return int(match[1])


def find_batch_axes(plan) -> list[str]:
    found = {}
    for argument in plan.step.arguments_of("batch"):
        for axis, share in plan.argument_layout(argument.index).axes.items():
            dim = split_dim(share, argument.path, axis)
            if dim:
                raise usage(f"{argument.path} is {share} over {axis}, which is no split of samples", "plan with pins of dimension 0 alone")
            found[axis] = found.get(axis, False) or dim == 0
    return [axis for axis, is_split in found.items() if is_split]


def shared_out(plan, tree, axes) -> bool:
    """Whether tensors of that kind are split over these axes."""
    return any(split_dim(plan.argument_layout(argument.index).axes[axis], argument.path, axis) is not None
               for argument in plan.step.arguments_of(tree) for axis in axes)


def is_recomputed(recompute, approximate) -> bool:
    if not recompute or recompute.get("by") == "layer":
        return bool(recompute)
    if not approximate:
        raise usage(f"the plan recomputes {recompute['share']:.0%} of the step, by {recompute.get('by', 'op')}, which modules cannot say",
                    "approximate=True recomputes layers or nothing; or plan with recompute='layer'")
    return recompute["share"] > 1 / 6


def placements(plan, model, units, axes):
    """(path, constructor) of the modules whose weights are split over the axes of the model. A module by columns passes its part on to
    one by rows in the same layer, if there is one after it."""
    dims = {}
    for argument, made in zip(plan.step.arguments, plan.step._trace.arguments):
        if made.tree == "params":
            layout = plan.argument_layout(argument.index).axes
            shares = {split_dim(layout[axis], argument.path, axis) for axis in axes}
            if len(shares) > 1:
                raise usage(f"{argument.path} is split over some of the axes {', '.join(axes)} and not over others",
                            "plan with one axis for the model")
            path, _, name = made.path[0].rpartition(".")
            dims.setdefault(path, {})[name] = next(iter(shares), None)
    kinds = []
    for path, split in dims.items():
        if all(dim is None for dim in split.values()):
            continue
        module, dim = model.get_submodule(path), split.get("weight")
        others = {name: where for name, where in split.items() if name not in ("weight", "bias")}
        known = isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) and dim in (0, 1) and not others
        if not known:
            raise usage(f"{path}, a {type(module).__name__}, is split over {', '.join(axes)}; PyTorch has that for Linear and Embedding",
                        "plan with pins that replicate it")
        is_table = isinstance(module, torch.nn.Embedding)
        kinds.append((path, "embedding" if is_table else "linear", (dim == 0) != is_table))
    for i, (path, kind, by_columns) in enumerate(kinds):
        unit = next((unit for unit in units if path.startswith(f"{unit}.")), None)
        inside = [other for other in kinds if unit and other[0].startswith(f"{unit}.")]
        place = inside.index(kinds[i]) if unit else 0
        if by_columns:
            is_passed_on = any(not columns for _, _, columns in inside[place + 1:])
            yield path, "ColwiseParallel()" if is_passed_on else "ColwiseParallel(output_layouts=Replicate())"
        else:
            is_given = kind == "linear" and any(columns for _, _, columns in inside[:place])
            yield path, "RowwiseParallel()" if is_given else "RowwiseParallel(input_layouts=Replicate())"
