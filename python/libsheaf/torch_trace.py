"""A training step of PyTorch as one graph of functional ATen ops.

The user's own code runs once on fake tensors: the model, its loss, autograd, clipping, and the `step` of the optimizer. What
these do to tensors is recorded, so that they mean here what they mean in PyTorch. A second pass over the record replaces
changes in place by new values.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import sys
from collections import OrderedDict, defaultdict
from typing import Any
from unittest import mock

import torch
import torch.fx.traceback as fx_traceback
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Code, Diagnostic, SheafError, usage
from .torch_formulas import Formulas, experts, without_mkldnn
from .torch_optimizer import Optimizer, Scaling, clip, is_tensor, scaler_state

ORIGIN = "nn_module_stack"
"""the field of a node's meta that both passes carry along; here it has an Origin"""


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where an op comes from."""

    scope: tuple[str, ...] = ()
    """of the module: ("layers", "0", "attn")"""
    line: str = ""
    """of the user's source: "model.py:12\""""
    draw: int | None = None
    """of an op that draws random numbers, which one: an op that is recomputed draws the same"""

    def __str__(self):
        return " at ".join(filter(None, [".".join(self.scope), self.line]))


@dataclasses.dataclass
class Argument:
    """An argument of the step."""

    tree: str
    """"params", "buffers", "optimizer", "batch", "lr" or "scaler\""""
    path: tuple
    """keys in the tree"""
    value: torch.Tensor
    """at first: of the model itself, of the example batch, or made for the optimizer"""
    next: Any = None
    """the node of its value after the step, None where it stays as it is"""


@dataclasses.dataclass
class Trace:
    graph: torch.fx.Graph
    constants: dict[str, torch.Tensor]
    arguments: list[Argument]
    placeholders: list[torch.fx.Node]
    """of the arguments"""
    loss: torch.fx.Node
    draws: int


def tensors_of(tree, path=()):
    """The tensors of dictionaries and sequences with their paths."""
    if is_tensor(tree):
        yield path, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from tensors_of(value, (*path, key))
    elif isinstance(tree, (list, tuple)):
        for key, value in enumerate(tree):
            yield from tensors_of(value, (*path, key))


