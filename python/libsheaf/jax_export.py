"""Steps out of JAX: `export` takes a function as it is written for one device."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import struct
import tempfile
from pathlib import Path

import jax
import numpy as np

from .errors import usage
from .jax_links import Links, find_loss, tree_roles
from .jax_tree import (NUMBERS, Modules, Split, as_array, is_abstract, is_array, is_key, path_name, word_shape, words_of)
from .runs import Verification, verify
from .steps import Step

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL", "int64": "I64",
               "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16",
               "uint8": "U8", "complex64": "C64", "complex128": "C128", "float8_e4m3fn": "F8_E4M3",
               "float8_e5m2": "F8_E5M2"}


@dataclasses.dataclass(frozen=True)
class Returned:
    """Among results: the module that the step was called with."""

    name: str


class Call:
    """A call of the user's function: its arguments as arrays, and the function of these arrays."""

    def __init__(self, function, args, kwargs, static_argnums, static_argnames):
        self.function = function
        bound = bind(function, args, kwargs)
        self.positional, self.values = bound.positional, bound.values
        static = static_names(function, bound, args, kwargs, static_argnums, static_argnames)
        self.static = {name: self.values[name] for name in static}
        self.values = {name: value for name, value in self.values.items() if name not in static}
        self.modules = Modules(self.values)
        self.types = self.modules.types
        numbers = type(function).__module__.split(".")[0] != "equinox"
        self.splits = {name: Split(value, numbers) for name, value in self.values.items()
                       if name not in self.modules.names}
        arrays = self.modules.take_arrays() | {name: split.take_arrays() for name, split in self.splits.items()}
        self.arrays = {name: arrays[name] for name in self.values}
        del self.values
        # Known when it is traced: what else is in the results, and the kinds of keys.
        self.result_modules = self.result_rest = self.key_kinds = None

    def leaves(self) -> list:
        """The arrays, in the order of the step's arguments."""
        return jax.tree.leaves(list(self.arrays.values()))

    def structure(self):
        return jax.tree.structure(list(self.arrays.values()))

    def trees(self, leaves) -> dict:
        """The trees by name of the argument, of one value for each array."""
        return dict(zip(self.arrays, jax.tree.unflatten(self.structure(), leaves)))

    def join_result(self, arrays, arguments: dict):
        """What the user's function returns, of its arrays and the arguments that it was called with."""
        if self.result_modules.names:
            results = self.result_modules.join({"result": arrays})["result"]
        else:
            results = self.result_rest.join(arrays)
        return jax.tree.map(lambda leaf: arguments[leaf.name] if isinstance(leaf, Returned) else leaf, results,
                            is_leaf=lambda leaf: isinstance(leaf, Returned))

    def pure(self):
        """The function of the arrays alone, under the names of its arguments. It gives the new arrays of modules of
        flax.nnx, by the names of the arguments, and what the user's function gives."""

        def step(*arrays):
            given = dict(zip(self.arrays, arrays))
            made = {name: split.join(given[name]) for name, split in self.splits.items()}
            made |= self.modules.join({name: given[name] for name in self.modules.names})
            made |= self.static
            args, kwargs = self.positional.arrange(made)
            results = self.function(*args, **kwargs)
            after = Modules({name: made[name] for name in self.modules.names})
            same = {id(made[name]): Returned(name) for name in self.modules.names}
            results = jax.tree.map(lambda leaf: same.get(id(leaf), leaf), results, is_leaf=lambda leaf: id(leaf) in same)
            self.result_modules = Modules({"result": results})
            self.result_rest = Split(results)
            results = self.result_modules.take_arrays().get("result", self.result_rest.take_arrays())
            results = (after.take_arrays(), results) if self.modules.names else results
            self.key_kinds = [jax.random.key_impl(leaf) if is_key(leaf) else None for leaf in jax.tree.leaves(results)]
            return results

        step.__name__ = getattr(self.function, "__name__", type(self.function).__name__)
        step.__qualname__ = step.__name__
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        step.__signature__ = inspect.Signature([inspect.Parameter(identifier(name), kind) for name in self.arrays])
        return step


def identifier(name: str) -> str:
    return name if name.isidentifier() else "".join(c if c.isalnum() else "_" for c in name)


