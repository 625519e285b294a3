"""Schedules: primitives that are applied to parts of a step. They are those of schedules in Lua, of the same names."""

from __future__ import annotations

import contextvars
import ctypes
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p

from . import prototypes as c
from .errors import SheafError, usage
from .library import DIAG, Handle, call, call_long, caller, lib, make_struct, new_interrupt, str_of, text_of
from .steps import Step


class Schedule:
    """Primitives, in the order in which they are applied.

        def schedule(sch):
            sch.mesh("model=2")
            sch["layer_*.attn"].shard("q/kernel", 1).sync("forward")

        plan = sf.plan(step, "1x2xCPU", schedule=schedule)

    sch["layer_?.mlp"] is a Module: one part of the model, or all that match; names have dots or slashes, `*` matches any
    characters and `?` one. docs/reference/schedules.md describes each primitive. One thread uses a schedule at a time.
    """

    def __init__(self, step: Step, *, ranks: int = 0, settings: int | None = None):
        out = c_void_p()
        call("sf_primitives_new", step._handle, DIAG, byref(out))
        self._adopt(Handle(out.value, "sf_primitives_free", owner=step), step, ranks, settings)

    def _adopt(self, handle, step, ranks, settings) -> Schedule:
        self._list, self.step, self.tune = handle, step, Variables(settings)
        self.ranks = ranks
        """how many ranks the plan is to have; 0: not known"""
        return self

    @classmethod
    def _of(cls, handle: int, step: Step, ranks: int, settings) -> Schedule:
        """A list of primitives that somebody else frees."""
        return cls.__new__(cls)._adopt(handle, step, ranks, settings)

    def __getitem__(self, modules: str) -> Module:
        return Module(self, modules)

    def _add(self, **fields) -> None:
        _, file, line = caller()
        lists = {name: fields.pop(name) for name in ("subgraphs", "devices", "sketches", "backwards") if fields.get(name)}
        said = make_struct(c.sf_primitive, file=file, line=line, **fields)
        for name, values in lists.items():
            kind = dict(c.sf_primitive._fields_)[name]._type_
            setattr(said, name, (kind * len(values))(*values))
            if name in ("subgraphs", "devices"):
                setattr(said, "n" + name, len(values))
        call("sf_primitives_add", self._list, byref(said), DIAG, None)

    def _set(self, name: str, value) -> Schedule:
        if isinstance(value, Mapping):
            value = ",".join(f"{axis}={size}" for axis, size in value.items())
        elif isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        self._add(kind=c.SF_PRIMITIVE_SET, name=name, value=str(value))
        return self

    def mesh(self, axes: str | Mapping[str, int]) -> Schedule:
        """The mesh: "data=2,model=4" or {"data": 2, "model": 4}."""
        return self._set("mesh", axes)

    def recipe(self, name: str) -> Schedule:
        """A recipe for all that the schedule leaves open."""
        return self._set("recipe", name)

    def stages(self, stages: int | str | Sequence[str]) -> Schedule:
        """How many stages a pipeline has, or the scopes that begin all but the first."""
        return self._set("stages", stages)

    def schedule(self, name: str) -> Schedule:
        """The pipeline schedule, "1f1b", ..."""
        return self._set("schedule", name)

    def micro_batches(self, count: int) -> Schedule:
        return self._set("micro_batches", count)

    def recompute(self, how: str | Sequence[str]) -> Schedule:
        return self._set("recompute", how)

    def co_shard(self, chunks: int | str) -> Schedule:
        return self._set("co_shard", chunks)

    def shard_state(self, how: str) -> Schedule:
        return self._set("shard_state", how)

    def passes(self, passes: str | Sequence[str]) -> Schedule:
        return self._set("passes", passes)

    def kernels(self, which: str) -> Schedule:
        return self._set("kernels", which)

    def strict(self) -> Schedule:
        """A partial sum that no `sync` reduces is an error, and not a warning."""
        return self._set("strict", "sync")

    def replace(self, kernel: str) -> Schedule:
        """Asserts that a kernel of the whole step is used: "cross_entropy"."""
        self._add(kind=c.SF_PRIMITIVE_REPLACE, module="", kernel=kernel)
        return self

    def space(self, devices: int | None = None) -> Space:
        """nnScaler's primitives, on so many devices; None: `ranks`."""
        return Space(self, devices or self.ranks)

    def modules(self, pattern: str = "*") -> list[Module]:
        """All modules that match."""
        return [Module(self, path) for path in self._paths(pattern)]

    def children(self, pattern: str = "*") -> list[Module]:
        """Those at the top."""
        return [Module(self, path) for path in self._paths(pattern) if "/" not in path]

    def _paths(self, pattern: str | None) -> list[str]:
        return self._names(lib.sf_primitives_modules, text_of(pattern))

    def _names(self, function, *arguments) -> list[str]:
        count = function(self._list, *arguments, 0, None)
        if count < 0:
            raise MemoryError("there is no memory for names")
        found = (c_char_p * max(count, 1))()
        function(self._list, *arguments, count, found)
        return [str_of(name) for name in found[:count]]

    def primitives(self) -> list[str]:
        """What is applied, as texts."""
        return [str_of(lib.sf_primitives_text(self._list, i)) for i in range(lib.sf_primitives_count(self._list))]

    def undo(self) -> None:
        """Takes the last primitive back."""
        call("sf_primitives_undo", self._list, -1, DIAG)

    def run_lua(self, path: str | os.PathLike, *, unsafe: bool = False) -> Schedule:
        """Applies the primitives of a file in Lua. `unsafe` lets it open files and run programs."""
        options = make_struct(c.sf_script_options, unsafe=unsafe, ranks=self.ranks)
        call_long("sf_script_run", os.fsencode(path), byref(options), self._list, DIAG)
        return self

    def verify(self, steps: int = 2) -> None:
        """Compares the step as the schedule splits it with the unsplit one. Raises SheafError, which names the first primitive from
        which on they differ."""
        from .plans import Spec

        report, culprit, interrupt = ctypes.POINTER(c.sf_verify_report)(), c_int(), new_interrupt()
        options = make_struct(c.sf_verify_options, steps=steps, interrupt=interrupt)
        try:
            call_long("sf_primitives_verify", self._list, Spec(None, ranks=self.ranks or None).ref, byref(options), DIAG, byref(report),
                      byref(culprit), interrupt=interrupt, wait=True)
        finally:
            lib.sf_verify_free(report)

    def result_step(self) -> Step:
        """The step as `replace` has made it; where there was none, the step itself."""
        if lib.sf_primitives_graph(self._list) == self.step._handle.value:
            return self.step
        out = c_void_p()
        call("sf_primitives_copy_graph", self._list, DIAG, byref(out))
        return Step(out.value, self.step.name + ", changed", None)

    def __repr__(self) -> str:
        return "\n".join(self.primitives()) or "<Schedule of no primitives>"


