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
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import Code, Diagnostic, SheafError, usage

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


def is_tensor(value) -> bool:
    return isinstance(value, torch.Tensor)


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


class Optimizer:
    """A torch.optim optimizer, whose state and numbers become arguments."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: dict[str, torch.nn.Parameter]):
        self.optimizer = optimizer
        names = {id(parameter): name for name, parameter in parameters.items()}
        self.groups = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) not in names:
                    raise usage("the optimizer has a parameter that is not the model's",
                                "make the optimizer of model.parameters(), after the model is where it stays")
            self.groups.append([names[id(parameter)] for parameter in group["params"]])
        self.state = self.first_state(parameters)

    def first_state(self, parameters) -> dict[tuple[str, str], torch.Tensor]:
        """By name of the state and of the parameter. What the optimizer has already is taken; the rest is made as it makes it."""
        optimizer, found = self.optimizer, {}
        made = self.made_state(parameters)
        for group, names in zip(optimizer.param_groups, self.groups):
            for name in names:
                state = optimizer.state.get(parameters[name]) or made.get(name, {})
                for key, value in state.items():
                    if value is None:
                        continue
                    if not is_tensor(value):
                        raise usage(f"the optimizer's state {key!r} of {name} is {type(value).__name__}, not a tensor",
                                    "optimizers of torch.optim have tensors alone")
                    found[key, name] = value.detach()
        return found

    def made_state(self, parameters) -> dict[str, dict]:
        """Calls the optimizer's own `_init_group` on parameters whose gradients are zero."""
        optimizer = self.optimizer
        kind = type(optimizer)
        if all(optimizer.state.get(parameters[name]) for names in self.groups for name in names):
            return {}
        if not hasattr(optimizer, "_init_group"):
            raise usage(f"{kind.__name__} does not say which state it begins with", "make one step with it, and export then")
        stand_ins, before, fields = {}, optimizer.state, kind._init_group.__code__.co_argcount - 2
        optimizer.state = defaultdict(dict)
        try:
            for group, names in zip(optimizer.param_groups, self.groups):
                names = [name for name in names if parameters[name].requires_grad]
                for name in names:
                    parameter = parameters[name].detach()
                    parameter.grad = torch.zeros((), dtype=parameter.dtype, device=parameter.device).expand(parameter.shape)
                    stand_ins[name] = parameter
                optimizer._init_group({**group, "params": [stand_ins[name] for name in names]}, *([] for _ in range(fields)))
            state = {name: optimizer.state[parameter] for name, parameter in stand_ins.items()}
        finally:
            optimizer.state = before
        if isinstance(optimizer, torch.optim.SGD):
            self.add_momentum(parameters, state)
        return state

    def add_momentum(self, parameters, state) -> None:
        """SGD's buffer is the gradient after the first step, which a buffer of zeros gives as well, unless it is damped."""
        for group, names in zip(self.optimizer.param_groups, self.groups):
            if group["momentum"] and group["dampening"] and not all(parameters[name] in self.optimizer.state for name in names):
                raise usage("SGD with dampening begins with another formula than it goes on with",
                            "make one step with it, and export then")
            for name in names if group["momentum"] else []:
                state[name] = {"momentum_buffer": torch.zeros_like(parameters[name])}

    @contextlib.contextmanager
    def on(self, parameters: dict, state: dict, rates: list):
        """The optimizer has these parameters, this state and these rates meanwhile; `state` has the new state afterwards. Counts
        are computed with in double precision, as PyTorch does with Python's numbers."""
        optimizer, groups, before = self.optimizer, self.optimizer.param_groups, self.optimizer.state
        taken = {"fused": False, "foreach": False}
        try:
            optimizer.param_groups = [
                group | {"params": [parameters[name] for name in names], "lr": rate} | {key: taken[key] for key in taken if key in group}
                | ({"capturable": True} if "capturable" in group else {})
                for group, names, rate in zip(groups, self.groups, rates)]
            optimizer.state = defaultdict(dict)
            shaped = {key for (key, _), value in state.items() if value.ndim}
            for (key, name), value in state.items():
                is_count = key not in shaped and (key == "step" or parameters[name].ndim)
                optimizer.state[parameters[name]][key] = value.double() if is_count else value
            with mock.patch("torch.compiler.is_compiling", lambda: True), NumbersAsTensors(), adafactor_numbers():
                yield optimizer
            for (key, name), value in state.items():
                state[key, name] = optimizer.state[parameters[name]][key].to(value.dtype)
        finally:
            optimizer.param_groups, optimizer.state = groups, before