class Positional:
    """How values by name become a call: those in place, those of *args, and those by keyword."""

    def __init__(self, places, keywords):
        self.places, self.keywords = places, keywords

    def arrange(self, values):
        return [values[name] for name in self.places], {name: values[key] for name, key in self.keywords.items()}


class bind:
    """The arguments of a call by name. Those that the function does not name are numbered."""

    def __init__(self, function, args, kwargs):
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "arg")
        places = named[: len(args)] + [f"{rest}{i}" for i in range(len(args) - len(named))]
        self.places = places
        self.values = dict(zip(places, args))
        keywords = {}
        for name, value in kwargs.items():
            keywords[name] = name if name not in self.values else f"{name}_"
            self.values[keywords[name]] = value
        self.positional = Positional(places, keywords)


def static_names(function, bound, args, kwargs, argnums, argnames) -> set[str]:
    """The arguments that are no arrays but configuration: named so in the call, by the function's own jit, or by what they
    are."""
    argnums = (argnums,) if isinstance(argnums, int) else argnums
    argnames = (argnames,) if isinstance(argnames, str) else argnames
    for number in argnums:
        if not -len(args) <= number < len(args):
            raise usage(f"static_argnums has {number}, and the step is called with {len(args)} arguments")
    for name in argnames:
        if name not in bound.values:
            raise usage(f"static_argnames has {name!r}, which is no argument of the call: "
                        f"{', '.join(bound.values)}")
    names = {bound.places[number] for number in argnums} | set(argnames)
    names |= {name for name, value in bound.values.items()
              if not Modules.holds_nodes(value) and not any(is_array(leaf) or isinstance(leaf, NUMBERS)
                                                            for leaf in jax.tree.leaves(value))
              and jax.tree.leaves(value)}
    numbers = [name for name, value in bound.values.items() if isinstance(value, NUMBERS) and name not in names]
    return names | {name for name in numbers if is_static_number(function, bound, name)}


def is_static_number(function, bound, name) -> bool:
    """Whether the function's own jit takes this number as static: it then refuses to trace it."""
    if not hasattr(function, "lower"):
        return False

    def with_number(number):
        args, kwargs = bound.positional.arrange(bound.values | {name: number})
        return function.lower(*args, **kwargs) and number

    try:
        jax.eval_shape(with_number, bound.values[name])
        return False
    except ValueError as error:
        return "static" in str(error)
    except Exception:  # another reason, which the trace itself will give
        return False