class Variables:
    """Values that `tune` finds. Elsewhere a variable has its first value."""

    def __init__(self, settings: int | None = None):
        self._settings = settings

    def int(self, name: str, low: int, high: int, step: int = 1) -> int:
        """One of low, low + step, ... up to high."""
        out = c_int64()
        call("sf_settings_int", self._settings, name.encode(), low, high, step, DIAG, byref(out))
        return out.value

    def choice(self, name: str, values: Sequence):
        """One of the values."""
        texts = (c_char_p * len(values))(*[str(value).encode() for value in values])
        out = c_int()
        call("sf_settings_choice", self._settings, name.encode(), len(values), texts, DIAG, byref(out))
        return values[out.value]


class Module:
    """A part of the model, or all parts that match a pattern. Primitives act on each."""

    def __init__(self, schedule: Schedule, pattern: str):
        self._schedule, self.pattern = schedule, pattern
        if not schedule._paths(pattern):  # the message has the names that there are
            schedule._add(kind=c.SF_PRIMITIVE_DECOMPOSE, module=pattern)

    def __getitem__(self, name: str) -> Module:
        return Module(self._schedule, f"{self.pattern}/{name}")

    def __len__(self) -> int:
        return len(self._schedule._paths(self.pattern))

    def __iter__(self) -> Iterator[Module]:
        return (Module(self._schedule, path) for path in self._schedule._paths(self.pattern))

    def children(self, pattern: str = "*") -> list[Module]:
        """The modules one level below."""
        depth = self.pattern.replace(".", "/").count("/") + 1
        return [Module(self._schedule, path) for path in self._schedule._paths(f"{self.pattern}/{pattern}") if path.count("/") == depth]

    def params(self) -> list[str]:
        """The names of its parameters, or of those that it reads."""
        return self._schedule._names(lib.sf_primitives_params, text_of(self.pattern), None)

    def _add(self, kind, **fields) -> Module:
        self._schedule._add(kind=kind, module=self.pattern, **fields)
        return self

    def shard(self, params: str | Iterable[str], dim: int, axis: str | None = None) -> Module:
        """Parameters are sharded along a dimension, over an axis of the mesh: its only one, or "model"."""
        names = [params] if isinstance(params, str) else list(params)
        before = lib.sf_primitives_count(self._schedule._list)
        try:
            for param in names:
                self._add(c.SF_PRIMITIVE_SHARD, param=param, dim=dim, axis=axis)
        except SheafError:
            while lib.sf_primitives_count(self._schedule._list) > before:  # all, or nothing
                self._schedule.undo()
            raise
        return self

    def sync(self, mode: str | None = None, op: str | None = None, dim: int = 0, axis: str | None = None) -> Module:
        """Partial results are reduced: mode "forward" or "backward"; op "all_reduce", "all_gather", or "reduce_scatter" along `dim`."""
        return self._add(c.SF_PRIMITIVE_SYNC, mode=mode, op=op, dim=dim if op == "reduce_scatter" else 0, axis=axis)

    def checkpoint(self, subgraphs: Sequence[Subgraph] | None = None) -> Module:
        """The module, or these ops of it, are recomputed for the backward pass."""
        return self._add(c.SF_PRIMITIVE_CHECKPOINT, subgraphs=_numbers(subgraphs))

    def trace(self, leaves: Iterable[str] = ()) -> Module:
        """Ops of the module can be found, but those of its modules `leaves`."""
        return self._add(c.SF_PRIMITIVE_TRACE, name=",".join(leaves) or None)

    def pipeline_split(self) -> Module:
        """A stage of a pipeline begins with the module."""
        return self._add(c.SF_PRIMITIVE_PIPELINE_SPLIT)

    def decompose(self) -> Module:
        return self._add(c.SF_PRIMITIVE_DECOMPOSE)

    def fork_rng(self) -> Module:
        """Checks that the module draws random numbers."""
        return self._add(c.SF_PRIMITIVE_FORK_RNG)

    def annotate(self, name: str, value) -> Module:
        """Words that are kept in the plan."""
        return self._add(c.SF_PRIMITIVE_ANNOTATE, name=name, value=str(value))

    def find(self, what: str | Callable) -> list[Subgraph]:
        """Subgraphs of the forward pass: by a regular expression in "SCOPE/OP"; by a function of tensors, which is traced with
        `op`; or by a function of an Op that returns a bool, given as where(function)."""
        first, count = c_int(), c_int()
        schedule = self._schedule
        if isinstance(what, str):
            pattern = re.compile(what)
            what = where(lambda found: pattern.search(f"{found.scope}/{found.op}") is not None)
        if isinstance(what, where):
            taken = what
            callback = c.sf_take_op(taken._take)
            call("sf_primitives_find_where", schedule._list, self.pattern.encode(), callback, None, DIAG, byref(first), byref(count))
            if taken.error:
                raise taken.error
        else:
            sketch = trace(what, [None] * len(inspect.signature(what).parameters))
            call("sf_primitives_find", schedule._list, self.pattern.encode(), sketch._handle, DIAG, byref(first), byref(count))
        return [Subgraph(schedule, first.value + i) for i in range(count.value)]

    def replace(self, new: str | os.PathLike | Callable, subgraphs: Sequence[Subgraph] | None = None, *, name: str | None = None,
                backward: str | os.PathLike | Callable | None = None) -> Module:
        """Other ops for subgraphs, or for all that the module computes in the forward pass.

        new: a function of the inputs, written with `op`; a file of StableHLO; or the name of a kernel, "attention", which asserts
        that the module has it. backward: a function of the inputs and the gradients of the results, or a file, for gradients; None:
        the backward pass stays as it is.
        """
        schedule = self._schedule
        if isinstance(new, str) and subgraphs is None and not re.search("[./]", new):
            return self._add(c.SF_PRIMITIVE_REPLACE, kernel=new, name=name)
        if subgraphs is None:
            first, count = c_int(), c_int()
            call("sf_primitives_find_modules", schedule._list, self.pattern.encode(), DIAG, byref(first), byref(count))
            subgraphs = [Subgraph(schedule, first.value + i) for i in range(count.value)]
        fields, kept = {}, []
        for function, sketches, fragment, with_results in ((new, "sketches", "fragment", False),
                                                           (backward, "backwards", "backward", True)):
            if callable(function):
                made = [trace(function, s._inputs() + (s._float_results() if with_results else [])) for s in subgraphs]
                kept.append(made)
                fields[sketches] = [sketch._handle for sketch in made]
            elif function is not None:
                fields[fragment] = function
        return self._add(c.SF_PRIMITIVE_REPLACE, subgraphs=_numbers(subgraphs), name=name, **fields)

    def fuse(self, subgraphs: Sequence[Subgraph], *, compiler: str | None = None) -> Module:
        """Asserts that each subgraph runs as one loop; compiler "cc" compiles it."""
        return self._add(c.SF_PRIMITIVE_FUSE, subgraphs=_numbers(subgraphs), value=compiler)

    def __repr__(self) -> str:
        return f"<Module {self.pattern}: {len(self)} of the step>"