class NumbersAsTensors(TorchFunctionMode):
    """What optimizers take out of tensors as numbers stays in tensors: rates and counts are values of the step."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "item":
            return args[0]
        if is_tensor(kwargs.get("alpha")) and name.strip("_") in ("add", "sub"):
            return func(args[0], args[1] * kwargs["alpha"])
        if is_tensor(kwargs.get("value")) and name.strip("_") in ("addcmul", "addcdiv"):
            return func(args[0], args[1] * kwargs["value"], args[2])
        return func(*args, **kwargs)


@contextlib.contextmanager
def adafactor_numbers():
    """Adafactor compares numbers that it takes out of tensors."""

    def chosen(of_tensors, of_numbers):
        def choose(a, b):
            if is_tensor(a) or is_tensor(b):
                return of_tensors(*(x if is_tensor(x) else torch.tensor(float(x)) for x in (a, b)))
            return of_numbers(a, b)

        return choose

    module = sys.modules["torch.optim._adafactor"]
    with mock.patch.object(module, "min", chosen(torch.minimum, min), create=True), \
            mock.patch.object(module, "max", chosen(torch.maximum, max), create=True):
        yield


class Formulas(TorchFunctionMode):
    """Functions as their formulas, which each device then runs as it does best, where PyTorch would record the kernel of the device
    at hand, or strides. PyTorch's own functions call each other without modes, so their names are patched as well."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return FORMULAS.get(func, func)(*args, **(kwargs or {}))

    def __enter__(self):
        self.patches = contextlib.ExitStack()
        for function, formula in FORMULAS.items():
            self.patches.enter_context(mock.patch.object(torch.nn.functional, function.__name__, formula))
        return super().__enter__()

    def __exit__(self, *error):
        self.patches.close()
        return super().__exit__(*error)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-2, -1)).float() * scale
    if is_causal:
        rows, columns = (torch.arange(n, device=query.device) for n in scores.shape[-2:])
        attn_mask = rows[:, None] >= columns
    if attn_mask is not None:
        hidden = torch.finfo(scores.dtype).min
        scores = torch.where(attn_mask, scores, hidden) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = torch.softmax(scores, -1).to(value.dtype)
    return (torch.dropout(weights, dropout_p, True) if dropout_p else weights) @ value


@contextlib.contextmanager
def without_mkldnn():
    """Recurrent layers are then recorded as their formulas, too."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def average_pool(input, output_size):
    if output_size in (1, (1, 1), [1, 1]):
        return input.mean((-1, -2), keepdim=True)
    return torch.ops.aten._adaptive_avg_pool2d(input, [output_size] * 2 if isinstance(output_size, int) else [
        size if out is None else out for size, out in zip(input.shape[-2:], output_size)])


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """From the logits alone: PyTorch keeps their logarithmic softmax for the backward pass as well."""
    if target.is_floating_point() or weight is not None or size_average is not None or reduce is not None or label_smoothing or not input.ndim:
        return CROSS_ENTROPY(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    input = input.float() if input.dtype in (torch.bfloat16, torch.float16) else input
    dim = min(1, input.ndim - 1)
    kept = target != ignore_index
    chosen = input.gather(dim, torch.where(kept, target, 0).unsqueeze(dim)).squeeze(dim)
    losses = torch.where(kept, input.logsumexp(dim) - chosen, 0)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / kept.sum()


CROSS_ENTROPY = torch.nn.functional.cross_entropy
FORMULAS = {torch.nn.functional.scaled_dot_product_attention: attention, torch.nn.functional.adaptive_avg_pool2d: average_pool,
            CROSS_ENTROPY: cross_entropy}


@contextlib.contextmanager
def experts(capacity):
    """Experts of transformers as products of one batch: their own kernels have as many rows as the router sends. Each expert
    takes at most `capacity` times its even share of the tokens, in their order; None: all."""

    def forward(self, hidden, index, weights):
        tokens, choices = index.shape
        chosen = torch.nn.functional.one_hot(index, self.num_experts)
        if capacity is None:
            combine = (chosen * weights[..., None]).sum(1).t()[..., None]
            return (apply_experts(self, hidden.expand(self.num_experts, *hidden.shape)) * combine).sum(0).to(hidden.dtype)
        rows = -(-int(tokens * choices * capacity) // self.num_experts)
        flat = chosen.reshape(-1, self.num_experts)
        places = ((flat.cumsum(0) - 1) * flat).reshape(chosen.shape)
        slots = torch.nn.functional.one_hot(places.clamp(max=rows), rows + 1)[..., :rows] * chosen[..., None]
        combine = (slots * weights[..., None, None]).sum(1)
        given = torch.einsum("tec,tk->eck", slots.sum(1).to(hidden.dtype), hidden)
        return torch.einsum("tec,ecn->tn", combine.to(hidden.dtype), apply_experts(self, given))

    interface = getattr(sys.modules.get("transformers.integrations.moe"), "ExpertsInterface", None)
    with mock.patch.object(interface, "get_interface", lambda *_: forward) if interface else contextlib.nullcontext():
        yield


def apply_experts(self, rows):
    """[experts, rows, features] through each expert's two products."""

    def linear(name, rows):
        weight = getattr(self, name)
        y = rows @ (weight if self.is_transposed else weight.transpose(-2, -1))
        return y + getattr(self, f"{name}_bias")[:, None] if self.has_bias else y

    if self.has_gate:
        return linear("down_proj", self._apply_gate(linear("gate_up_proj", rows)))
    return linear("down_proj", self.act_fn(linear("up_proj", rows)))


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