def replaced(tree, tensors: dict, path=()):
    """The tree with other tensors, by path."""
    if is_tensor(tree):
        return tensors[path]
    if isinstance(tree, dict):
        return {key: replaced(value, tensors, (*path, key)) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(replaced(value, tensors, (*path, key)) for key, value in enumerate(tree))
    return tree


class Origins(TorchDispatchMode):
    """Gives each op that is recorded its Origin. An op of the backward pass has the scope of the module whose op it belongs to:
    autograd numbers its nodes as they are made, and its node is known when it runs."""

    def __init__(self, model):
        super().__init__()
        self.stack, self.numbers, self.scopes = [()], [0], [()]
        self.draws, self.model = 0, model

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        scope, draw = self.stack[-1], None
        node = torch._C._current_autograd_node()
        if not scope and node is not None:
            scope = self.scopes[bisect.bisect_right(self.numbers, node._sequence_nr()) - 1]
        if torch.Tag.nondeterministic_seeded in func.tags:
            draw, self.draws = self.draws, self.draws + 1
        fx_traceback.current_meta[ORIGIN] = Origin(scope, source_line(), draw)
        return func(*args, **(kwargs or {}))

    def mark(self, scope):
        self.numbers.append(torch.autograd._get_sequence_nr())
        self.scopes.append(scope)

    def enter(self, name):
        def hook(*_):
            self.stack.append(tuple(name.split(".")))
            self.mark(self.stack[-1])

        return hook

    def leave(self, *_):
        self.stack.pop()
        self.mark(self.stack[-1])

    @contextlib.contextmanager
    def of_modules(self):
        handles = []
        for name, module in self.model.named_modules():
            if name:
                handles.append(module.register_forward_pre_hook(self.enter(name), prepend=True))
                handles.append(module.register_forward_hook(self.leave, always_call=True))
        try:
            # Checkpoints put the random state back for what they recompute; here it is the number of the next draw.
            with mock.patch("torch.get_rng_state", lambda: Draws(self.draws)), \
                    mock.patch("torch.set_rng_state", self.set_draws):
                yield
        finally:
            for handle in handles:
                handle.remove()

    def set_draws(self, state):
        self.draws = state.number


@dataclasses.dataclass(frozen=True)
class Draws:
    number: int


def source_line() -> str:
    """The innermost line that is not PyTorch's."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("torch.", "libsheaf.", "contextlib", "unittest")) and name != "torch":
            return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Functional(torch.fx.Interpreter):
    """Runs the first record for the second one, node by node, with the Origin of each."""

    def run_node(self, node):
        fx_traceback.current_meta[ORIGIN] = node.meta.get(ORIGIN, Origin())
        return super().run_node(node)


def batch_norm(input, weight, bias, mean, variance, training, momentum, eps):
    """native_batch_norm with its changes of `mean` and `variance` in the signature."""
    if mean is None:
        return torch.ops.aten._native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
    return torch.ops.aten._native_batch_norm_legit.default(input, weight, bias, mean, variance, training, momentum, eps)


FIRST = {torch.ops.aten.native_batch_norm.default: batch_norm}


def decompositions(known) -> dict:
    """Into core ATen, but for what XLA has as one op or the device's engine knows by its formula; and into what there is for ops that
    are not `known`."""
    others = {op: function for op, function in decomposition_table.items() if packet_of(op) not in known}
    return {op: function for op, function in (others | core_aten_decompositions()).items() if op.name() not in KEPT}


def packet_of(op) -> str:
    """The name of an ATen op without its overload: "add", "prims::iota"."""
    return op.name().removeprefix("aten::").partition(".")[0]


KEPT = ("aten::logsumexp", "aten::lerp.Scalar", "aten::lerp.Tensor", "aten::addcmul", "aten::addcdiv", "aten::silu",
        "aten::native_layer_norm", "aten::native_group_norm")


def fake_like(mode, tensor):
    device = "cpu" if tensor.device.type == "meta" else tensor.device
    with mode:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return made.requires_grad_(tensor.requires_grad)


class Whole(torch.nn.Module):
    """A module whose call is a whole step: PyTorch's functional_call then has its parameters and buffers replaced in the backward pass
    as well, in which checkpoints run parts of the model again."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, run):
        return run()


def loss_of(model, loss, batch):
    """The loss of a batch: docs/start/pytorch.md says what `loss` and `batch` may be."""
    inputs = given = batch
    if loss is not None and isinstance(batch, (list, tuple)):
        if len(batch) != 2:
            raise usage(f"the batch has {len(batch)} parts, and a loss takes pairs (inputs, targets)",
                        "give the batch as a dictionary, and loss(outputs, batch)")
        inputs, given = batch
    if isinstance(inputs, dict):
        found = model(**inputs)
    else:
        found = model(*inputs) if isinstance(inputs, (list, tuple)) else model(inputs)
    if loss is not None:
        return loss(found, given)
    if not is_tensor(found):
        found = getattr(found, "loss", None) if not isinstance(found, dict) or hasattr(found, "loss") else found.get("loss")
    if not is_tensor(found):
        raise usage("the model gives no loss: it returns neither a number nor something with .loss",
                    "give loss=function of the model's outputs and the targets; models of transformers need labels in the batch")
    return found


def trace(model, loss, optimizer, batch, *, clip_norm=None, clip_value=None, autocast=None, scaler=None, expert_capacity=None,
          known=()) -> Trace:
    """Records a step, with the ops that are `known` and those of core ATen. Nothing of the model or the optimizer changes."""
    parameters = dict(model.named_parameters())
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise usage("no parameter of the model requires a gradient")
    updates = Optimizer(optimizer, parameters)
    arguments = [Argument("params", (name,), value) for name, value in parameters.items()]
    arguments += [Argument("buffers", (name,), value) for name, value in model.named_buffers()]
    arguments += [Argument("optimizer", path, value) for path, value in sorted(updates.state.items(), key=lambda item: item[0][0])]
    arguments += [Argument("batch", path, value) for path, value in tensors_of(batch)]
    several = len(updates.groups) > 1
    arguments += [Argument("lr", (i,) if several else (), torch.as_tensor(group["lr"], dtype=torch.float64).detach().cpu())
                  for i, group in enumerate(optimizer.param_groups)]
    if scaler is not None:
        arguments += [Argument("scaler", (key,), value) for key, value in scaler_state(scaler).items()]
    device = next(iter(parameters.values())).device.type
    origins = Origins(model)

    def step(*tensors):
        of = defaultdict(OrderedDict)
        for argument, tensor in zip(arguments, tensors):
            of[argument.tree][argument.path] = tensor
        values = {f"model.{name}": value for tree in ("params", "buffers") for (name,), value in of[tree].items()}

        def differentiate():
            with torch.autocast("cpu" if device == "meta" else device, autocast) if autocast else contextlib.nullcontext():
                number = loss_of(model, loss, replaced(batch, of["batch"]))
            if number.numel() != 1:
                raise usage(f"the loss has the shape {tuple(number.shape)}, and must be one number")
            scale = of["scaler"]["scale",] if scaler is not None else 1
            (number.reshape(()) * scale).backward()
            return number

        with origins.of_modules(), Formulas(), experts(expert_capacity), without_mkldnn():
            number = torch.func.functional_call(Whole(model), values, (differentiate,))
        trained = [value for (name,), value in of["params"].items() if value.requires_grad]
        scaling = Scaling(scaler, of["scaler"], trained, of["optimizer"]) if scaler is not None else None
        with updates.on({name: value for (name,), value in of["params"].items()}, of["optimizer"], list(of["lr"].values())) as taken:
            clip(trained, clip_norm, clip_value, foreach=False)
            fx_traceback.current_meta.pop(ORIGIN, None)
            taken.step()
        if scaling:
            scaling.finish(trained, of["optimizer"])
        for (name,) in of["buffers"]:
            of["buffers"][name,] = values[f"model.{name}"]
        return [number.detach().reshape(())] + [of[argument.tree][argument.path].detach() for argument in arguments]

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake_like(mode, argument.value) for argument in arguments]
    plain = [fake.detach() for fake in fakes]
    with fx_traceback.preserve_node_meta(), mode:
        def recorded(*tensors):
            with origins:
                return step(*tensors)

        first = in_torch(lambda: make_fx(recorded, decomposition_table=FIRST)(*fakes))
        with torch.no_grad():
            run = Functional(first).run
            functional = torch.func.functionalize(lambda *tensors: run(*tensors), remove="mutations")
            second = in_torch(lambda: make_fx(functional, decomposition_table=decompositions(known))(*plain))
    graph = second.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.aten.copy_.default:
            graph.erase_node(node)
    output = next(node for node in graph.nodes if node.op == "output")
    loss_node, *results = output.args[0]
    for argument, placeholder, result in zip(arguments, placeholders, results):
        argument.next = None if source(result) is placeholder else result
    output.args = ([loss_node] + [argument.next for argument in arguments if argument.next is not None],)
    graph.eliminate_dead_code()
    pairs = [(argument, placeholder) for argument, placeholder in zip(arguments, placeholders)
             if argument.tree != "optimizer" or argument.next is not None]
    constants = {node.target: getattr(second, node.target) for node in graph.nodes if node.op == "get_attr"}
    own = {argument.value.data_ptr(): argument.path[0] for argument in arguments if argument.tree in ("params", "buffers")}
    for constant in constants.values():
        if constant.data_ptr() and constant.data_ptr() in own:
            raise usage(f"the model has {own[constant.data_ptr()]} in another place as well, out of reach of its modules",
                        "reach parameters and buffers by their modules alone")
    return Trace(graph, constants, [a for a, _ in pairs], [p for _, p in pairs], loss_node, origins.draws)