class Space:
    """nnScaler's primitives: ops are cut, placed on devices, and put into an order."""

    def __init__(self, schedule: Schedule, devices: int):
        if devices < 1:
            raise usage("say how many devices the space has: sch.space(4)")
        self._schedule = schedule._set("devices", devices)

    def trans(self, ops: str | Module | None, how: str, parts: int = 1, where: str = "space") -> Space:
        """Cuts ops along a factor, by its letter, or the batch, into parts, in "space" or "time"; or how="recompute"."""
        self._schedule._add(kind=c.SF_PRIMITIVE_TRANS, module=_ops(ops), name=how, parts=parts, mode=where)
        return self

    def assign(self, ops: str | Module | None, devices: int | Sequence[int], micro_batch: int = c.SF_EVERY) -> Space:
        """Places ops on devices, in all micro-batches or in one."""
        devices = [devices] if isinstance(devices, int) else list(devices)
        self._schedule._add(kind=c.SF_PRIMITIVE_ASSIGN, module=_ops(ops), devices=devices, microbatch=micro_batch)
        return self

    def order(self, before: Sequence, after: Sequence) -> Space:
        """One task before another: (ops, "forward", "backward" or "weights", micro-batch, round); what is left out is all."""
        kind = c.POINTER(c.sf_task)
        tasks = [_task(*before), _task(*after)]
        self._schedule._add(kind=c.SF_PRIMITIVE_ORDER, before=kind(tasks[0]), after=kind(tasks[1]))
        return self


