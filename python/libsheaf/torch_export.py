"""Steps out of PyTorch: `export` takes a module, a loss and an optimizer as they are."""

from __future__ import annotations

import contextlib
import copy
import operator
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import torch

from .errors import Code, Diagnostic, SheafError, usage
from .jax_export import write_safetensors
from .runs import Verification, verify
from .sessions import Session
from .steps import Step, Tensor
from .torch_merged import MERGED, Merged
from .torch_optimizer import scaler_state
from .torch_ops import DRAWS, OPS, dtype_of
from .torch_trace import ORIGIN, Origin, Trace, packet_of, step_in_torch, tensors_of, trace

ROLES = {"params": "param", "buffers": "opt_state", "optimizer": "opt_state", "batch": "batch", "lr": "other", "scaler": "opt_state"}


class TorchStep(Step):
    """A step that was exported out of PyTorch. Its arguments are parameters, buffers, the state of the optimizer by name of the
    parameter, the batch, the learning rates, and a key where the model draws random numbers."""

    _trace: Trace
    _owners: tuple
    """the module and the optimizer"""
    _loss: tuple
    """the loss, the example batch, and the options of `trace`"""

    def arguments_of(self, tree: str) -> list[Tensor]:
        """Those that are "params", "buffers", "optimizer", "batch" or "lr", in the order of the module or the batch."""
        return [argument for argument, made in zip(self.arguments, self._trace.arguments) if made.tree == tree]

    def values(self, seed: int = 0) -> dict[str, torch.Tensor]:
        """All arguments by path, as the module and the optimizer have them now: their own tensors, not copies. The batch is the
        example. `seed` is that of the key."""
        found = [self._tensor(made) for made in self._trace.arguments]
        if self._trace.draws:
            found.append(torch.tensor([0, seed], dtype=torch.uint32))
        return dict(zip((argument.path for argument in self.arguments), found))

    def write(self, session: Session, seed: int = 0) -> None:
        """The state of the module and the optimizer, and learning rates, go to a session of this step, or of a plan of it."""
        for path, tensor in self.values(seed).items():
            if tensor.is_meta:
                raise usage(f"{path} is on meta: it has no values", "session.init() draws weights, or reads a file of them")
            session.write(path, tensor)

    def read(self, session: Session) -> None:
        """The state of a session goes to the module and the optimizer, as after training in PyTorch: `state_dict` and
        `save_pretrained` have it then."""
        scaler = self._loss[2]["scaler"]
        if scaler is not None:
            scale, growth = (session.read(argument.index) for argument in self.arguments_of("scaler"))
            scaler.load_state_dict(scaler.state_dict() | {"scale": float(scale), "_growth_tracker": int(growth)})
        for argument, made in zip(self.arguments, self._trace.arguments):
            if argument.next is None or made.tree == "scaler":
                continue
            tensor = self._tensor(made, keep=True)
            if tensor.device.type == "cpu" and tensor.is_contiguous():
                session.read(argument.index, out=tensor)
            else:
                tensor.copy_(session.read(argument.index, framework="torch"))

    def verify(self, batches=None, steps: int = 3, **options) -> Verification:
        """Compares what the library computes with what PyTorch computes, on copies of the module and the optimizer: all results of
        the first step, and the losses of all steps. `batches`: one for each step; None: the example. `options` as of `sf.verify`. A
        mismatch is a SheafError."""
        if self._trace.draws:
            raise usage("the model draws random numbers, which PyTorch draws otherwise", "compare it with dropout 0, or after model.eval()")
        with in_file(self._values_of_torch(batches or [self._loss[1]] * steps)) as path:
            return verify(self, against=path, **options)

    @contextlib.contextmanager
    def example_file(self, steps: int) -> Iterator[str | None]:
        """Arguments and as many batches as the example gives, for `sf.verify`; None where the module is on meta."""
        values = self.values()
        if any(tensor.is_meta for tensor in values.values()):
            yield None
            return
        found = {f"in.{i}": to_numpy(tensor) for i, tensor in enumerate(values.values())}
        for argument in self.arguments_of("batch"):
            found |= {f"batch.{k}.{argument.path}": to_numpy(values[argument.path]) for k in range(steps)}
        with in_file(found) as path:
            yield path

    def _values_of_torch(self, batches) -> dict:
        values = {f"in.{i}": to_numpy(tensor) for i, tensor in enumerate(self.values().values())}
        own, kept = self._owners, self._loss
        loss, _, options = kept
        losses = []
        try:
            self._owners = model, optimizer = copy.deepcopy(own)
            self._loss = (*self._loss[:2], options := options | {"scaler": copy.deepcopy(options["scaler"])})
            for k, batch in enumerate(batches):
                for argument, (_, tensor) in zip(self.arguments_of("batch"), tensors_of(batch)):
                    values[f"batch.{k}.{argument.path}"] = to_numpy(tensor)
                losses.append(step_in_torch(model, loss, optimizer, batch, **options))
                if k == 0:
                    for argument, tensor in zip(self.arguments, self.values().values()):
                        if argument.next is not None:
                            values[f"out.{argument.next}"] = to_numpy(tensor)
                    values[f"out.{self.loss}"] = to_numpy(losses[0])
        finally:
            self._owners, self._loss = own, kept
        return values | {"losses": np.array([float(loss) for loss in losses])}

    def _tensor(self, made, keep=False):
        """What an argument is now. `keep`: the optimizer has it from now on."""
        model, optimizer = self._owners
        if made.tree in ("params", "buffers"):
            return getattr(model, "get_parameter" if made.tree == "params" else "get_buffer")(made.path[0]).detach()
        if made.tree == "lr":
            return torch.tensor(float(optimizer.param_groups[made.path[0] if made.path else 0]["lr"]), dtype=torch.float64)
        if made.tree == "scaler":
            return scaler_state(self._loss[2]["scaler"])[made.path[0]]
        if made.tree != "optimizer":
            return made.value.detach()
        key, name = made.path
        parameter = model.get_parameter(name)
        found = optimizer.state[parameter].get(key) if parameter in optimizer.state else None
        if found is None:
            found = made.value.clone() if keep else made.value
            if keep:
                optimizer.state[parameter][key] = found
        return found