def scaler_state(scaler) -> dict[str, torch.Tensor]:
    state = scaler.state_dict()
    return {"scale": torch.tensor(state["scale"], dtype=torch.float32), "growth": torch.tensor(state["_growth_tracker"], dtype=torch.int32)}


class Scaling:
    """What a GradScaler does around the optimizer's step, without a branch: a step whose gradients are not finite leaves the
    parameters and the optimizer's state as they are."""

    def __init__(self, scaler, values, trained, state):
        """Brings the gradients to their size."""
        self.values, self.numbers = values, scaler.state_dict()
        with torch.no_grad():
            gradients = [tensor.grad for tensor in trained if tensor.grad is not None]
            self.is_off = torch.stack([torch.isfinite(gradient).all() for gradient in gradients]).all().logical_not()
            for gradient in gradients:
                gradient.mul_(values["scale",].double().reciprocal().float())
            self.before = [tensor.clone() for tensor in trained], {key: tensor.clone() for key, tensor in state.items()}

    def finish(self, trained, state) -> None:
        values, numbers = self.values, self.numbers
        parameters, others = self.before
        with torch.no_grad():
            for tensor, before in zip(trained, parameters):
                tensor.copy_(torch.where(self.is_off, before, tensor))
            for key, before in others.items():
                state[key] = torch.where(self.is_off, before, state[key])
            count = torch.where(self.is_off, 0, values["growth",] + 1)
            grows = count == numbers["growth_interval"]
            factor = torch.where(self.is_off, numbers["backoff_factor"], torch.where(grows, numbers["growth_factor"], 1.0))
            values["scale",] = (values["scale",] * factor).float()
            values["growth",] = torch.where(grows, 0, count).to(torch.int32)


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


KEPT = ("aten::logsumexp", "aten::lerp.Scalar", "aten::lerp.Tensor", "aten::addcmul", "aten::addcdiv", "aten::silu", "aten::native_layer_norm",
        "aten::native_group_norm")


def fake_like(mode, tensor):
    device = "cpu" if tensor.device.type == "meta" else tensor.device
    with mode:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return made.requires_grad_(tensor.requires_grad)


def loss_of(model, loss, batch, values):
    """The loss of a batch, with these parameters and buffers: docs/start/pytorch.md says what `loss` and `batch` may be."""
    call = torch.func.functional_call
    if isinstance(batch, dict):
        found = call(model, values, (), batch)
        given = batch
    elif isinstance(batch, (list, tuple)) and loss is not None:
        if len(batch) != 2:
            raise usage(f"the batch has {len(batch)} parts, and a loss takes pairs (inputs, targets)",
                        "give the batch as a dictionary, and loss(outputs, batch)")
        inputs, given = batch
        found = call(model, values, *(((), inputs) if isinstance(inputs, dict) else (tuple(inputs),) if isinstance(inputs, (list, tuple))
                                      else ((inputs,),)))
    else:
        found, given = call(model, values, tuple(batch) if isinstance(batch, (list, tuple)) else (batch,)), batch
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
        named = {name: value for tree in ("params", "buffers") for (name,), value in of[tree].items()}
        values = dict(named)
        cast = torch.autocast("cpu" if device == "meta" else device, autocast) if autocast else contextlib.nullcontext()
        with origins.of_modules():
            with cast, Formulas(), experts(expert_capacity), without_mkldnn():
                number = loss_of(model, loss, replaced(batch, of["batch"]), values)
            if number.numel() != 1:
                raise usage(f"the loss has the shape {tuple(number.shape)}, and must be one number")
            scale = of["scaler"]["scale",] if scaler is not None else 1
            (number.reshape(()) * scale).backward()
        trained = [value for (name,), value in of["params"].items() if value.requires_grad]
        scaling = Scaling(scaler, of["scaler"], trained, of["optimizer"]) if scaler is not None else None
        with updates.on({name: value for (name,), value in of["params"].items()}, of["optimizer"], list(of["lr"].values())) as taken:
            clip(trained, clip_norm, clip_value, foreach=False)
            fx_traceback.current_meta.pop(ORIGIN, None)
            taken.step()
        if scaling:
            scaling.finish(trained, of["optimizer"])
        for (name,) in of["buffers"]:
            of["buffers"][name,] = values[name]
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
    return Trace(graph, constants, [a for a, _ in pairs], [p for _, p in pairs], loss_node, origins.draws)


def step_in_torch(model, loss, optimizer, batch, *, clip_norm=None, clip_value=None, autocast=None, scaler=None) -> torch.Tensor:
    """The same step by PyTorch itself."""
    device = next(model.parameters()).device.type
    optimizer.zero_grad()
    with torch.autocast(device, autocast) if autocast else contextlib.nullcontext():
        number = loss_of(model, loss, batch, {})
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


def clip(parameters, norm, value, **options) -> None:
    parameters = list(parameters)
    if value is not None:
        torch.nn.utils.clip_grad_value_(parameters, value, **options)
    if norm is not None:
        torch.nn.utils.clip_grad_norm_(parameters, norm, **options)


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