def _ops(ops) -> str | None:
    return ops.pattern if isinstance(ops, Module) else ops


def _task(ops=None, pass_="forward", micro_batch=c.SF_EVERY, round=0):
    passes = {"forward": c.SF_PASS_FORWARD, "backward": c.SF_PASS_BACKWARD, "weights": c.SF_PASS_WEIGHTS}
    if pass_ not in passes:
        raise usage(f"there is no pass {pass_!r}", f"passes are {', '.join(passes)}")
    return make_struct(c.sf_task, ops=_ops(ops), **{"pass": passes[pass_]}, microbatch=micro_batch, round=round)


class Subgraph:
    """Connected ops that `find` has found. They are of the step as it is now: `replace` makes another."""

    def __init__(self, schedule: Schedule, number: int):
        self._schedule, self.number = schedule, number

    def _view(self):
        view = make_struct(c.sf_subgraph_view)
        lib.sf_primitives_subgraph(self._schedule._list, self.number, byref(view))
        return view

    def _types(self, function, count) -> list[tuple[str, tuple[int, ...]]]:
        kind, found = make_struct(c.sf_tensor_type), []
        for i in range(count):
            if not function(self._schedule._list, self.number, i, byref(kind)):
                raise usage("the subgraph was found before the step was changed: find it again")
            found.append((str_of(kind.dtype), tuple(kind.dims[: kind.rank])))
        return found

    def _inputs(self):
        return self._types(lib.sf_primitives_subgraph_input, self._view().inputs)

    def _float_results(self):
        results = self._types(lib.sf_primitives_subgraph_result, self._view().results)
        return [kind for kind in results if kind[0].startswith(("f", "bf"))]

    def ops(self) -> list[str]:
        """Its ops, "SCOPE/OP"."""
        view, found = make_struct(c.sf_op_view), []
        while lib.sf_primitives_subgraph_op(self._schedule._list, self.number, len(found), byref(view)):
            found.append(f"{str_of(view.scope)}/{str_of(view.op)}")
        return found

    def __len__(self) -> int:
        return self._view().ops

    def __repr__(self) -> str:
        return f"<Subgraph of {len(self)} ops>"