def uncompiled(model):
    """The module itself, of one that torch.compile has wrapped."""
    return getattr(model, "_orig_mod", model)


@contextlib.contextmanager
def in_file(values) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="sheaf-") as folder:
        path = os.path.join(folder, "io.safetensors")
        write_safetensors(path, values)
        yield path


def export(model: torch.nn.Module, loss, optimizer: torch.optim.Optimizer, example_batch, *, clip_norm: float | None = None,
           clip_value: float | None = None, autocast: torch.dtype | None = None, scaler: torch.amp.GradScaler | None = None,
           expert_capacity: float | None = None, name: str | None = None) -> TorchStep:
    """A training step out of a module: forward, loss, backward and the optimizer's step, as one function of static shapes.

    model: any module, on the CPU, a GPU or `meta`. It stays as it is.
    loss: a function of the model's outputs and the targets, or of the outputs and the batch where this is a dictionary. None: the
        model returns its loss, or something that has it as `.loss`.
    optimizer: of torch.optim, over the model's parameters. Learning rates are arguments of the step, so schedulers work.
    example_batch: a dictionary of arguments by keyword, a pair (inputs, targets), or a tensor; shapes and types are what counts.
    clip_norm, clip_value: as of clip_grad_norm_ and clip_grad_value_, which come before the optimizer.
    autocast: torch.bfloat16, say: forward and loss run under torch.autocast.
    scaler: of float16. Its scale is state of the step; steps with gradients that are not finite change nothing else.
    expert_capacity: experts of transformers take at most so many times their even share of the tokens, and the rest is dropped.
        None: nothing is dropped, and every expert computes every token.
    """
    model = uncompiled(model)
    recorded = trace(model, loss, optimizer, example_batch, clip_norm=clip_norm, clip_value=clip_value, autocast=autocast,
                     scaler=scaler, expert_capacity=expert_capacity, known=OPS.keys() | MERGED.keys() | DRAWS.keys())
    text, sidecar = lower(recorded)
    step = TorchStep.from_text(text, name=name or type(model).__name__, sidecar=sidecar)
    step._trace, step._owners = recorded, (model, optimizer)
    step._loss = loss, example_batch, {"clip_norm": clip_norm, "clip_value": clip_value, "autocast": autocast, "scaler": scaler}
    return step