def step_in_torch(model, loss, optimizer, batch, *, clip_norm=None, clip_value=None, autocast=None, scaler=None) -> torch.Tensor:
    """The same step by PyTorch itself."""
    device = next(model.parameters()).device.type
    optimizer.zero_grad()
    with torch.autocast(device, autocast) if autocast else contextlib.nullcontext():
        number = loss_of(model, loss, batch)
    (number if scaler is None else scaler.scale(number)).backward()
    if scaler is not None:
        scaler.unscale_(optimizer)
    clip(model.parameters(), clip_norm, clip_value)
    if scaler is not None:
        scaler.step(optimizer)
        scaler.update()
    else:
        type(optimizer).step(optimizer)  # the instance may have one that counts for a scheduler
    return number.detach().reshape(())


def source(node):
    while node.op == "call_function" and node.target in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
        node = node.args[0]
    return node


def in_torch(function):
    """What cannot be recorded, as an error that says where."""
    try:
        return function()
    except torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode as error:
        raise refused(error) from error
    except torch._subclasses.fake_tensor.DataDependentOutputException as error:
        raise refused(error) from error
    except torch._subclasses.fake_tensor.DynamicOutputShapeException as error:
        raise refused(error) from error


def refused(error):
    origin = fx_traceback.current_meta.get(ORIGIN) or Origin()
    return SheafError(Code.UNSUPPORTED, [Diagnostic("error", f"{error}: the step depends on values of tensors, at {origin}",
                      "Sheaf takes steps of static shapes without branches on values: write it with torch.where")])