def donated_names(call, traced, donate_argnums) -> set[str]:
    """Arguments that the caller donates, or the function's own jit."""
    donate_argnums = (donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums
    places = call.positional.places
    for number in donate_argnums:
        if not -len(places) <= number < len(places):
            raise usage(f"donate_argnums has {number}, and the step is called with {len(places)} arguments")
    names = {places[number] for number in donate_argnums}
    jaxpr = traced.jaxpr.jaxpr
    owners = [name for name, tree in call.arrays.items() for _ in jax.tree.leaves(tree)]
    owner_of = dict(zip(map(id, jaxpr.invars), owners))
    for equation in jaxpr.eqns:
        for given, donated in zip(equation.invars, equation.params.get("donated_invars", ())):
            if donated and id(given) in owner_of:
                names.add(owner_of[id(given)])
    return names


class JaxStep(Step):
    """A step that was exported out of JAX: it knows its function."""

    _call: Call

    def values(self, batches=None, steps: int = 3) -> dict[str, np.ndarray]:
        """Runs the step in JAX. Arguments and results of the first step, batches and losses of all, by the names that
        `sheaf verify` reads. `batches`: for each step the arguments that change, by name."""
        return run_in_jax(self, batches, steps)

    def verify(self, batches=None, steps: int = 3, **options) -> Verification:
        """Compares what the library computes with what JAX computes: all results of the first step, and the losses of all
        steps. `batches` as of `values`, `options` as of `sf.verify`. A mismatch is a SheafError."""
        with tempfile.TemporaryDirectory(prefix="sheaf-") as folder:
            path = os.path.join(folder, "io.safetensors")
            write_safetensors(path, self.values(batches, steps))
            return verify(self, against=path, **options)

    def save(self, path: str | os.PathLike, batches=None, steps: int = 3) -> list[str]:
        """Writes NAME.stablehlo.mlir, its sidecar NAME.json and, unless arguments are ShapeDtypeStructs, NAME.io.safetensors
        for `sheaf verify`; `batches` and `steps` as of `values`. `path` is the first of these, or NAME. Returns what it wrote."""
        base = os.fspath(path).removesuffix(".stablehlo.mlir")
        written = [f"{base}.stablehlo.mlir", f"{base}.json"]
        Path(written[0]).write_text(self._text, encoding="utf-8")
        entries = ",\n".join(json.dumps(entry) for entry in self._sidecar["args"])
        others = "".join(f", {json.dumps(key)}: {json.dumps(value)}" for key, value in self._sidecar.items()
                         if key != "args")
        Path(written[1]).write_text(f'{{"args": [\n{entries}\n]{others}}}\n', encoding="utf-8")
        if not self._call.is_abstract:
            written.append(f"{base}.io.safetensors")
            write_safetensors(written[2], self.values(batches, steps))
        return written


def export(function, *args, static_argnums=(), static_argnames=(), donate_argnums=(), state: dict | str | None = None,
           loss: int | str | None = None, platform: str | None = None, name: str | None = None, unroll: int = 0,
           assume_trip_count: int = 0, kwargs: dict | None = None, **more) -> JaxStep:
    """A training step out of a function and example arguments of it.

    function: any callable, jitted or not, that computes a whole step: forward, backward and optimizer. Its trees may be
        dictionaries, flax TrainStates, modules and optimizers of flax.nnx that it changes in place, modules of equinox,
        parameters of haiku, states of optax, ShapeDtypeStructs for what is too large to create.
    static_argnums, static_argnames: arguments that are configuration, as of `jax.jit`. Those that a jitted function names
        itself, and those without any array, are static anyway.
    donate_argnums: arguments that come back as results.
    state: what becomes what, by names or numbers as `sheaf show` prints them: {"params": 0} links an argument with a
        result of the function; "w=0,b=1" links leaves. None: by the trees, and where these leave doubts by the flow of data.
    loss: the number or the name of the result that is the loss. None: by name.
    platform: "cuda", "tpu" or "cpu": JAX lowers some ops in other ways for each. None: the one that JAX runs on.
    unroll, assume_trip_count: as of `Step.load`.
    kwargs: arguments by keyword; those that have no name of the above may be given as they are.
    """
    options = {"state": state, "loss": loss, "platform": platform, "name": name}
    kwargs = more | (kwargs or {})
    refuse_collisions(function, args, [key for key, value in options.items() if value is not None and key not in kwargs])
    if platform not in (None, *PLATFORMS):
        raise usage(f"there is no platform {platform!r}", f"platforms are {', '.join(PLATFORMS)}")
    call = Call(function, args, kwargs, static_argnums, static_argnames)
    if not call.leaves():
        raise usage("the step has no arguments that are arrays", "give example arguments: sf.export(step, state, batch)")
    pure = call.pure()
    traced = jax.jit(pure, keep_unused=True).trace(*call.arrays.values())
    call.jitted, call.result = jax.jit(pure, keep_unused=True), traced.out_info
    lowered = traced.lower(lowering_platforms=(platform,)) if platform else traced.lower()
    text = lowered.as_text(debug_info=True)
    call.donated = donated_names(call, traced, donate_argnums)
    sidecar = make_sidecar(call, call.donated, state, loss)
    call.is_abstract = any(map(is_abstract, call.leaves()))
    step = JaxStep.from_text(text, name=name or pure.__name__, sidecar=sidecar, unroll=unroll,
                             assume_trip_count=assume_trip_count)
    step._call, step._text = call, text
    step._sidecar = sidecar | {"args": [entry | {"role": argument.role} for entry, argument
                                        in zip(sidecar["args"], step.arguments)]}
    return step


def refuse_collisions(function, args, options) -> None:
    """An option that may as well be meant for an argument of the function."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    left = {p.name for p in parameters if p.kind == p.KEYWORD_ONLY}
    left |= {p.name for p in parameters[len(args):] if p.kind == p.POSITIONAL_OR_KEYWORD}
    for name in options:
        if name in left:
            raise usage(f"{name!r} is an option of export and an argument of the step",
                        f"give the argument in place, or as kwargs={{{name!r}: ...}}")


def make_sidecar(call, donated, state, loss) -> dict:
    links = Links(call.arrays, call.result, donated)
    said = state if isinstance(state, str) else said_links(call, state) if state is not None else None
    if said is None and links.sure:
        said = ",".join(f"{argument}={result}" for argument, result in links.next.items()) or None
    entries, first = [], 0
    for name, tree in call.arrays.items():
        roles = tree_roles(name, tree, links, first, call.types)
        for (path, leaf), role in zip(jax.tree.leaves_with_path(tree), roles):
            typed = word_shape(leaf)
            entries.append({"name": path_name(identifier(name), path)} | ({"role": role} if role else {})
                           | {"shape": list(typed.shape), "dtype": str(typed.dtype)})
        first += len(roles)
    sidecar = {"args": entries} | ({"state": said} if said else {})
    if loss is None:
        loss = find_loss(call.result, links)
    return sidecar | ({} if loss is None else {"loss": loss})


def said_links(call, state: dict) -> str:
    """{"params": 0}: the argument and the result have one tree."""
    results = call.result[1] if call.modules.names else call.result
    leaves = jax.tree.leaves(call.result)
    before = len(leaves) - len(jax.tree.leaves(results))
    parts = list(results) if isinstance(results, (tuple, list)) and not hasattr(results, "_fields") else [results]
    starts = np.cumsum([before] + [len(jax.tree.leaves(part)) for part in parts])
    first = dict(zip(call.arrays, np.cumsum([0] + [len(jax.tree.leaves(tree)) for tree in call.arrays.values()])))
    pairs = []
    for name, number in state.items():
        if name not in call.arrays:
            raise usage(f"state: the step has no argument {name!r}: {', '.join(call.arrays)}")
        if not isinstance(number, int) or not 0 <= number < len(parts):
            raise usage(f"state: {name!r} becomes result {number!r}, and the step has results 0 to {len(parts) - 1}")
        count = len(jax.tree.leaves(call.arrays[name]))
        if len(jax.tree.leaves(parts[number])) != count:
            raise usage(f"state: result {number} does not have the tree of the argument {name!r}")
        pairs += [f"{first[name] + i}={starts[number] + i}" for i in range(count)]
    return ",".join(pairs)


def run_in_jax(step: JaxStep, batches, steps) -> dict[str, np.ndarray]:
    call = step._call
    if call.is_abstract:
        raise usage("the step was exported from shapes alone, so JAX has no values to run it with",
                    "export it with arrays, or at a smaller size")
    if step.loss is None:
        raise usage("the step has no loss to compare: no result is a floating scalar",
                    "return the loss, and name it: sf.export(..., loss=RESULT)")
    arrays, arguments = dict(call.arrays), step.arguments
    names = [argument.name for argument in arguments]
    values = {f"in.{i}": words_of(leaf) for i, leaf in enumerate(call.leaves())}
    losses = []
    for k, batch in enumerate(batches or [{}] * steps):
        for name, value in batch.items():
            if name not in arrays:
                raise usage(f"batches: the step has no argument {name!r}: {', '.join(arrays)}")
            arrays[name] = jax.tree.map(as_array, value)
        leaves = jax.tree.leaves(list(arrays.values()))
        values |= {f"batch.{k}.{name}": words_of(leaf) for name, leaf, argument in zip(names, leaves, arguments)
                   if argument.role == "batch"}
        results = jax.tree.leaves(call.jitted(*arrays.values()))
        if k == 0:
            values |= {f"out.{i}": words_of(leaf) for i, leaf in enumerate(results)}
        losses.append(float(results[step.loss]))
        following = [leaf if argument.next is None else results[argument.next]
                     for leaf, argument in zip(leaves, arguments)]
        arrays = call.trees(following)
    return values | {"losses": np.array(losses, np.float32)}


def widened(tensor: np.ndarray) -> np.ndarray:
    """The same values in a type that the file format has."""
    if str(tensor.dtype) in SAFETENSORS:
        return tensor
    is_integer = re.match("u?int", str(tensor.dtype))
    return tensor.astype(np.int8 if is_integer else np.float32)


def write_safetensors(path, tensors: dict[str, np.ndarray]) -> None:
    header, offset = {}, 0
    tensors = {name: widened(tensor) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        header[name] = {"dtype": SAFETENSORS[str(tensor.dtype)], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())