def lower(recorded: Trace) -> tuple[str, dict]:
    """The text of the step, and its sidecar."""
    arguments = recorded.arguments
    with jax.enable_x64(True):
        trees = OrderedDict()
        for argument in arguments:
            put(trees, (argument.tree, *argument.path), jax.ShapeDtypeStruct(tuple(argument.value.shape), dtype_of(argument.value.dtype)))
        if recorded.draws:
            trees["key"] = jax.ShapeDtypeStruct((2,), jnp.uint32)
        places = {id(p): i for i, p in enumerate(recorded.placeholders)}
        states = [i for i, argument in enumerate(arguments) if argument.next is not None]

        def step(**trees):
            leaves = [leaf for tree in trees.values() for leaf in jax.tree.leaves(tree)]
            key = leaves.pop() if recorded.draws else None
            draw_key, next_key = jax.random.split(jax.random.wrap_key_data(key)) if recorded.draws else (None, None)
            lowering = Lowering(recorded, {p: leaves[places[id(p)]] for p in recorded.placeholders}, draw_key)
            results = OrderedDict()
            for i in states:
                put(results, (arguments[i].tree, *arguments[i].path), lowering.value(arguments[i].next))
            results["loss"] = lowering.value(recorded.loss)
            return results | ({"key": jax.random.key_data(next_key)} if recorded.draws else {})

        names = list(trees)
        step.__name__ = "step"
        flat, tree = jax.tree.flatten_with_path(tuple(trees.values()))
        text = named(step, names, trees)
    entries = [{"name": names[path[0].idx] + jax.tree_util.keystr(path[1:]), "shape": list(leaf.shape), "dtype": str(leaf.dtype)}
               for path, leaf in flat]
    for entry, argument in zip(entries, arguments):
        role = ROLES[argument.tree]
        entry["role"] = "other" if argument.tree == "buffers" and argument.next is None else role
    links = [(i, place) for place, i in enumerate(states)]
    if recorded.draws:
        entries[-1]["role"] = "key"
        links.append((len(entries) - 1, len(states) + 1))
    return text, {"args": entries, "state": ",".join(f"{a}={r}" for a, r in links), "loss": len(states)}


def named(step, names, trees) -> str:
    """Lowers a function of trees by keyword, in their order: JAX would sort keywords."""
    scope = {"step": step}
    exec(f"def ordered({', '.join(names)}): return step({', '.join(f'{n}={n}' for n in names)})", scope)
    scope["ordered"].__name__ = "step"
    return jax.jit(scope["ordered"], keep_unused=True).lower(*trees.values()).as_text(debug_info=True)


def put(tree, path, leaf) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, OrderedDict())
    tree[path[-1]] = leaf


class Lowering:
    """Runs a record on the tracers of JAX, each node once, in the scope of its module. Where PyTorch merges dimensions for a product,
    these stay apart (torch_merged.py)."""

    def __init__(self, recorded: Trace, arguments: dict, key):
        self.values, self.key, self.merged = dict(arguments), key, {}
        for node in recorded.graph.nodes:
            if node.op == "get_attr":
                self.values[node] = jnp.asarray(to_numpy(recorded.constants[node.target]))
            elif node.op == "call_function":
                origin = node.meta.get(ORIGIN, Origin())
                with jax.named_scope("/".join(origin.scope)) if origin.scope else contextlib.nullcontext():
                    self.run(node, origin)

    def value(self, node):
        if node not in self.values:
            self.values[node] = self.merged[node].plain()
        return self.values[node]

    def form(self, node) -> Merged:
        return self.merged.get(node) or Merged.of(self.value(node))

    def run(self, node, origin) -> None:
        if node.target is operator.getitem:
            self.values[node] = self.value(node.args[0])[node.args[1]]
            return
        name, packet, out = node.target.name().removeprefix("aten::"), packet_of(node.target), node.meta.get("val")
        form = MERGED[packet](out, self.form, *node.args, **node.kwargs) if packet in MERGED else None
        if form is not None:
            self.merged[node] = Merged(settled_type(form.array, out), form.groups)
            return
        args = torch.fx.map_arg(node.args, self.value)
        kwargs = torch.fx.map_arg(node.kwargs, self.value)
        kwargs = {key: value for key, value in kwargs.items() if key not in ("device", "layout", "pin_memory", "memory_format")}
        draws = origin.draw is not None and packet in DRAWS
        function = DRAWS[packet] if draws else OPS.get(name) or OPS.get(packet)
        if function is None:
            raise unsupported(f"the op {node.target} is not in Sheaf's table", origin)
        try:
            if draws:
                found = function(jax.random.fold_in(self.key, origin.draw), out, *args, **kwargs)
            else:
                found = function(out, *args, **kwargs)
        except NotImplementedError as error:
            raise unsupported(f"the op {node.target} is not in Sheaf's table with {error}", origin) from None
        self.values[node] = settled(found, out)


def settled_type(array, out):
    return array if array.dtype == dtype_of(out.dtype) else array.astype(dtype_of(out.dtype))


def settled(found, out):
    """The results in the types and shapes that PyTorch says."""
    if isinstance(out, torch.Tensor):
        found = settled_type(found, out)
        assert found.shape == tuple(out.shape), (found.shape, out.shape)
        return found
    return [settled(x, o) if x is not None and o is not None else x for x, o in zip(found, out)]


def unsupported(text, origin) -> SheafError:
    return SheafError(Code.UNSUPPORTED, [Diagnostic("error", f"{text}, at {origin}", "write this part of the model with other ops")])


def to_numpy(tensor) -> np.ndarray:
    tensor = tensor.detach().cpu().contiguous().clone()
    if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        width = {1: torch.uint8, 2: torch.int16}[tensor.element_size()]
        return tensor.view(width).numpy().view(dtype_of(tensor.dtype))
    return tensor.numpy()