def _numbers(subgraphs) -> list[int] | None:
    if subgraphs is None:
        return None
    subgraphs = [subgraphs] if isinstance(subgraphs, Subgraph) else list(subgraphs)
    if not subgraphs:
        raise usage("there is no subgraph in the list")
    return [subgraph.number for subgraph in subgraphs]


class Op:
    """An op, as a function that chooses among ops sees it."""

    def __init__(self, view):
        self.op, self.scope = str_of(view.op), str_of(view.scope)
        kind = view.type[0]
        self.shape, self.dtype = tuple(kind.dims[: kind.rank]), str_of(kind.dtype)


class where:
    """For `find`: the ops for which a function of an Op is true."""

    def __init__(self, function: Callable[[Op], bool]):
        self.function, self.error = function, None

    def _take(self, _, view):
        if self.error:
            return False
        try:
            return bool(self.function(Op(view[0])))
        except BaseException as error:
            self.error = error
            return False


class Sketch:
    """A small graph of ops without types, to look for in a step or to put into it."""

    def __init__(self):
        out = c_void_p()
        call("sf_sketch_new", DIAG, byref(out))
        self._handle = Handle(out.value, "sf_sketch_free")

    def operand(self, value) -> int:
        if isinstance(value, Traced):
            if value._sketch is not self:
                raise usage("this tensor is of another function that was traced")
            return value._number
        if not isinstance(value, (int, float)):
            raise usage(f"an operand is a tensor of the function or a number, not {value!r}")
        out = c_int()
        call("sf_sketch_number", self._handle, float(value), DIAG, byref(out))
        return out.value


_current: contextvars.ContextVar[Sketch | None] = contextvars.ContextVar("sketch", default=None)


class Traced:
    """A tensor of a function that is traced. `shape` and `dtype` are known of the inputs of a replacement."""

    def __init__(self, sketch: Sketch, number: int, kind=None):
        self._sketch, self._number, self._kind = sketch, number, kind

    def _known(self, i: int):
        if self._kind is None:
            raise usage("shapes are known of the inputs of a replacement, not of a pattern, or of what is computed")
        return self._kind[i]

    @property
    def dtype(self) -> str:
        return self._known(0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._known(1)

    def __add__(self, other): return op.add(self, other)
    def __radd__(self, other): return op.add(other, self)
    def __sub__(self, other): return op.subtract(self, other)
    def __rsub__(self, other): return op.subtract(other, self)
    def __mul__(self, other): return op.multiply(self, other)
    def __rmul__(self, other): return op.multiply(other, self)
    def __truediv__(self, other): return op.divide(self, other)
    def __rtruediv__(self, other): return op.divide(other, self)
    def __pow__(self, other): return op.power(self, other)
    def __rpow__(self, other): return op.power(other, self)
    def __neg__(self): return op.negate(self)
    def __matmul__(self, other): return op.dot(self, other)


def trace(function: Callable, kinds: list) -> Sketch:
    """The ops that a function of tensors applies; `kinds` are the types of its inputs, or None each."""
    if not kinds:
        raise usage("a pattern is a function of the tensors that it names")
    sketch = Sketch()
    number, inputs = c_int(), []
    for kind in kinds:
        call("sf_sketch_input", sketch._handle, DIAG, byref(number))
        inputs.append(Traced(sketch, number.value, kind))
    token = _current.set(sketch)
    try:
        made = function(*inputs)
        results = [sketch.operand(value) for value in (made if isinstance(made, (tuple, list)) else [made])]
    finally:
        _current.reset(token)
    call("sf_sketch_return", sketch._handle, len(results), (c_int * len(results))(*results), DIAG)
    return sketch


class Ops:
    """The ops of StableHLO, for functions that `find` and `replace` trace: op.tanh(x), op.slice(x, start_indices=[0], ...).

    Attributes are keywords, as docs/reference/ops.md names them. `reshape`, `broadcast_in_dim` and `convert` take `shape` and
    `dtype`.
    """

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *operands, **attributes: apply(name, operands, **attributes)

    def dot(self, a, b, **how): return self.dot_general(a, b, **how)
    def exp(self, x): return self.exponential(x)
    def sigmoid(self, x): return self.logistic(x)
    def relu(self, x): return self.maximum(x, 0)
    def silu(self, x): return x * self.logistic(x)
    def sum(self, x, dims): return self.reduce(x, 0, dimensions=dims, body=1)
    def max(self, x, dims): return self.reduce(x, float("-inf"), dimensions=dims, body=4)

    def gelu(self, x):
        """As tanh approximates it."""
        cube = x * (x * x)
        return x * ((self.tanh((x + cube * 0.044715) * 0.7978845608028654) + 1) * 0.5)


op = Ops()


def apply(name: str, operands, shape: Sequence[int] | None = None, dtype: str | None = None, **attributes) -> Traced:
    sketch = _current.get()
    if sketch is None:
        raise usage("ops are for functions that find and replace trace")
    numbers = [sketch.operand(value) for value in operands]
    attrs = []
    for key, value in attributes.items():
        attr = make_struct(c.sf_sketch_attr, name=key, count=-1)
        if isinstance(value, str):
            attr.count, attr.text = -2, value.encode()
        elif isinstance(value, int):
            attr.integer = value
        else:
            attr.count, attr.ints = len(value), (c_int64 * max(len(value), 1))(*value)
        attrs.append(ctypes.pointer(attr))
    dims = None if shape is None else (c_int64 * max(len(shape), 1))(*shape)
    out = c_int()
    call("sf_sketch_op", sketch._handle, name.encode(), len(numbers), (c_int * max(len(numbers), 1))(*numbers), len(attrs),
         (c.POINTER(c.sf_sketch_attr) * max(len(attrs), 1))(*attrs), -1 if shape is None else len(shape), dims, text_of(dtype), DIAG,
         byref(out))
    return Traced(sketch, out.value)
